# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A driver is rolled out over a real kubelet and simulated nodes: waves, a sick canary, rollback, gangs that save.

The driver is a DaemonSet with OnDelete whose pods do nothing. real-0 has the real kubelet, a device plugin of the tests,
and the real agent with the NVML double; the other nodes are kwok's, and a thread writes what their agents would. The
operator has the rights of `holdfast manifests --operator --rollouts` and no other.
"""

import contextlib
import json
import os
import threading
import time

from kit import audit, build, client, dra, plugin
from kit.agent import NODE, RESOURCE, Agent
from kit.check import Fail, Skip, equal, has_verb, want
from kit.operator import Operator
from parts import rbac
from parts.remedy import now, stays

NEEDS = {"kwok": 1, "node": NODE}
BUILD = ["control", "kwok", "node"]
MINUTES = 12
IMAGE = "localhost/busybox:1"
UNITS = [f"unit-{i}" for i in range(4)]
ALL = [NODE, *UNITS]
LABEL = {"rollout": "yes"}
RUNS, FAILS = ["sleep", "1000000"], ["sh", "-c", "exit 1"]
BOOT = "/proc/sys/kernel/random/boot_id"
MEND_NS, CONDITION = "holdfast-mend", "holdfast.dev/MaintenanceInProgress"
PHASES = ("Locked", "Cordoned", "Emptying", "Changing", "Proving", "Restoring")


def setup(w):
    if w.options.peer or not has_verb(w.program, "manifests"):
        raise Skip("for Holdfast alone")
    plugin.needed()
    w.install()
    w.cluster.add_kwok(len(UNITS), "unit")
    for name in ALL:
        w.api.patch("nodes", None, name, {"metadata": {"labels": LABEL}})
    for name in UNITS:
        room = {RESOURCE: "4"}
        w.api.patch("nodes", None, name, {"status": {"capacity": room, "allocatable": room,
                                                     "nodeInfo": {"bootID": "boot-" + name}}}, "status")
        w.api.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceHealth",
                                             "metadata": {"name": name}})
    keep = rbac.grant(w, rbac.shipped(w))
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=w.holdfast("manifests", "--rollouts"))
    account = next(o["metadata"] for o in keep if o["kind"] == "ServiceAccount")
    w.shipped = w.cluster.kubeconfig("shipped", token=w.api.token_of(account["namespace"], account["name"]))
    w.user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    plugin.start(w)
    plugin.says(w)
    w.until("the plugin offers four", lambda: w.api.get("nodes", None, NODE)["status"]["allocatable"].get(
        RESOURCE) == "4", 60)
    return "a DaemonSet with OnDelete on five nodes, one of them real"


class Units:
    """The agents of kwok's nodes: each writes that its device is well, every half second."""

    def __init__(self, w):
        self.w, self.ended, self.trouble = w, threading.Event(), None
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        self.tell()
        self.thread.start()
        return self

    def tell(self):
        for name in UNITS:
            self.w.api.patch("devicehealths", None, name, {"status": {
                "observedTime": now(), "driverTime": now(), "bootID": "boot-" + name, "state": "Healthy",
                "driverVersion": "570.86.15",
                "devices": [{"id": "0000:1a:00.0", "kind": "gpu", "state": "Healthy"}]}}, sub="status")

    def work(self):
        while not self.ended.wait(0.5):
            try:
                self.tell()
            except (OSError, client.Refused) as e:
                self.trouble = e

    def stop(self):
        self.ended.set()
        self.thread.join(10)


