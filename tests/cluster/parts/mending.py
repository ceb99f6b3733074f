# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Nodes are mended on a real kubelet: a line of the kernel, the actor's pod, the vendor's tool, another boot.

The actor is the real program in its privileged pod. What could reach the machine is not there: its image leaves
out the flags for sysrq and the watchdog, the node's /run has no D-Bus, and the first process is the node's own
script, which ends the node at the signal of systemd's reboot.
"""

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time

from kit import audit, build, client, image, inside, plugin
from kit.agent import COUNT, NODE, Agent, address
from kit.check import Fail, Skip, equal, has_verb, want
from kit.operator import Operator

NEEDS = {"node": NODE, "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 11
NS, IMAGE = "holdfast-mend", "registry.example/mender:1"
TAINT = "holdfast.dev/device"
RESET_S = 5
# The aim is 2 s; a machine that does other work at the same time takes longer.
OWN_MAX_S = 4
# The machine's own boot, in which its processes are.
BOOT = "/proc/sys/kernel/random/boot_id"
WIDE = {"budget": {"maxUnavailable": {"percent": 100}, "maxQuarantines": {"count": 60}}, "breaker": {"percent": 100}}
# Without the flags that reach the machine.
ACTOR = b"""\
#!/double/busybox sh
for word; do
	shift
	case "$word" in
	--sysrq=* | --watchdog=*) ;;
	*) set -- "$@" "$word" ;;
	esac
