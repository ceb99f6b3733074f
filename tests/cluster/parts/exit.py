# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Pods that really run, on a real kubelet: exit codes, restarts, logs, and the verbs about them."""

import os
import re

from kit.check import condition, equal, pytorchjob, want

NEEDS = {"node": "real-0"}
BUILD = ["control", "node"]
MINUTES = 5

# Each start of the rank adds a line to a file of the node; N is how often it has been started.
COUNT = 'echo start >>/data/starts; N=$(grep -c start /data/starts); echo "this is start $N"; '


def setup(w):
    return w.install()


def submit(w, script, name="job", **more):
    """A job of one master that runs a script; its folder /data lies on the machine."""
    ns = w.namespace()
    folder = w.cluster.path("data-" + ns)
    os.makedirs(folder)
    if not w.operators:
        w.operator()
    container = {"command": ["sh", "-c", COUNT + script],
                 "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    w.api.create("pytorchjobs", ns, pytorchjob(
        name, ns, workers=0, container=container, terminationGracePeriodSeconds=1,
        volumes=[{"name": "data", "hostPath": {"path": folder}}], **more))
    return ns


def starts(w, ns):
    try:
        with open(w.cluster.path("data-" + ns, "starts"), encoding="utf-8") as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


def log(w, ns, pod, **options):
    status, _, data = w.api.raw("GET", f"/api/v1/namespaces/{ns}/pods/{pod}/log?" + "&".join(
        f"{k}={v}" for k, v in options.items()))
    return data.decode() if status == 200 else f"{status} {data.decode()}"


def check_environment(w):
    """A rank sees the environment that torch.distributed reads, and its output is its log"""
    ns = submit(w, "env; exit 0")
    w.until_condition(ns, "job", "Succeeded")
    text = log(w, ns, "job-master-0")
    for line in ("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=job-master-0", "MASTER_PORT=23456",
                 "this is start 1"):
        want(re.search("^" + re.escape(line) + "$", text, re.M), f"its log lacks {line}: {text[:300]}")
    equal("starts", starts(w, ns), 1)


def check_restart_in_place(w):
    """Under OnFailure the kubelet starts a failed container again in the same pod"""
    ns = submit(w, '[ "$N" -ge 2 ] || exit 5; sleep 2; exit 0')
    first = w.until("the pod is made", lambda: w.pods(ns))[0]["metadata"]["uid"]
    w.until_condition(ns, "job", "Succeeded", 120)
    pod = w.pods(ns)[0]
    equal("pod uid", pod["metadata"]["uid"], first)
    equal("restartCount", pod["status"]["containerStatuses"][0]["restartCount"], 1)
    equal("starts", starts(w, ns), 2)
    want("this is start 2" in log(w, ns, "job-master-0"), "the log is not the second start's")


def check_exit_code_again(w):
    """Under ExitCode 137 is tried again in a new pod, and the job succeeds"""
    ns = submit(w, '[ "$N" -ge 2 ] || { sleep 1; exit 137; }; sleep 1; exit 0', policy="ExitCode")
    first = w.until("the pod is made", lambda: w.pods(ns))[0]["metadata"]["uid"]
    w.until_condition(ns, "job", "Succeeded", 120)
    pod = w.pods(ns)[0]
    want(pod["metadata"]["uid"] != first, "it was not a new pod")
    equal("restartPolicy of the pod", pod["spec"]["restartPolicy"], "Never")
    equal("starts", starts(w, ns), 2)


def check_exit_code_final(w):
    """Under ExitCode 3 ends the job: Failed, the pod and its log are kept, and the verbs say why"""
    ns = submit(w, 'echo "cannot read the data"; exit 3', policy="ExitCode")
    job = w.until_condition(ns, "job", "Failed", 120)
    equal("starts", starts(w, ns), 1)
    want(condition(job, "Restarting") != "True", "Restarting is True")
    pod = w.pods(ns)[0]
    equal("exit code", pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3)
    want("cannot read the data" in w.holdfast("logs", "job", ns=ns), "holdfast logs lacks the line")
    why = w.holdfast("why", "job", ns=ns)
    want(re.search(r"\b3\b", why), "holdfast why does not name exit code 3: " + why[:400])
    w.holdfast("wait", "job", "--timeout", "20s", ns=ns, code=1)
    want("Failed" in w.holdfast("get", "pytorchjobs", ns=ns), "holdfast get does not say Failed")