class Story:
    """A DaemonSet whose template has changed, agents and an operator; at its end nothing of them is left."""

    def __init__(self, w, command=RUNS, agent=True):
        self.w, self.ns = w, w.namespace("driver")
        self.operator = Operator(w.cluster, w.program, "fleet", config=w.shipped,
                                 env={"MY_POD_NAMESPACE": "holdfast-system"})
        self.agent = Agent(w) if agent else None
        if agent:
            # The node is in the machine's boot.
            with open(BOOT, encoding="ascii") as f:
                self.agent.write("proc/sys/kernel/random/boot_id", f.read())
        self.units = Units(w)
        self.command = command

    def __enter__(self):
        w = self.w
        self.since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        if self.agent:
            self.agent.begin()
        self.units.start()
        self.make_daemon_set()
        self.first = self.pods()
        self.change(self.command)
        self.operator.start()
        return self

    def make_daemon_set(self, name="driver", strategy="OnDelete"):
        w = self.w
        w.api.create("daemonsets", self.ns, {
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
            "spec": {"updateStrategy": {"type": strategy}, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {
                    "nodeSelector": LABEL, "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "c", "image": IMAGE, "command": RUNS,
                                    "env": [{"name": "DRIVER", "value": "570"}]}]}}}})
        w.until("it runs everywhere", lambda: self.ready() == set(ALL), 120)

    def change(self, command=RUNS, version="575", name="driver"):
        """What a person does first."""
        self.w.api.patch("daemonsets", self.ns, name, {"spec": {"template": {"spec": {"containers": [{
            "name": "c", "image": IMAGE, "command": command, "env": [{"name": "DRIVER", "value": version}]}]}}}})
        self.w.until("its controller has seen it", lambda: (lambda d: d["status"].get("observedGeneration") ==
                     d["metadata"]["generation"])(self.w.api.get("daemonsets", self.ns, name)), 30)

    def pods(self):
        """Of the DaemonSet, by node."""
        return {p["spec"]["nodeName"]: p for p in self.w.api.list("pods", self.ns, "app=driver")
                if p["spec"].get("nodeName") and not p["metadata"].get("deletionTimestamp")}

    def ready(self):
        return {n for n, p in self.pods().items() if any(
            c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))}

    def versions(self):
        """Which driver each node has."""
        return {n: p["spec"]["containers"][0]["env"][0]["value"] for n, p in self.pods().items()}

    def changed(self):
        return sorted(n for n, v in self.versions().items() if v == "575")

    def roll(self, name="r", daemon_set="driver", **spec):
        spec = {"change": {"daemonSet": {"namespace": self.ns, "name": daemon_set}},
                "nodeSelector": {"matchLabels": LABEL}, "waves": ["1", "100%"], "soakSeconds": 2,
                "proof": {"seconds": 60}, **spec}
        return self.w.api.create("devicerollouts", None, {
            "apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceRollout", "metadata": {"name": name}, "spec": spec})

    def order(self, name="r", **spec):
        self.w.api.patch("devicerollouts", None, name, {"spec": spec})

    def status(self, name="r"):
        return (self.w.api.find("devicerollouts", None, name) or {}).get("status") or {}

    def node(self, node, name="r"):
        return next((n for n in self.status(name).get("nodes", []) if n["name"] == node), {})

    def condition(self, kind, name="r"):
        return next((c for c in self.status(name).get("conditions", []) if c["type"] == kind), {})

    def until_phase(self, phase, name="r", timeout_s=120):
        ends = {"Halted", "Succeeded", "Failed", "Cancelled"}

        def reached():
            is_now = self.status(name).get("phase")
            if is_now in ends and is_now != phase and not (
                    is_now == "Halted" and phase in ("RollingBack", "Failed", "Cancelled")):
                raise Fail(f"{name} is {is_now}: {self.status(name).get('message')}")
            return is_now == phase
        try:
            client.until(f"{name} is {phase}", reached, timeout_s, 0.05)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; {json.dumps(self.status(name))[:1500]}") from None
        return self.status(name)

    def left(self):
        """Cordons, annotations, conditions and Leases that rollouts have left on nodes."""
        found = []
        for n in self.w.api.list("nodes"):
            name, notes = n["metadata"]["name"], n["metadata"].get("annotations", {})
            found += [f"{name} is cordoned"] if n["spec"].get("unschedulable") else []
            found += [f"{name} has the annotation"] if "holdfast.dev/rollout" in notes else []
            found += [f"{name}: {c['type']}" for c in n["status"].get("conditions", [])
                      if c["type"] == CONDITION and c["status"] == "True"]
        return found + [ls["metadata"]["name"] for ls in self.w.api.list("leases", MEND_NS)]

    def calls(self, verb, resource, name=""):
        """The operator's requests of this story."""
        return [c for c in audit.calls(self.w.cluster.path("audit.log"), user=self.w.user)
                if c["at"] >= self.since and (c["verb"], c["resource"]) == (verb, resource) and name in c["name"]]

    def __exit__(self, kind, error, trace):
        w = self.w
        if error is not None:
            print("      DeviceRollouts:", json.dumps(w.api.list("devicerollouts"))[:3000])
        self.operator.kill()
        self.units.stop()
        if "agent" in w.cluster.children:
            self.agent.stop()
        for found in w.api.list("devicerollouts"):
            name = found["metadata"]["name"]
            w.api.patch("devicerollouts", None, name, {"metadata": {"finalizers": None}})
            with contextlib.suppress(client.Refused):
                w.api.delete("devicerollouts", None, name)
        for found in w.api.list("leases", MEND_NS):
            # The garbage collector deletes the Leases of a deleted rollout.
            with contextlib.suppress(client.Refused):
                w.api.delete("leases", MEND_NS, found["metadata"]["name"])
        for name in ALL:
            notes = w.api.get("nodes", None, name)["metadata"].get("annotations", {})
            w.api.patch("nodes", None, name, {"spec": {"unschedulable": None, "taints": None}, "metadata": {
                "annotations": {key: None for key in notes if key.startswith("holdfast.dev/")}}})
            # A rollout of the next check has the same name, and takes it for its own.
            others = [c for c in w.api.get("nodes", None, name)["status"].get("conditions", []) if c["type"] != CONDITION]
            w.api.patch("nodes", None, name, {"status": {"conditions": others}}, "status")
        if w.api.find("devicehealths", None, NODE):
            w.api.delete("devicehealths", None, NODE)
        for plural in ("daemonsets", "tfjobs"):
            for found in w.api.list(plural, self.ns):
                w.api.delete(plural, self.ns, found["metadata"]["name"])
        w.until("no pod of the driver is left", lambda: not w.api.list("pods", self.ns), 60)
        if error is None:
            refused = sorted({f"{c['verb']} {c['resource']}" for c in audit.calls(
                w.cluster.path("audit.log"), user=w.user) if c["at"] >= self.since and c["code"] == 403})
            equal("requests that were forbidden", refused, [])


