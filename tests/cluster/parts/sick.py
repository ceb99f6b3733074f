# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Devices of a real kubelet that fail under jobs: kernel, driver, plugin or kubelet say so, agent and operator act.

Ranks are real processes that hold devices of a real device plugin; their replacements go to kwok
nodes, which offer the same resource.  A second job beside the one that is hit must not notice.
"""

import json
import os
import sys
import time

from kit import client, plugin
from kit.agent import COUNT, NODE, RESOURCE, Agent, address
from kit.check import Skip, equal, has_verb, pytorchjob, want
from kit.load import restarts

NEEDS = {"kwok": 2, "node": NODE}
BUILD = ["control", "kwok", "node"]
MINUTES = 22
NO_COSTS = {"application": 0, "infrastructure": 0, "device": 0}
ONE_DEVICE = {**NO_COSTS, "device": 1}
# What the kubelet alone says counts once it stands for so long.
KUBELET_STANDS_S = 30
# Devices are counted so often.
COUNTED_EVERY_S = 30


def setup(w):
    if w.options.peer or not has_verb(w.program, "agent"):
        raise Skip("there is no agent")
    plugin.needed()
    w.install()
    w.agent = None
    for i in range(2):
        w.api.patch("nodes", None, f"fake-{i}", {"status": {"capacity": {RESOURCE: "64"},
                                                            "allocatable": {RESOURCE: "64"}}},
                    sub="status")
    start_plugin(w)
    return "a device plugin on a real kubelet"


def start_plugin(w):
    plugin.start(w)
    until_offered(w, COUNT)


def until_offered(w, count):
    """As the node's status says."""
    w.until(f"the kubelet offers {count}", lambda: w.api.get(
        "nodes", None, NODE)["status"]["allocatable"].get(RESOURCE) == str(count), 60)


class Story:
    """An agent and jobs of a check; at its end nothing of them is left."""

    def __init__(self, w):
        self.w, self.ns, self.jobs = w, w.namespace(), {}
        w.operator()
        self.agent = Agent(w).begin()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        w = self.w
        if error is not None:
            print("      DeviceHealth:", json.dumps(self.agent.status()), file=sys.stderr)
        for name in self.jobs:
            w.api.delete("pytorchjobs", self.ns, name)
        if "agent" in w.cluster.children:
            self.agent.stop()
        w.until("all pods are gone", lambda: not w.pods(self.ns), 60)
        w.end_operators()
        w.api.delete("devicehealths", None, NODE)

    def submit(self, name, workers=0, policy=None):
        """A master that holds one device of the real node; its workers are kwok's."""
        there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}}]}}
        job = pytorchjob(name, self.ns, workers, run_policy=policy or {}, affinity=there, container={
            "command": ["sh", "-c", "while :; do sleep 1; done"],
            "resources": {"limits": {RESOURCE: 1}}}, terminationGracePeriodSeconds=1)
        if workers:
            job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"] = {
                "nodeSelector": {"type": "kwok"},
                "containers": [{"name": "pytorch", "image": "localhost/busybox:1"}]}
        self.w.api.create("pytorchjobs", self.ns, job)
        self.w.until(f"{name} runs", lambda: self.running(name) == workers + 1, 90)
        equal("its node", self.master(name)["spec"]["nodeName"], NODE)
        self.w.until(f"{name} holds a device", lambda: self.device(name) is not None)
        self.jobs[name] = self.life(name)

    def running(self, name):
        return len([p for p in self.w.pods(self.ns, name) if p["status"].get("phase") == "Running"
                    and not p["metadata"].get("deletionTimestamp")])

    def master(self, name):
        return self.w.api.find("pods", self.ns, name + "-master-0")

    def device(self, name):
        """The number of the device that its master holds, as the agent says."""
        return next((i for i in range(COUNT) if name + "-master-0" in self.agent.holders(i)), None)

    def life(self, name):
        """What changes when the master's process is another one."""
        pod = self.master(name)
        status = pod["status"]["containerStatuses"][0]
        return pod["metadata"]["uid"], status["containerID"], status["restartCount"]

    def untouched(self, *names):
        for name in names:
            equal(f"the life of {name}", self.life(name), self.jobs[name])
            equal(f"{name} is charged", restarts(self.w.job(self.ns, name)), NO_COSTS)

    def unmarked(self, *names):
        for name in names:
            equal(f"what the pod of {name} is told", self.word(name), None)

    def word(self, name):
        pod = self.master(name)
        return next(((c["status"], c["reason"]) for c in (pod or {}).get("status", {}).get(
            "conditions", []) if c["type"] == "holdfast.dev/DeviceHealthy"), None)

    def stays(self, seconds, *names):
        """Nothing happens to them for so long."""
        end = time.monotonic() + seconds

        def well():
            self.untouched(*names)
            return time.monotonic() > end
        client.until("a while", well, seconds + 30, 1)

    def until_moved(self, name, timeout_s=60, workers=0):
        """Runs again under another UID; what it was charged, and where it is."""
        old = self.jobs[name][0]

        def moved():
            pod = self.master(name)
            return pod and pod["metadata"]["uid"] != old and self.running(name) == workers + 1
        try:
            self.w.until(f"{name} runs anew", moved, timeout_s)
        except TimeoutError as e:
            why = self.w.holdfast("why", name, ns=self.ns, code=None)
            raise TimeoutError(f"{e}; {why[:1500]}") from None
        return self.master(name)["spec"]["nodeName"]

    def until_told(self, pod, uid, reason):
        """An event about this pod."""
        self.w.until(f"an event {reason} tells of {pod}", lambda: any(
            e["reason"] == reason and e["involvedObject"].get("uid") == uid
            for e in self.w.api.list("events", self.ns)), 30)


