# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""One device out, not the node: a DRA driver with four GPUs on a real kubelet, and DeviceTaintRules."""

import json
import time

from parts import rbac

from kit import client, dra, plugin
from kit.agent import NODE, Agent
from kit.check import Skip, equal, want
from kit.operator import Operator

NEEDS = {"node": NODE}
BUILD = ["control", "node"]
API_FLAGS = (dra.GATES, "--runtime-config=resource.k8s.io/v1beta2=true")
MANAGER_FLAGS = SCHEDULER_FLAGS = (dra.GATES,)
MINUTES = 4
IMAGE, WAITS = "localhost/busybox:1", ["sleep", "1000000"]
TAINT = "holdfast.dev/device"
WIDE = {"budget": {"maxUnavailable": {"percent": 100}, "maxQuarantines": {"count": 60}}, "breaker": {"percent": 100}}


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator knows no devices")
    plugin.needed()
    w.install()
    # The operator has its shipped role, as no other part needs these rights.
    w.role = next(o for o in rbac.grant(w, rbac.shipped(w)) if o["kind"] == "ClusterRole"
                  and o["metadata"]["name"] == "holdfast-operator")
    w.shipped = w.cluster.kubeconfig("shipped", token=w.api.token_of("holdfast-system", "holdfast-operator"))
    dra.start(w)
    dra.define(w)
    return "a DRA driver of the tests' own, with four GPUs"


class Story:
    """An agent whose GPUs the driver publishes, an operator and a policy; at its end nothing of them is left."""

    def __init__(self, w, mode="quarantine", **spec):
        self.w = w
        self.operator = Operator(w.cluster, w.program, "fleet", config=w.shipped)
        self.agent = Agent(w)
        # The node is in the machine's boot.
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            self.agent.write("proc/sys/kernel/random/boot_id", f.read())
        self.spec = {"mode": mode, "quarantine": "Device", **WIDE, **spec}

    def __enter__(self):
        w = self.w
        self.agent.begin()
        self.uuids = [d["uuid"] for d in self.agent.devices()]
        dra.publish(w, self.uuids, int(time.time()))
        self.operator.start()
        w.api.create("healthpolicies", None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "HealthPolicy",
                                              "metadata": {"name": "p"}, "spec": self.spec})
        client.until("the policy is seen", lambda: w.api.get("healthpolicies", None, "p").get("status"), 30)
        return self

    def __exit__(self, kind, error, trace):
        w = self.w
        self.operator.kill()
        if "agent" in w.cluster.children:
            self.agent.stop()
        for pod in w.api.list("pods", "default"):
            w.api.delete("pods", "default", pod["metadata"]["name"], gracePeriodSeconds=0)
        for job in w.api.list("pytorchjobs", "default"):
            w.api.delete("pytorchjobs", "default", job["metadata"]["name"])
        for rule in w.api.list("devicetaintrules"):
            w.api.delete("devicetaintrules", None, rule["metadata"]["name"])
        if w.api.find("resourceclaims", "default", "shared"):
            w.api.delete("resourceclaims", "default", "shared")
        w.api.delete("healthpolicies", None, "p")
        w.api.delete("devicehealths", None, NODE)
        w.api.patch("nodes", None, NODE, {"metadata": {"annotations": {"holdfast.dev/quarantine": None}},
                                          "spec": {"taints": None}})
        w.until("no claim is left", lambda: not w.api.list("resourceclaims", "default"), 60)

    def fail(self, number, code=119):
        self.agent.xid(number, code, "pid=77, name=python3, Timeout after 6s of waiting for RPC response")

    def rules(self):
        """Device and effect of each rule."""
        return sorted((r["spec"]["deviceSelector"].get("device"), r["spec"]["taint"]["effect"])
                      for r in self.w.api.list("devicetaintrules"))

    def until_rules(self, *wanted, timeout_s=30):
        client.until(f"the rules are {wanted}", lambda: self.rules() == list(wanted), timeout_s)

    def tainted(self):
        return any(t["key"] == TAINT for t in self.w.api.get("nodes", None, NODE)["spec"].get("taints", []))


