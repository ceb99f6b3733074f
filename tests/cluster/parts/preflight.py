# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""holdfast check on a real API server: before, during and after a migration, typed as it prints the steps."""

import json
import os
import subprocess
import time

from kit import build
from kit.check import Skip, equal, now, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "peer"]
MINUTES = 2

OPERATOR = ("holdfast-system", "holdfast-operator")
LEASE = "1ca428e5.training-operator.kubeflow.org"
WEBHOOK = "validator.training-operator.kubeflow.org"


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    return "nothing installed"


def found(w, *arguments, config="admin", code=0):
    """{check: [(result, found, action)]} of one run, and the steps."""
    run = subprocess.run([w.program, "check", *arguments, "-o", "json"], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "KUBECONFIG": w.cluster.path("kubeconfig." + config)})
    want(run.returncode == code, f"exit code {run.returncode}, wanted {code}: {(run.stderr or run.stdout)[-900:]}")
    said = json.loads(run.stdout)
    lines = {}
    for line in said["checks"]:
        lines.setdefault(line["check"], []).append((line["result"], line["found"], line.get("action")))
    equal("failed", said["failed"], sum(r == "fail" for l in lines.values() for r, _, _ in l))
    return lines, said.get("steps", [])


def result(lines, name, part=""):
    """The result of the line of this check with this text."""
    for is_so, text, _ in lines[name]:
        if part in text:
            return is_so
    return f"no line of {name} has '{part}': {lines[name]}"


def done(steps):
    return [s["done"] for s in steps]


def rolled_out(w, ns, name):
    w.cluster.kubectl("-n", ns, "rollout", "status", "deployment", name, "--timeout=60s")


def lead(w, ago=0):
    """Renews the operator's Lease: pods of kwok's nodes run no program."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - ago))
    w.cluster.kubectl("apply", "-f", "-", text=json.dumps({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": OPERATOR[0]},
        "spec": {"holderIdentity": w.api.list("pods", OPERATOR[0])[0]["metadata"]["name"] + "_1", "renewTime": at}}))


def tested():
    """The version of this cluster (--kubernetes) is one of the README's table."""
    return build.version("kubernetes").split(".")[1] in ("34", "35", "36", "37")


def install_old(w, *flags):
    """training-operator, as upstream installs it."""
    w.cluster.kubectl("apply", "--server-side", *flags, "-k",
                      os.path.join(build.source("peer"), "manifests/overlays/standalone"))
    rolled_out(w, "kubeflow", "training-operator")


def check_empty(w):
    """On an empty cluster nothing fails, and the API server's version is a tested one"""
    lines, _ = found(w)
    equal("api-server", lines["api-server"][0][0], "ok" if tested() else "warn")
    want(build.version("kubernetes") in lines["api-server"][0][1], str(lines["api-server"]))
    for name in ("clock", "node-clocks", "rights-install", "rights-jobs", "operators", "webhooks", "policies",
                 "kueue", "gang-scheduler", "images", "remediations", "rollouts"):
        equal(name, lines[name][0][0], "ok")
    equal("crds", [r for r, _, _ in lines["crds"]], ["warn", "warn"])
    # kwok's nodes have GPUs, and no agent runs.
    equal("agents", result(lines, "agents", "no agent: nodes with accelerators: 2"), "warn")
    return f"{sum(map(len, lines.values()))} lines"


def check_migrate(w):
    """The steps of check migrate, typed one after the other: each is done then; the wrong order fails"""
    install_old(w)
    w.cluster.until_established()
    lines, _ = found(w)
    equal("operators", lines["operators"][0][0], "warn")
    lines, steps = found(w, "migrate")
    equal("done", done(steps), [False] * 6)
    equal("operators", lines["operators"][0][0], "ok")
    equal("owners", lines["owners"][0][0], "ok")
    equal("jobs", lines["jobs"][0][1], "0 exist, 0 of them running, 0 ended; their pods stay as they are")
    w.follow(steps[0]["command"])
    _, steps = found(w, "migrate")
    equal("done", done(steps), [True] + [False] * 5)
    # Stopped before its webhook is deleted: no job can be written.
    w.follow(steps[2]["command"])
    w.until("its pod is gone", lambda: not w.api.list("pods", "kubeflow"), 60)
    lines, steps = found(w, "migrate", code=1)
    equal("webhooks", result(lines, "webhooks", WEBHOOK), "fail")
    w.follow(steps[1]["command"])
    lines, steps = found(w, "migrate")
    equal("done", done(steps), [True] * 3 + [False] * 3)
    w.follow(steps[3]["command"].replace("IMAGE", "registry.example/holdfast:1"))
    rolled_out(w, *OPERATOR)
    w.follow(steps[5]["command"])
    lines, _ = found(w, "migrate", code=1)
    equal("operators", result(lines, "operators", "does not lead: its Lease " + LEASE + " was never renewed"), "fail")
    lead(w, ago=120)
    lines, _ = found(w, "migrate", code=1)
    equal("operators", result(lines, "operators", " was last renewed at "), "fail")
    lead(w)
    lines, steps = found(w, "migrate")
    equal("done", done(steps), [True] * 4 + [False, True])
    warned = [n for n, l in lines.items() if any(r != "ok" for r, _, _ in l)]
    equal("warned", warned, ["agents"] if tested() else ["api-server", "agents"])
    return "6 steps"


