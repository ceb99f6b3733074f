# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The real Kueue: it admits, preempts and resumes jobs by their suspend field."""

import json
import threading

from kit import corpus
from kit.check import condition, equal, parallel, pytorchjob, want
from kit.load import restarts
from kit.ranks import slow_to_end

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "kueue"]
MINUTES = 4

GROUP = "/apis/kueue.x-k8s.io/v1beta1"
CPUS = 4
TTL_S = 5
INTEGRATED = {  # kinds that Kueue knows, and ranks of one job of each: CPUS of half a one
    "PyTorchJob": {"Master": 1, "Worker": 1}, "TFJob": {"Chief": 1, "PS": 1, "Worker": 2},
    "XGBoostJob": {"Master": 1, "Worker": 1}, "PaddleJob": {"Worker": 2}, "JAXJob": {"Worker": 2}}
HELD_S = 6  # long enough for Kueue to give the quota away, if it meant to


def setup(w):
    what = w.install()
    w.cluster.add_kueue()
    return what + " and Kueue"


def queue(w):
    """A namespace with a queue of CPUS, where a higher priority preempts a lower one."""
    ns = w.namespace()

    def make(path, kind, name, **fields):
        w.until(f"{kind} {name} is made", lambda: w.api.call("POST", GROUP + path, {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, **fields}))
    make("/resourceflavors", "ResourceFlavor", ns)
    make("/clusterqueues", "ClusterQueue", ns, spec={
        "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{
            "name": ns, "resources": [{"name": "cpu", "nominalQuota": CPUS}]}]}]})
    make(f"/namespaces/{ns}/localqueues", "LocalQueue", "queue", spec={"clusterQueue": ns})
    for name, value in (("low", 1), ("high", 100)):
        make("/workloadpriorityclasses", "WorkloadPriorityClass", f"{ns}-{name}", value=value)
    return ns


def make_job(w, ns, name, workers, priority="low", **run_policy):
    """As Kueue's webhook would leave it: suspended, one CPU a pod."""
    job = pytorchjob(name, ns, workers, container={"resources": {"requests": {"cpu": "1"}}},
                     run_policy={"suspend": True, **run_policy})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue",
                                 "kueue.x-k8s.io/priority-class": f"{ns}-{priority}"}
    return w.api.create("pytorchjobs", ns, job)


def make_any(w, ns, kind, name, roles):
    """A job of any kind, suspended, half a CPU a pod."""
    made = corpus.Corpus()
    made.add(kind, name, roles=roles, run={"suspend": True}, policy="Never",
             container={"resources": {"requests": {"cpu": "500m"}}})
    entry = made.entries[0]
    entry.job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue",
                                       "kueue.x-k8s.io/priority-class": f"{ns}-low"}
    w.api.create(entry.plural, ns, entry.job)
    return entry


def set_active(w, ns, job, active):
    """As an administrator takes a job out of its queue, and puts it back."""
    name = workload(w, ns, job)["metadata"]["name"]
    w.api.call("PATCH", f"{GROUP}/namespaces/{ns}/workloads/{name}", {"spec": {"active": active}},
               kind="application/merge-patch+json")


def until_is(w, ns, entry, kind):
    w.until(f"{entry.name} is {kind}",
            lambda: condition(w.api.get(entry.plural, ns, entry.name), kind) == "True")


def workload(w, ns, job):
    for found in w.api.call("GET", f"{GROUP}/namespaces/{ns}/workloads")["items"]:
        if any(o["name"] == job for o in found["metadata"].get("ownerReferences", [])):
            return found
    return None


def holds_quota(w, ns, job):
    return condition(workload(w, ns, job) or {}, "QuotaReserved") == "True"


def used(w, ns):
    """CPUs of the queue that are taken."""
    status = w.api.call("GET", f"{GROUP}/clusterqueues/{ns}").get("status") or {}
    return sum(int(r["total"]) for f in status.get("flavorsReservation", [])
               for r in f["resources"])


def until_runs(w, ns, name, pods):
    w.until_condition(ns, name, "Running")
    w.until(f"{pods} pods of {name} run", lambda: len([
        p for p in w.pods(ns, name) if p["status"].get("phase") == "Running"
        and not p["metadata"].get("deletionTimestamp")]) == pods)


def finish(w, ns, name):
    for pod in w.pods(ns, name):
        w.end_pod(pod)
    return w.until_condition(ns, name, "Succeeded")


def until_ending(w, ns, name, count):
    w.until(f"the pods of {name} are told to end", lambda: [
        bool(p["metadata"].get("deletionTimestamp")) for p in w.pods(ns, name)] == [True] * count)


def is_suspended(job):
    """What a client sees of a suspended job, and of no other."""
    status = job["status"]
    equal("Suspended", condition(job, "Suspended"), "True")
    for kind in ("Running", "Restarting"):
        want(condition(job, kind) in (None, "False"), f"{kind}: {json.dumps(status)[:600]}")
    for kind in ("Succeeded", "Failed"):
        want(condition(job, kind) != "True", f"{kind}: {json.dumps(status)[:600]}")
    want(not status.get("completionTime"), "a job that is suspended has a completionTime")
    for kind, counts in (status.get("replicaStatuses") or {}).items():
        equal(f"active {kind}s", counts.get("active", 0), 0)


