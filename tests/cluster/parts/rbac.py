# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The rights that `holdfast manifests --operator` gives are enough, and each is used."""

import json
import subprocess

from kit import audit, build, client
from kit.check import Skip, condition, equal, has_verb, pytorchjob, want

# Asks for rights of its own when an object is made that blocks the deletion of its owner.
API_FLAGS = ["--enable-admission-plugins", "OwnerReferencesPermissionEnforcement"]
NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 3


def setup(w):
    return w.install()


def shipped(w):
    """The objects of `holdfast manifests --operator`."""
    if not has_verb(w.program, "manifests"):
        raise Skip("this holdfast has no verb 'manifests'")
    text = subprocess.run([w.program, "manifests", "--operator"], capture_output=True, text=True,
                          check=True).stdout
    text = w.cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=text)
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        item, end = decoder.raw_decode(text.lstrip())
        found += item["items"] if item["kind"] == "List" else [item]
        text = text.lstrip()[end:]
    return found


def check_enough(w):
    """With the shipped role alone jobs run, restart, are suspended, finished and deleted"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    objects = shipped(w)
    keep = [o for o in objects if o["kind"] in (
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")]
    for kind in ("Namespace", None):
        for o in keep:
            if kind in (None, o["kind"]):
                w.cluster.kubectl("apply", "-f", "-", text=json.dumps(o))
    account = next(o["metadata"] for o in keep if o["kind"] == "ServiceAccount")
    ns, name = account["namespace"], account["name"]
    config = w.cluster.kubeconfig("shipped", token=w.api.token_of(ns, name))
    w.operator(config=config, flags=["--leader-elect"], env={"MY_POD_NAMESPACE": ns})
    jobs(w)
    w.end_operators()
    user = f"system:serviceaccount:{ns}:{name}"
    log = w.cluster.path("audit.log")
    # A watch that had nothing to say is written down when it ends.
    w.until("watches are in the log", lambda: {("watch", "services"),
            ("watch", "customresourcedefinitions")} <= set(audit.count(log, user=user)))
    refused = {f"{c['verb']} {c['resource']}" for c in audit.calls(log, user=user)
               if c["code"] == 403}
    equal("requests that were forbidden", sorted(refused), [])
    # What it may do: the roles that are bound to it; those for people are not.
    bound = {o["roleRef"]["name"] for o in keep if o["kind"].endswith("Binding")
             and any(s["name"] == name for s in o["subjects"])}
    may = set()
    for o in keep:
        if o["kind"] in ("Role", "ClusterRole") and o["metadata"]["name"] in bound:
            for rule in o["rules"]:
                may |= {(v, r.split(".")[0]) for v in rule["verbs"] for r in rule["resources"]}
    used = set(audit.count(log, user=user))
    want(used, "nothing was asked by " + user)
    # Kinds other than PyTorchJob are not tried here; their rules are written as one with it.
    # finalizers are asked for inside the API server, by its admission; the part "narrow" patches.
    unused = sorted(f"{v} {r}" for v, r in may - used
                    if not r.endswith("/finalizers")
                    and r.split("/")[0] not in ("tfjobs", "mpijobs", "xgboostjobs", "paddlejobs",
                                                "jaxjobs"))
    return f"{len(used)} of its rights used" + (f", not tried here: {', '.join(unused)}"
                                                if unused else "")


def jobs(w):
    """What makes an operator use its rights: restart, scale-down, suspend, end, TTL."""
    ns = w.namespace()

    def running(name, count):
        w.until(f"{name} runs", lambda: len([p for p in w.pods(ns, name) if
                                            p["status"].get("phase") == "Running"
                                            and not p["metadata"].get("deletionTimestamp")]) == count)
    w.api.create("pytorchjobs", ns, pytorchjob("job", ns, 2, run_policy={
        "ttlSecondsAfterFinished": 1, "cleanPodPolicy": "All"}))
    running("job", 3)
    worker = next(p for p in w.pods(ns) if p["metadata"]["name"] == "job-worker-0")
    w.end_pod(worker, 1)
    w.until("job-worker-0 is new", lambda: any(
        p["metadata"]["name"] == "job-worker-0" and p["metadata"]["uid"] != worker["metadata"]["uid"]
        for p in w.pods(ns)))
    running("job", 3)
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": True}}})
    w.until_condition(ns, "job", "Suspended")
    w.until("no pod is left", lambda: not w.pods(ns))
    w.api.patch("pytorchjobs", ns, "job", {"spec": {"runPolicy": {"suspend": False}}})
    running("job", 3)
    for pod in w.pods(ns):
        w.end_pod(pod)
    w.until("the job is gone", lambda: w.api.find("pytorchjobs", ns, "job") is None, 60)
    want(w.api.list("events", ns), "no events")


def check_owners(w):
    """Where owners are protected, what the operator makes needs its right to jobs/finalizers"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    ns = w.namespace()
    w.end_operators()
    made = w.api.create("pytorchjobs", ns, pytorchjob("job", ns, 1))
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "job",
             "uid": made["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod",
                      "metadata": {"name": "p", "namespace": ns, "ownerReferences": [owner]},
                      "spec": {"containers": [{"name": "c", "image": "i"}]}})
    role = next(o for o in shipped(w) if o["kind"] == "ClusterRole"
                and o["metadata"]["name"] == "holdfast-operator")

    def refused():
        """The API server's words when such a pod is made with the operator's rights; "" if it is."""
        try:
            w.cluster.kubectl("create", "--dry-run=server", "-f", "-", "--as",
                              "system:serviceaccount:holdfast-system:holdfast-operator", text=pod)
        except build.Broken as e:
            return str(e)
        return ""
    equal("refused with the whole role", refused(), "")
    less = {**role, "rules": [r for r in role["rules"]
                              if not any(x.endswith("/finalizers") for x in r["resources"])]}
    equal("rules about finalizers", len(role["rules"]) - len(less["rules"]), 1)
    w.cluster.kubectl("replace", "-f", "-", text=json.dumps(less))
    why = w.until("it is refused without that rule", refused)
    want("blockOwnerDeletion" in why, why)
    w.cluster.kubectl("replace", "-f", "-", text=json.dumps(role))


def check_forbidden(w):
    """Without rights it says what it may not do, and works once it may"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    w.api.create("serviceaccounts", "default", {"metadata": {"name": "nobody"}})
    ns = w.namespace()
    o = w.operator(config=w.cluster.kubeconfig("nobody", token=w.api.token_of("default", "nobody")),
                   start=False)
    o.start(ready_s=0)
    client.until("its log names what is forbidden", lambda: "forbidden" in o.said().lower(), 60)
    want(o.child.poll() is None, "it has ended")
    w.api.create("clusterrolebindings", None, {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "nobody"},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"}})
    w.api.create("pytorchjobs", ns, pytorchjob("job", ns, 1))
    equal("Running", condition(w.until_condition(ns, "job", "Running", 120), "Running"), "True")