done
exec /usr/bin/holdfast "$@"
"""
TOOL = """\
#!/bin/busybox sh
# A double of nvidia-smi: /double/mode has the seconds of a reset, then its exit code.
echo "$*" >>/double/log
case "$*" in
*--query-gpu*) exit 0 ;;
*-pm*) exit 0 ;;
esac
read -r seconds code </double/mode
/bin/busybox sleep "$seconds"
[ "$code" = 0 ] && echo 'GPU was successfully reset.' || echo "double exits with $code"
exit "$code"
"""


def setup(w):
    if w.options.peer or not has_verb(w.program, "mend-node"):
        raise Skip("there is no actor")
    w.install()
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=w.holdfast("manifests", "--mender"))
    load_actor(w)
    put_tool(w)
    # Where the kit's agent looks for the kubelet.
    os.makedirs(w.cluster.path("kubelet"), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink(w.cluster.path("private", "kubelet", "pod-resources"), w.cluster.path("kubelet", "pod-resources"))
    return "the actor in its pod, a vendor's tool and a reboot of the tests' own"


def load_actor(w):
    plain, made = w.cluster.path("plain.tar"), w.cluster.path("mender.tar")
    run = subprocess.run([os.path.join(build.TOP, "dev"), "image", "--tag", "registry.example/plain:1",
                          "--output", plain], capture_output=True, text=True, cwd=build.TOP)
    if run.returncode != 0:
        raise build.Broken("./dev image: " + run.stderr.strip()[-300:])
    layer = image.image.Layer()
    layer.copy("double/busybox", image.BUSYBOX, 0o755)
    layer.file("double/holdfast", ACTOR, 0o755)
    image.derive(plain, made, IMAGE, layer, ["PATH=/double:/usr/bin"])
    inside.load(w.cluster, made)


def first_process(w):
    """The pid of the node's first process."""
    mine = os.readlink("/proc/self/ns/mnt")
    for pid in w.cluster.pids("node"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/mnt") != mine:
                return pid
    raise Fail("the node has no process")


def root(w):
    """The node's root folder, as its first process sees it."""
    return f"/proc/{first_process(w)}/root"


def put_tool(w):
    """The driver's root folder of the GPU Operator, with the double."""
    at = root(w) + "/run/nvidia/driver"
    for folder in ("bin", "usr/bin", "double", "dev"):
        os.makedirs(f"{at}/{folder}", exist_ok=True)
    shutil.copy(image.BUSYBOX, at + "/bin/busybox")
    with open(at + "/usr/bin/nvidia-smi", "w", encoding="utf-8") as f:
        f.write(TOOL)
    os.chmod(at + "/usr/bin/nvidia-smi", 0o755)
    with open(at + "/double/log", "w", encoding="utf-8"):
        pass


def tool_does(w, seconds, code):
    with open(root(w) + "/run/nvidia/driver/double/mode", "w", encoding="utf-8") as f:
        f.write(f"{seconds} {code}\n")


def tool_log(w):
    with open(root(w) + "/run/nvidia/driver/double/log", encoding="utf-8") as f:
        return [line for line in f.read().splitlines() if "reset" in line]


class Story:
    """An agent, an operator and a policy; at its end the node has nothing of them."""

    def __init__(self, w, env=None, **mend):
        self.w = w
        self.operator = Operator(w.cluster, w.program, "fleet", env={"HOLDFAST_IMAGE": IMAGE, **(env or {})})
        self.agent = Agent(w)
        with open(BOOT, encoding="ascii") as f:
            self.agent.write("proc/sys/kernel/random/boot_id", f.read())
        w.api.create("healthpolicies", None, {
            "apiVersion": "holdfast.dev/v1alpha1", "kind": "HealthPolicy", "metadata": {"name": "p"},
            "spec": {"mode": "remediate", **WIDE, "mend": {"settleSeconds": 0, **mend}}})

    def __enter__(self):
        self.operator.start()
        self.agent.begin()
        return self

    def __exit__(self, kind, error, trace):
        w = self.w
        if error is not None:
            print("      Remediations:", json.dumps(w.api.list("remediations"))[:3000])
        self.operator.kill()
        if "agent" in w.cluster.children:
            self.agent.stop()
        for found in w.api.list("remediations"):
            name = found["metadata"]["name"]
            w.api.patch("remediations", None, name, {"metadata": {"finalizers": None}})
            w.api.delete("remediations", None, name)
        for kind_of, ns, name in (("healthpolicies", None, "p"), ("devicehealths", None, NODE),
                                  ("leases", NS, "holdfast-mend-" + NODE)):
            if w.api.find(kind_of, ns, name):
                # The garbage collector may be faster: the Remediation owns the Lease.
                with contextlib.suppress(client.Refused):
                    w.api.delete(kind_of, ns, name)
        w.api.patch("nodes", None, NODE, {"metadata": {"annotations": {"holdfast.dev/quarantine": None}},
                                          "spec": {"taints": None}})
        w.until("no actor is left", lambda: not w.api.list("pods", NS), 60)

    def fail(self, code=119):
        """The driver's line. Returns the time."""
        self.agent.xid(1, code, "pid=77, name=python3, Timeout after 6s of waiting for RPC response")
        return time.time()

    def next_of(self):
        """What the policy's status says of the node."""
        nodes = self.w.api.get("healthpolicies", None, "p").get("status", {}).get("nodes", [])
        return next((n.get("why") for n in nodes if n["name"] == NODE), None)

    def act(self, number=1):
        return self.w.api.find("remediations", None, f"{NODE}-{number}") or {}

    def until_phase(self, phase, number=1, timeout_s=60):
        def reached():
            is_now = self.act(number).get("status", {}).get("phase")
            if is_now in ("Failed", "Cancelled", "Succeeded") and is_now != phase:
                raise Fail(f"{NODE}-{number} is {is_now}: {self.act(number)['status'].get('message')}")
            return is_now == phase
        client.until(f"{NODE}-{number} is {phase}", reached, timeout_s)
        return self.act(number)


def seconds_of(text):
    """The time of an API object."""
    whole, _, rest = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + (rest or "0"))


def writes_since(w, began):
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    found = {}
    for c in audit.calls(w.cluster.path("audit.log")):
        if c["at"] >= since and c["verb"] in ("create", "update", "patch", "delete") and (
                c["user"] == "operator" or c["user"].startswith("system:serviceaccount:" + NS)) and \
                c["resource"] != "events":
            what = f"{c['verb']} {c['resource']}"
            found[what] = found.get(what, 0) + 1
    return found


