# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A real kubelet with a device plugin: what the agent's probes see of it, and what the agent says."""

import os

from kit import plugin
from kit.check import Skip, equal, has_verb, want

NEEDS = {"node": "real-0"}
BUILD = ["control", "node"]
MINUTES = 3
RESOURCE = "example.com/gpu"


def setup(w):
    if w.options.peer or not has_verb(w.program, "agent"):
        raise Skip("there is no agent")
    plugin.needed()
    w.install()
    start_plugin(w)
    ns = w.namespace()
    w.api.create("pods", ns, {"metadata": {"name": "rank-0", "namespace": ns}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{
            "name": "trainer", "image": "localhost/busybox:1", "command": ["sleep", "3600"],
            "resources": {"limits": {RESOURCE: 2}}}]}})
    w.until("the pod runs", lambda: w.api.get("pods", ns, "rank-0")["status"].get("phase") ==
            "Running", 60)
    w.ns = ns
    return "a device plugin, a pod with two devices"


def start_plugin(w):
    plugin.start(w)
    w.until("the kubelet has its devices", lambda: len(look(w)[1]) == 4, 60)


def look(w):
    """(who holds what, what is allocatable), as the agent's probe sees it."""
    text = w.holdfast("agent", "--probe-once", "--nvml=", "--sysfs=", "--kubelet-socket=" +
                      w.cluster.path("kubelet", "pod-resources", "kubelet.sock"))
    held, offered = text.split("# PodResources: allocatable\n")
    return ([line for line in held.splitlines() if RESOURCE in line],
            sorted(line.split()[1] for line in offered.splitlines() if RESOURCE in line))


def holders(w):
    return {line.split()[-1] for line in look(w)[0]}


def check_held(w):
    """PodResources: who holds which device, by pod and container; what is allocatable"""
    held, offered = look(w)
    equal("lines", len(held), 2)
    for line in held:
        want(line.startswith(f"{w.ns}/rank-0 trainer: {RESOURCE} gpu-"), f"it says {line}")
    equal("allocatable", offered, ["gpu-0", "gpu-1", "gpu-2", "gpu-3"])


def check_unhealthy(w):
    """A device that its plugin calls unhealthy is not allocatable any more and still held"""
    mine = holders(w)
    plugin.says(w, min(mine))
    w.until("three are left", lambda: len(look(w)[1]) == 3, 30)
    want(min(mine) not in look(w)[1], "another one is gone")
    equal("held", holders(w), mine)
    plugin.says(w)
    w.until("all four are back", lambda: len(look(w)[1]) == 4, 30)


def check_plugin_gone(w):
    """A plugin that ends: nothing is allocatable, the pod holds what it had; and it comes back"""
    mine = holders(w)
    w.cluster.stop("plugin")
    w.until("none is allocatable", lambda: not look(w)[1], 30)
    equal("held", holders(w), mine)
    start_plugin(w)
    equal("held", holders(w), mine)


def check_agent(w):
    """The agent names the pod at its device, and a device that the driver lost is not Healthy"""
    double = os.path.join(os.path.dirname(os.path.abspath(w.program)), "src", "probes",
                          "libnvml_double.so")
    if not os.path.exists(double):
        raise Skip("no double of NVML beside the program")
    script = w.cluster.path("nvml-script")

    def write(text):
        with open(script + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(script + ".new", script)

    def devices():
        found = w.api.find("devicehealths", None, "real-0")
        return {d.get("resourceID") or d["id"]: d
                for d in ((found or {}).get("status") or {}).get("devices") or []}

    write("devices 4\n")
    mine = sorted(holders(w))
    w.cluster.start("agent", [
        w.program, "agent", "--node-name=real-0", "--kubeconfig=" +
        w.cluster.path("kubeconfig.admin"), "--nvml=" + double, "--kmsg=", "--listen=0",
        "--resources=" + RESOURCE, "--state-dir=" + w.cluster.path("agent"), "--kubelet-socket=" +
        w.cluster.path("kubelet", "pod-resources", "kubelet.sock")],
        env={"HF_NVML_DOUBLE": script})
    try:
        w.until("it names the pod", lambda: [
            h["pod"] for n in mine for h in devices().get(n, {}).get("holders") or []] ==
            ["rank-0", "rank-0"], 60)
        equal("states", {devices()[n]["state"] for n in mine}, {"Healthy"})
        write(f"devices 4\nlost {mine[0][-1]}\n")
        w.until("it is Degraded", lambda: devices()[mine[0]]["state"] == "Degraded", 60)
        equal("the other", devices()[mine[1]]["state"], "Healthy")
        write("devices 4\nhang nvmlDeviceGetCount_v2\n")
        w.api.delete("pods", w.ns, "rank-0")
        # Who held it is kept, with its end.
        w.until("nobody holds it, though the driver hangs", lambda: all(
            h.get("until") for d in devices().values() for h in d.get("holders") or []), 60)
    finally:
        w.cluster.stop("agent")


def check_ended(w):
    """A pod that was deleted holds nothing"""
    if w.api.find("pods", w.ns, "rank-0"):
        w.api.delete("pods", w.ns, "rank-0")
    w.until("nothing is held", lambda: not look(w)[0], 60)
