# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Training processes under holdfast exec on a real kubelet: reports, hangs, codes, and ranks that fence themselves.

Agent and kubelet are real, and so is the process; its replacement goes to a kwok node, or comes back.
"""

import calendar
import os
import signal
import time

from kit import client
from kit.check import Skip, equal, has_verb, pytorchjob, want
from kit.load import restarts
from kit.proxy import Proxy
from parts import kubelet as real

NODE = "real-0"
NEEDS = {"kwok": 2, "node": NODE}
BUILD = ["control", "kwok", "node"]
POD_GROUPS = True
MINUTES = 8
# Kubelets renew their Lease every ten seconds.
MANAGER_FLAGS = ["--node-monitor-grace-period=16s", "--node-monitor-period=1s"]
AFTER_S = 40
FENCED = {"nodeLost": {"afterSeconds": AFTER_S, "selfFence": True, "forceDelete": "Proven"}}
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
# Steps as long as there is no file "stop"; a line with the time of this machine for each moment alive.
TRAIN = """
import os, select, signal, sys, time
sys.path.insert(0, "/python")
from holdfast_report import report
me = os.environ["POD_UID"]
def told(number, frame):
    with open("/data/told", "a") as f:
        f.write(f"{me} {number}\\n")
    sys.exit(7)
signal.signal(signal.SIGTERM, told)
step = 0
with open("/data/alive", "a", buffering=1) as alive:
    while True:
        alive.write(f"{me} {time.time()}\\n")
        if not os.path.exists("/data/stop"):
            step += 1
            report(step, own_ms=100, total=100000)
        select.select([], [], [], 0.2)  # a step takes a while
"""


def setup(w):
    if w.options.peer or not has_verb(w.program, "agent"):
        raise Skip("there is no agent")
    w.exec_folder = os.path.join(os.path.dirname(os.path.abspath(w.program)), "src", "exec")
    w.run_folder = w.cluster.path("run")
    os.makedirs(w.run_folder, mode=0o755)
    w.proxy = None
    return w.install()


class Agent:
    """The node's agent, behind a network that can be cut."""

    def __init__(self, w):
        self.w = w

    def __enter__(self):
        w = self.w
        self.proxy = Proxy(w.cluster.port(0), 0).__enter__()
        w.cluster.start("agent", [
            w.program, "agent", "--node-name=" + NODE, "--kmsg=", "--nvml=", "--kubelet-socket=",
            "--kubeconfig=" + w.cluster.kubeconfig("agent", token="admin-token", port=self.proxy.port),
            "--listen=0", "--state-dir=", "--report-socket=" + os.path.join(w.run_folder, "agent.sock")])
        w.until("the agent has written", lambda: self.status().get("observedTime"), 60)
        return self

    def __exit__(self, *why):
        self.w.cluster.stop("agent")
        self.proxy.__exit__()

    def status(self):
        return (self.w.api.find("devicehealths", None, NODE) or {}).get("status") or {}

    def rank(self, uid):
        return next((r for r in self.status().get("ranks") or [] if r.get("uid") == uid), {})

    def fence(self, uid):
        return next((f["seconds"] for f in self.status().get("fences") or [] if f["uid"] == uid), None)


def wrapped(w, data, *command, flags=(), env=()):
    """A container's part of a pod: this command under our exec, in this machine's /usr."""
    host = [("exec", w.exec_folder, "/holdfast", True), ("usr", "/usr", "/usr", True),
            ("lib", "/lib", "/lib", True), ("lib64", "/lib64", "/lib64", True),
            ("python", os.path.join(TOP, "python"), "/python", True),
            ("run", w.run_folder, "/run/holdfast", True), ("data", data, "/data", False)]
    return ({"command": ["/holdfast/holdfast-exec", *flags, "--", *command],
             "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                     {"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}, *env],
             "volumeMounts": [{"name": n, "mountPath": at, **({"readOnly": True} if ro else {})}
                              for n, _, at, ro in host]},
            [{"name": n, "hostPath": {"path": path}} for n, path, _, _ in host])


def submit(w, recovery, grace_s=1):
    """A job of one master that would rather be on the real node, and trains there."""
    ns = w.namespace()
    data = w.cluster.path("data-" + ns)
    os.makedirs(data)
    with open(os.path.join(data, "train.py"), "w", encoding="utf-8") as f:
        f.write(TRAIN)
    w.operator()
    container, volumes = wrapped(w, data, "/usr/bin/python3", "/data/train.py")
    there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}}]}}
    w.api.create("pytorchjobs", ns, pytorchjob(
        "job", ns, workers=0, container=container, terminationGracePeriodSeconds=grace_s,
        affinity=there, volumes=volumes, run_policy={"recovery": recovery}))
    w.until("it runs", lambda: len(alive(w, ns)) > 2, 120)
    equal("its node", real.pod(w, ns)["spec"]["nodeName"], NODE)
    return ns, real.pod(w, ns)["metadata"]["uid"]


