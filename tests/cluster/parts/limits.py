# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What a real kubelet refuses or kills: out of memory, no room, the wrong node, a device that is not given."""

import os

from kit import plugin
from kit.check import Skip, equal
from kit.ranks import QUICK, Clock, Ranks, job
from parts.sick import start_plugin

NODE, RESOURCE = "real-0", "example.com/gpu"
NEEDS = {"kwok": 1, "node": NODE}
BUILD = ["control", "kwok", "node"]
MINUTES = 3


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator has no budgets")
    return w.install()


def master(w, script="exit 0", policy="ExitCode", resources=None, pod=None, **run):
    """A job of a master alone, on the real node if nothing else is said."""
    w.operator()
    ns = w.namespace()
    container = {"command": ["sh", "-c", script], "resources": resources or {}}
    return Ranks(w, ns, job("PyTorchJob", ns, "job", {"Master": 1}, policy, container, {
        "terminationGracePeriodSeconds": 1, **(pod or {"nodeSelector": {"kubernetes.io/hostname": NODE}})},
        **run))


def refused(w, reason, pod, resources=None):
    """A job whose pods the kubelet refuses each time fails by its limit, and nothing of it is backoff."""
    clock = Clock()
    found = master(w, policy="Never", pod={"nodeName": NODE, **pod}, resources=resources, backoffLimit=0,
                   recovery={"infrastructureLimit": 1})
    found.has_failed("InfrastructureLimitExceeded", timeout_s=90)
    took = str(clock)
    found.charged(infrastructure=2)
    found.last(cause="admission", reason=reason, node=NODE)
    found.until_event("AdmissionFailure", [reason, "infrastructure budget: 1 of 1 used"])
    found.says("admission: the node refused", reason)
    found.made_times(2)
    return f"refused twice and Failed within {took}"


def starving(w, script):
    """A rank that the kernel kills for its memory, or a child of it; how it ended the first time."""
    # Where limits of memory do not hold, the shell's own does.
    found = master(w, "ulimit -v 300000; sleep 1; " + script, recovery=QUICK, backoffLimit=1,
                   resources={"limits": {"memory": "32Mi"}})
    first = found.until("its first end is told", lambda: found.get().get("status", {}).get(
        "recovery", {}).get("last"), 90)
    if first.get("reason") != "OOMKilled":
        raise Skip(f"no limits of memory here: {first}")
    return found, first


def check_memory(w):
    """The kernel kills a rank for its memory limit: the application's, tried again up to backoffLimit"""
    found, first = starving(w, "exec tail /dev/zero")
    clock = Clock()
    equal("exit code", first["exitCode"], 137)
    found.has_failed("BackoffLimitExceeded", timeout_s=90)
    took = str(clock)
    found.charged(application=2)
    found.last(cause="out-of-memory", reason="OOMKilled", exitCode=137)
    found.until_event("OutOfMemory", ["OOMKilled", "application budget: 1 of 1 used"])
    found.says("OOMKilled", "out-of-memory")
    found.made_times(2)
    return f"again, and Failed {took} after the first end"


def check_child(w):
    """The kernel kills a child of a rank, which exits with 1: Failed by that code, and why names the memory"""
    found, first = starving(w, "tail /dev/zero; exit 1")
    equal("exit code", first["exitCode"], 1)
    found.has_failed("ExitCode", timeout_s=90)
    found.charged()
    found.last(cause="out-of-memory", reason="OOMKilled", exitCode=1)
    found.says("OOMKilled", "the job fails: ExitCode")
    found.made_times(1)


def check_cpu(w):
    """OutOfcpu: a pod that was bound where there is no room is refused, up to infrastructureLimit"""
    return refused(w, "OutOfcpu", {}, {"requests": {"cpu": "1000"}})


def check_node(w):
    """NodeAffinity: a pod that was bound to a node that it may not be on is refused likewise"""
    return refused(w, "NodeAffinity", {"nodeSelector": {"type": "kwok"}})


def check_device(w):
    """UnexpectedAdmissionError: a device that is not given out; the rank runs on another node"""
    plugin.needed()
    room = {RESOURCE: "4"}
    w.api.patch("nodes", None, "fake-0", {"status": {"capacity": room, "allocatable": room}}, "status")
    start_plugin(w)
    with open(plugin.said(w) + ".refuses", "w", encoding="ascii"):
        pass
    there = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}}]}}
    clock = Clock()
    found = master(w, "sleep 1000", policy="Never", resources={"limits": {RESOURCE: 1}},
                   pod={"affinity": there}, backoffLimit=0)
    found.until_running(timeout_s=90)
    took = str(clock)
    os.remove(plugin.said(w) + ".refuses")
    found.until("the books are closed", lambda: found.recovery()["phase"] == "Running")
    found.charged(infrastructure=1)
    found.last(cause="admission", reason="UnexpectedAdmissionError", node=NODE)
    equal("the node", found.pods()["master-0"]["spec"]["nodeName"], "fake-0")
    found.until_event("AdmissionFailure", ["UnexpectedAdmissionError"])
    found.made_times(2)
    return f"runs elsewhere {took} after it was made"