class Times:
    """When the API server got requests since a moment. All stages are measured by its clock: the clock of the operator
    is an estimate, from whole seconds in the server's replies."""

    def __init__(self, w, began):
        self.calls = [c for c in audit.calls(w.cluster.path("audit.log")) if seconds_of(c["at"]) >= began]

    def all(self, user, verb, resource):
        return sorted(seconds_of(c["at"]) for c in self.calls if (c["user"], c["verb"], c["resource"]) == (user, verb, resource))

    def one(self, user, verb, resource, number=0):
        found = self.all(user, verb, resource)
        want(len(found) > number or number < 0 < len(found), f"{len(found)} {verb} {resource} of {user}")
        return found[number]


def check_reset(w):
    """The whole way: a line of the kernel, quarantine, approval, the tool in the actor's pod, proof, probation"""
    with Story(w, rungs=["reset-device"]) as s:
        tool_does(w, RESET_S, 0)
        began = s.fail()
        done = s.until_phase("Succeeded")
        equal("the tool was called", tool_log(w), ["--gpu-reset -i " + done["spec"]["devices"][0]["uuid"]])
        act = done["status"]["act"]
        equal("the act", (act["tool"], act["exitCode"]), ("nvidia-smi", 0))
        s.agent.until_states("the device is on probation", lambda states: states[1] == "Probation", 30)
        client.until("the Lease is released", lambda: w.api.find("leases", NS, "holdfast-mend-" + NODE) is None, 30)
        client.until("the actor's pod is gone", lambda: not w.api.list("pods", NS), 60)
        said = w.holdfast("why", "node/" + NODE)
        want("is Succeeded: 1 device back with the same UUID" in said, said)
        writes = writes_since(w, began)
        # What Holdfast itself takes; not the kubelet's start of the pod, the tool, and the probation.
        times, actor = Times(w, began), f"system:serviceaccount:{NS}:holdfast-mender"
        quarantined, planned, locked, created = (times.one("operator", *what) for what in (
            ("patch", "nodes"), ("create", "remediations"), ("create", "leases"), ("create", "pods")))
        starts = times.one(actor, "get", "remediations")
        started, ended = seconds_of(act["startedAt"]), seconds_of(act["endedAt"])
        asked, proved = (times.one("operator", "patch", "devicehealths", i) for i in (0, 1))
        # The act has ended for the cluster when its Lease is released.
        freed, back = times.one("operator", "delete", "leases"), seconds_of(s.agent.devices()[1]["since"])
        parts = {"line to quarantine": quarantined - began, "to the plan of the act": planned - quarantined,
                 "to the Lease": locked - planned, "to the pod": created - locked,
                 "actor to its act": started - starts, "tool's end to the question": asked - ended,
                 "agent's answer to the proof": proved - asked, "to the device's probation": max(0, back - proved),
                 "to the end of the act": max(0, freed - max(back, proved))}
        w.own = sum(parts.values())
        want(w.own < OWN_MAX_S, f"Holdfast takes {w.own:.2f} s: {parts}")
        return (f"Holdfast's own share {w.own:.2f} s (" + ", ".join(f"{k} {v:.2f}" for k, v in parts.items()) +
                f"); the pod's start {starts - created:.2f} s, the tool {ended - started:.2f} s; load "
                f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; writes: {writes}")


def check_release(w):
    """The end of a quarantine: what the node's agent reports at the end of the probation releases the node"""
    with Story(w, rungs=["reset-device"], hold=True) as s:
        s.fail()
        client.until("the node is quarantined", lambda: tainted(w), 30)
        took = release(w, s)
        want(took < 2, f"the release takes {took:.2f} s")
        own = getattr(w, "own", None)
        return f"report to release {took:.2f} s" + (f"; with it Holdfast's own share is {own + took:.2f} s" if own else "")


def tainted(w):
    return any(t["key"] == TAINT for t in w.api.get("nodes", None, NODE)["spec"].get("taints", []))


def release(w, s):
    """Ends the probation. Returns how long the taint stays."""
    s.agent.end_probation()
    began = time.time()
    client.until("the node is released", lambda: not tainted(w), 30, 0.02)
    return time.time() - began


def check_exit_codes(w):
    """A tool that fails, and one that lies: the act fails with the reason, and the next rung is a person"""
    for code, word in ((15, "the device has fallen off the bus"), (3, "not available")):
        with Story(w, rungs=["reset-device"]) as s:
            tool_does(w, 0, code)
            s.fail()
            failed = s.until_phase("Failed")
            want(word in failed["status"]["message"], failed["status"]["message"])
            w.until("a person is asked", lambda s=s: s.act(2).get("spec", {}).get("rung") == "person")
    with Story(w, rungs=["reset-device"]) as s:
        tool_does(w, 2, 0)
        s.fail()
        s.until_phase("Acting")
        # It says 0, and the driver says the same as before.
        client.until("the tool has ended", lambda: s.act()["status"]["act"].get("endedAt"), 30)
        s.fail()
        # Proof and new fault race here: a success is followed by another act or a person, once the minute after the
        # act is over in which a fault may be its effect.
        client.until("it is not the last word", lambda: s.act()["status"]["phase"] == "Failed" or s.act(2), 120)


def check_program_that_is_not_there(w):
    """A tool that is not on the node: the actor refuses, nothing is done, and the object has the reason"""
    path = root(w) + "/run/nvidia/driver/usr/bin/nvidia-smi"
    os.rename(path, path + ".away")
    try:
        with Story(w, rungs=["reset-device"]) as s:
            s.fail()
            failed = s.until_phase("Failed")
            want("the actor ended without an act, exit code 2: refused: the host has no nvidia-smi"
                 in failed["status"]["message"], failed["status"]["message"])
            equal("acts", failed["status"].get("act", {}).get("startedAt"), None)
    finally:
        os.rename(path + ".away", path)


def check_by_hand(w):
    """holdfast mend: a dry run, a well node, a cancel, a hold; nothing is done"""
    with Story(w, rungs=["reset-device"], hold=True) as s:
        tool_does(w, 0, 0)
        before = len(tool_log(w))
        w.holdfast("mend", NODE, code=1)
        w.holdfast("mend", NODE, "--device", address(1), code=1)
        equal("objects", w.api.list("remediations"), [])
        s.fail()
        s.agent.until_states("it is ill", lambda states: states[1] == "Unhealthy")
        said = w.holdfast("mend", NODE, "--dry-run")
        want("operator: dry run: the act would begin now" in said, said)
        equal("objects", w.api.list("remediations"), [])
        w.api.patch("nodes", None, NODE, {"metadata": {"annotations": {"holdfast.dev/hold": "yes"}}})
        said = w.holdfast("mend", NODE, "--dry-run", code=1)
        want("held by annotation holdfast.dev/hold" in said, said)
        w.holdfast("mend", NODE)
        client.until("it is held", lambda: "holdfast.dev/hold" in s.act().get("status", {}).get("message", ""), 30)
        w.holdfast("mend", "--cancel", f"{NODE}-1")
        client.until("it is cancelled", lambda: s.act()["status"]["phase"] == "Cancelled", 30)
        w.api.patch("nodes", None, NODE, {"metadata": {"annotations": {"holdfast.dev/hold": None}}})
        equal("resets", len(tool_log(w)), before)
        return said.strip().replace("\n", "; ")


def request(w, number, uuid, **device):
    """A person orders the reset of a device, without the program. Returns the name."""
    name = f"{NODE}-{number}"
    w.api.create("remediations", None, {
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "Remediation", "metadata": {"name": name},
        "spec": {"node": NODE, "rung": "reset-device", "attempt": number, "nonce": f"{number:032x}", "requestedBy": "admin",
                 "devices": [{"uuid": uuid, **device}]}})
    return name


def until_says(s, number, words):
    return client.until(f"{NODE}-{number} says: {words}",
                        lambda: words in s.act(number).get("status", {}).get("message", ""), 30)


def check_device_that_is_not_there(w):
    """A typing error in a UUID or an address: nothing is reset, no taint, and the message names it"""
    with Story(w, hold=True) as s:
        tool_does(w, 0, 0)
        before = len(tool_log(w))
        real = s.agent.devices()[1]["uuid"]
        request(w, 1, "GPU-none")
        until_says(s, 1, "the node's agent reports no device with UUID GPU-none")
        request(w, 2, real, id=address(2))
        until_says(s, 2, f"device {real} is at address {address(1)}, not {address(2)}")
        client.pause(2)
        equal("resets", len(tool_log(w)), before)
        want(not tainted(w), "the node is quarantined")


def check_actor_without_its_object(w):
    """A person removes an object and its finalizer while the tool runs: no act begins beside that actor"""
    with Story(w, hold=True) as s:
        tool_does(w, 12, 0)
        before = len(tool_log(w))
        uuid = s.agent.devices()[1]["uuid"]
        name = request(w, 1, uuid)
        began = seconds_of(s.until_phase("Acting")["status"]["act"]["startedAt"])
        client.until("the tool runs", lambda: len(tool_log(w)) > before, 30)
        client.pause(0.5)
        tool_does(w, 0, 0)
        w.api.patch("remediations", None, name, {"metadata": {"finalizers": None}})
        w.api.delete("remediations", None, name)
        request(w, 2, uuid)
        until_says(s, 2, f"the actor of Remediation {name} is still on the node")
        done = s.until_phase("Succeeded", 2)
        after = seconds_of(done["status"]["act"]["startedAt"]) - began
        want(after >= 12, f"the second act began {after:.1f} s after the first")


def check_pod_after_the_report(w):
    """The agent is dead, and another pod is given the sick device: it is not reset under that pod"""
    plugin.needed()
    with Story(w, rungs=["reset-device"], hold=True) as s:
        tool_does(w, 0, 0)
        before = len(tool_log(w))
        plugin.start(w)
        w.until("the node has devices", lambda: w.api.get("nodes", None, NODE)["status"]["allocatable"].get(
            "example.com/gpu") == "4")
        try:
            s.fail()
            client.until("the node is quarantined", lambda: tainted(w), 30)
            s.agent.stop()
            for i in range(COUNT):
                w.api.create("pods", "default", {"metadata": {"name": f"late-{i}"}, "spec": {
                    "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1, "containers": [{
                        "name": "c", "image": "localhost/busybox:1", "command": ["sleep", "1000"],
                        "resources": {"limits": {"example.com/gpu": 1}}}]}})
            w.until("they run", lambda: all(w.api.get("pods", "default", f"late-{i}")["status"].get("phase") == "Running"
                                            for i in range(COUNT)))
            w.api.patch("healthpolicies", None, "p", {"spec": {"mend": {"hold": False}, "drain": {"graceSeconds": 0}}})
            until_says(s, 1, "newer than pod default/late-")
            client.pause(3)
            equal("resets", len(tool_log(w)), before)
            s.agent.start()
            s.until_phase("Succeeded")
            equal("resets", len(tool_log(w)), before + 1)
            left = [p["metadata"]["name"] for p in w.api.list("pods", "default") if p["metadata"]["name"].startswith("late-")]
            equal("pods on the other devices", len(left), COUNT - 1)
        finally:
            for i in range(COUNT):
                if w.api.find("pods", "default", f"late-{i}"):
                    w.api.delete("pods", "default", f"late-{i}")
            w.cluster.stop("plugin")