def alive(w, ns):
    """[(UID, time)]: each moment in which a process says that it lives."""
    try:
        with open(w.cluster.path("data-" + ns, "alive"), encoding="utf-8") as f:
            lines = [l.split() for l in f if l.endswith("\n")]
    except FileNotFoundError:
        return []
    return [(uid, float(at)) for uid, at in lines]


def last_moment(w, ns, uid):
    return max(at for who, at in alive(w, ns) if who == uid)


def charged(w, ns):
    return restarts(w.job(ns, "job"))


def ended(pod):
    """How its container ended."""
    status = next(iter(pod["status"].get("containerStatuses") or []), {})
    return (status.get("state") or {}).get("terminated")


def why(w, ns, e):
    return TimeoutError(f"{e}; {w.holdfast('why', 'job', ns=ns, code=None)[:1500]}")


def check_reports(w):
    """Steps reach the agent from inside a pod, and its rank stands in DeviceHealth; SIGTERM reaches it"""
    with Agent(w) as agent:
        ns, uid = submit(w, {}, grace_s=30)
        rank = w.until("the rank is known", lambda: agent.rank(uid), 60)
        equal("the rank", (rank["pod"], rank["namespace"], rank["state"]), ("job-master-0", ns, "Advancing"))
        want(rank["step"] > 0 and rank["totalSteps"] == 100000, f"it says {rank}")
        w.until("its own work is known", lambda: 99000 <= agent.rank(uid).get("ownMicros", 0) <= 101000, 60)
        want(agent.fence(uid) is None, "a fence is told that nobody asked for")
        w.api.delete("pods", ns, "job-master-0")
        w.until("the program is told to end", lambda: os.path.exists(
            w.cluster.path("data-" + ns, "told")), 60)
        with open(w.cluster.path("data-" + ns, "told"), encoding="utf-8") as f:
            equal("who is told what", f.read().split(), [uid, str(int(signal.SIGTERM))])
        w.until("the rank is forgotten", lambda: not agent.rank(uid), 60)


def check_hangs(w):
    """A rank that makes no step any more is called stalled, and progressDeadlineSeconds restarts it"""
    with Agent(w) as agent:
        ns, uid = submit(w, {"progressDeadlineSeconds": 10, "restartScope": "Job"})
        w.until("the rank is known", lambda: agent.rank(uid).get("state") == "Advancing", 60)
        stop = w.cluster.path("data-" + ns, "stop")
        open(stop, "w", encoding="utf-8").close()
        start = time.monotonic()
        w.until("it is stalled", lambda: agent.rank(uid).get("state") == "Stalled", 90)
        stalled = time.monotonic() - start
        try:
            w.until("another runs", lambda: any(who != uid for who, _ in alive(w, ns)), 90)
        except TimeoutError as e:
            raise why(w, ns, e) from None
        took = time.monotonic() - start
        os.remove(stop)
        equal("what is charged", charged(w, ns), {"application": 1, "infrastructure": 0, "device": 0})
        last = w.job(ns, "job")["status"]["recovery"]["last"]
        equal("the record", (last["reason"], last["scope"]), ("NoProgress", "Job"))
        new = real.pod(w, ns)["metadata"]["uid"]
        w.until("it advances", lambda: agent.rank(new).get("state") == "Advancing", 60)
        return f"stalled after {stalled:.1f} s, restarted after {took:.1f} s"


CODES = {
    220: ("echo 'CUDA error: uncorrectable ECC error encountered' >&2; exit 1", (), "device-fatal"),
    222: ("echo 'CUDA error: uncorrectable NVLink error detected' >&2; exit 1", (), "fabric"),
    225: ("/usr/bin/python3 -c 'import signal, sys; sys.path.insert(0, \"/python\"); import holdfast_report as r; "
          "r.report(1); signal.pause()'", ("--hang-after=2s",), "hang"),
    226: ("exit 0", ("--self-fence=2s", "--agent-socket=/nowhere/agent.sock"), "/nowhere/contact cannot be read"),
    3: ("echo 'its last words' >&2; exit 3", (), "its last words"),
}


