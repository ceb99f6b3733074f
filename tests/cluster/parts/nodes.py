# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Nodes that die, fall silent, come back, are deleted: jobs train on elsewhere, and never twice.

Silent nodes are kwok's, whose process is stopped: no Lease is renewed, no pod's deletion confirmed.
What follows is done by the real controller-manager, with a shorter grace; figures are for it.
"""

import json
import os
import signal
import threading
import time

from kit import audit, client
from kit.check import Fail, Skip, condition, equal, parallel, pytorchjob, want
from kit.load import restarts
from kit.ranks import still
from parts import rbac

NEEDS = {"kwok": 4}
BUILD = ["control", "kwok"]
MINUTES = 12
GRACE_S, LEASE_S, FRAIL = 8, 6, 6
# All frail nodes are silent together; taints that evict are set all the same, and at once.
MANAGER_FLAGS = [f"--node-monitor-grace-period={GRACE_S}s", "--node-monitor-period=1s",
                 "--node-eviction-rate=10", "--unhealthy-zone-threshold=0.95"]
LOST = {"nodeLost": {"afterSeconds": 6}, "forceDeleteAfterSeconds": 1}
DYING = {"recovery": LOST, "grace_s": 2}  # jobs whose node dies
if os.environ.get("HOLDFAST_TEST_STOCK"):  # the figures of an untouched cluster, once
    GRACE_S, LEASE_S, MANAGER_FLAGS = 50, 40, []
    DYING = {"recovery": {}, "grace_s": 30}
UNREACHABLE, STUCK = "holdfast.dev/NodeUnreachable", "holdfast.dev/PodStuckTerminating"
ZONE = "topology.kubernetes.io/zone"


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator waits for ever")
    w.cluster.add_kwok(FRAIL, "frail", LEASE_S)
    return w.install()


class Silence:
    """The frail nodes have lost power; with the end of the block it is back."""

    def __init__(self, w):
        self.w = w

    def __enter__(self):
        self.w.cluster.send("kwok-frail", signal.SIGSTOP)
        self.start = time.monotonic()
        return self

    def __exit__(self, *_):
        wake(self.w)

    def seconds(self):
        return time.monotonic() - self.start


def wake(w):
    w.cluster.send("kwok-frail", signal.SIGCONT)
    for name in frail(w):
        w.api.patch("nodes", None, name, {"metadata": {"labels": {ZONE: None}}})
    client.until("the frail nodes are back",
                 lambda: len(w.cluster.ready_nodes("group=frail")) == FRAIL, 60)
    client.until("their taints are gone", lambda: not any(
        t["effect"] == "NoExecute" for n in w.api.list("nodes", selector="group=frail")
        for t in n["spec"].get("taints", [])), 60)


def frail(w):
    return [n["metadata"]["name"] for n in w.api.list("nodes", selector="group=frail")]


def cordon(w, nodes, yes):
    for name in nodes:
        w.api.patch("nodes", None, name, {"spec": {"unschedulable": yes or None}})


def job_on_frail(w, workers=3, recovery=None, nodes=("frail-0",), grace_s=2, name="job", ns=None,
                 run=None, **more):
    """A job whose workers would rather be on these nodes, and whose master is not.

    Other frail nodes are cordoned before they fall silent with these: they count in no storm.
    """
    cordon(w, frail(w), True)
    cordon(w, nodes, False)
    ns = ns or w.namespace()
    job = pytorchjob(name, ns, workers, run_policy={"recovery": LOST if recovery is None
                                                    else recovery, **(run or {})},
                     terminationGracePeriodSeconds=grace_s, **more)
    for role, want_in in (("Master", False), ("Worker", True)):
        spec = job["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]
        terms = [{"weight": 100, "preference": {"matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In" if want_in else "NotIn",
            "values": list(nodes)}]}}]
        spec["affinity"] = {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": terms}}
        if not want_in:
            spec["nodeSelector"] = {"group": "fake"}
    for _ in range(3):  # a busy scheduler learns late that these nodes may be used again
        w.api.create("pytorchjobs", ns, job)
        running(w, ns, name, workers + 1)
        w.until_condition(ns, name, "Running")
        on = {p["spec"]["nodeName"] for p in workers_of(w, ns, name)}
        if on <= set(nodes):
            return ns
        w.api.delete("pytorchjobs", ns, name)
        w.until("its pods are gone", lambda: not w.pods(ns, name))
    raise Fail(f"workers are on {sorted(on)}")


def workers_of(w, ns, name="job"):
    return [p for p in w.pods(ns, name) if "-worker-" in p["metadata"]["name"]]


def running(w, ns, name, count, timeout_s=60):
    w.until(f"{count} pods run", lambda: len([
        p for p in w.pods(ns, name) if p["status"].get("phase") == "Running"
        and not p["metadata"].get("deletionTimestamp")]) == count, timeout_s)


def uids(pods):
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods}


def ready(w, name):
    node = w.api.get("nodes", None, name)
    return next((c["status"] for c in node["status"].get("conditions", [])
                 if c["type"] == "Ready"), None)


def until_replaced(w, ns, old, silence, limit_s, name="job"):
    """Every one of these pods has a successor that runs elsewhere; the seconds that took."""
    def done():
        new = {p["metadata"]["name"]: p for p in w.pods(ns, name)}
        return all(n in new and new[n]["metadata"]["uid"] != uid
                   and new[n]["status"].get("phase") == "Running" for n, uid in old.items())
    try:
        w.until("the pods are replaced", done, limit_s)
    except TimeoutError as e:
        job = w.job(ns, name)
        raise TimeoutError(f"{e}; {w.holdfast('why', name, ns=ns, code=None)[:1500]} "
                           f"{json.dumps(job.get('status'))[:900]}") from None
    took = silence.seconds()
    w.until_condition(ns, name, "Running", 30)
    return took


def charged(w, ns, infrastructure, name="job"):
    equal("what is charged", restarts(w.job(ns, name)),
          {"application": 0, "infrastructure": infrastructure, "device": 0})


def unchanged(w, ns, before, what, name="job"):
    pods = w.pods(ns, name)
    equal(f"{what}: pods", uids(pods), before)
    equal(f"{what}: marked for deletion",
          [p["metadata"]["name"] for p in pods if p["metadata"].get("deletionTimestamp")], [])


def taint(w, node, taints):
    w.api.patch("nodes", None, node, {"spec": {"taints": taints}})


def switched_off(w, node):
    taint(w, node, [{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
                     "effect": "NoExecute"}])


def check_silent(w):
    """S1: a node loses power; its ranks run elsewhere, nobody does a thing, one charge is made"""
    o = w.operator()
    ns = job_on_frail(w, **DYING)
    old = uids(workers_of(w, ns))
    with Silence(w) as silence:
        w.until("the node is Unknown", lambda: ready(w, "frail-0") == "Unknown", 90)
        unknown = silence.seconds()
        took = until_replaced(w, ns, old, silence, 200)
        charged(w, ns, 1)
        equal("holdfast_nodes_lost", o.metric("holdfast_nodes_lost"), 1)
        equal("holdfast_force_deletes_total",
              o.metric("holdfast_force_deletes_total", reason="Presumed"), len(old))
        on = {p["spec"]["nodeName"] for p in workers_of(w, ns)}
        want("frail-0" not in on, f"a replacement is on {sorted(on)}")
    why = w.holdfast("why", "job", ns=ns)
    want("frail-0" in why, "why does not name the node: " + why[:600])
    events = sorted({e["reason"] for e in w.api.list("events", ns)})
    # The node is back, with kwok's idea of its old pods: nothing comes of it.
    after = uids(w.pods(ns))
    still("nothing happens after", lambda: unchanged(w, ns, after, "after"), 3)
    return (f"Unknown after {unknown:.1f} s, replacements run after {took:.1f} s; "
            f"events {', '.join(events)}")


def check_blink(w):
    """S4: kubelets that are silent for less than the grace, or not for long after: nothing happens"""
    w.operator()
    ns = job_on_frail(w)
    before = uids(w.pods(ns))
    status = w.job(ns, "job")["status"]
    with Silence(w):
        still("a short silence", lambda: unchanged(w, ns, before, "a short silence"), GRACE_S - 3)
        equal("the node", ready(w, "frail-0"), "True")
    with Silence(w):
        w.until("the node is Unknown", lambda: ready(w, "frail-0") == "Unknown", 90)
        w.until("the job says so", lambda: condition(w.job(ns, "job"), UNREACHABLE) == "True", 5)
    still("they are back", lambda: unchanged(w, ns, before, "a silence that ended"),
            LOST["nodeLost"]["afterSeconds"] + 3)
    w.until("the job says so", lambda: condition(w.job(ns, "job"), UNREACHABLE) != "True", 10)
    charged(w, ns, 0)
    equal("Running", condition(w.job(ns, "job"), "Running"), "True")
    equal("startTime", w.job(ns, "job")["status"]["startTime"], status["startTime"])


def check_not_ready(w):
    """A node that says NotReady and renews its Lease lives: no pod of it is ever deleted by force"""
    w.operator()
    ns = job_on_frail(w, workers=1)
    with Silence(w) as silence:
        renewals = 0

        def alive():
            nonlocal renewals
            renewals += 1
            now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
            w.api.patch("leases", "kube-node-lease", "frail-0", {"spec": {"renewTime": now}})
            w.api.call("PATCH", client.path("nodes", None, "frail-0", "status"), {"status": {
                "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady",
                                "message": "container runtime is down",
                                "lastHeartbeatTime": now[:19] + "Z"}]}},
                "application/strategic-merge-patch+json")
        alive()
        w.until("the node is NotReady", lambda: ready(w, "frail-0") == "False", 30)
        pod = workers_of(w, ns)[0]
        w.api.delete("pods", ns, pod["metadata"]["name"])

        def held():
            alive()
            now = w.api.get("pods", ns, pod["metadata"]["name"])
            equal("the pod", now["metadata"]["uid"], pod["metadata"]["uid"])
            equal("its phase", now["status"]["phase"], "Running")
        # It is called stuck half a minute after its own deadline.
        still("it stays", held, 2 + 30 + 4)
        equal("PodStuckTerminating", condition(w.job(ns, "job"), STUCK), "True")
        text = w.holdfast("why", "job", ns=ns)
        want("frail-0" in text, "why does not name the node: " + text[:500])
        seconds = silence.seconds()
    running(w, ns, "job", 2)
    return f"held for {seconds:.0f} s, {renewals} renewals"


def check_node_deleted(w):
    """S2: the Node object is deleted; replaced within 65 s, charged once though others act as well"""
    w.operator()
    ns = job_on_frail(w, nodes=["frail-1"], **DYING)
    old = uids(workers_of(w, ns))
    with Silence(w):
        node = w.api.get("nodes", None, "frail-1")
        w.api.delete("nodes", None, "frail-1")
        start = time.monotonic()
        silence = Silence(w)
        silence.start = start
        try:
            took = until_replaced(w, ns, old, silence, 90)
        finally:
            w.api.create("nodes", None, w.cluster.kwok_node("frail-1", "frail",
                                                            node["status"]["capacity"]))
        charged(w, ns, 1)
    want(took <= 65, f"it took {took:.1f} s")
    return f"replacements run after {took:.1f} s"


def check_out_of_service(w):
    """S3: the out-of-service taint says that the machine is off; replaced within 25 s"""
    w.operator()
    ns = job_on_frail(w, nodes=["frail-2"], **{**DYING, "grace_s": 30})
    old = uids(workers_of(w, ns))
    with Silence(w):
        silence = Silence(w)
        silence.start = time.monotonic()
        switched_off(w, "frail-2")
        took = until_replaced(w, ns, old, silence, 60)
        charged(w, ns, 1)
        taint(w, "frail-2", None)
    want(took <= 25, f"it took {took:.1f} s")
    return f"replacements run after {took:.1f} s"


def check_storm(w):
    """60 % of a zone fall silent at once: nothing is deleted while it lasts, and it says so"""
    o = w.operator()
    for name in frail(w):
        w.api.patch("nodes", None, name, {"metadata": {"labels": {ZONE: "a"}}})
    fakes = [n for n in w.cluster.ready_nodes("group=fake")]
    for name in fakes:
        w.api.patch("nodes", None, name, {"metadata": {"labels": {ZONE: "a"}}})
    ns = job_on_frail(w, workers=2 * FRAIL, nodes=frail(w))
    before = uids(w.pods(ns))
    with Silence(w):
        w.until("they are Unknown", lambda: all(ready(w, n) == "Unknown" for n in frail(w)), 90)
        still("the storm", lambda: unchanged(w, ns, before, "in the storm"),
                LOST["nodeLost"]["afterSeconds"] + 12)
        job = w.job(ns, "job")
        equal("NodeUnreachable", condition(job, UNREACHABLE), "True")
        text = next(c["message"] for c in job["status"]["conditions"]
                    if c["type"] == UNREACHABLE)
        equal("holdfast_node_loss_guard", o.metric("holdfast_node_loss_guard", reason="storm"), 1)
        want(str(FRAIL) in text and str(FRAIL + len(fakes)) in text,
             "the condition lacks the numbers: " + text)
    for name in fakes:
        w.api.patch("nodes", None, name, {"metadata": {"labels": {ZONE: None}}})
    still("it has passed", lambda: unchanged(w, ns, before, "after the storm"), 8)
    charged(w, ns, 0)
    return f'{FRAIL} of {FRAIL + len(fakes)}; "{text[:160]}"'


def check_storm_passes(w):
    """A storm that wanes frees what is still lost; to cordon what fell silent does not end one"""
    w.operator()
    ns = job_on_frail(w, workers=2, nodes=["frail-0"])
    old = uids(workers_of(w, ns))
    cordoned = w.cluster.ready_nodes("group=fake")
    # What was cordoned before does not count: 6 of 6 are lost.
    cordon(w, cordoned, True)
    cordon(w, frail(w), False)
    try:
        with Silence(w) as silence:
            w.until("they are Unknown", lambda: all(ready(w, n) == "Unknown" for n in frail(w)), 90)
            before = uids(w.pods(ns))
            still("the storm", lambda: unchanged(w, ns, before, "in the storm"),
                    LOST["nodeLost"]["afterSeconds"] + 5)
            # 6 of 10 are still one, whoever cordons them now; with proof of most deaths it is none.
            cordon(w, cordoned, False)
            cordon(w, frail(w), True)
            still("the cordon", lambda: unchanged(w, ns, before, "when cordoned"), 5)
            cordon(w, frail(w), False)
            for name in frail(w)[3:]:
                switched_off(w, name)
            ended = silence.seconds()
            took = until_replaced(w, ns, old, silence, 40) - ended
            for name in frail(w)[3:]:
                taint(w, name, None)
    finally:
        cordon(w, cordoned, False)
    charged(w, ns, 1)
    return f"{took:.1f} s after it was over"


class Healed:
    """Kubelets of silent nodes that are heard of again, one after the other; the last go on until the end."""

    def __init__(self, w):
        self.w, self.names, self.lock = w, [], threading.Lock()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.renew)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def add(self, name):
        with self.lock:
            self.names.append(name)
        self.beat(name)

    def beat(self, name):
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        self.w.api.patch("leases", "kube-node-lease", name, {"spec": {"renewTime": now}})
        self.w.api.call("PATCH", client.path("nodes", None, name, "status"), {"status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                            "message": "kubelet is ready",
                            "lastHeartbeatTime": now[:19] + "Z"}]}},
            "application/strategic-merge-patch+json")

    def renew(self):
        while not self.over.wait(2):
            with self.lock:
                names = list(self.names)
            for name in names:
                self.beat(name)


def check_storm_heals(w):
    """A zone heals node by node, 2 s and 10 s apart: no rank is lost, though evidence was ripe before"""
    w.operator()
    fake = w.cluster.ready_nodes("group=fake")[0]
    said = []
    # 6 of 7 fall silent; the storm is over when 3 are left, and these come back in that time.
    for apart, after in ((2, 6), (10, 40)):
        for name in [*frail(w), fake]:
            w.api.patch("nodes", None, name, {"metadata": {"labels": {ZONE: "heals"}}})
        recovery = {"nodeLost": {"afterSeconds": after}, "forceDeleteAfterSeconds": 1}
        ns = job_on_frail(w, workers=2 * FRAIL, nodes=frail(w), recovery=recovery)
        before = uids(w.pods(ns))
        on = [p["spec"]["nodeName"] for p in workers_of(w, ns)]
        names = sorted(frail(w), key=on.count)  # a scheduler may pack them: such a node is last
        with Silence(w) as silence, Healed(w) as healed:
            w.until("they are Unknown", lambda: all(ready(w, n) == "Unknown" for n in names), 90)
            still("the storm", lambda before=before, ns=ns: unchanged(w, ns, before, "in the storm"),
                  after + 4)
            start = silence.seconds()
            for i, name in enumerate(names):
                still("the zone heals", lambda before=before, ns=ns: unchanged(
                    w, ns, before, f"while the zone heals {apart} s apart"),
                      max(0, start + i * apart - silence.seconds()))
                healed.add(name)
            w.until("all are Ready", lambda: all(ready(w, n) == "True" for n in names), 30)
            still("it has healed", lambda before=before, ns=ns: unchanged(
                w, ns, before, "after the storm"), 5)
            said.append(f"{FRAIL} nodes {apart} s apart, healed after {silence.seconds():.0f} s")
        w.api.patch("nodes", None, fake, {"metadata": {"labels": {ZONE: None}}})
        charged(w, ns, 0)
        w.api.delete("pytorchjobs", ns, "job")
    return "; ".join(said)


def check_taint_timers(w):
    """Timers of taint eviction, set by name on the lost node's pods, do not hit their replacements"""
    count, timer = 100, 60  # a busy machine replaces a hundred in 40 s
    w.operator()
    ns = job_on_frail(w, workers=count, nodes=["frail-3"], tolerations=[
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": timer}])
    old = uids(workers_of(w, ns))
    with Silence(w) as silence:
        w.until("its pods may be evicted", lambda: any(
            t["effect"] == "NoExecute" for t in
            w.api.get("nodes", None, "frail-3")["spec"].get("taints", [])), 90)
        tainted = silence.seconds()
        took = until_replaced(w, ns, old, silence, 120)
        want(took < tainted + timer, f"replaced at {took:.0f} s, after the timers")
        new = uids(workers_of(w, ns))
        left = tainted + timer - silence.seconds()

        def nothing():
            found = [p for p in workers_of(w, ns) if p["metadata"]["uid"] != new[p["metadata"]["name"]]
                     or p["metadata"].get("deletionTimestamp")]
            want(not found, f"{len(found)} of {count} replacements were hit")
        still("the timers fire", nothing, left + 8)
        charged(w, ns, 1)
    return (f"{count} pods replaced {took - tainted:.1f} s after the taint, timers of {timer} s: "
            "none was hit")


def check_operator_dies(w):
    """The operator is killed while a node is lost: no pod is doubled and the charge stays one"""
    o = w.operator()
    ns = job_on_frail(w, nodes=["frail-4"])
    old = uids(workers_of(w, ns))
    with Silence(w) as silence:
        w.until("the node is Unknown", lambda: ready(w, "frail-4") == "Unknown", 90)
        for _ in range(3):
            client.until("a while", lambda end=time.monotonic() + 2.3: time.monotonic() > end, 10)
            o.kill()
            o.start()
        # A new one measures silence anew.
        took = until_replaced(w, ns, old, silence, 120)
        charged(w, ns, 1)
    return f"{took:.1f} s with three kills"


def shipped_operator(w):
    """An operator with the rights of `holdfast manifests` and no other; the name it goes by."""
    keep = [o for o in rbac.shipped(w) if o["kind"] in (
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")]
    for namespace in (True, False):
        for o in keep:
            if namespace == (o["kind"] == "Namespace"):
                w.cluster.kubectl("apply", "-f", "-", text=json.dumps(o))
    account = next(o["metadata"] for o in keep if o["kind"] == "ServiceAccount")
    ns, name = account["namespace"], account["name"]
    w.operator(config=w.cluster.kubeconfig("shipped", token=w.api.token_of(ns, name)),
               env={"MY_POD_NAMESPACE": ns})
    return f"system:serviceaccount:{ns}:{name}"


def claim(w, ns, mode):
    """A volume and a claim on it, bound; volumes of a pod that has it."""
    room = {"accessModes": [mode], "storageClassName": ""}
    w.api.create("persistentvolumes", None, {"metadata": {"name": ns}, "spec": {
        **room, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}}})
    w.api.create("persistentvolumeclaims", ns, {"metadata": {"name": "data"}, "spec": {
        **room, "volumeName": ns, "resources": {"requests": {"storage": "1Gi"}}}})
    w.until("the claim is bound", lambda: w.api.get(
        "persistentvolumeclaims", ns, "data")["status"].get("phase") == "Bound", 60)
    return [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def check_claims(w):
    """With the shipped rights alone: a volume of one node wants proof of death, a shared one does not"""
    user = shipped_operator(w)
    spaces = [w.namespace(), w.namespace()]
    for ns, mode in zip(spaces, ("ReadWriteMany", "ReadWriteOnce")):
        job_on_frail(w, workers=1, nodes=["frail-1"], ns=ns, volumes=claim(w, ns, mode))
    shared, alone = spaces
    old = {ns: uids(workers_of(w, ns)) for ns in spaces}
    with Silence(w) as silence:
        until_replaced(w, shared, old[shared], silence, 60)

        def held():
            equal("the pod", uids(workers_of(w, alone)), old[alone])
        still("the volume of one node", held, 8)
        job = w.job(alone, "job")
        equal("the reason", next(c["reason"] for c in job["status"]["conditions"]
                                 if c["type"] == UNREACHABLE), "ExclusiveVolume")
        switched_off(w, "frail-1")
        proof = silence.seconds()
        took = until_replaced(w, alone, old[alone], silence, 60) - proof
        taint(w, "frail-1", None)
    w.end_operators()
    refused = sorted({f"{c['verb']} {c['resource']}" for c in audit.calls(
        w.cluster.path("audit.log"), user=user) if c["code"] == 403})
    equal("requests that were forbidden", refused, [])
    return f"replaced {took:.1f} s after the proof"


def check_many(w):
    """Two jobs with ranks on two dead nodes: each is charged once, each runs on elsewhere"""
    w.operator()
    spaces = []
    parallel(range(2), lambda i: spaces.append(
        job_on_frail(w, workers=4, nodes=["frail-0", "frail-5"])), 1)
    old = [uids(workers_of(w, ns)) for ns in spaces]
    with Silence(w) as silence:
        took = [until_replaced(w, ns, o, silence, 120) for ns, o in zip(spaces, old)]
        for ns in spaces:
            charged(w, ns, 1)
    return ", ".join(f"{t:.1f} s" for t in took)


def check_gang(w):
    """A gang's node dies and its peers exit with 1 before anybody knows: once, infrastructure, no verdict"""
    w.operator()
    ns = job_on_frail(w, nodes=["frail-2"], policy="ExitCode", run={"backoffLimit": 0},
                      recovery={**LOST, "restartScope": "Job"})
    old = uids(w.pods(ns))
    with Silence(w) as silence:
        # As a rank does whose peer does not answer; its node lives.
        w.end_pod(next(p for p in w.pods(ns) if "-master-" in p["metadata"]["name"]), 1)
        w.until("the end is seen", lambda: (w.job(ns, "job")["status"]["recovery"].get(
            "verdict") or {}).get("reason") == "ExitCode", 20)
        took = until_replaced(w, ns, old, silence, 120)
        charged(w, ns, 1)
        recovery = w.job(ns, "job")["status"]["recovery"]
        equal("what is recorded", {k: recovery["last"].get(k) for k in ("cause", "reason", "scope", "node")},
              {"cause": "infrastructure", "reason": "NodeLost", "scope": "Job", "node": "frail-2"})
        equal("generation", recovery["generation"], 2)
        equal("Failed", condition(w.job(ns, "job"), "Failed"), None)
    return f"all {len(old)} run after {took:.1f} s"