def make_pod(w, name, template):
    w.api.create("pods", "default", {"metadata": {"name": name}, "spec": dra.pod_spec(template, IMAGE, WAITS)})


def runs(w, name):
    return (w.api.find("pods", "default", name) or {}).get("status", {}).get("phase") == "Running"


def check_one_device_out(w):
    """A failed GPU gets one rule and the node no taint: three GPUs are given out, the fourth after its repair"""
    with Story(w) as s:
        began = time.time()
        s.fail(1)
        s.until_rules(("gpu-1", "NoSchedule"))
        took = time.time() - began
        want(not s.tainted(), "the node has the taint")
        rule = w.api.list("devicetaintrules")[0]
        equal("the selector", rule["spec"]["deviceSelector"], {"driver": dra.DRIVER, "pool": NODE, "device": "gpu-1"})
        # The DeviceHealth says it in the pass after the one that made the rule.
        client.until("no pod can be given the GPU", lambda: w.holdfast("why", "node/" + NODE).startswith(
            f"node {NODE} is Ready, with devices out of use"), 5)
        make_pod(w, "three", "three")
        client.until("it runs on the others", lambda: runs(w, "three"), 60)
        equal("its devices", sorted(dra.devices_of(w, "three")), ["gpu-0", "gpu-2", "gpu-3"])
        make_pod(w, "fourth", "one")
        client.pause(3)
        want(not runs(w, "fourth"), "the failed GPU was given out")
        s.agent.end_probation()
        s.until_rules()
        client.until("it runs", lambda: runs(w, "fourth"), 60)
        equal("its device", dra.devices_of(w, "fourth"), ["gpu-1"])
        return f"the rule came {took:.1f} s after the kernel's line"


def check_observe(w):
    """Mode observe: a rule without effect, no mark on the node, and the GPU is given out"""
    with Story(w, mode="observe") as s:
        s.fail(2)
        s.until_rules(("gpu-2", "None"))
        equal("the mark", w.api.get("nodes", None, NODE)["metadata"].get("annotations", {}).get(
            "holdfast.dev/quarantine"), None)
        s.agent.end_probation()
        s.until_rules()


def check_renumbered(w):
    """The driver gives the name to another GPU: the rule follows the failed one"""
    with Story(w) as s:
        s.fail(1)
        s.until_rules(("gpu-1", "NoSchedule"))
        dra.publish(w, s.uuids, int(time.time()) + 1, ("gpu-1", "gpu-0", "gpu-2", "gpu-3"))
        s.operator.kill()
        s.operator.start()
        s.until_rules(("gpu-0", "NoSchedule"))


def check_no_driver(w):
    """GPUs that no slice names: the node gets the taint"""
    with Story(w) as s:
        dra.publish(w, ["GPU-elsewhere"] * 4, int(time.time()) + 1)
        s.fail(1)
        client.until("the node is tainted", s.tainted, 30)
        equal("rules", s.rules(), [])


def check_no_right(w):
    """Without the right to make rules the node gets the taint"""
    with Story(w) as s:
        w.cluster.kubectl("replace", "-f", "-", text=json.dumps(rbac.without(w.role, "create", "devicetaintrules")))
        try:
            s.fail(1)
            client.until("the node is tainted", s.tainted, 40)
            equal("rules", s.rules(), [])
        finally:
            w.cluster.kubectl("replace", "-f", "-", text=json.dumps(w.role))