def check_waves(w):
    """One node first, then the others one at a time: each is cordoned, changed once, proved and uncordoned"""
    most = [0]
    with Story(w) as s:
        s.roll()
        began = time.time()
        ended = threading.Event()

        def watch():
            while not ended.wait(0.05):
                out = sum(bool(n["spec"].get("unschedulable")) for n in w.api.list("nodes"))
                most[0] = max(most[0], out)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        soaks = s.until_phase("Soaking")
        equal("the first wave", s.changed(), [NODE])
        equal("its number", soaks["wave"], 1)
        row = w.holdfast("get", "devicerollouts", "--no-headers")
        why = w.holdfast("why", "rollout/r")
        done = s.until_phase("Succeeded")
        ended.set()
        thread.join(10)
        took = time.time() - began
        equal("changed", s.changed(), sorted(ALL))
        equal("counts", {k: done["counts"][k] for k in ("selected", "changed", "failed")},
              {"selected": 5, "changed": 5, "failed": 0})
        equal("left on nodes", s.left(), [])
        want(most[0] == 1, f"{most[0]} nodes were cordoned at once")
        equal("pods deleted", len(s.calls("delete", "pods")), 5)
        want("r " in row and "1/2" in row and "1/5" in row, row)
        want(why.startswith("rollout r is Soaking: wave 1 of 2 soaks until"), why)
        writes = {}
        for c in audit.calls(w.cluster.path("audit.log"), user=w.user):
            if c["at"] >= s.since and c["verb"] in ("create", "update", "patch", "delete") and c["resource"] != "events":
                what = f"{c['verb']} {c['resource']}"
                writes[what] = writes.get(what, 0) + 1
        return f"5 nodes in {took:.1f} s, of which 2 soaks of 2 s; writes: {writes}"


def check_sick_canary(w):
    """The changed canary gets a fault of the NVML double's node: the rollout halts, names it, and no other node is touched"""
    with Story(w) as s:
        s.roll(soakSeconds=60)
        s.until_phase("Soaking")
        s.agent.xid(1, 79, "pid=77, name=python3, GPU has fallen off the bus.")
        halted = s.until_phase("Halted", timeout_s=60)
        halt = s.condition("Halted")
        equal("the condition", halt.get("status"), "True")
        want(NODE in halt["message"], halt["message"])
        stays("no other node is changed", lambda: s.changed() == [NODE])
        equal("failed", halted["counts"]["failed"], 1)
        why = w.holdfast("why", "rollout/r")
        want(f"{NODE} is Failed" in why, why)
        said = w.holdfast("describe", "rollout/r")
        want("Halted" in said, said)
        s.order(cancel=True)
        s.until_phase("Cancelled")
        client.until("cordons are put back", lambda: s.left() == [], 30)
        equal("changed", s.changed(), [NODE])
        return halt["message"]


def check_dra_driver(w):
    """A DRA driver whose new version offers a device less: the node has failed, and no other node is touched"""
    gpus = [f"GPU-{i}" for i in range(4)]
    dra.publish(w, gpus)
    try:
        with Story(w) as s:
            s.roll(proof={"seconds": 30})
            recorded = client.until("the devices are recorded", lambda: s.node(NODE).get("before", {}).get("resources"), 60)
            equal("offered before the change", recorded, {RESOURCE: "4", dra.DRIVER: "4"})
            # The kubelet keeps the devices of the previous driver for 30 s.
            client.until("the driver's pod is replaced", lambda: s.changed() == [NODE], 60)
            stays("the old devices prove nothing", lambda: s.node(NODE)["phase"] in ("Changing", "Proving"), 20)
            dra.publish(w, gpus[:3], generation=2)
            s.until_phase("Halted", timeout_s=120)
            halt = s.condition("Halted")["message"]
            want(f"the node offers 3 of {dra.DRIVER}, and offered 4 before the change" in halt, halt)
            equal("changed", s.changed(), [NODE])
            return halt
    finally:
        w.api.delete("resourceslices", None, "gpus")


def check_rollback(w):
    """A driver that does not start: the DaemonSet gets its previous revision, and the node is proved with it"""
    with Story(w, command=FAILS) as s:
        before = w.api.get("daemonsets", s.ns, "driver")["spec"]["template"]["spec"]["containers"][0]["command"]
        equal("the template", before, FAILS)
        s.roll(onFailure="Rollback", proof={"seconds": 30})
        ended = s.until_phase("Failed", timeout_s=180)
        template = w.api.get("daemonsets", s.ns, "driver")["spec"]["template"]["spec"]["containers"][0]
        equal("the template again", (template["command"], template["env"][0]["value"]), (RUNS, "570"))
        client.until("all run the old driver", lambda: s.ready() == set(ALL) and s.changed() == [], 60)
        equal("nodes never touched", {n: s.pods()[n]["metadata"]["uid"] for n in UNITS},
              {n: s.first[n]["metadata"]["uid"] for n in UNITS})
        client.until("nothing is left on nodes", lambda: s.left() == [], 30)
        proved = s.condition("RolledBack")
        equal("the condition", proved.get("status"), "True")
        equal("patches of the DaemonSet", len(s.calls("patch", "daemonsets")), 1)
        return f"{ended['message']}; {proved['message']}"


