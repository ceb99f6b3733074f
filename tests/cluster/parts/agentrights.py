# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What the token of an agent may write, by the policy that is shipped with it: its own words and no other."""

from kit import client
from kit.check import Fail, Skip, equal, has_verb, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 2
HERE, ELSEWHERE = "fake-0", "fake-1"
AGENT = "holdfast-agent"
STRATEGIC = "application/strategic-merge-patch+json"
OWN = {"type": "AcceleratorUnhealthy", "status": "True", "reason": "RebootRequired"}
OF_POD = {"type": "holdfast.dev/DeviceHealthy", "status": "False", "reason": "RebootRequired"}
STRANGE = {"type": "Ready", "status": "False", "reason": "Forged"}
NODE_ALONE, POD_ALONE = "to its own node alone", "to pods on its own node alone"
NODE_LESS, POD_LESS = "no more of a node than its own", "no more of a pod than its own"
META = "conditions and no metadata"


def setup(w):
    if w.options.peer or not has_verb(w.program, "agent"):
        raise Skip("there is no agent")
    w.install()
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=w.holdfast("manifests", "--agent"))
    w.ns = w.namespace()
    for name, node in (("mine", HERE), ("theirs", ELSEWHERE)):
        w.api.create("pods", w.ns, {"metadata": {"name": name}, "spec": {
            "nodeName": node, "containers": [{"name": "c", "image": "none"}]}})
    w.until("they run", lambda: [p["status"].get("phase") for p in w.pods(w.ns)] == ["Running"] * 2)
    w.mine = w.cluster.client(token(w))
    w.until("the policy holds", lambda: refusal(w.mine, *of_node(ELSEWHERE, conditions=[OWN])) not in
            (None, "not found"))
    return "the agent's own token, of a pod of its DaemonSet"


def token(w):
    """Of the agent's pod on this node, as its kubelet would get it."""
    def placed():
        return next((p["metadata"] for p in w.api.list("pods", AGENT)
                     if p["spec"].get("nodeName") == HERE), None)
    found = w.until("the DaemonSet has a pod here", placed)
    return w.api.token_of(AGENT, AGENT, bound={"kind": "Pod", "apiVersion": "v1",
                                               "name": found["name"], "uid": found["uid"]})


def of_node(name, metadata=None, **status):
    return "nodes", None, name, status, metadata


def of_pod(w, name, metadata=None, **status):
    return "pods", w.ns, name, status, metadata


def write(api, resource, ns, name, status, metadata=None):
    body = {"metadata": metadata or {}, "status": status}
    kind = client.MERGE if resource == "devicehealths" else STRATEGIC
    return api.call("PATCH", client.path(resource, ns, name, "status"), body, kind)


def refusal(api, *what):
    """What the server says against it; None: it was done."""
    try:
        write(api, *what)
    except client.Refused as e:
        return e.message
    return None


def condition(found, kind):
    return next((c for c in found["status"]["conditions"] if c["type"] == kind), None)


def check_own(w):
    """Conditions of its own on its node and on a pod there, and its DeviceHealth"""
    write(w.mine, *of_node(HERE, conditions=[OWN]))
    node = w.api.get("nodes", None, HERE)
    equal("the condition", condition(node, OWN["type"])["status"], "True")
    want(condition(node, "Ready"), "the kubelet's conditions are gone")
    write(w.mine, *of_pod(w, "mine", conditions=[OF_POD]))
    equal("the pod's", condition(w.api.get("pods", w.ns, "mine"), OF_POD["type"])["status"], "False")
    w.mine.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                          "kind": "DeviceHealth", "metadata": {"name": HERE}})
    write(w.mine, "devicehealths", None, HERE, {"state": "Healthy"})
    equal("the state", w.api.get("devicehealths", None, HERE)["status"]["state"], "Healthy")


def refused(w, rows):
    for what, word in rows:
        said = refusal(w.mine, *what)
        if said is None:
            raise Fail(f"{what} was written")
        want(word in said, f"{what} was refused for {said}")
    return f"{len(rows)} writes"


def check_elsewhere(w):
    """Nothing of another node, of a pod there, or of that node's DeviceHealth"""
    w.api.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceHealth",
                                         "metadata": {"name": ELSEWHERE}})
    said = refused(w, [
        (of_node(ELSEWHERE, conditions=[OWN]), NODE_ALONE),
        (of_pod(w, "theirs", conditions=[OF_POD]), POD_ALONE),
        (("devicehealths", None, ELSEWHERE, {"state": "Healthy"}), NODE_ALONE)])
    try:
        w.mine.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                              "kind": "DeviceHealth", "metadata": {"name": "other"}})
    except client.Refused as e:
        want(NODE_ALONE in e.message, f"refused for {e.message}")
        return said
    raise Fail("a DeviceHealth of another node was made")


def check_node(w):
    """Of its own node's status nothing but its conditions: no capacity, address, label, other condition"""
    return refused(w, [
        (of_node(HERE, conditions=[STRANGE]), NODE_LESS),
        (of_node(HERE, capacity={"example.com/gpu": "64"}), NODE_LESS),
        (of_node(HERE, allocatable={"example.com/gpu": "64"}), NODE_LESS),
        (of_node(HERE, addresses=[{"type": "InternalIP", "address": "192.0.2.1"}]), NODE_LESS),
        (of_node(HERE, nodeInfo={"bootID": "forged"}), NODE_LESS),
        (of_node(HERE, images=[{"names": ["forged"], "sizeBytes": 1}]), NODE_LESS),
        (of_node(HERE, daemonEndpoints={"kubeletEndpoint": {"Port": 4444}}), NODE_LESS),
        (of_node(HERE, volumesAttached=[{"name": "forged", "devicePath": "/dev/x"}]), NODE_LESS),
        (of_node(HERE, metadata={"labels": {"forged": "yes"}}), META),
        (of_node(HERE, metadata={"annotations": {"holdfast.dev/paused": "true"}}), META)])


def check_pod(w):
    """Of a pod on its node nothing but its condition: no address, phase, container, label"""
    return refused(w, [
        (of_pod(w, "mine", conditions=[STRANGE]), POD_LESS),
        (of_pod(w, "mine", phase="Failed"), POD_LESS),
        (of_pod(w, "mine", podIP="192.0.2.1", podIPs=[{"$patch": "replace"}, {"ip": "192.0.2.1"}]),
         POD_LESS),
        (of_pod(w, "mine", reason="Forged"), POD_LESS),
        (of_pod(w, "mine", message="forged"), POD_LESS),
        (of_pod(w, "mine", containerStatuses=[{"name": "c", "ready": False, "restartCount": 7,
                                               "image": "forged", "imageID": "forged"}]), POD_LESS),
        (of_pod(w, "mine", metadata={"labels": {"app": "forged"}}), META),
        (of_pod(w, "mine", metadata={"annotations": {"holdfast.dev/generation": "7"}}), META)])


def check_nowhere(w):
    """A token that names no node writes nothing"""
    loose = w.cluster.client(w.api.token_of(AGENT, AGENT))
    said = refusal(loose, *of_node(HERE, conditions=[OWN]))
    want(said and "must name its node" in said, f"refused for {said}")