def check_plugin(w):
    """GPUs of a device plugin: what the plugin withholds needs no taint, what it still offers takes the node"""
    plugin.start(w)
    plugin.says(w)

    def offers(number):
        return lambda: w.api.get("nodes", None, NODE)["status"]["allocatable"].get("example.com/gpu") == str(number)
    client.until("the plugin offers four", offers(4), 60)
    with Story(w) as s:
        dra.publish(w, ["GPU-elsewhere"] * 4, int(time.time()) + 1)
        # By its holders the agent learns which resource the GPUs are.
        w.api.create("pods", "default", {"metadata": {"name": "all"}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [{
                "name": "c", "image": IMAGE, "command": WAITS, "resources": {"limits": {"example.com/gpu": "4"}}}]}})
        client.until("it runs", lambda: runs(w, "all"), 60)
        client.until("the agent knows the resource", lambda: s.agent.devices()[1].get("resource"), 40)
        w.api.delete("pods", "default", "all", gracePeriodSeconds=0)
        # Agent and plugin learn of the fault at once. The kubelet writes the Node later.
        s.fail(1)
        plugin.says(w, "gpu-1")
        client.until("it offers three", offers(3), 60)
        client.until("the device is out of use", lambda: s.uuids[1] in w.api.get("devicehealths", None, NODE)[
            "metadata"].get("annotations", {}).get("holdfast.dev/devices-out", ""), 30)
        client.pause(30)
        want(not s.tainted(), "the node has the taint")
        # The next agent knows no pod that had the device.
        s.agent.stop()
        s.agent.start()
        client.until("the agent has forgotten the resource", lambda: not s.agent.devices()[1].get("resource"), 40)
        client.pause(10)
        want(not s.tainted(), "the node has the taint")
        plugin.says(w)
        client.until("the node is tainted", s.tainted, 60)
        equal("rules", s.rules(), [])
    w.cluster.stop("plugin")


def check_late_pods(w):
    """A device plugin that goes on offering a failed GPU: two pods that are given it are evicted, then the node gets the taint"""
    plugin.start(w)
    plugin.says(w)
    client.until("the plugin offers four", lambda: w.api.get("nodes", None, NODE)["status"]["allocatable"].get(
        "example.com/gpu") == "4", 60)
    with Story(w, mode="remediate", drain={"graceSeconds": 20, "latePods": 2}) as s:
        dra.publish(w, ["GPU-elsewhere"] * 4, int(time.time()) + 1)
        labels = {"app": "serve"}
        w.api.create("deployments", "default", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serve"},
            "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                    "name": "c", "image": IMAGE, "command": WAITS, "resources": {"limits": {"example.com/gpu": "1"}}}]}}}})
        try:
            return late_pods(w, s)
        finally:
            w.api.delete("deployments", "default", "serve")
            w.cluster.stop("plugin")


def late_pods(w, s):
    client.until("four pods have the four GPUs", lambda: all(len(s.agent.holders(i)) == 1 for i in range(4)), 90)
    had = {s.agent.holders(1)[0]}
    kept = {s.agent.holders(i)[0] for i in (0, 2, 3)}
    began = time.time()
    s.fail(1)

    def mark():
        return json.loads(w.api.get("nodes", None, NODE)["metadata"].get("annotations", {}).get("holdfast.dev/quarantine", "{}"))

    def note():
        had.update(s.agent.holders(1))
        return mark().get("late", 0)
    client.until("a pod that came later is evicted", lambda: note() == 1, 120)
    first = time.time() - began
    want(first > 35, f"{first:.0f} s are in the time that a plugin has to withhold the device")
    want(not s.tainted(), "the node has the taint")
    told = w.holdfast("why", "node/" + NODE)
    want(told.startswith(f"node {NODE} is Ready, with failed devices that pods can still be given"), told)
    want("evicted pods that were given one since: 1" in told, told)
    client.until("the second one is evicted", lambda: note() == 2, 120)
    client.until("the node is tainted", s.tainted, 60)
    took = time.time() - began
    equal("the mark", (mark().get("late"), mark().get("scope")), (2, None))
    equal("rules", s.rules(), [])
    client.pause(15)
    want(len(had) in (3, 4), f"the failed GPU had {sorted(had)}")
    for pod in kept:
        want(runs(w, pod), f"pod {pod} of a well GPU has ended")
    events = [e["message"] for e in w.api.list("events", "default") if e["involvedObject"].get("name") == NODE]
    want(any("still offers the failed device" in m and "drain.latePods" in m for m in events), events)
    want(any("and 2 pods that were given it have been evicted" in m for m in events), events)
    return f"the first one {first:.0f} s after the fault, the taint after {took:.0f} s"


def make_job(w, spec):
    """A PyTorchJob whose only rank has a pod of this spec."""
    w.api.create("pytorchjobs", "default", {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "ddp"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": {
            "spec": {**spec, "containers": [{**spec["containers"][0], "name": "pytorch"}]}}}}}})
    client.until("the rank runs", lambda: runs(w, "ddp-master-0"), 60)