def processes(word):
    """Processes of this machine with this word in their command line, but not this test's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            if word.encode() in f.read().split(b"\0"):
                found.append(int(pid))
    return found


def check_operator_dies(w):
    """kill -9 of the operator while the tool runs: one act, and its end is found"""
    with Story(w, rungs=["reset-device"]) as s:
        tool_does(w, 4, 0)
        before = len(tool_log(w))
        s.fail()
        s.until_phase("Acting")
        s.operator.kill()
        s.operator.start()
        s.until_phase("Succeeded")
        equal("resets", len(tool_log(w)), before + 1)


def check_agent_dies(w):
    """kill -9 of the agent while the tool runs: the next agent's report proves the act"""
    with Story(w, rungs=["reset-device"]) as s:
        tool_does(w, 4, 0)
        before = len(tool_log(w))
        s.fail()
        s.until_phase("Acting")
        s.agent.stop()
        client.until("the tool has ended", lambda: s.act()["status"]["act"].get("endedAt"), 30)
        threading.Event().wait(2)
        equal("without a report", s.act()["status"]["phase"], "Verifying")
        s.agent.start()
        done = s.until_phase("Succeeded")
        equal("resets", len(tool_log(w)), before + 1)
        s.agent.until_states("the device is on probation", lambda states: states[1] == "Probation", 30)
        want(done["status"]["proof"]["time"] > done["status"]["act"]["endedAt"], "the proof is older than the act")