def check_xid(w):
    """An Xid that stops a device: its holder runs elsewhere, on the device budget; a boot brings it back"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        number, agent = s.device("hit"), s.agent
        start = time.monotonic()
        agent.xid(number, 79, "pid=1234, name=python3, GPU has fallen off the bus.")
        agent.until_problems("AcceleratorUnhealthy")
        seen = time.monotonic() - start
        node = s.until_moved("hit")
        took = time.monotonic() - start
        want(node != NODE, "the replacement is on the same node")
        device = agent.devices()[number]
        equal("the device", (device["state"], device["class"], device["action"]),
              ("Unhealthy", "reboot", "restart-node"))
        equal("what others are", sorted(set(agent.states())), ["Healthy", "Unhealthy"])
        equal("what is charged", restarts(w.job(s.ns, "hit")), ONE_DEVICE)
        last = w.job(s.ns, "hit")["status"]["recovery"]["last"]
        equal("the record", (last["cause"], last["reason"], last["device"], last["node"]),
              ("device", "reboot", address(number), NODE))
        s.until_told("hit-master-0", s.jobs["hit"][0], "DeviceFault")
        s.stays(5, "beside")
        s.unmarked("beside")
        equal("problems", agent.problems(), ["AcceleratorUnhealthy"])
        agent.node_untouched()
        agent.stop()
        agent.boot()
        agent.start()
        agent.until_states("it is on probation", lambda x: x[number] == "Probation")
        agent.until_problems()
        s.untouched("beside")
        return f"a condition after {seen:.1f} s, running elsewhere after {took:.1f} s"


def check_gang(w):
    """In scope Job the whole gang of the holder restarts, once; a job beside it does not"""
    with Story(w) as s:
        s.submit("hit", workers=2, policy={"recovery": {"restartScope": "Job"}})
        s.submit("beside")
        before = {p["metadata"]["uid"] for p in w.pods(s.ns, "hit")}
        s.agent.xid(s.device("hit"), 119, "pid=77, name=python3, Timeout after 6s of waiting for RPC "
                    "response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x0 0x0).")
        s.until_moved("hit", workers=2)
        want(not before & {p["metadata"]["uid"] for p in w.pods(s.ns, "hit")}, "a rank was left over")
        equal("what is charged", restarts(w.job(s.ns, "hit")), ONE_DEVICE)
        equal("generation", w.job(s.ns, "hit")["status"]["recovery"]["generation"], 2)
        s.stays(5, "beside")
        equal("what is charged later", restarts(w.job(s.ns, "hit")), ONE_DEVICE)


def check_harmless(w):
    """Lines that mean nothing to a device: the program's Xids, forged records, nonsense; nobody moves"""
    with Story(w) as s:
        s.submit("hit")
        number, agent = s.device("hit"), s.agent
        agent.xid(number, 31, "pid=1, name=python3, Ch 00000008, intr 00000000. MMU Fault")
        agent.xid(number, 43, "pid=1, name=python3, Ch 00000008")
        agent.xid(number, 999, "what nobody has rated")
        agent.kernel(f"NVRM: Xid (PCI:{address(number)[:-2]}): ", "NVRM: Xid (PCI:zz): 79, lost",
                     f"12,7,1000,-;NVRM: Xid (PCI:{address(number)[:-2]}): 79, pid=1, a user wrote this")
        w.until("it is written down", lambda: {f["code"] for f in agent.devices()[number].get(
            "faults") or []} >= {31, 43}, 30)
        s.stays(5, "hit")
        s.unmarked("hit")
        equal("states", set(agent.states()), {"Healthy"})
        equal("problems", agent.problems(), [])