def check_never(w):
    """Under Never any failure ends the job"""
    ns = submit(w, "exit 200", policy="Never")
    w.until_condition(ns, "job", "Failed", 120)
    equal("starts", starts(w, ns), 1)


def check_backoff_zero(w):
    """Under backoffLimit 0 a program that fails at once is started once: the kubelet restarts nothing"""
    ns = submit(w, "exit 7", run_policy={"backoffLimit": 0})
    job = w.until_condition(ns, "job", "Failed", 120)
    want(job["status"].get("completionTime"), "completionTime is missing")
    equal("starts", starts(w, ns), 1)
    equal("restartPolicy of the pod", w.pods(ns)[0]["spec"]["restartPolicy"], "Never")
    want("limit 0, exceeded by incident 1" in w.holdfast("why", "job", ns=ns),
         "holdfast why does not say that incident 1 exceeded the limit")


def check_backoff(w):
    """Under backoffLimit 2 a program that fails at once is started three times"""
    # The kubelet starts it again after 0 s, 10 s and 20 s.  The operator counts the third termination when
    # it sees it, and the job fails within the settle, 10 s here: before the fourth start.  (Under
    # backoffLimit 1 the settle and the back-off are equal, so the third start may come first.)
    ns = submit(w, "exit 7", run_policy={"backoffLimit": 2, "cleanPodPolicy": "All"})
    job = w.until_condition(ns, "job", "Failed", 180)
    want(job["status"].get("completionTime"), "completionTime is missing")
    equal("restarts", job["status"]["recovery"]["restarts"], {"application": 3})
    w.until("its pod is gone", lambda: not w.pods(ns))
    equal("starts", starts(w, ns), 3)
    want("limit 2, exceeded by incident 3" in w.holdfast("why", "job", ns=ns),
         "holdfast why does not say that incident 3 exceeded the limit")


def check_suspend(w):
    """Suspend ends the process, resume starts another"""
    ns = submit(w, "sleep 1000", policy="ExitCode")
    w.until("it runs", lambda: starts(w, ns) == 1)
    w.until_condition(ns, "job", "Running")
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": True}}})
    w.until_condition(ns, "job", "Suspended")
    w.until("the pod is gone", lambda: not w.pods(ns))
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": False}}})
    w.until("it runs again", lambda: starts(w, ns) == 2)
    equal("Failed", condition(w.until_condition(ns, "job", "Running"), "Failed"), None)


def check_deadline(w):
    """activeDeadlineSeconds ends a job that does nothing"""
    ns = submit(w, "sleep 1000", run_policy={"activeDeadlineSeconds": 4, "cleanPodPolicy": "All"})
    w.until_condition(ns, "job", "Running")
    w.until_condition(ns, "job", "Failed", 30)
    w.until("its pod is gone", lambda: not w.pods(ns))


def check_deleted_pod(w):
    """A pod that a person deletes is made again, whatever the policy, and nothing is charged"""
    ns = submit(w, '[ "$N" -ge 2 ] && exit 0; sleep 1000', policy="Never")
    w.until("it runs", lambda: starts(w, ns) == 1)
    w.until_condition(ns, "job", "Running")
    w.api.delete("pods", ns, "job-master-0")
    w.until_condition(ns, "job", "Succeeded", 60)
    equal("starts", starts(w, ns), 2)


def check_verbs(w):
    """get, describe, logs --follow and wait work from a manifest to its end"""
    ns = w.namespace()
    w.operator()
    manifest = w.cluster.write("verbs.yaml", f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: verbs, namespace: {ns}}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - name: pytorch
            image: localhost/busybox:1
            command: [sh, -c, 'for i in $(seq 3); do echo "step $i"; sleep 1; done']
""")
    w.cluster.kubectl("apply", "-f", manifest)
    text = w.holdfast("logs", "verbs", "-f", ns=ns, timeout_s=120)
    want(text.splitlines() == ["step 1", "step 2", "step 3"], "logs -f printed " + repr(text))
    w.holdfast("wait", "verbs", "--timeout", "60s", ns=ns)
    text = w.holdfast("describe", "verbs", ns=ns)
    want("verbs-master-0" in text and "Succeeded" in text, "describe says: " + text[:500])
    want("verbs-master-0" in w.holdfast("get", "pods", ns=ns), "get pods lacks it")
