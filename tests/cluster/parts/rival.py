# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Beside another operator for the same jobs: the real Go operator, or its Deployment."""

from datetime import datetime, timedelta, timezone

from kit import audit, client
from kit.check import PEER_FLAGS, Skip, equal, pytorchjob, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "peer"]
MINUTES = 4

# 30 s and a fifth of that by chance, then the lists.
BACK_S = 50


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    return w.install()


def writes(w):
    """Of Holdfast, but for events: the Go operator has the same kubeconfig."""
    return audit.count(w.cluster.path("audit.log"), agent="holdfast/",
                       key=lambda c: c["verb"] not in ("get", "list", "watch")
                       and c["resource"] != "events")[True]


def told(w, ns, name):
    """The event that says why nothing is done."""
    return any(e["reason"] == "AnotherOperator" and e["involvedObject"]["name"] == name
               for e in w.api.list("events", ns))


def check_writes(w):
    """When the Go operator writes to a job Holdfast stops at once, and goes on when it is gone"""
    o = w.operator()
    w.cluster.add_peer(PEER_FLAGS, crds=False)
    w.api.create("pytorchjobs", "default", pytorchjob("both", "default", workers=2))

    def both_act():
        # Where Holdfast was the faster one, the other finds all done and writes nothing.
        for pod in w.pods("default", "both"):
            if "worker" in pod["metadata"]["name"] and pod["status"].get("phase") == "Running":
                w.end_pod(pod, 1)
        return o.metric("holdfast_yields_total") >= 1
    w.until_condition("default", "both", "Running")
    client.until("it steps back", both_act, 60, 1)
    want("another operator writes to our jobs" in o.readiness(), "it does not say why")
    client.until("an event says why", lambda: told(w, "default", "both"), 20)
    before = writes(w)
    w.api.create("pytorchjobs", "default", pytorchjob("other", "default", workers=2))
    w.until_condition("default", "other", "Running", 60)
    equal("writes beside it", writes(w), before)
    w.cluster.stop("peer")
    # It looks once while the other's writes are fresh, waits twice as long, and looks again.
    client.until("it is back", lambda: "ok" in o.readiness(), 3 * BACK_S, 0.5)
    w.api.forget()  # idle for too long
    w.api.create("pytorchjobs", "default", pytorchjob("alone", "default", workers=2))
    w.until_condition("default", "alone", "Running", 60)
    for name in ("both", "other", "alone"):
        pods = [p["metadata"]["name"] for p in w.pods("default", name)]
        equal(f"pods of {name}", pods, [f"{name}-master-0", f"{name}-worker-0", f"{name}-worker-1"])
    return f"stepped back {int(o.metric('holdfast_yields_total'))} times"


def check_forged(w):
    """Who may write a job, and no status, cannot make it believe in another operator"""
    o = w.operator()
    now = datetime.now(timezone.utc)
    before = o.metric("holdfast_yields_total")
    for name, at in (("soon", now + timedelta(seconds=2)), ("late", now + timedelta(days=9000))):
        forged = {"manager": "training-operator", "operation": "Update", "subresource": "status",
                  "apiVersion": "kubeflow.org/v1", "fieldsType": "FieldsV1",
                  "fieldsV1": {"f:status": {"f:startTime": {}, "f:replicaStatuses": {}}},
                  "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        job = pytorchjob(name, "default", workers=0)
        job["spec"]["runPolicy"] = {"suspend": True}
        w.api.create("pytorchjobs", "default", job)
        w.until_condition("default", name, "Suspended")
        fields = w.api.get("pytorchjobs", "default", name)["metadata"]["managedFields"]
        w.api.patch("pytorchjobs", "default", name, {"metadata": {"managedFields":
                                                                  [*fields, forged]}})
        want(any(f["manager"] == "training-operator" for f in w.api.get(
            "pytorchjobs", "default", name)["metadata"]["managedFields"]), "it was not taken")
    w.api.create("pytorchjobs", "default", pytorchjob("goes-on", "default", workers=1))
    w.until_condition("default", "goes-on", "Running", 30)
    equal("yields", o.metric("holdfast_yields_total"), before)
    o.stop()
    again = w.operator()
    w.api.create("pytorchjobs", "default", pytorchjob("and-on", "default", workers=1))
    w.until_condition("default", "and-on", "Running", 30)
    equal("yields of a new process", again.metric("holdfast_yields_total"), 0)


def check_deployment(w):
    """While the Go operator's Deployment is ready Holdfast sends nothing and says why"""
    labels = {"control-plane": "kubeflow-training-operator"}
    if not w.api.find("namespaces", None, "kubeflow"):
        w.api.create("namespaces", None, {"metadata": {"name": "kubeflow"}})
    w.api.create("deployments", "kubeflow", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "training-operator"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "training-operator", "image": "none"}]}}}})

    def ready():
        status = w.api.get("deployments", "kubeflow", "training-operator").get("status") or {}
        return status.get("readyReplicas")
    w.until("the Deployment is ready", ready, 60)
    before = writes(w)
    o = w.operator(start=False)
    o.start(ready_s=0)
    client.until("it steps back", lambda: "training-operator is ready" in o.readiness(), 30)
    client.until("an event says why", lambda: told(w, "kubeflow", "training-operator"), 20)
    w.api.create("pytorchjobs", "default", pytorchjob("waits", "default", workers=0))
    equal("writes beside it", writes(w), before)
    w.api.patch("deployments", "kubeflow", "training-operator", {"spec": {"replicas": 0}})
    w.until_condition("default", "waits", "Running", BACK_S)
    w.api.patch("deployments", "kubeflow", "training-operator", {"spec": {"replicas": 1, "template": {
        "spec": {"containers": [{"name": "training-operator", "image": "none",
                                 "args": ["--enable-scheme", "tfjob", "-enable-scheme=MPIJob"]}]}}}})
    w.until("the Deployment is ready for other kinds", ready, 60)
    # A new process would not begin beside one for its kinds.
    o.stop()
    beside = w.operator(flags=["--enable-scheme=pytorchjob"])
    want("ok" in beside.readiness(), "it is not ready beside an operator for other kinds")
    w.api.create("pytorchjobs", "default", pytorchjob("beside", "default", workers=0))
    w.until_condition("default", "beside", "Running", 30)
    return "back after the Deployment was scaled to 0, and beside it for other kinds"