def check_undone_template(w):
    """A person undoes the template after a pilot, and the node has no proof: the template that was undone is not written again"""
    with Story(w) as s:
        s.roll("pilot", waves=["1"])
        s.until_phase("Succeeded", "pilot")
        equal("changed", s.changed(), [NODE])
        w.cluster.kubectl("-n", s.ns, "rollout", "undo", "daemonset", "driver")
        s.roll(onFailure="Rollback", proof={"seconds": 30, "driverVersion": "none"})
        s.until_phase("Halted", timeout_s=120)
        stays("no node is changed again", lambda: s.changed() == [])
        equal("patches of the DaemonSet", s.calls("patch", "daemonsets"), [])
        equal("nodes never touched", {n: s.pods()[n]["metadata"]["uid"] for n in UNITS},
              {n: s.first[n]["metadata"]["uid"] for n in UNITS})
        return s.status()["message"]


def check_operator_dies(w):
    """kill -9 of the operator in each phase of a node: each node is changed exactly once, and nothing is left"""
    hit = []
    with Story(w) as s:
        s.roll(waves=["2", "100%"], soakSeconds=1)
        for phase in PHASES:
            with contextlib.suppress(TimeoutError):
                client.until(f"a node is {phase}", lambda p=phase: any(
                    n["phase"] == p for n in s.status().get("nodes", [])), 10, 0.01)
                s.operator.kill()
                hit.append(phase)
                s.operator.start()
        s.until_phase("Succeeded", timeout_s=180)
        equal("changed", s.changed(), sorted(ALL))
        equal("left on nodes", s.left(), [])
        uids = {n: {p["uid"] for p in (s.first[n]["metadata"], s.pods()[n]["metadata"])} for n in ALL}
        want(all(len(u) == 2 for u in uids.values()), str(uids))
        made = [c for c in audit.calls(w.cluster.path("audit.log")) if c["at"] >= s.since and c["verb"] == "delete"
                and c["resource"] == "pods" and c["user"] == w.user and c["code"] < 300]
        equal("pods deleted", len(made), 5)
        want(len(hit) >= 4, f"only hit {hit}")
        return "killed in " + ", ".join(hit)


def check_operator_dies_in_rollback(w):
    """kill -9 of the operator while it soaks and while it takes the change back: all nodes are back, each once"""
    hit = []
    with Story(w) as s:
        s.roll(onFailure="Rollback", waves=["2", "100%"], soakSeconds=20)
        s.until_phase("Soaking")
        s.operator.kill()
        s.operator.start()
        changed = s.changed()
        equal("changed", len(changed), 2)
        s.agent.xid(1, 79, "pid=77, name=python3, GPU has fallen off the bus.")
        for phase in ("Locked", "Changing", "Proving"):
            with contextlib.suppress(TimeoutError):
                client.until(f"a node is {phase}", lambda p=phase: s.status().get("phase") == "RollingBack" and any(
                    n["phase"] == p for n in s.status().get("nodes", [])), 20, 0.01)
                s.operator.kill()
                hit.append(phase)
                s.operator.start()
        client.until("all run the old driver", lambda: s.ready() == set(ALL) and s.changed() == [], 120)
        equal("deleted pods", len(s.calls("delete", "pods")), 4)
        equal("patches of the DaemonSet", len(s.calls("patch", "daemonsets")), 1)
        equal("nodes never touched", [n for n in ALL if s.pods()[n]["metadata"]["uid"] == s.first[n]["metadata"]["uid"]],
              [n for n in ALL if n not in changed])
        return "killed in " + ", ".join(["Soaking", *hit])


def gang(w, s, path):
    """Two ranks on the real node, each with a device; at SIGTERM each writes a line, as a checkpoint."""
    script = (f'trap \'sleep 1; echo "$HOSTNAME $(date +%s)" >>{path}/saved; exit 0\' TERM; '
              "while :; do sleep 0.1; done")
    pod = {"terminationGracePeriodSeconds": 20, "nodeSelector": LABEL,
           "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
               {"weight": 100, "preference": {"matchExpressions": [
                   {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}}]}},
           "volumes": [{"name": "v", "hostPath": {"path": path}}],
           "containers": [{"name": "tensorflow", "image": IMAGE, "command": ["sh", "-c", script],
                           "volumeMounts": [{"name": "v", "mountPath": path}],
                           "resources": {"limits": {RESOURCE: "1"}}}]}
    # Workers of a TFJob wait for no name, and this node has no DNS.
    w.api.create("tfjobs", s.ns, {
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "ddp"},
        "spec": {"runPolicy": {"recovery": {"restartScope": "Job", "checkpoint": {"graceSeconds": 15}}},
                 "tfReplicaSpecs": {"Worker": {"replicas": 2, "restartPolicy": "OnFailure",
                                               "template": {"spec": pod}}}}})


