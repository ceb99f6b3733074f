# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A real kubelet that hangs, comes back with its container still running, or is off: who runs when.

The rank is a real process that writes a line twice a second; its replacement goes to a kwok node.
"""

import calendar
import os
import signal
import time

from kit import client
from kit.check import Skip, condition, equal, pytorchjob, want
from kit.load import restarts

NEEDS = {"kwok": 2, "node": "real-0"}
BUILD = ["control", "kwok", "node"]
MINUTES = 5
# Kubelets renew their Lease every ten seconds.
GRACE_S, AFTER_S = 16, 8
MANAGER_FLAGS = [f"--node-monitor-grace-period={GRACE_S}s", "--node-monitor-period=1s"]
RANK = "echo start >>/data/starts; while :; do echo x >>/data/alive; sleep 0.5; done"


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator waits for ever")
    return w.install()


def folder(w, ns):
    return w.cluster.path("data-" + ns)


def submit(w, script=RANK, **more):
    """A job of one master that would rather be on the real node."""
    ns = w.namespace()
    os.makedirs(folder(w, ns))
    w.operator()
    container = {"command": ["sh", "-c", script],
                 "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["real-0"]}]}}]}}
    w.api.create("pytorchjobs", ns, pytorchjob(
        "job", ns, workers=0, container=container, terminationGracePeriodSeconds=1,
        affinity=affinity, volumes=[{"name": "data", "hostPath": {"path": folder(w, ns)}}],
        run_policy={"recovery": {"nodeLost": {"afterSeconds": AFTER_S},
                                 "forceDeleteAfterSeconds": 1}}, **more))
    return ns


def lines(w, ns, name):
    try:
        with open(os.path.join(folder(w, ns), name), encoding="utf-8") as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


def pod(w, ns):
    return next(iter(w.pods(ns, "job")), None)


def started(w, ns):
    w.until("it runs", lambda: lines(w, ns, "alive") > 2, 90)
    w.until_condition(ns, "job", "Running")
    equal("the node", pod(w, ns)["spec"]["nodeName"], "real-0")
    return pod(w, ns)["metadata"]["uid"]


def grows(w, ns, seconds=3):
    """Does the old process still write?"""
    before, end = lines(w, ns, "alive"), time.monotonic() + seconds
    client.until("a while", lambda: time.monotonic() > end, seconds + 10, 0.2)
    return lines(w, ns, "alive") > before


def kubelets(w):
    for pid in w.cluster.pids("node"):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            if os.path.basename(f.read().split(b"\0")[0]) == b"kubelet":
                yield pid


def send(w, number):
    found = list(kubelets(w))
    want(found, "there is no kubelet")
    for pid in found:
        os.kill(pid, number)


def ready(w):
    node = w.api.get("nodes", None, "real-0")
    return next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")


def until_elsewhere(w, ns, uid, start):
    def elsewhere():
        now = pod(w, ns)
        return now and now["metadata"]["uid"] != uid and now["status"].get("phase") == "Running"
    try:
        w.until("it runs elsewhere", elsewhere, 120)
    except TimeoutError as e:
        raise TimeoutError(f"{e}; {w.holdfast('why', 'job', ns=ns, code=None)[:1500]}") from None
    took = time.monotonic() - start
    want(pod(w, ns)["spec"]["nodeName"] != "real-0", "the replacement is on the same node")
    equal("what is charged", restarts(w.job(ns, "job")),
          {"application": 0, "infrastructure": 1, "device": 0})
    return took


def check_hangs_for_a_while(w):
    """A kubelet that hangs until its node is Unknown and comes back: one process, all the time"""
    ns = submit(w)
    uid = started(w, ns)
    send(w, signal.SIGSTOP)
    try:
        w.until("the node is Unknown", lambda: ready(w) == "Unknown", 60)
        end = time.monotonic() + AFTER_S / 2

        def same():
            equal("the pod", pod(w, ns)["metadata"]["uid"], uid)
            return time.monotonic() > end
        client.until("half the time to presume", same, 60, 0.2)
    finally:
        send(w, signal.SIGCONT)
    w.until("the node is ready", lambda: ready(w) == "True", 60)
    want(grows(w, ns, AFTER_S + 4), "the process has ended")
    equal("the pod", pod(w, ns)["metadata"]["uid"], uid)
    equal("starts", lines(w, ns, "starts"), 1)
    equal("what is charged", restarts(w.job(ns, "job")),
          {"application": 0, "infrastructure": 0, "device": 0})


def check_hangs_for_long(w):
    """A kubelet that hangs past all evidence: replaced not before it, and the old process ends when it wakes"""
    ns = submit(w)
    uid = started(w, ns)
    send(w, signal.SIGSTOP)
    start = time.monotonic()
    try:
        w.until("the node is Unknown", lambda: ready(w) == "Unknown", 60)
        unknown = time.monotonic() - start
        took = until_elsewhere(w, ns, uid, start)
        want(took >= unknown + AFTER_S, f"replaced at {took:.1f} s, before the evidence")
        # This is what the default presumes: a process may outlive its node's last word.
        outlived = grows(w, ns)
        new = pod(w, ns)["metadata"]["uid"]
    finally:
        send(w, signal.SIGCONT)
    w.until("the node is ready", lambda: ready(w) == "True", 60)
    w.until("the kubelet ends the old process", lambda: not grows(w, ns, 2), 60)
    equal("the pod", pod(w, ns)["metadata"]["uid"], new)
    equal("starts", lines(w, ns, "starts"), 1)
    w.until_condition(ns, "job", "Running")
    return (f"Unknown after {unknown:.1f} s, elsewhere after {took:.1f} s"
            f"{', the old process ran on until it woke' if outlived else ''}")


def check_settle(w):
    """S5: ExitCode 2 on a healthy node: Failed within 21 s, as soon as the kubelet has renewed"""
    ns = submit(w, "echo start >>/data/starts; sleep 2; exit 2", policy="ExitCode")
    job = w.until_condition(ns, "job", "Failed", 90)
    ended = pod(w, ns)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    failed = next(c for c in job["status"]["conditions"] if c["type"] == "Failed")
    took = stamp(failed["lastTransitionTime"]) - stamp(ended)
    want(took <= 21, f"Failed {took} s after the end")
    equal("starts", lines(w, ns, "starts"), 1)
    want(job["status"].get("completionTime"), "completionTime is missing")
    want(condition(job, "Restarting") != "True", "Restarting is True")
    return f"{took} s after the container's end"


def stamp(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def check_off(w):
    """A machine that loses power and comes back: its rank runs elsewhere and is not run again here"""
    ns = submit(w)
    uid = started(w, ns)
    w.cluster.stop("node")
    start = time.monotonic()
    took = until_elsewhere(w, ns, uid, start)
    new = pod(w, ns)["metadata"]["uid"]
    for name in ("containerd.sock",):
        if os.path.exists(w.cluster.path(name)):
            os.remove(w.cluster.path(name))
    w.cluster.again("node")
    w.until("the node is ready", lambda: ready(w) == "True", 120)
    want(not grows(w, ns, 5), "the old rank runs again")
    equal("the pod", pod(w, ns)["metadata"]["uid"], new)
    equal("starts", lines(w, ns, "starts"), 1)
    return f"elsewhere after {took:.1f} s"