def check_queue(w):
    """A job that waits has no pods; it is admitted when the one before it has ended"""
    w.operator()
    ns = queue(w)
    make_job(w, ns, "first", 1)
    until_runs(w, ns, "first", 2)
    w.until("2 CPUs of the queue are in use", lambda: used(w, ns) == 2)
    make_job(w, ns, "second", 3)
    is_suspended(w.until_condition(ns, "second", "Suspended"))
    w.until("Kueue has seen it", lambda: workload(w, ns, "second"))
    want(not holds_quota(w, ns, "second"), "the quota was given twice")
    equal("pods of the one that waits", w.pods(ns, "second"), [])
    finish(w, ns, "first")
    until_runs(w, ns, "second", 4)
    w.until("all of the queue is in use", lambda: used(w, ns) == CPUS)
    finish(w, ns, "second")
    w.until("the queue is empty", lambda: used(w, ns) == 0)


def check_preempted(w):
    """A preempted job with a TTL: its pods go, then the quota, nothing else; it resumes and ends"""
    w.operator()
    ns = queue(w)
    make_job(w, ns, "low", CPUS - 1, ttlSecondsAfterFinished=TTL_S, cleanPodPolicy="None")
    until_runs(w, ns, "low", CPUS)
    uid = w.job(ns, "low")["metadata"]["uid"]

    # While its pods are there, so is its claim on the queue.
    with slow_to_end(w):
        make_job(w, ns, "high", CPUS - 1, "high")
        until_ending(w, ns, "low", CPUS)
        threading.Event().wait(HELD_S)
        until_ending(w, ns, "low", CPUS)
        want(holds_quota(w, ns, "low"), "the quota was given back before the pods were gone")
        want(not holds_quota(w, ns, "high"), "the quota was given twice")
        equal("pods of the one that preempts", w.pods(ns, "high"), [])
    until_runs(w, ns, "high", CPUS)
    want(not holds_quota(w, ns, "low"), "the quota was not given back")

    # Suspended, and nothing but that, for longer than the TTL.
    job = w.until_condition(ns, "low", "Suspended")
    is_suspended(job)
    equal("pods", w.pods(ns, "low"), [])
    equal("services", w.api.list("services", ns, "training.kubeflow.org/job-name=low"), [])
    threading.Event().wait(TTL_S + 2)
    job = w.job(ns, "low")
    is_suspended(job)
    equal("it is the same job", job["metadata"]["uid"], uid)

    # Back in its turn, as it was.
    finish(w, ns, "high")
    until_runs(w, ns, "low", CPUS)
    job = w.job(ns, "low")
    equal("Suspended", condition(job, "Suspended"), "False")
    equal("what was counted", restarts(job) or dict.fromkeys(
        ("application", "infrastructure", "device"), 0),
          {"application": 0, "infrastructure": 0, "device": 0})
    want(len(w.api.list("services", ns, "training.kubeflow.org/job-name=low")) >= 1, "no services")
    job = finish(w, ns, "low")
    want(job["status"].get("completionTime"), "no completionTime at the real end")
    w.until("the TTL takes it after the real end",
            lambda: w.api.find("pytorchjobs", ns, "low") is None, TTL_S + 15)
    w.until("the queue is empty", lambda: used(w, ns) == 0)


def check_dies(w):
    """The operator is killed while it suspends: the pods go all the same, the job resumes"""
    o = w.operator()
    ns = queue(w)
    make_job(w, ns, "low", CPUS - 1)
    until_runs(w, ns, "low", CPUS)
    with slow_to_end(w):
        make_job(w, ns, "high", 0, "high")
        w.until("the first pod is told to end", lambda: any(
            p["metadata"].get("deletionTimestamp") for p in w.pods(ns, "low")))
        o.kill()
        o.start()
        until_ending(w, ns, "low", CPUS)
        want(holds_quota(w, ns, "low"), "the quota was given back before the pods were gone")
    until_runs(w, ns, "high", 1)
    is_suspended(w.until_condition(ns, "low", "Suspended"))
    finish(w, ns, "high")
    until_runs(w, ns, "low", CPUS)
    finish(w, ns, "low")


def check_kinds(w):
    """Jobs of all kinds that Kueue knows: admitted, taken out of the queue, admitted again, ended"""
    w.operator()
    ns = queue(w)

    def runs(entry, roles):
        until_is(w, ns, entry, "Running")
        w.until(f"all pods of {entry.name} run", lambda: [
            p["status"].get("phase") for p in w.pods(ns, entry.name)
            if not p["metadata"].get("deletionTimestamp")] == ["Running"] * sum(roles.values()))

    for kind, roles in INTEGRATED.items():
        entry = make_any(w, ns, kind, kind.lower(), roles)
        runs(entry, roles)
        set_active(w, ns, entry.name, False)
        until_is(w, ns, entry, "Suspended")
        w.until(f"the quota of {entry.name} is free", lambda e=entry: not holds_quota(w, ns, e.name))
        equal(f"pods of {entry.name}", w.pods(ns, entry.name), [])
        set_active(w, ns, entry.name, True)
        runs(entry, roles)
        parallel(w.pods(ns, entry.name), w.end_pod)
        until_is(w, ns, entry, "Succeeded")
        w.until(f"the workload of {entry.name} has finished",
                lambda e=entry: condition(workload(w, ns, e.name), "Finished") == "True")
    w.until("the queue is empty", lambda: used(w, ns) == 0)
    return " ".join(INTEGRATED)


def check_left(w):
    """A count that the Go operator left of a type that Holdfast does not run keeps no quota"""
    w.operator()
    ns = queue(w)
    entry = make_any(w, ns, "TFJob", "reader", {"Worker": 2})
    until_is(w, ns, entry, "Running")
    w.api.patch(entry.plural, ns, entry.name,
                {"status": {"replicaStatuses": {"Reader": {"active": 1}}}}, "status")
    set_active(w, ns, entry.name, False)
    w.until("the quota is free", lambda: not holds_quota(w, ns, entry.name))
    equal("types that are counted", list(w.api.get(entry.plural, ns, entry.name)["status"]
                                         ["replicaStatuses"]), ["Worker"])
