# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A cluster that keeps upstream's CRDs, all or some: ledger and policy in annotations, rules by a policy."""

import json
import os
import subprocess

from kit import build, client
from kit.check import Skip, condition, equal, has_verb, pytorchjob, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 4

LEDGER, POLICY = "holdfast.dev/ledger", "holdfast.dev/run-policy"


def setup(w):
    if w.options.peer or not has_verb(w.program, "manifests"):
        raise Skip("for Holdfast alone")
    w.cluster.add_upstream_crds()
    text = subprocess.run([w.program, "manifests", "--operator", "--policy"], capture_output=True,
                          text=True, check=True).stdout
    w.cluster.kubectl("apply", "-f", "-", text=text)
    w.config = w.cluster.kubeconfig("shipped", token=w.api.token_of("holdfast-system",
                                                                    "holdfast-operator"))
    return "upstream's CRDs, and the shipped role"


def annotated(ns, name, additions, **more):
    job = pytorchjob(name, ns, **more)
    job["metadata"]["annotations"] = {POLICY: json.dumps(additions)}
    return job


def ledger(w, ns, name):
    text = w.job(ns, name)["metadata"]["annotations"].get(LEDGER)
    return json.loads(text) if text else {}


def running(w, ns, name, count):
    w.until(f"{name} runs", lambda: len([
        p for p in w.pods(ns, name) if p["status"].get("phase") == "Running"
        and not p["metadata"].get("deletionTimestamp")]) == count)


def fail(w, ns, name, code):
    """One rank ends; until its successor runs."""
    pod = next(p for p in w.pods(ns) if p["metadata"]["name"] == name)
    w.end_pod(pod, code)
    return pod["metadata"]["uid"]


def again(w, ns, name, before):
    def seen():
        return [p for p in w.pods(ns) if p["metadata"]["name"] == name
                and p["metadata"]["uid"] != before and p["status"].get("phase") == "Running"]
    w.until(name + " runs again", seen)


def start(w):
    if not w.operators:
        w.operator(config=w.config, flags=["--leader-elect"],
                   env={"MY_POD_NAMESPACE": "holdfast-system"})
    return w.operators[-1]


def check_counts(w):
    """Ends are counted in the annotation, across kill -9, up to the limit"""
    ns = w.namespace()
    operator = start(w)
    w.api.create("pytorchjobs", ns, annotated(
        ns, "job", {"recovery": {"settleSeconds": 0, "backoff": {"initialSeconds": 1}}},
        workers=1, policy="ExitCode", run_policy={"backoffLimit": 1}))
    running(w, ns, "job", 2)
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    equal("application restarts", ledger(w, ns, "job")["restarts"], {"application": 1})
    want("recovery" not in w.job(ns, "job")["status"], "upstream's CRDs keep status.recovery")
    equal("crd_narrow", operator.metric("holdfast_crd_narrow", kind="PyTorchJob"), 1)
    operator.kill()
    operator.start()
    running(w, ns, "job", 2)
    fail(w, ns, "job-worker-0", 137)
    job = w.until_condition(ns, "job", "Failed", 90)
    # The end is in the status first, then in the ledger.
    verdict = w.until("the verdict is there", lambda: ledger(w, ns, "job").get("verdict"))
    equal("verdict", verdict["reason"], "BackoffLimitExceeded")
    want("completionTime" in job["status"], "no completionTime")
    reasons = {e["reason"] for e in w.api.list("events", ns)}
    want("NarrowCRD" in reasons, f"no event tells of it: {sorted(reasons)}")