def check_all_at_once(w):
    """All devices stop at once: that is the driver, no device is blamed and no rank is touched"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        s.agent.kernel(*(f"NVRM: Xid (PCI:{address(i)[:-2]}): 79, pid=1, name=python3, GPU has fallen off "
                         "the bus." for i in range(COUNT)))
        s.agent.until_problems("AcceleratorDriverUnresponsive")
        s.agent.until_states("all are Unknown", lambda x: set(x) == {"Unknown"})
        s.stays(5, "hit", "beside")
        s.unmarked("hit", "beside")
        equal("problems", s.agent.problems(), ["AcceleratorDriverUnresponsive"])


def check_driver_recovers(w):
    """The driver wants a reset and takes it back: Ignore keeps the rank, its pod is told both"""
    with Story(w) as s:
        s.submit("hit", policy={"recovery": {"device": {"onUnhealthy": "Ignore"}}})
        s.submit("beside")
        number, agent = s.device("hit"), s.agent
        agent.library(f"value nvmlDeviceGetFieldValues {number} 1")
        agent.until_problems("AcceleratorUnhealthy")
        # Node and DeviceHealth are two writes.
        w.until("its class", lambda: agent.devices()[number].get("class") == "gpu-reset", 10)
        w.until("the pod is told", lambda: (s.word("hit") or ("",))[0] == "False", 30)
        s.stays(3, "hit", "beside")
        agent.library()
        agent.until_states("it is on probation", lambda x: x[number] == "Probation")
        agent.until_problems()
        w.until("the pod is told that it is over", lambda: s.word("hit") == ("True", "Recovered"), 30)
        s.unmarked("beside")
        s.untouched("hit", "beside")


def check_lost(w):
    """A device that the driver alone lost is not acted on; once the bus says so too, its holder moves"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        number, agent = s.device("hit"), s.agent
        agent.library(f"lost {number}")
        agent.until_problems("AcceleratorDegraded")
        # Node and DeviceHealth are two writes.
        w.until("its state", lambda: agent.states()[number] == "Degraded", 10)
        s.stays(5, "hit", "beside")
        s.unmarked("hit", "beside")
        agent.unplug(number)
        s.until_moved("hit", 90)
        device = agent.devices()[number]
        equal("the device", (device["state"], device["class"]), ("Unhealthy", "reboot"))
        equal("problems", agent.problems(), ["AcceleratorUnhealthy"])
        equal("what is charged", restarts(w.job(s.ns, "hit")), ONE_DEVICE)
        s.untouched("beside")
        # Seen again without a boot: whatever happened to it, it is not trusted by itself.
        agent.plug(number)
        agent.library()
        s.stays(15, "beside")
        equal("its state", agent.states()[number], "Unhealthy")