def check_shared_claim(w):
    """A rank whose claim another pod uses too: it restarts once, keeps off the node, and says why"""
    with Story(w) as s:
        w.api.create("resourceclaims", "default", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}})
        spec = {**dra.pod_spec("one", IMAGE, WAITS), "resourceClaims": [{"name": "gpus", "resourceClaimName": "shared"}]}
        w.api.create("pods", "default", {"metadata": {"name": "stays"}, "spec": spec})
        client.until("it runs", lambda: runs(w, "stays"), 60)
        make_job(w, spec)
        number = int(dra.devices_of(w, "ddp-master-0")[0].rpartition("-")[2])
        client.until("the agent knows the holders", lambda: sorted(s.agent.holders(number)) == ["ddp-master-0", "stays"], 40)
        s.fail(number)
        s.until_rules((f"gpu-{number}", "NoSchedule"))

        def said():
            conditions = w.api.get("pytorchjobs", "default", "ddp")["status"]["conditions"]
            return next((c["message"] for c in conditions if c["type"] == "holdfast.dev/PodUnschedulable"), "")
        client.until("the job says why", lambda: "must not run on " + NODE in said(), 60)
        # Longer than the operator waits before it looks at the node again.
        client.pause(40)
        want(not runs(w, "ddp-master-0"), "the rank runs on the failed device")
        want("must not run on " + NODE in said() and "the ResourceClaim that the pod names may still have it" in said(), said())
        want("device budget: 1 used" in w.holdfast("why", "ddp"), w.holdfast("why", "ddp"))
        return said()


def check_rank_moves(w):
    """A rank's GPU fails: its pod is made anew, and the new claim gets another GPU of the same node"""
    with Story(w, mode="remediate", drain={"graceSeconds": 1}) as s:
        make_job(w, dra.pod_spec("one", IMAGE, WAITS))
        first = w.api.get("pods", "default", "ddp-master-0")["metadata"]["uid"]
        device = dra.devices_of(w, "ddp-master-0")[0]
        number = int(device.rpartition("-")[2])
        client.until("the agent knows the holder", lambda: s.agent.holders(number) == ["ddp-master-0"], 40)
        began = time.time()
        s.fail(number)
        s.until_rules((device, "NoSchedule"))
        client.until("another pod runs", lambda: runs(w, "ddp-master-0") and w.api.get(
            "pods", "default", "ddp-master-0")["metadata"]["uid"] != first, 90)
        took = time.time() - began
        second = dra.devices_of(w, "ddp-master-0")
        want(second != [device], f"the new pod has {second} too")
        want(not s.tainted(), "the node has the taint")
        return f"from {device} to {second[0]} in {took:.1f} s"


def check_last_rung(w):
    """A pod stays on its failed GPU until every remedy was tried: once a person is asked, Kubernetes ends the pod"""
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=w.holdfast("manifests", "--mender"))
    with Story(w, mode="remediate", drain={"graceSeconds": 3600}) as s:
        make_pod(w, "stays", "one")
        client.until("it runs", lambda: runs(w, "stays"), 60)
        device = dra.devices_of(w, "stays")[0]
        # No rung mends this fault.
        s.fail(int(device.rpartition("-")[2]), 142)
        s.until_rules((device, "NoSchedule"))
        client.pause(5)
        equal("the rules", s.rules(), [(device, "NoSchedule")])
        want(runs(w, "stays"), "the pod has ended")
        w.api.patch("healthpolicies", None, "p", {"spec": {"mend": {}}})
        began = time.time()
        client.until("a person is asked", lambda: [r["spec"]["rung"] for r in w.api.list("remediations")] == ["person"], 30)
        s.until_rules((device, "NoExecute"))
        client.until("the pod has ended", lambda: not runs(w, "stays"), 60)
        took = time.time() - began
        for found in w.api.list("remediations"):
            w.api.delete("remediations", None, found["metadata"]["name"])
        return f"the pod ends {took:.1f} s after mending is allowed"