def check_actor_dies(w):
    """kill -9 of the actor while the tool runs: no second act, the device's state decides, a person is asked"""
    with Story(w, rungs=["reset-device"], deadlineSeconds=60) as s:
        tool_does(w, 20, 0)
        before = len(tool_log(w))
        s.fail()
        s.until_phase("Acting")
        client.until("the tool runs", lambda: len(tool_log(w)) > before, 30)
        for pid in processes(f"{NODE}-1"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        client.until("the actor is missed", lambda: s.act()["status"]["phase"] in ("Verifying", "Failed"), 40)
        failed = s.until_phase("Failed", timeout_s=120)
        equal("the act's end", failed["status"]["act"].get("endedAt"), None)
        want("the actor was lost, and device" in failed["status"]["message"], failed["status"]["message"])
        equal("resets", len(tool_log(w)), before + 1)
        w.until("a person is asked", lambda: s.act(2).get("spec", {}).get("rung") == "person")
        return failed["status"]["message"]


def define_repairs(w):
    """The kinds of an external remediation: a template, and what is made from it for one node."""
    for kind, plural in (("Repair", "repairs"), ("RepairTemplate", "repairtemplates")):
        w.api.create("customresourcedefinitions", None, {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": plural + ".fix.example"},
            "spec": {"group": "fix.example", "scope": "Cluster",
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    w.until("the kinds are served", lambda: w.api.list("repairtemplates") == [] and w.api.list("repairs") == [])


def check_external(w):
    """Rung external: an object from a real template, once, for the node; the proof ends the act, and the object goes"""
    define_repairs(w)
    template = {"apiVersion": "fix.example/v1", "kind": "RepairTemplate", "name": "power"}
    with Story(w, rungs=["external"], external={"template": template}) as s:
        s.fail(79)
        client.until("the template is missed", lambda: "RepairTemplate power does not exist" in
                     s.act().get("status", {}).get("message", ""), 40)
        equal("objects", w.api.list("repairs"), [])
        w.api.create("repairtemplates", None, {
            "apiVersion": "fix.example/v1", "kind": "RepairTemplate", "metadata": {"name": "power"},
            "spec": {"template": {"spec": {"strategy": "PowerCycle", "retries": 3}}}})
        fix = client.until("the object is made", lambda: w.api.find("repairs", None, NODE), 60)
        equal("its spec", fix["spec"], {"strategy": "PowerCycle", "retries": 3})
        equal("its owner", [(o["kind"], o["uid"]) for o in fix["metadata"]["ownerReferences"]],
              [("Remediation", s.act()["metadata"]["uid"])])
        s.operator.kill()
        s.operator.start()
        client.pause(3)
        equal("made once", w.api.get("repairs", None, NODE)["metadata"]["uid"], fix["metadata"]["uid"])
        want(s.act()["status"]["phase"] == "Verifying", s.act()["status"])
        # What an external controller does to the machine is declared here.
        w.api.patch("devicehealths", None, NODE, {"metadata": {"annotations": {
            "holdfast.dev/cleared": client.stamp()}}})
        done = s.until_phase("Succeeded")
        client.until("the object is gone", lambda: w.api.find("repairs", None, NODE) is None, 30)
        return done["status"]["message"]


class Power(http.server.ThreadingHTTPServer):
    """A webhook that power-cycles the node. It is busy at first, and asks for the token."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls = self.server.calls
            calls.append((self.path, self.headers["Idempotency-Key"], self.headers["Authorization"], body))
            self.send_response(503 if len(calls) == 1 else 202)
            self.end_headers()
            if len(calls) == 2:
                self.server.accepted()

        def log_message(self, *words):
            pass

    def __init__(self, accepted):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.calls, self.accepted = [], accepted
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.shutdown()
        self.server_close()


def check_webhook(w):
    """Rung external: a webhook that is busy at first is called again, and power-cycles the node, whose boot is the proof"""
    first_boot(w)
    threads = []
    with contextlib.ExitStack() as stack:
        node = first_process(w)
        power = stack.enter_context(Power(lambda: os.kill(node, signal.SIGRTMIN + 5)))
        url = f"http://127.0.0.1:{power.server_port}/power?rack=7"
        s = stack.enter_context(Story(w, rungs=["external"], external={"webhook": {"url": url}}, deadlineSeconds=600,
                                      env={"HOLDFAST_WEBHOOK_TOKEN": "of-the-tests"}))
        threads.append(reboot_double(w, s, 2))
        s.fail(79)
        done = s.until_phase("Succeeded", timeout_s=300)
        threads[0].join(60)
        path, key, token, body = power.calls[0]
        equal("calls", [call[:3] for call in power.calls], [(path, key, token)] * 2)
        equal("the path", path, "/power?rack=7")
        equal("the key", key, done["metadata"]["uid"])
        equal("the token", token, "Bearer of-the-tests")
        equal("the node", (body["node"], body["remediation"], body["attempt"]), (NODE, done["metadata"]["name"], 1))
        want("of-the-tests" not in s.operator.said(), "the token is in the log")
        equal("the answer", done["status"]["act"]["message"], "HTTP 202 (attempt 2)")
    return f"{done['status']['act']['message']}; {done['status']['message']}"


def reboot_double(w, s, back_s, *lines, gone=None):
    """Waits for the end of the node and starts it again with another boot, whose kernel writes these lines. gone: the number
    of the last GPU, which does not come back. Returns the thread."""
    child = w.cluster.children.pop("node")

    def come_back():
        child.wait()
        s.agent.stop()
        threading.Event().wait(back_s)
        boot = f"22222222-2222-2222-2222-{int(time.time()):012d}"
        w.cluster.write("boot_id", boot + "\n")
        s.agent.write("proc/sys/kernel/random/boot_id", boot + "\n")
        s.agent.write("kmsg", "")
        if gone is not None:
            s.agent.unplug(gone)
            s.agent.write("nvml", f"devices {gone}\n")
        w.cluster.again("node")
        client.until("its kubelet has registered the boot", lambda: w.api.get("nodes", None, NODE)["status"]["nodeInfo"][
            "bootID"] == boot, 120)
        s.agent.start()
        for number, code, text in lines:
            s.agent.xid(number, code, text)
    thread = threading.Thread(target=come_back, daemon=True)
    thread.start()
    return thread


def first_boot(w):
    """The node starts in the machine's own boot again: the actor's pod has its /proc."""
    if os.path.exists(w.cluster.path("boot_id")):
        os.unlink(w.cluster.path("boot_id"))
        w.cluster.restart("node")
        with open(BOOT, encoding="ascii") as f:
            boot = f.read().strip()
        client.until("the node is in the machine's boot", lambda: w.api.get("nodes", None, NODE)["status"]["nodeInfo"][
            "bootID"] == boot and NODE in w.cluster.ready_nodes(), 120)
        put_tool(w)


def check_reboot(w):
    """The actor signals the node's first process: kubelet, containerd and pods end, and another boot proves it"""
    first_boot(w)
    with Story(w, rungs=["reboot"], deadlineSeconds=600) as s:
        before = w.api.get("nodes", None, NODE)["status"]["nodeInfo"]["bootID"]
        thread = reboot_double(w, s, 2)
        began = s.fail(79)
        s.until_phase("Acting", timeout_s=90)
        done = s.until_phase("Succeeded", timeout_s=300)
        ended = time.time()
        thread.join(60)
        node = w.api.get("nodes", None, NODE)
        want(node["status"]["nodeInfo"]["bootID"] != before, "the boot is the same")
        equal("the proof's boot", done["status"]["proof"]["bootID"], node["status"]["nodeInfo"]["bootID"])
        said = f"line to success {ended - began:.1f} s"
    return said


def check_job_before_reboot(w):
    """A job whose programs end with 1 at SIGTERM: its pods are gone before the reboot, and come back after it; no failure"""
    first_boot(w)
    with Story(w, rungs=["reboot"], deadlineSeconds=600) as s:
        container = {"name": "pytorch", "image": "localhost/busybox:1",
                     "command": ["sh", "-c", "trap 'exit 1' TERM; sleep 1000 & wait"]}
        w.api.create("pytorchjobs", "default", {
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"}, "spec": {
                "runPolicy": {"backoffLimit": 0}, "pytorchReplicaSpecs": {"Worker": {
                    "replicas": 2, "restartPolicy": "ExitCode",
                    "template": {"spec": {"terminationGracePeriodSeconds": 5, "containers": [container]}}}}}})
        try:
            w.until("the job runs", lambda: phases(w) == ["Running", "Running"])
            thread = reboot_double(w, s, 2)
            w.holdfast("mend", NODE, "--rung", "reboot", "--although-well")
            s.until_phase("Acting", timeout_s=90)
            equal("pods on the node", [p["metadata"]["name"] for p in pods(w) if p["spec"].get("nodeName")], [])
            during = w.holdfast("why", "train")
            s.until_phase("Succeeded", timeout_s=300)
            thread.join(60)
            w.until("the job runs again", lambda: phases(w) == ["Running", "Running"], 90)
            job = w.api.get("pytorchjobs", "default", "train")
            equal("restarts", job["status"]["recovery"]["restarts"], {"infrastructure": 1})
            after = w.holdfast("why", "train")
            for said in (during, after):
                want(f"{NODE}: reboot of the node" in said and f"(Remediation {NODE}-1)" in said, said)
        finally:
            w.api.delete("pytorchjobs", "default", "train")
            w.until("its pods are gone", lambda: not pods(w), 90)
        return next(line.strip() for line in after.splitlines() if " mend " in line)


def pods(w):
    return [p for p in w.api.list("pods", "default") if p["metadata"]["name"].startswith("train-")]


def phases(w):
    return [p["status"].get("phase") for p in pods(w)]


def check_sick_after_reboot(w):
    """The node comes back sick: it stays quarantined, whether the fault came before the proof or after it"""
    first_boot(w)
    with Story(w, rungs=["reboot"], deadlineSeconds=600) as s:
        thread = reboot_double(w, s, 1, (2, 79, "pid=7, name=python3, GPU has fallen off the bus."))
        s.fail(79)
        client.until("the act ends", lambda: s.act().get("status", {}).get("phase") in ("Failed", "Succeeded"), 300)
        thread.join(60)
        s.agent.until_states("the device is sick", lambda states: states[2] == "Unhealthy")
        # A rung that did not help is not tried again at once: what the policy says next.
        client.until("the policy has judged it", s.next_of, 30)
        node = w.api.get("nodes", None, NODE)
        want(any(t["key"] == TAINT for t in node["spec"].get("taints", [])), "the node is released")
        want(s.act(2).get("spec", {}).get("rung") in (None, "person"), "the node is rebooted again")
        return f"the act is {s.act()['status']['phase']}: {s.act()['status']['message']}"


def check_gpu_gone_after_reboot(w):
    """The node comes back without the GPU: the boot has ended its fault, and nothing proves the act"""
    first_boot(w)
    with Story(w, rungs=["reboot"], deadlineSeconds=100) as s:
        gone = COUNT - 1
        thread = reboot_double(w, s, 1, gone=gone)
        s.agent.xid(gone, 79, "pid=7, name=python3, GPU has fallen off the bus.")
        failed = s.until_phase("Failed", timeout_s=300)
        thread.join(60)
        said = failed["status"]["message"]
        want("of which the agent knows nothing" in said, said)
        equal("the GPU's state", s.agent.states()[gone], "Unknown")
        node = w.api.get("nodes", None, NODE)
        want(any(t["key"] == TAINT for t in node["spec"].get("taints", [])), "the node is released")
        return said


def check_reboot_that_never_ends(w):
    """The node does not come back before the deadline: the act fails, and a person is asked"""
    first_boot(w)
    with Story(w, rungs=["reboot"], deadlineSeconds=60) as s:
        thread = reboot_double(w, s, 75)
        s.fail(79)
        failed = s.until_phase("Failed", timeout_s=200)
        want("no proof within 60 s of the approval" in failed["status"]["message"], failed["status"]["message"])
        w.until("a person is asked", lambda: s.act(2).get("spec", {}).get("rung") == "person")
        equal("acts of a machine", s.act(3), {})
        thread.join(200)