def check_policy(w):
    """Rules and scope are read from the annotation; one that cannot be read holds the job"""
    ns = w.namespace()
    start(w)
    w.api.create("pytorchjobs", ns, annotated(ns, "job", {"podFailurePolicy": {"rules": [
        {"name": "bad", "action": "RestartJob",
         "onExitCodes": {"operator": "In", "values": [42]}}]}}, workers=1))
    running(w, ns, "job", 2)
    before = {p["metadata"]["uid"] for p in w.pods(ns, "job")}
    fail(w, ns, "job-worker-0", 42)
    w.until("all are new", lambda: before.isdisjoint(p["metadata"]["uid"] for p in w.pods(ns, "job"))
            and len(w.pods(ns, "job")) == 2)
    equal("generation", ledger(w, ns, "job")["generation"], 2)
    # kwok ends pods by name, sometimes the new one as well: one more record, of a deletion.
    found = ledger(w, ns, "job")
    rules = [r.get("rule") for r in [found["last"], *found.get("history", [])]]
    want("bad" in rules, f"no record names the rule: {rules}")
    w.api.create("pytorchjobs", ns, annotated(ns, "bad", {"recovery": {"restartScope": "Gang"}},
                                              workers=1))
    w.until("it is held", lambda: condition(w.job(ns, "bad"), "holdfast.dev/Held") == "True")
    equal("pods", w.pods(ns, "bad"), [])
    w.api.patch("pytorchjobs", ns, "bad", {"metadata": {"annotations": {POLICY: None}}})
    running(w, ns, "bad", 2)


def check_upgrade(w):
    """Under our CRDs the ledger moves into the status, every end counted once, nothing restarted"""
    ns = w.namespace()
    operator = start(w)
    w.api.create("pytorchjobs", ns, annotated(
        ns, "job", {"recovery": {"backoff": {"initialSeconds": 1}}}, workers=1, policy="ExitCode"))
    running(w, ns, "job", 2)
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    running(w, ns, "job", 2)
    before = {p["metadata"]["uid"] for p in w.pods(ns, "job")}
    text = subprocess.run([w.program, "manifests", "--crds"], capture_output=True, text=True,
                          check=True).stdout
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)
    # While the server still serves watches by the old schema, and after.
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    w.until("the operator has seen it",
            lambda: operator.metric("holdfast_crd_narrow", kind="PyTorchJob") == 0)
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    recovery = w.until("the ledger is in the status",
                       lambda: w.job(ns, "job")["status"].get("recovery"))
    equal("restarts", recovery["restarts"], {"application": 3})
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    equal("restarts", w.job(ns, "job")["status"]["recovery"]["restarts"], {"application": 4})
    kept = {p["metadata"]["uid"] for p in w.pods(ns, "job")
            if p["metadata"]["name"] == "job-master-0"}
    want(kept <= before, "the master was restarted")


def replace_crd(w, plural, wide):
    """One kind's schema: ours, or upstream's; its jobs stay."""
    if wide:
        text = subprocess.run([w.program, "manifests", "--crds"], capture_output=True, text=True,
                              check=True).stdout
        text = next(c for c in text.split("\n---\n") if f"name: {plural}.kubeflow.org" in c)
    else:
        with open(os.path.join(build.source("peer"), "manifests/base/crds",
                               f"kubeflow.org_{plural}.yaml"), encoding="utf-8") as f:
            text = f.read()
    w.cluster.kubectl("replace", "-f", "-", text=text)


def tfjob(name, ns):
    job = pytorchjob(name, ns, workers=1, policy="ExitCode")
    replicas = job["spec"].pop("pytorchReplicaSpecs")
    replicas["Worker"]["template"]["spec"]["containers"][0]["name"] = "tensorflow"
    job.update(kind="TFJob", spec={"tfReplicaSpecs": {"Worker": replicas["Worker"]}})
    return job


def restarts(w, ns, name):
    """Where they are counted now."""
    found = w.job(ns, name)["status"].get("recovery") or ledger(w, ns, name)
    return found.get("restarts", {})


