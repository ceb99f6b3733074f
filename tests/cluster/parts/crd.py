# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What `holdfast manifests` prints, on a real API server: CRDs, policies, the deployment."""

import copy
import json
import os
import subprocess
import sys

from kit import build, client
from kit.check import Fail, Skip, equal, has_verb, pytorchjob, want

NEEDS = {}
BUILD = ["control"]
MINUTES = 3


def setup(w):
    if not has_verb(w.program, "manifests"):
        raise Skip("this holdfast has no verb 'manifests'")


def check_rules(w):
    """Some 300 jobs are taken or refused by CRDs and policies, and old ones can still be written"""
    program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crd_test")
    path = os.path.dirname(build.find("kubectl")) + os.pathsep + os.environ["PATH"]
    run = subprocess.run([sys.executable, program, w.program], capture_output=True, text=True,
                         timeout=600, env={**os.environ, "PATH": path,
                                           "KUBECONFIG": w.cluster.path("kubeconfig.admin")})
    lines = (run.stdout + run.stderr).strip().splitlines() or ["it said nothing"]
    if run.returncode != 0:
        bad = [l for l in lines if l.startswith("FAIL")] or lines[-5:]
        raise Fail("; ".join(bad[:5])[:1500] + "; " + lines[-1])
    return lines[-1]


def check_deployment(w):
    """All of it is applied at once, and its pod passes the restricted pod security standard"""
    ns = "elsewhere"
    text = subprocess.run([w.program, "manifests", "-n", ns, "--image", "localhost/holdfast:test"],
                          capture_output=True, text=True, check=True).stdout
    w.cluster.kubectl("apply", "-f", "-", text=text)
    w.cluster.until_established()
    made = json.loads(w.cluster.kubectl("get", "deployment", "-n", ns, "holdfast-operator", "-o",
                                        "json"))["spec"]["template"]
    want(made["spec"]["containers"][0]["image"] == "localhost/holdfast:test", "another image")
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": made["spec"],
           "metadata": {"name": "p", "namespace": ns, "labels": made["metadata"]["labels"]}}

    def refused(pod):
        try:
            w.cluster.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(pod))
        except build.Broken as e:
            return str(e)
        return ""
    want(refused(pod) == "", refused(pod))
    lax = copy.deepcopy(pod)
    del lax["spec"]["containers"][0]["securityContext"]["capabilities"]
    want("PodSecurity" in refused(lax), "a pod with capabilities is let in: nothing is enforced")


def check_missing(w):
    """A kind whose CRD is missing is told, holds up no other, and is found once it is there"""
    w.cluster.kubectl("delete", "crd", "--all", "--timeout=60s")
    crds = subprocess.run([w.program, "manifests", "--crds"], capture_output=True, text=True,
                          check=True).stdout.split("\n---\n")
    tf = [c for c in crds if "name: tfjobs.kubeflow.org" in c]
    equal("CRDs of TFJob", len(tf), 1)
    o = w.operator(start=False).start(ready_s=0)
    client.until("it says what is missing", lambda: all(
        k in o.readiness() for k in ("not ready", "lacks the CRD of", "PyTorchJob", "TFJob")), 60)
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                      text="\n---\n".join(c for c in crds if c not in tf))
    ns = w.namespace()
    client.until("a job is made", lambda: w.api.create("pytorchjobs", ns, pytorchjob(
        "job", ns, 0, run_policy={"suspend": True})), 30)
    w.until_condition(ns, "job", "Suspended", 120)
    client.until("it is ready for the others", lambda: o.readiness().strip() ==
                 "ok; the cluster lacks the CRD of TFJob", 120)
    equal("missing", o.metric("holdfast_crd_missing"), 1)
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=tf[0])
    client.until("the last kind is found", lambda: o.readiness().strip() == "ok", 120)
    equal("missing", o.metric("holdfast_crd_missing"), 0)
    said = o.said()
    equal("how often that was told", said.count("does not know this kind"), said.count("knows this kind now"))