def check_codes(w):
    """Exit codes by cause and the termination message are what the kubelet reports"""
    ns = w.namespace()
    data = w.cluster.path("data-" + ns)
    os.makedirs(data)
    for code, (script, flags, _) in CODES.items():
        container, volumes = wrapped(w, data, "sh", "-c", script, flags=flags)
        w.api.create("pods", ns, {"metadata": {"name": f"ends-{code}"}, "spec": {
            "restartPolicy": "Never", "nodeSelector": {"kubernetes.io/hostname": NODE},
            "volumes": volumes, "containers": [{
                "name": "pytorch", "image": "localhost/busybox:1", **container}]}})
    for code, (_, _, said) in CODES.items():
        end = w.until(f"ends-{code} ends", lambda c=code: ended(w.api.get("pods", ns, f"ends-{c}")), 120)
        equal(f"the code of ends-{code}", end["exitCode"], code)
        want(said in end.get("message", ""), f"ends-{code} says {end.get('message')!r}")


def check_fence_of_a_silent_kubelet(w):
    """A kubelet that hangs: the rank ends itself before its replacement is made, which needs no force"""
    with Agent(w) as agent:
        ns, uid = submit(w, FENCED)
        w.until("its fence is told", lambda: agent.fence(uid) == AFTER_S - 10, 60)
        real.send(w, signal.SIGSTOP)
        start, began = time.monotonic(), time.time()
        try:
            took = real.until_elsewhere(w, ns, uid, start)
            new = real.pod(w, ns)
            equal("who else lived", {who for who, _ in alive(w, ns)}, {uid})
            made = stamp(new["metadata"]["creationTimestamp"])
            died = last_moment(w, ns, uid)
            want(died < made, f"the old one lived {died - made:.1f} s into the new one's time")
            want(time.time() - died > 5, "the old one lives")
        finally:
            real.send(w, signal.SIGCONT)
        w.until("the node is ready", lambda: real.ready(w) == "True", 60)
        end = time.monotonic() + 15
        client.until("its kubelet, awake, starts nothing", lambda: time.monotonic() > end, 60, 0.5)
        equal("who lived", {who for who, _ in alive(w, ns)}, {uid})
        equal("its last moment", last_moment(w, ns, uid), died)
        equal("the pod", real.pod(w, ns)["metadata"]["uid"], new["metadata"]["uid"])
        last = w.job(ns, "job")["status"]["recovery"]["last"]
        equal("the record", (last["cause"], last["reason"]), ("infrastructure", "NodeLost"))
        return (f"ended itself after {died - began:.1f} s, {made - died:.1f} s before its replacement was "
                f"made, which ran after {took:.1f} s")


def check_fence_of_an_agent_that_is_cut_off(w):
    """An agent without the API server: the rank ends itself with code 226; once it is back, it runs again"""
    with Agent(w) as agent:
        ns, uid = submit(w, FENCED)
        w.until("its fence is told", lambda: agent.fence(uid) == AFTER_S - 10, 60)
        start = time.monotonic()
        agent.proxy.say("hold")
        try:
            w.until("another pod is there", lambda: (lambda p: p and p["metadata"]["uid"] != uid)(
                real.pod(w, ns)), 120)
        except TimeoutError as e:
            raise why(w, ns, e) from None
        finally:
            agent.proxy.say("flow")
        died = last_moment(w, ns, uid)
        last = w.job(ns, "job")["status"]["recovery"]["last"]
        equal("the record", (last["cause"], last["reason"], last["exitCode"]), ("infrastructure", "SelfFenced", 226))
        took = time.monotonic() - start
        w.until("it runs again", lambda: (lambda p: p and p["status"].get("phase") == "Running")(
            real.pod(w, ns)), 240)
        counts = charged(w, ns)
        equal("what the application is charged", counts["application"], 0)
        want(counts["infrastructure"] >= 1, f"charged {counts}")
        others = [at for who, at in alive(w, ns) if who != uid]
        want(all(at > died for at in others), "two lived at once")
        return f"replaced after {took:.1f} s"


def check_fence_without_an_agent(w):
    """An agent that has ended: the rank ends itself, and says so to the kubelet"""
    with Agent(w) as agent:
        ns, uid = submit(w, FENCED)
        w.until("its fence is told", lambda: agent.fence(uid) == AFTER_S - 10, 60)
        messages = []

        def fenced():
            pod = w.api.find("pods", ns, "job-master-0")
            if pod and pod["metadata"]["uid"] == uid and ended(pod):
                messages.append((ended(pod)["exitCode"], ended(pod).get("message", "")))
            return messages
        w.end_operators()
        w.cluster.stop("agent")
        w.until("the rank has ended", fenced, 120)
        equal("its code", messages[0][0], 226)
        want("no contact with the control plane" in messages[0][1], f"it says {messages[0][1]!r}")
        equal("who lived", {who for who, _ in alive(w, ns)}, {uid})
        w.api.delete("pytorchjobs", ns, "job")


def stamp(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