def ranks(w, s):
    return {p["metadata"]["name"]: p for p in w.pods(s.ns, "ddp") if p["status"].get("phase") == "Running"
            and not p["metadata"].get("deletionTimestamp")}


def check_gang_saves(w):
    """empty: Save: a gang on the node saves, moves to other nodes, and only then the driver is changed"""
    path = w.cluster.path("checkpoints")
    os.makedirs(path, mode=0o777, exist_ok=True)
    with Story(w) as s:
        gang(w, s, path)
        first = client.until("the gang runs", lambda: (lambda r: r if len(r) == 2 else None)(ranks(w, s)), 90)
        equal("it runs on", {p["spec"]["nodeName"] for p in first.values()}, {NODE})
        s.roll(waves=["1", "20%"], soakSeconds=0)
        s.until_phase("Succeeded", timeout_s=180)
        with open(os.path.join(path, "saved"), encoding="ascii") as f:
            saved = dict(line.split() for line in f.read().splitlines())
        equal("ranks that saved", sorted(saved), sorted(first))
        made = s.pods()[NODE]["metadata"]["creationTimestamp"]
        last = max(int(t) for t in saved.values())
        driver_at = time.mktime(time.strptime(made, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        want(last <= driver_at, f"a rank saved at {last}, the driver was changed at {driver_at}")
        again = client.until("the gang runs again", lambda: (lambda r: r if len(r) == 2 else None)(ranks(w, s)), 90)
        want({p["spec"]["nodeName"] for p in again.values()} <= set(UNITS), "the gang is on the changed node")
        equal("left on nodes", s.left(), [])
        recovery = w.api.get("tfjobs", s.ns, "ddp")["status"].get("recovery", {})
        w.api.delete("tfjobs", s.ns, "ddp")
        w.until("its pods are gone", lambda: not w.pods(s.ns, "ddp"), 60)
        return f"saved {driver_at - last:.0f} s before the change; the job's last record: {recovery.get('last')}"


class Canary:
    """A job that sleeps for the seconds, and ends with the code, that files on the real node have when it begins."""

    def __init__(self, w, seconds, code=0):
        self.path = w.cluster.path("canary")
        os.makedirs(self.path, mode=0o777, exist_ok=True)
        self.set(seconds, code)

    def set(self, seconds, code=0):
        for name, value in (("seconds", seconds), ("code", code)):
            with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
                f.write(str(value))

    def pod(self, name):
        script = f"sleep $(cat {self.path}/seconds); exit $(cat {self.path}/code)"
        return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                "volumes": [{"name": "v", "hostPath": {"path": self.path}}],
                "containers": [{"name": name, "image": IMAGE,
                                "command": ["sh", "-c", script],
                                "volumeMounts": [{"name": "v", "mountPath": self.path}],
                                "resources": {"limits": {RESOURCE: "1"}}}]}

    def job(self, ns):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": ns},
                "spec": {"backoffLimit": 0, "template": {"spec": self.pod("c")}}}

    def tfjob(self, ns):
        return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"namespace": ns}, "spec": {
            "tfReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": {
                "spec": self.pod("tensorflow")}}}}}


def made(s, resource):
    """The names of the canaries that the operator has created."""
    return [c["name"] for c in s.calls("create", resource) if c["code"] < 300]


def pods_of_canaries(s):
    return [p for p in s.w.api.list("pods", s.ns) if p["metadata"]["name"].startswith("canary-")]


def roll_canary(s, template, name="r", percent=50, **spec):
    """On the real node alone: kwok ends no program."""
    s.roll(name, nodeSelector={"matchLabels": {"kubernetes.io/hostname": NODE}}, waves=["1"], soakSeconds=0, proof={
        "seconds": 60, "canary": {"seconds": 60, "slowerPercent": percent, "template": template}}, **spec)


def refused_patch(w, spec, name="r"):
    try:
        w.api.patch("devicerollouts", None, name, {"spec": spec})
    except client.Refused as e:
        return e.message
    raise Fail(f"{spec} was taken")


def check_canary(w):
    """A Job of batch/v1 runs on the cordoned node before and after the change; the next rollout runs it once"""
    canary = Canary(w, 2)
    with Story(w) as s:
        roll_canary(s, canary.job(s.ns))
        client.until("it runs before the change", lambda: s.node(NODE).get("phase") == "Baseline" and any(
            p["status"].get("phase") == "Running" for p in pods_of_canaries(s)), 60)
        equal("changed meanwhile", s.changed(), [])
        job = w.api.list("jobs", s.ns)[0]
        equal("its owner", job["metadata"]["ownerReferences"][0]["name"], "r")
        said = refused_patch(w, {"proof": {"canary": {"template": {"spec": {"backoffLimit": 1}}}}})
        want("only paused and cancel may change" in said, said)
        s.until_phase("Succeeded", timeout_s=180)
        equal("changed", s.changed(), [NODE])
        entry = s.node(NODE)
        want(entry["before"]["runMillis"] >= 1000 and entry["canary"]["runMillis"] >= 1000, json.dumps(entry))
        want("the canary took" in entry["message"], entry["message"])
        client.until("its jobs are gone", lambda: not w.api.list("jobs", s.ns), 30)
        equal("its pods", pods_of_canaries(s), [])
        equal("left on nodes", s.left(), [])
        s.change(version="576")
        roll_canary(s, canary.job(s.ns), "s")
        s.until_phase("Succeeded", "s", timeout_s=180)
        equal("jobs", len(made(s, "jobs")), 3)
        why = w.holdfast("describe", "rollout/s")
        want("Canary:" in why and "at most 50 % slower than before" in why, why)
        return entry["message"]


