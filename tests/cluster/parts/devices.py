# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Jobs leave a device that fails: what a node's agent would write is written here, on a real API server."""

import time

from kit import client
from kit.check import Skip, equal, pytorchjob, want
from kit.load import restarts

NEEDS = {"kwok": 3}
BUILD = ["control", "kwok"]
MINUTES = 4
DEVICE = "0000:1a:00.0"


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator does not look at devices")
    return w.install()


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


def tell(w, pod, state, cls=None, active=True):
    """The agent of the pod's node says how the device stands that the pod holds."""
    node = pod["spec"]["nodeName"]
    if not w.api.find("devicehealths", None, node):
        w.api.create("devicehealths", None, {"apiVersion": "holdfast.dev/v1alpha1",
                                             "kind": "DeviceHealth", "metadata": {"name": node}})
    faults = [{"detector": "xid", "code": 79, "class": cls, "active": active,
               "firstTime": now(), "lastTime": now()}] if cls else []
    meta = pod["metadata"]
    w.api.patch("devicehealths", None, node, {"status": {
        "observedTime": now(), "state": state, "devices": [{
            "id": DEVICE, "kind": "gpu", "state": state, "faults": faults, "holders": [{
                "namespace": meta["namespace"], "pod": meta["name"], "uid": meta["uid"],
                "container": "pytorch", "resource": "example.com/gpu", "resourceID": "gpu-0"}]}]}},
                sub="status")
    return node


def begin(w, workers=2, policy=None):
    ns = w.namespace()
    w.api.create("pytorchjobs", ns, pytorchjob("job", ns, workers, run_policy=policy or {}))
    running(w, ns, workers + 1)
    w.until_condition(ns, "job", "Running")
    return ns


def running(w, ns, count):
    w.until(f"{count} pods run", lambda: len([
        p for p in w.pods(ns, "job") if p["status"].get("phase") == "Running"
        and not p["metadata"].get("deletionTimestamp")]) == count)


def worker(w, ns, name="job-worker-0"):
    return next((p for p in w.pods(ns, "job") if p["metadata"]["name"] == name), None)


def replaced(w, ns, old):
    def done():
        new = worker(w, ns, old["metadata"]["name"])
        return (new and new["metadata"]["uid"] != old["metadata"]["uid"]
                and new["status"].get("phase") == "Running" and new)
    try:
        return w.until("the pod is replaced", done, 60)
    except TimeoutError as e:
        raise TimeoutError(f"{e}; {w.holdfast('why', 'job', ns=ns, code=None)[:1500]}") from None


def charged(w, ns, device, application=0):
    equal("what is charged", restarts(w.job(ns, "job")),
          {"application": application, "infrastructure": 0, "device": device})


def check_restart(w):
    """A rank on a device that needs a reboot is restarted elsewhere, it alone, on the device budget"""
    w.operator()
    ns = begin(w)
    old, other = worker(w, ns), worker(w, ns, "job-worker-1")
    tell(w, old, "Healthy")
    start = time.monotonic()
    node = tell(w, old, "Unhealthy", "reboot")
    new = replaced(w, ns, old)
    took = time.monotonic() - start
    want(new["spec"]["nodeName"] != node, f"the replacement is on {node} again")
    equal("the other rank", worker(w, ns, "job-worker-1")["metadata"]["uid"], other["metadata"]["uid"])
    charged(w, ns, 1)
    last = w.job(ns, "job")["status"]["recovery"]["last"]
    equal("the record", (last["cause"], last["reason"], last["device"], last["node"]),
          ("device", "reboot", DEVICE, node))
    why = w.holdfast("why", "job", ns=ns)
    want(DEVICE in why and "reboot" in why, "why does not tell of the device: " + why[:600])
    w.until("an event tells", lambda: any(e["reason"] == "DeviceFailure"
                                          for e in w.api.list("events", ns)), 10)
    w.api.delete("devicehealths", None, node)
    return f"replaced and running after {took:.1f} s"


def check_gang(w):
    """In scope Job all ranks restart with it, once"""
    w.operator()
    ns = begin(w, policy={"recovery": {"restartScope": "Job"}})
    old = worker(w, ns)
    before = {p["metadata"]["uid"] for p in w.pods(ns, "job")}
    node = tell(w, old, "Unhealthy", "gpu-reset")
    replaced(w, ns, old)
    running(w, ns, 3)
    want(not before & {p["metadata"]["uid"] for p in w.pods(ns, "job")}, "a rank was left over")
    charged(w, ns, 1)
    equal("generation", w.job(ns, "job")["status"]["recovery"]["generation"], 2)
    w.api.delete("devicehealths", None, node)


def check_exit(w):
    """A code that would end the job does not, where the device had failed; a degraded one is no excuse"""
    w.operator()
    ns = begin(w, workers=1)
    old = worker(w, ns)
    node = tell(w, old, "Degraded", "fabric")
    end = time.monotonic() + 2
    client.until("it is left alone", lambda: time.monotonic() > end, 20, 0.5)
    equal("the pod of a degraded device", worker(w, ns)["metadata"]["uid"], old["metadata"]["uid"])
    job = w.job(ns, "job")
    equal("restarts", restarts(job), {"application": 0, "infrastructure": 0, "device": 0})
    tell(w, old, "Unhealthy", "reboot")
    w.end_pod(old, 1)
    replaced(w, ns, old)
    charged(w, ns, 1)
    w.api.delete("devicehealths", None, node)


def check_ignored(w):
    """device.onUnhealthy Ignore: a rank that runs is left alone"""
    w.operator()
    ns = begin(w, workers=1, policy={"recovery": {"device": {"onUnhealthy": "Ignore"}}})
    old = worker(w, ns)
    node = tell(w, old, "Unhealthy", "reboot")
    end = time.monotonic() + 5
    client.until("nothing happens", lambda: time.monotonic() > end, 20, 0.5)
    equal("the pod", worker(w, ns)["metadata"]["uid"], old["metadata"]["uid"])
    charged(w, ns, 0)
    w.api.delete("devicehealths", None, node)
