# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""docs/how-to/migrate.md word for word: its commands, with both operators as pods of a real kubelet."""

import json
import os
import re

from kit import build, client, corpus, image
from kit.check import Skip, condition, equal, pytorchjob, want
from parts import incluster

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside", "peer"]
MINUTES = 4
# The Go operator's webhook is a pod; the API server asks it there.
API_FLAGS = ["--enable-aggregator-routing=true"]

NS = "jobs"
OLD, OLD_NS = "training-operator", "kubeflow"
GO_IMAGE = "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489"
PAGE = os.path.join(build.TOP, "docs/how-to/migrate.md")
INIT = f"--pytorch-init-container-image={incluster.LOOKUP}"


def setup(w):
    if w.options.peer:
        raise Skip("it runs both")
    incluster.load_holdfast(w)
    incluster.load_images(w)
    incluster.load_image(w, image.write_program, GO_IMAGE, "/manager", build.find(OLD))
    w.old = os.path.join(build.source("peer"), "manifests/overlays/standalone")
    w.cluster.kubectl("apply", "--server-side", "-k", w.old)
    # As an administrator without a registry would set it.
    w.cluster.kubectl("-n", OLD_NS, "patch", "deployment", OLD, "--type", "json", "-p", json.dumps(
        [{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": [INIT]}]))
    incluster.rolled_out(w, OLD_NS, "deployment", OLD)
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", NS, "default"))
    return "the Go operator as upstream installs it, its webhook too"


def commands(title):
    """The blocks of commands under a heading of the page, as one script each; output is marked `text`."""
    with open(PAGE, encoding="utf-8") as f:
        section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", f.read(), re.M | re.S).group(1)
    return [re.sub(r"^ {3}", "", block, flags=re.M)
            for kind, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```", section, re.M | re.S)
            if not kind]


def uids(w, *jobs):
    return {p["metadata"]["name"]: p["metadata"]["uid"] for j in jobs for p in w.pods(NS, j)
            if not p["metadata"].get("deletionTimestamp")}


def submit(w, name, command="sleep 3600", **more):
    job = pytorchjob(name, NS, workers=1, container={"command": ["sh", "-c", command]},
                     terminationGracePeriodSeconds=1, **more)
    # A webhook that has just become ready is not yet known everywhere.
    client.until(f"{name} is taken", lambda: accepted(w, job), 60, 1)


def accepted(w, job):
    try:
        return w.api.create("pytorchjobs", NS, job)
    except client.Refused as e:
        if e.code == 500:
            return None
        raise


def suspended_tfjob(name):
    made = corpus.Corpus()
    made.add("TFJob", name, roles={"Worker": 2}, run={"suspend": True})
    return made.entries[0].job


def invalid(w):
    """Who refuses a job that no operator could run."""
    job = pytorchjob("invalid", NS)
    del job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["image"]
    try:
        w.api.create("pytorchjobs", NS, job)
    except client.Refused as e:
        return e.message
    w.api.delete("pytorchjobs", NS, "invalid")
    return ""


def check_there(w):
    """The steps of "To Holdfast", typed as they stand: running, suspended and ended jobs go on, no pod is touched"""
    submit(w, "lives")
    submit(w, "waits", run_policy={"suspend": True})
    submit(w, "done", "true")
    w.until_condition(NS, "lives", "Running", 90)
    w.until_condition(NS, "waits", "Suspended", 90)
    w.until_condition(NS, "done", "Succeeded", 90)
    w.until("the webhook refuses", lambda: "denied the request" in invalid(w), 60)
    before = uids(w, "lives", "done")
    scripts = commands("To Holdfast")
    equal("blocks of commands", len(scripts), 5)
    for script in scripts[:3]:
        w.follow(script)
    want("denied" not in invalid(w) and invalid(w), "nobody checks jobs now")
    # "put yours into the Deployment's args"
    more = scripts[3].replace("| kubectl apply", f"| sed 's|args: .--leader-elect|&, {INIT}|' | "
                              "kubectl apply", 1)
    want(more != scripts[3], "step 4 is another one")
    w.follow(more)
    told = w.follow(scripts[4])
    for name in ("lives", "waits", "done"):
        want(told.count(name) == 2, f"step 5 does not show {name} twice: {told[:600]}")
    equal("pods", uids(w, "lives", "done"), before)
    w.api.patch("pytorchjobs", NS, "waits", {"spec": {"runPolicy": {"suspend": False}}})
    w.until_condition(NS, "waits", "Running", 90)
    submit(w, "later", "true")
    w.until_condition(NS, "later", "Succeeded", 90)
    equal("pods", uids(w, "lives", "done"), before)
    equal("refused", incluster.refused(w, "holdfast-system", "holdfast-operator"), [])


def check_back(w):
    """The steps of "Back to training-operator": the Go operator goes on with what runs, under our CRDs"""
    before = uids(w, "lives", "waits", "done", "later")
    want(len(before) >= 6, f"pods: {sorted(before)}")
    w.api.create("tfjobs", NS, suspended_tfjob("restarted"))
    w.until("it is suspended", lambda: condition(w.api.get("tfjobs", NS, "restarted"), "Suspended") == "True")
    stop, wait, patch, start = commands("Back to training-operator")[0].splitlines()
    for line in (stop, wait):
        w.follow(line)
    equal("pods of Holdfast", w.api.list("pods", "holdfast-system"), [])
    # As Holdfast leaves it after a restart; the indices are counted when the third command looks.
    there = w.api.get("tfjobs", NS, "restarted")["status"]["conditions"]
    was = dict(there[0], type="Restarting", status="False", reason="TFJobRestarting", message="")
    w.api.patch("tfjobs", NS, "restarted", {"status": {"conditions": [there[0], was, *there[1:]]}}, "status")
    told = w.follow(patch)
    equal("what was patched", told.split(), ["tfjob.kubeflow.org/restarted", "patched"])
    equal("its conditions", w.api.get("tfjobs", NS, "restarted")["status"]["conditions"], there)
    w.follow(start)
    # "its webhook configuration from your old manifests"
    text = w.cluster.kubectl("kustomize", w.old)
    hooks = [d for d in text.split("\n---\n") if "kind: ValidatingWebhookConfiguration" in d]
    equal("webhook configurations", len(hooks), 1)
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=hooks[0])
    incluster.rolled_out(w, OLD_NS, "deployment", OLD)
    submit(w, "new", "true")
    w.until_condition(NS, "new", "Succeeded", 120)
    equal("pods", uids(w, "lives", "waits", "done", "later"), before)
    w.until_condition(NS, "lives", "Running", 60)