def check_canary_slower(w):
    """The canary takes longer after the change: the node has failed, with both numbers; then one that ends with 1"""
    canary = Canary(w, 3)
    with Story(w) as s:
        roll_canary(s, canary.job(s.ns))
        client.until("the first has been measured", lambda: s.node(NODE).get("before", {}).get("runMillis"), 90)
        canary.set(9)
        s.until_phase("Halted", timeout_s=120)
        slower = s.condition("Halted")["message"]
        want("more than 50 % longer" in slower and f"canary-{NODE}-" in slower, slower)
        client.until("its jobs are gone", lambda: not w.api.list("jobs", s.ns), 30)
        equal("left on nodes", s.left(), [f"{NODE} is cordoned", f"{NODE} has the annotation"])
        s.order(cancel=True)
        s.until_phase("Cancelled")
        client.until("cordons are put back", lambda: s.left() == [], 30)
    canary.set(1, 1)
    with Story(w) as s:
        roll_canary(s, canary.job(s.ns))
        s.until_phase("Halted", timeout_s=120)
        halt = s.condition("Halted")
        equal("the reason", halt["reason"], "CanaryFailed")
        equal("changed", s.changed(), [])
        client.until("nothing is left", lambda: s.left() == [] and not w.api.list("jobs", s.ns), 30)
        return f"{slower}; {halt['message']}"


def check_canary_operator_dies(w):
    """A TFJob as canary, and kill -9 of the operator before and while it runs on each side: each job is made once"""
    canary, hit = Canary(w, 4), []
    with Story(w) as s:
        roll_canary(s, canary.tfjob(s.ns), percent=500)
        for phase in ("Emptying", "Baseline", "Changing", "Proving", "Canary", "Restoring"):
            with contextlib.suppress(TimeoutError):
                client.until(f"the node is {phase}", lambda p=phase: s.node(NODE).get("phase") == p, 20, 0.01)
                if phase in ("Baseline", "Canary"):
                    client.until("its job is there", lambda: w.api.list("tfjobs", s.ns), 20, 0.01)
                s.operator.kill()
                hit.append(phase)
                s.operator.start()
        s.until_phase("Succeeded", timeout_s=180)
        equal("canaries", len(made(s, "tfjobs")), 2)
        equal("changed", s.changed(), [NODE])
        client.until("its jobs are gone", lambda: not w.api.list("tfjobs", s.ns), 30)
        equal("left on nodes", s.left(), [])
        want("Baseline" in hit and "Canary" in hit, f"only hit {hit}")
        return f"killed in {', '.join(hit)}; {s.node(NODE)['message']}"


def check_second_waits(w):
    """Two rollouts of one DaemonSet: the older goes on, the other says so and begins after it"""
    with Story(w) as s:
        s.roll("a", soakSeconds=3)
        client.pause(1.1)
        s.roll("b")
        client.until("the second says why", lambda: "a" in (s.status("b").get("message") or "").split() or
                     "DeviceRollout a" in (s.status("b").get("message") or ""), 30)
        said = s.status("b")["message"]
        equal("the second", s.status("b").get("phase"), "Pending")
        s.until_phase("Succeeded", "a")
        done = s.until_phase("Succeeded", "b")
        equal("pods deleted", len(s.calls("delete", "pods")), 5)
        equal("changed by the second", done["counts"]["failed"], 0)
        return said


def refused(w, body):
    try:
        w.api.create("devicerollouts", None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceRollout",
                                              "metadata": {"name": "bad"}, "spec": body})
    except client.Refused as e:
        return e.message
    w.api.delete("devicerollouts", None, "bad")
    raise Fail(f"{body} was taken")


