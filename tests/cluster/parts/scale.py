# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Elastic jobs under the controller-manager's own autoscaler."""

from kit import audit, client
from kit.check import equal, pytorchjob, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 4

HPAS = "horizontalpodautoscalers"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {
    "type": "Utilization", "averageUtilization": 50}}}


def setup(w):
    what = w.install()
    # The autoscaler's source of figures: a kind whose objects the checks write.
    w.cluster.kubectl("apply", "-f", "-", text=METRICS)
    w.cluster.until_established()
    return what


METRICS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for tests"}
spec:
  group: metrics.k8s.io
  names: {kind: PodMetrics, listKind: PodMetricsList, plural: pods, singular: pod}
  scope: Namespaced
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
client.GROUPS["pods.metrics"] = "metrics.k8s.io/v1beta1"


def elastic(w, ns, count, **policy):
    made = pytorchjob("job", ns, count, container={"resources": {"requests": {"cpu": "100m"}}})
    del made["spec"]["pytorchReplicaSpecs"]["Master"]
    made["spec"]["elasticPolicy"] = policy
    w.api.create("pytorchjobs", ns, made)


def running(w, ns, count, timeout_s=60):
    w.until(f"{count} Workers run", lambda: len([
        p for p in w.pods(ns, "job") if p["status"].get("phase") == "Running"
        and not p["metadata"].get("deletionTimestamp")]) == count, timeout_s)


def busy(w, ns, cores):
    """So much CPU in each Worker, from now on."""
    for pod in w.pods(ns, "job"):
        meta = pod["metadata"]
        w.api.apply("pods.metrics", ns, meta["name"], {
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
            "metadata": {"name": meta["name"], "labels": meta["labels"]},
            "timestamp": client.stamp(3600), "window": "10s",
            "containers": [{"name": "pytorch", "usage": {"cpu": cores, "memory": "1Mi"}}]})


def check_bounds(w):
    """A job with fewer Workers than its minimum grows by /scale, one with more shrinks"""
    w.operator()
    few, many = w.namespace(), w.namespace()
    elastic(w, few, 1, minReplicas=3, maxReplicas=5, metrics=[CPU])
    elastic(w, many, 4, minReplicas=1, maxReplicas=2, metrics=[CPU])
    running(w, few, 3, 90)
    running(w, many, 2, 90)
    selector = w.api.get("pytorchjobs", few, "job", "scale")["status"]["selector"]
    want("training.kubeflow.org/replica-type=worker" in selector, selector)
    return "by the autoscaler of the controller-manager"


def check_load(w):
    """A job whose Workers are busy gets more of them, up to its maximum"""
    w.operator()
    ns = w.namespace()
    elastic(w, ns, 1, minReplicas=1, maxReplicas=3, metrics=[CPU])
    running(w, ns, 1)
    busy(w, ns, "400m")
    running(w, ns, 3, 120)
    conditions = {c["type"]: c for c in w.api.get(HPAS, ns, "job")["status"]["conditions"]}
    equal("AbleToScale", conditions["AbleToScale"]["status"], "True")


def check_edits(w):
    """The autoscaler follows the job, keeps what others added, goes with a suspended job, and costs
    no request at rest"""
    w.operator()
    ns = w.namespace()
    elastic(w, ns, 2, maxReplicas=2, metrics=[])
    running(w, ns, 2)
    hpa = w.until("there is an autoscaler", lambda: w.api.find(HPAS, ns, "job"))
    equal("minReplicas", hpa["spec"]["minReplicas"], 2)
    equal("the default metric", hpa["spec"]["metrics"][0]["resource"]["name"], "cpu")
    w.api.patch(HPAS, ns, "job", {"spec": {"maxReplicas": 7, "behavior": {"scaleDown": {
        "stabilizationWindowSeconds": 5}}}})
    hpa = w.until("it is put right", lambda: (lambda o: o if o["spec"]["maxReplicas"] == 2 else None)(
        w.api.get(HPAS, ns, "job")))
    equal("behavior", hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 5)
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"elasticPolicy": {"maxReplicas": 3,
                                                                      "minReplicas": 1}}})
    w.until("it follows", lambda: w.api.get(HPAS, ns, "job")["spec"]["maxReplicas"] == 3)

    def writes():
        return sum(n for (verb, resource), n in audit.count(
            w.cluster.path("audit.log"), user="operator").items()
            if resource == HPAS and verb in ("create", "patch", "update", "delete"))
    before = writes()
    client.pause(5)
    equal("requests at rest", writes(), before)
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": True}}})
    w.until("it is gone", lambda: w.api.find(HPAS, ns, "job") is None)
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": False}}})
    w.until("it is back", lambda: w.api.find(HPAS, ns, "job"))
    return f"{before} writes in its life"


def check_refused(w):
    """An autoscaler that the API server refuses is told of, and the job runs"""
    w.operator()
    ns = w.namespace()
    elastic(w, ns, 2, maxReplicas=2, metrics=[{"type": "Nonsense"}])
    running(w, ns, 2)
    w.until("an event says so", lambda: [
        e for e in w.api.list("events", ns)
        if e["reason"] == "FailedCreateHorizontalPodAutoscaler" and "Nonsense" in e["message"]])
    out = w.holdfast("why", "job", ns=ns)
    want("HorizontalPodAutoscaler 'job' is not there" in out and "Nonsense" in out, out)
