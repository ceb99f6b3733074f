# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What the end of a job, or of its training container, leaves on a real kubelet: who ends it, and when."""

import os

from kit.check import condition, equal, pytorchjob, want
from kit.client import pause

NEEDS = {"node": "real-0"}
BUILD = ["control", "node"]
MINUTES = 5

# The kubelet starts a failing container again after 10, 20 and 40 s.
RESTARTS_WITHIN_S = 45


def setup(w):
    return w.install()


def submit(w, script, beside=None, policy="OnFailure", run_policy=None, **pod):
    """A job of one master that runs a script; beside: the script of a second container."""
    ns = w.namespace()
    folder = w.cluster.path("data-" + ns)
    os.makedirs(folder)
    if not w.operators:
        w.operator()
    container = {"command": ["sh", "-c", "echo start >>/data/starts; echo it begins; " + script],
                 "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    job = pytorchjob("job", ns, workers=0, policy=policy, run_policy=run_policy, container=container,
                     terminationGracePeriodSeconds=1,
                     volumes=[{"name": "data", "hostPath": {"path": folder}}], **pod)
    if beside:
        job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
            {"name": "proxy", "image": "localhost/busybox:1", "command": ["sh", "-c", beside]})
    w.api.create("pytorchjobs", ns, job)
    return ns


def starts(w, ns):
    try:
        with open(w.cluster.path("data-" + ns, "starts"), encoding="utf-8") as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


def the_pod(w, ns):
    pods = w.pods(ns)
    equal("pods", len(pods), 1)
    return pods[0]


def until_ended(w, ns):
    """The pod, once its kubelet has ended it because of its deadline."""
    w.until("the kubelet has ended the pod",
            lambda: the_pod(w, ns)["status"]["phase"] == "Failed", 40)
    pod = the_pod(w, ns)
    equal("reason", pod["status"].get("reason"), "DeadlineExceeded")
    equal("activeDeadlineSeconds", pod["spec"].get("activeDeadlineSeconds"), 1)
    for container in pod["status"]["containerStatuses"]:
        # Of a container that waited to be started again the kubelet writes nothing more.
        want("running" not in container["state"], f"{container['name']} is {container['state']}")
    return pod


def says(w, ns, text):
    why = w.holdfast("why", "job", ns=ns)
    want(text in why, f"holdfast why does not say '{text}': {why[:600]}")


def check_runs(w):
    """A job that failed by its deadline has its running pod ended and kept, with its log"""
    ns = submit(w, "sleep 1000", run_policy={"activeDeadlineSeconds": 6})
    w.until("it runs", lambda: starts(w, ns) == 1)
    job = w.until_condition(ns, "job", "Failed", 30)
    pod = until_ended(w, ns)
    equal("annotation", pod["metadata"]["annotations"].get("holdfast.dev/stopped"), "JobFailed")
    want("it begins" in w.holdfast("logs", "job", ns=ns), "the log is gone")
    w.until("nothing counts as active", lambda: not w.api.get("pytorchjobs", ns, "job")["status"][
        "replicaStatuses"]["Master"].get("active"))
    equal("restarts", job["status"]["recovery"].get("restarts", {}).get("application", 0), 0)


def check_crashes(w):
    """A container that the kubelet restarts is not started again under a failed job"""
    ns = submit(w, "sleep 1; exit 7", run_policy={"backoffLimit": 1})
    w.until_condition(ns, "job", "Failed", 180)
    until_ended(w, ns)
    before = starts(w, ns)
    pause(RESTARTS_WITHIN_S)
    equal("starts", starts(w, ns), before)


def check_waits(w):
    """A pod that has not begun by the end of its job is deleted"""
    ns = submit(w, "sleep 1000", run_policy={"activeDeadlineSeconds": 4}, nodeSelector={"pool": "none"})
    w.until_condition(ns, "job", "Failed", 30)
    w.until("the pod is gone", lambda: not w.pods(ns), 30)
    equal("starts", starts(w, ns), 0)