def check_plugin_unhealthy(w):
    """A device that its plugin calls Unhealthy: for a moment nothing, then its holder moves, it alone"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        name = f"gpu-{s.device('hit')}"

        def kubelet_says():
            pod = s.master("hit")
            return [r["health"] for c in pod["status"]["containerStatuses"]
                    for a in c.get("allocatedResourcesStatus") or [] for r in a["resources"]]
        plugin.says(w, name)
        try:
            until_offered(w, COUNT - 1)
            w.until("the kubelet says so", lambda: kubelet_says() == ["Unhealthy"], 90)
            plugin.says(w)
            w.until("and takes it back", lambda: kubelet_says() == ["Healthy"], 90)
            s.stays(3, "hit", "beside")
            plugin.says(w, name)
            w.until("the kubelet says so again", lambda: kubelet_says() == ["Unhealthy"], 90)
            start = time.monotonic()
            s.until_moved("hit", 120)
            took = time.monotonic() - start
        finally:
            plugin.says(w)
        want(took > KUBELET_STANDS_S - 5, f"moved after {took:.1f} s, of a flap")
        equal("what is charged", restarts(w.job(s.ns, "hit")), ONE_DEVICE)
        equal("what the agent saw", set(s.agent.states()), {"Healthy"})
        s.untouched("beside")
        s.unmarked("beside")
        until_offered(w, COUNT)
        return f"moved {took:.1f} s after the kubelet said so"


def check_count(w):
    """A free device that the kubelet does not offer: three looks later the node is degraded, nobody moves"""
    with Story(w) as s:
        s.submit("hit")
        free = next(i for i in range(COUNT) if i != s.device("hit"))
        plugin.says(w, f"gpu-{free}")
        try:
            start = time.monotonic()
            s.agent.until_problems("AcceleratorDegraded", timeout_s=240)
            took = time.monotonic() - start
            want(took > 2 * COUNTED_EVERY_S, f"told after {took:.1f} s, which is fewer than three looks")
            w.until("it is told what is wrong", lambda: s.agent.faults() == [("count", "software")], 10)
            equal("states", set(s.agent.states()), {"Healthy"})
            s.stays(3, "hit")
        finally:
            plugin.says(w)
        w.until("the fault is over", lambda: not s.agent.faults(), 240)
        s.untouched("hit")
        s.unmarked("hit")
        s.agent.node_untouched()
        return f"told after {took:.0f} s"


def check_cleared(w):
    """A person says that a failed device is well: it is on probation; what fails later is not meant"""
    with Story(w) as s:
        s.submit("beside")
        agent = s.agent
        number, other = [i for i in range(COUNT) if i != s.device("beside")][:2]
        agent.xid(number, 79, "pid=1234, name=python3, GPU has fallen off the bus.")
        agent.until_problems("AcceleratorUnhealthy")
        word = address(number) + time.strftime(" %Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
        w.api.patch("devicehealths", None, NODE, {"metadata": {"annotations": {
            "holdfast.dev/cleared": word}}})
        # It is read with the next write, which anything may cause.
        agent.xid(other, 31, "pid=1, name=python3, Ch 00000008, intr 00000000. MMU Fault")
        agent.until_states("it is on probation", lambda x: x[number] == "Probation")
        agent.until_problems()
        agent.xid(number, 62, "pid=1, name=python3, 1234 5678")
        agent.until_problems("AcceleratorUnhealthy")
        agent.xid(other, 31, "pid=2, name=python3, Ch 00000009, intr 00000000. MMU Fault")
        s.stays(5, "beside")
        equal("its state", agent.states()[number], "Unhealthy")


def check_plugin_gone(w):
    """A plugin that ends: after a minute the node has a problem, no rank is touched; and it comes back"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        w.cluster.stop("plugin")
        try:
            until_offered(w, 0)
            s.agent.until_problems("AcceleratorDriverUnresponsive", timeout_s=150)
            s.stays(KUBELET_STANDS_S + 10, "hit", "beside")
        finally:
            start_plugin(w)
        s.unmarked("hit", "beside")
        equal("states", set(s.agent.states()), {"Healthy"})
        equal("problems", s.agent.problems(), ["AcceleratorDriverUnresponsive"])
        w.until("the fault is over", lambda: not s.agent.faults(), 150)
        s.untouched("hit", "beside")


def check_kubelet_restarts(w):
    """A kubelet that is killed and started again: ranks run on, holders stay known, no problem is told"""
    with Story(w) as s:
        s.submit("hit")
        s.submit("beside")
        held = s.device("hit"), s.device("beside")
        kubelets = [p for p in w.cluster.pids("node") if name_of(p) == "kubelet"]
        equal("kubelets", len(kubelets), 1)
        os.kill(kubelets[0], 9)
        w.until("another one runs", lambda: [p for p in w.cluster.pids("node") if name_of(
            p) == "kubelet" and p not in kubelets], 30)
        until_offered(w, COUNT)
        s.stays(KUBELET_STANDS_S + 10, "hit", "beside")
        equal("who holds what", (s.device("hit"), s.device("beside")), held)
        s.unmarked("hit", "beside")
        equal("states", set(s.agent.states()), {"Healthy"})
        equal("problems", s.agent.problems(), [])


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def check_driver_hangs(w):
    """A driver that hangs: the node has a problem after three deadlines, no rank is touched; and it ends"""
    with Story(w) as s:
        s.submit("hit")
        s.agent.library("hang nvmlDeviceGetCount_v2")
        start = time.monotonic()
        s.agent.until_problems("AcceleratorDriverUnresponsive", timeout_s=260)
        took = time.monotonic() - start
        want(took > 80, f"told after {took:.1f} s, which is fewer than three deadlines")
        s.stays(3, "hit")
        s.unmarked("hit")
        want("Unhealthy" not in s.agent.states(), "a device was blamed")
        s.agent.library()
        w.until("the fault is over", lambda: not s.agent.faults(), 120)
        s.agent.until_states("all are Healthy", lambda x: set(x) == {"Healthy"})
        s.untouched("hit")
        return f"told after {took:.0f} s"