def check_mixture(w):
    """One kind under upstream's CRD, the others under ours; to and fro as a job fails: each end once"""
    ns = w.namespace()
    operator = start(w)
    replace_crd(w, "tfjobs", True)
    replace_crd(w, "pytorchjobs", False)
    w.until("the operator has seen it",
            lambda: operator.metric("holdfast_crd_narrow", kind="PyTorchJob") == 1
            and operator.metric("holdfast_crd_narrow", kind="TFJob") == 0)
    w.api.create("pytorchjobs", ns, annotated(
        ns, "job", {"recovery": {"backoff": {"initialSeconds": 1}}}, workers=1, policy="ExitCode"))
    w.api.create("tfjobs", ns, tfjob("tf", ns))
    running(w, ns, "job", 2)
    running(w, ns, "tf", 1)
    again(w, ns, "tf-worker-0", fail(w, ns, "tf-worker-0", 137))
    again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
    found = w.api.get("tfjobs", ns, "tf")
    equal("TFJob's restarts", found["status"]["recovery"]["restarts"], {"application": 1})
    want(LEDGER not in found["metadata"].get("annotations", {}), "the TFJob has an annotation")
    equal("PyTorchJob's restarts", ledger(w, ns, "job")["restarts"], {"application": 1})
    for count, wide in enumerate([True, False, True, False], 2):
        replace_crd(w, "pytorchjobs", wide)
        # At once, while the server still goes by both, and the ledger may be in either place.
        again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
        w.until("the operator has seen it",
                lambda: operator.metric("holdfast_crd_narrow", kind="PyTorchJob") == (not wide))
        equal(f"restarts, now {'ours' if wide else 'upstreams'}", restarts(w, ns, "job"),
              {"application": count})


def check_deleted(w):
    """A CRD deleted under running jobs: what they had goes, other kinds go on; made again, it works"""
    ns = w.namespace()
    operator = start(w)
    w.api.create("pytorchjobs", ns, pytorchjob("job", ns, workers=1))
    w.api.create("tfjobs", ns, tfjob("tf", ns))
    running(w, ns, "job", 2)
    running(w, ns, "tf", 1)
    w.cluster.kubectl("delete", "crd", "pytorchjobs.kubeflow.org", "--timeout=120s")
    client.until("its pods are gone", lambda: not w.pods(ns, "job"), 120)
    client.until("it is told", lambda: "lacks the CRD of PyTorchJob" in operator.readiness(), 120)
    again(w, ns, "tf-worker-0", fail(w, ns, "tf-worker-0", 137))
    for wide in (False, True):
        if wide:
            w.cluster.kubectl("delete", "crd", "pytorchjobs.kubeflow.org", "--timeout=120s")
            client.until("its pods are gone", lambda: not w.pods(ns, "job"), 120)
        with open(os.path.join(build.source("peer"), "manifests/base/crds",
                               "kubeflow.org_pytorchjobs.yaml"), encoding="utf-8") as f:
            w.cluster.kubectl("create", "-f", "-", text=f.read())
        w.cluster.until_established()
        if wide:
            replace_crd(w, "pytorchjobs", True)
        client.until("a job is made", lambda: w.api.create("pytorchjobs", ns, pytorchjob(
            "job", ns, workers=1, policy="ExitCode")), 60)
        running(w, ns, "job", 2)
        again(w, ns, "job-worker-0", fail(w, ns, "job-worker-0", 137))
        equal("restarts", restarts(w, ns, "job"), {"application": 1})
    want(operator.child.poll() is None, "the operator has ended")


def check_malformed(w):
    """Policies that cannot be read hold their job, in words, until they are gone"""
    ns = w.namespace()
    start(w)
    bad = ["", "{", "[]", "1", '"text"', "null", '{"recovery":5}', '{"podFailurePolicy":[]}',
           '{"recovery":{"backoff":{"initialSeconds":-1}}}', '{"recovery":{"restartScope":1e999}}',
           "[" * 2000, json.dumps({"podFailurePolicy": {"rules": [{}] * 1000}}), "\x7f"]
    for i, text in enumerate(bad):
        job = pytorchjob(f"job-{i}", ns, workers=0)
        job["metadata"]["annotations"] = {POLICY: text}
        w.api.create("pytorchjobs", ns, job)
    for i, text in enumerate(bad):
        def told(i=i):
            job = w.job(ns, f"job-{i}")
            return [c["message"] for c in (job.get("status") or {}).get("conditions") or []
                    if c["type"] == "holdfast.dev/Held" and c["status"] == "True"]
        said = w.until(f"{text[:40]} holds its job", told)[0]
        want("Policy" in said or "recovery" in said or POLICY in said, f"{text[:40]}: {said}")
        equal("pods", w.pods(ns, f"job-{i}"), [])
    for i in range(len(bad)):
        w.api.patch("pytorchjobs", ns, f"job-{i}", {"metadata": {"annotations": {POLICY: None}}})
        running(w, ns, f"job-{i}", 1)