def check_bad(w):
    """What cannot be meant is refused by the field's name, or shown as a condition: missing DaemonSet, RollingUpdate"""
    change = {"daemonSet": {"namespace": "default", "name": "d"}}
    for spec, field in (({"change": change, "waves": ["150%"]}, "spec.waves"),
                        ({"change": change, "waves": ["0"]}, "spec.waves"),
                        ({"change": {}}, "spec.change"),
                        ({"change": {**change, "nodeLabel": {"key": "a", "value": "b"}}}, "spec.change"),
                        ({"change": change, "atOnce": 0}, "spec.atOnce"),
                        ({"change": change, "windows": [{"start": "25:00", "end": "01:00"}]}, "spec.windows"),
                        ({"change": change, "onFailure": "Pray"}, "spec.onFailure"),
                        ({"change": change, "proof": {"canary": {"seconds": 60}}}, "spec.proof.canary.template"),
                        ({"change": change, "proof": {"canary": {"template": {
                            "apiVersion": "batch/v1", "kind": "TFJob", "metadata": {"namespace": "a"}, "spec": {}}}}},
                         "spec.proof.canary.template.kind")):
        said = refused(w, spec)
        want(field in said, f"{field} is not named: {said}")
    with Story(w) as s:
        s.roll("lost", daemon_set="nosuch")
        client.until("the missing DaemonSet is named", lambda: "nosuch" in s.condition("Accepted", "lost").get(
            "message", ""), 30)
        equal("the condition", s.condition("Accepted", "lost")["status"], "False")
        s.make_daemon_set("rolls", "RollingUpdate")
        s.roll("rolls", daemon_set="rolls")
        client.until("the strategy is named", lambda: "OnDelete" in s.condition("Accepted", "rolls").get(
            "message", ""), 30)
        s.roll("waves", waves=["50%", "3"])
        stays("nothing is changed by them", lambda: s.left() == [] or s.status("waves"), 2)
        why = w.holdfast("why", "rollout/lost")
        want("nosuch" in why, why)
        try:
            w.api.patch("devicerollouts", None, "lost", {"spec": {"atOnce": 2}})
        except client.Refused as e:
            want("immutable" in e.message or "spec" in e.message, e.message)
        else:
            raise Fail("spec.atOnce was changed")
        return s.condition("Accepted", "rolls")["message"]


def check_superseded(w):
    """The template is changed again in the middle: the rollout halts and says so"""
    with Story(w) as s:
        s.roll(soakSeconds=60)
        s.until_phase("Soaking")
        s.change(version="580")
        s.until_phase("Halted", timeout_s=60)
        halt = s.condition("Halted")
        stays("no other node is changed", lambda: set(s.versions().values()) == {"570", "575"})
        return halt["message"]


def check_stop(w):
    """A hold on a node skips it, paused begins no more nodes, cancel puts everything back"""
    with Story(w) as s:
        w.api.patch("nodes", None, UNITS[0], {"metadata": {"annotations": {"holdfast.dev/hold": "yes"}}})
        s.roll(waves=["1", "40%", "100%"], soakSeconds=1)
        client.until("two nodes are changed", lambda: len(s.changed()) >= 2, 120)
        s.order(paused=True)
        client.until("the pause is seen", lambda: "pause" in (s.status().get("message") or "").lower(), 60)
        client.until("no node is at work", lambda: s.left() == [], 60)
        here = s.changed()
        stays("no other node is changed", lambda: s.changed() == here)
        want(UNITS[0] not in here, "the held node was changed")
        s.order(cancel=True)
        s.until_phase("Cancelled")
        equal("left on nodes", s.left(), [])
        equal("changed", s.changed(), here)


def hold_device(w, s):
    """A pod without a controller on the real node, with a device: it may not be moved."""
    w.api.create("pods", s.ns, {"metadata": {"name": "lone"}, "spec": {
        "nodeName": NODE, "terminationGracePeriodSeconds": 0, "containers": [{
            "name": "c", "image": IMAGE, "command": RUNS, "resources": {"limits": {RESOURCE: "1"}}}]}})
    w.until("it runs", lambda: w.api.get("pods", s.ns, "lone")["status"].get("phase") == "Running", 60)


def check_person_interferes(w):
    """A person takes Lease and cordon off a node in work, or deletes the rollout: nothing is done twice or half"""
    with Story(w) as s:
        hold_device(w, s)
        s.roll(empty="Wait")
        client.until("it waits for the pod", lambda: s.node(NODE).get("phase") == "Emptying", 60)
        w.api.delete("leases", MEND_NS, "holdfast-mend-" + NODE)
        w.cluster.kubectl("uncordon", NODE)
        stays("the node is not changed", lambda: NODE not in s.changed(), 6)
        w.api.delete("pods", s.ns, "lone", gracePeriodSeconds=0)
        s.until_phase("Succeeded", timeout_s=180)
        equal("changed", s.changed(), sorted(ALL))
        equal("deleted pods", len(s.calls("delete", "pods")), 5)
        client.until("nothing is left on nodes", lambda: s.left() == [], 30)
    with Story(w) as s:
        hold_device(w, s)
        s.roll(empty="Wait")
        client.until("it waits for the pod", lambda: s.node(NODE).get("phase") == "Emptying", 60)
        want(f"{NODE} is cordoned" in s.left(), str(s.left()))
        w.api.delete("devicerollouts", None, "r")
        client.until("it is gone", lambda: w.api.find("devicerollouts", None, "r") is None, 60)
        equal("left on nodes", s.left(), [])
        equal("changed", s.changed(), [])
        w.api.delete("pods", s.ns, "lone", gracePeriodSeconds=0)