def check_kept(w):
    """podsAfterEnd: Keep leaves the pod running, as upstream does, and what runs is told"""
    ns = submit(w, "sleep 1000", run_policy={"activeDeadlineSeconds": 6,
                                             "recovery": {"podsAfterEnd": "Keep"}})
    w.until_condition(ns, "job", "Failed", 40)
    w.until("a condition tells it", lambda: condition(
        w.api.get("pytorchjobs", ns, "job"), "holdfast.dev/PodsStillRun") == "True", 60)
    equal("phase", the_pod(w, ns)["status"]["phase"], "Running")
    says(w, ns, "1 pod(s) still run, job-master-0 first: cleanPodPolicy is None")


def check_failure_beside(w):
    """The training container fails beside a proxy: the job fails at once, and the proxy is ended"""
    ns = submit(w, "sleep 1; exit 3", beside="sleep 1000", policy="Never")
    w.until_condition(ns, "job", "Failed", 40)
    pod = until_ended(w, ns)
    codes = {c["name"]: c["state"]["terminated"]["exitCode"]
             for c in pod["status"]["containerStatuses"]}
    equal("exit code", codes["pytorch"], 3)
    status = w.api.get("pytorchjobs", ns, "job")["status"]["replicaStatuses"]["Master"]
    equal("failed", status.get("failed"), 1)


def check_retry_beside(w):
    """Under ExitCode 137 beside a proxy is tried again in a new pod"""
    ns = submit(w, '[ "$(grep -c start /data/starts)" -ge 2 ] && sleep 1000; exit 137',
                beside="sleep 1000", policy="ExitCode")
    w.until("it is started again", lambda: starts(w, ns) == 2, 60)
    w.until_condition(ns, "job", "Running")


def check_success_beside(w):
    """The training container succeeds beside a proxy: told, and the job waits"""
    ns = submit(w, "sleep 1", beside="sleep 1000")
    w.until("the container has ended", lambda: any(
        "terminated" in c["state"] for pod in w.pods(ns)
        for c in pod["status"].get("containerStatuses", [])), 40)
    w.until("holdfast why tells it", lambda: (
        "container pytorch of master-0 ended with 0; the pod is kept by container proxy"
        in w.holdfast("why", "job", ns=ns)))
    equal("Running", condition(w.api.get("pytorchjobs", ns, "job"), "Running"), "True")
    equal("phase", the_pod(w, ns)["status"]["phase"], "Running")


def check_ends_together(w):
    """A kubelet that ends a pod tells no container's end before it tells why: no failure is seen early"""
    ns = w.namespace()
    slow = "slow() { sleep 3; exit 0; }; trap slow TERM; while :; do sleep 0.1; done"
    w.api.create("pods", ns, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two", "namespace": ns},
        "spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 6,
                 "terminationGracePeriodSeconds": 10, "containers": [
                     {"name": "quick", "image": "localhost/busybox:1",
                      "command": ["sh", "-c", "trap 'exit 1' TERM; while :; do sleep 0.1; done"]},
                     {"name": "slow", "image": "localhost/busybox:1", "command": ["sh", "-c", slow]}]}})
    seen = []

    def over():
        status = w.api.get("pods", ns, "two")["status"]
        states = {c["name"]: c["state"] for c in status.get("containerStatuses", [])}
        if "terminated" in states.get("quick", {}) and "running" in states.get("slow", {}):
            seen.append(status)
        return status.get("phase") == "Failed"
    w.until("the kubelet has ended the pod", over, 60, 0.05)
    want(not seen, f"the end of one container was told before the other's: {str(seen[:1])[:500]}")


def check_grace(w):
    """sidecarGraceSeconds ends that wait: the rank has succeeded, although its pod is Failed then"""
    ns = submit(w, "sleep 1", beside="sleep 1000",
                run_policy={"recovery": {"sidecarGraceSeconds": 5}})
    job = w.until_condition(ns, "job", "Succeeded", 60)
    equal("restarts", job["status"]["recovery"].get("restarts", {}), {})
    pod = until_ended(w, ns)
    equal("annotation", pod["metadata"]["annotations"].get("holdfast.dev/stopped"), "Succeeded")
    status = w.api.get("pytorchjobs", ns, "job")["status"]["replicaStatuses"]["Master"]
    equal("succeeded", status.get("succeeded"), 1)
    equal("failed", status.get("failed", 0), 0)