def check_rights(w):
    """Missing rights of the operator are found by reviews; a caller without rights is told what is unknown"""
    lead(w)
    lines, _ = found(w)
    asked = lines["rights-operator"][0]
    equal("rights-operator", asked[0], "ok")
    w.cluster.kubectl("delete", "clusterrolebinding", "holdfast-operator")
    lines, _ = found(w, code=1)
    want(result(lines, "rights-operator", "lacks") == "fail", str(lines["rights-operator"]))
    w.follow("holdfast manifests --operator --image x | kubectl apply -f -")
    for kind, plural, spec, flag, line in (
            ("HealthPolicy", "healthpolicies", {"mode": "remediate", "mend": {}}, "--mender", "rights-mend"),
            ("DeviceRollout", "devicerollouts", {"change": {"nodeLabel": {"key": "a", "value": "b"}}}, "--rollouts",
             "rights-rollouts")):
        want(line not in found(w)[0], "rights that nothing needs are asked")
        w.api.create(plural, None, {"apiVersion": "holdfast.dev/v1alpha1", "kind": kind, "metadata": {"name": "p"},
                                    "spec": spec})
        lines, _ = found(w)
        want(result(lines, line, "lacks") == "warn", str(lines[line]))
        w.follow(f"holdfast manifests {flag} | kubectl apply -f -")
        w.until(f"{line} is ok", lambda line=line: found(w)[0][line][0][0] == "ok", 20)
        w.api.delete(plural, None, "p")
    ns, name = OPERATOR
    lead(w)
    w.cluster.kubeconfig("account", token=w.api.token_of(ns, name))
    lines, _ = found(w, "--as-operator", config="account")
    equal("rights-operator", lines["rights-operator"][0][0], "ok")
    w.cluster.kubectl("-n", "default", "create", "serviceaccount", "nobody")
    w.cluster.kubeconfig("nobody", token=w.api.token_of("default", "nobody"))
    lines, _ = found(w, config="nobody")
    equal("results", {r for l in lines.values() for r, _, _ in l}, {"ok", "warn"})
    want(result(lines, "crds", "unknown: ") == "warn", str(lines["crds"]))
    want(result(lines, "rights-jobs", "lacks") == "warn", str(lines["rights-jobs"]))
    return asked[1]


def check_found(w):
    """A dead webhook, a second operator, upstream's CRDs and a node without an agent are found"""
    w.cluster.kubectl("apply", "-f", "-", text=json.dumps({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "dead"}, "webhooks": [{
            "name": "dead.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "dead", "namespace": "default"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]}]}))
    node = w.api.list("nodes")[0]["metadata"]["name"]
    w.cluster.kubectl("apply", "-f", "-", text=json.dumps({
        "apiVersion": "holdfast.dev/v1alpha1", "kind": "DeviceHealth", "metadata": {"name": node}}))
    w.cluster.kubectl("patch", "devicehealth", node, "--subresource=status", "--type=merge", "-p", json.dumps(
        {"status": {"observedTime": now()}}))
    lines, _ = found(w, code=1)
    equal("webhooks", result(lines, "webhooks", "'dead' refuses every write of services"), "fail")
    equal("agents", result(lines, "agents", "1 of 2 nodes with accelerators have no report"), "warn")
    w.cluster.kubectl("delete", "mutatingwebhookconfiguration", "dead")
    install_old(w, "--force-conflicts")
    lines, _ = found(w, code=1)
    equal("operators", result(lines, "operators", "are both installed"), "fail")
    equal("crds", result(lines, "crds", "6 are upstream's"), "warn")
    equal("webhooks", result(lines, "webhooks", "is left over"), "warn")
    # Without the webhook, nothing checks jobs under upstream's CRDs.
    equal("policies", lines["policies"][0][0], "ok")
    w.cluster.kubectl("delete", "validatingwebhookconfiguration", WEBHOOK)
    lines, _ = found(w, code=1)
    equal("policies", result(lines, "policies", "no rule checks new"), "warn")
    return "7 findings"


def check_unreachable(w):
    """A server that is not reached, or that rejects the credentials, gives exit code 3"""
    w.cluster.kubeconfig("away", port=1)
    w.cluster.kubeconfig("wrong", token="no-such-token")
    for config in ("away", "wrong"):
        run = subprocess.run([w.program, "check"], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "KUBECONFIG": w.cluster.path("kubeconfig." + config)})
        equal(f"exit code with {config}", run.returncode, 3)
        want(run.stderr.startswith("holdfast: "), run.stderr)
    return "2 kubeconfigs"