def check_budget(w):
    """The budget of the HealthPolicy counts: with its one node out of use no other begins; a person's cordon stays"""
    with Story(w) as s:
        w.api.create("healthpolicies", None, {
            "apiVersion": "holdfast.dev/v1alpha1", "kind": "HealthPolicy", "metadata": {"name": "p"},
            "spec": {"mode": "quarantine", "selector": {"matchLabels": LABEL},
                     "budget": {"maxUnavailable": {"count": 1}}}})
        try:
            w.until("the policy is looked at", lambda: w.api.get("healthpolicies", None, "p").get("status", {}).get(
                "counts", {}).get("selected") == len(ALL), 60)
            w.cluster.kubectl("cordon", UNITS[3])
            s.roll()
            # After its begin the operator looks for a minute before it begins with a node more.
            client.until("it says why", lambda: "budget.maxUnavailable" in (s.status().get("message") or ""), 120)
            said = s.status()["message"]
            # The node that is out of use anyway costs no budget.
            stays("no other node is changed", lambda: set(s.changed()) <= {UNITS[3]}, 5)
            want(w.api.get("nodes", None, UNITS[3])["spec"].get("unschedulable"), "the person's cordon is gone")
            w.cluster.kubectl("uncordon", UNITS[3])
            s.until_phase("Succeeded", timeout_s=180)
            equal("left on nodes", s.left(), [])
            return said
        finally:
            w.api.delete("healthpolicies", None, "p")


def check_label(w):
    """A node label instead of a DaemonSet: it is set wave by wave; a rollback gives each node its previous value"""
    key = "example.com/driver"
    with Story(w) as s:
        w.api.patch("nodes", None, NODE, {"metadata": {"labels": {key: "570"}}})

        def labels():
            return {n["metadata"]["name"]: n["metadata"]["labels"].get(key) for n in w.api.list(
                "nodes", selector="rollout=yes")}
        try:
            s.roll(change={"nodeLabel": {"key": key, "value": "575"}}, onFailure="Rollback", soakSeconds=60)
            s.until_phase("Soaking")
            equal("labels", labels(), {NODE: "575", **{n: None for n in UNITS}})
            s.agent.xid(1, 79, "pid=77, name=python3, GPU has fallen off the bus.")
            client.until("the label has its previous value", lambda: labels()[NODE] == "570", 90)
            equal("labels", labels(), {NODE: "570", **{n: None for n in UNITS}})
        finally:
            for name in ALL:
                w.api.patch("nodes", None, name, {"metadata": {"labels": {key: None}}})


def check_versions(w):
    """Driver, library, module and firmware of each node: what differs on one is shown, and check names the node"""
    with Story(w) as s:
        s.agent.library("firmware 570.86.15")

        def row():
            return next(line for line in w.holdfast("get", "nodes", "-o", "wide").splitlines() if line.startswith(NODE))
        client.until("the versions are equal", lambda: "   570.86.15   " in row() and w.api.get(
            "devicehealths", None, NODE)["status"].get("firmwareVersion"), 90, 1)
        s.agent.library("firmware 570.86.15", "library 12.575.57.08")
        client.until("the library is another", lambda: "570.86.15, library 575.57.08" in row(), 90, 1)
        found = w.holdfast("check", code=None)
        want(f"parts of the GPU driver have different versions on: {NODE} (570.86.15, library 575.57.08)" in found, found)
        return " ".join(row().split())


def check_rights_of_people(w):
    """A person who may create DeviceRollouts lends the operator's rights to nobody: the policy asks for the person's own"""
    w.api.create("serviceaccounts", "default", {"metadata": {"name": "person"}})
    w.api.create("clusterrolebindings", None, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "person"},
        "subjects": [{"kind": "ServiceAccount", "name": "person", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "holdfast-rollout-person"}})

    def create(change, **more):
        """The API server's words; "": it would be created."""
        body = {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceRollout", "metadata": {"name": "p"},
                "spec": {"change": change, **more}}
        try:
            w.cluster.kubectl("create", "--dry-run=server", "-f", "-", "--as",
                              "system:serviceaccount:default:person", text=json.dumps(body))
        except build.Broken as e:
            return str(e)
        return ""
    driver = {"daemonSet": {"namespace": "kube-system", "name": "driver"}}
    said = w.until("it is refused", lambda: create(driver), 60)
    want("spec.change.daemonSet: the user may not patch this DaemonSet" in said, said)
    said = create({"nodeLabel": {"key": "a", "value": "b"}})
    want("spec.change.nodeLabel: the user may not patch nodes" in said, said)
    rule = {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["patch"]}
    w.api.create("roles", "kube-system", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                                          "metadata": {"name": "person"}, "rules": [rule]})
    w.api.create("rolebindings", "kube-system", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "person"},
        "subjects": [{"kind": "ServiceAccount", "name": "person", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "person"}})
    w.until("it is allowed with the person's own right", lambda: create(driver) == "", 30)
    canary = {"canary": {"template": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "default"},
                                      "spec": {"template": {"spec": {}}}}}}
    said = create(driver, proof=canary)
    want("spec.proof.canary.template: the user may not create this job" in said, said)
    canary["canary"]["template"].update(apiVersion="kubeflow.org/v1", kind="PyTorchJob")
    said = create(driver, proof=canary)
    want("spec.proof.canary.template: the user may not create this job" in said, said)
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["create"]}
    w.api.create("roles", "default", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                                      "metadata": {"name": "trainer"}, "rules": [rule]})
    w.api.create("rolebindings", "default", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "trainer"},
        "subjects": [{"kind": "ServiceAccount", "name": "person", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "trainer"}})
    w.until("the canary is allowed with the person's own right", lambda: create(driver, proof=canary) == "", 30)
