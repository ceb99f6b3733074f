# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The rights that `holdfast manifests --operator` gives are enough, and each is needed."""

import copy
import json
import subprocess
import time

from kit import audit, build, client
from kit.check import Fail, Skip, condition, equal, has_verb, pytorchjob, want
from kit.cluster import API
from kit.proxy import Proxy

# The first asks for rights of its own when an object is made that blocks the deletion of its owner;
# without the second lists are streamed, and the right to list is not asked for.
API_FLAGS = ["--enable-admission-plugins", "OwnerReferencesPermissionEnforcement",
             "--feature-gates", "WatchList=false"]
NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 7

OTHER_KINDS = ("tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs")
# Of lost nodes: the part about those shows what they are for.
LOST_NODES = {("patch", "pods/status"), ("get", "nodes"), ("get", "persistentvolumeclaims")}
# Of nodes whose devices fail: the part "remedy" takes them away one by one.
REMEDIES = {("patch", "nodes"), ("get", "devicehealths"), ("get", "healthpolicies"),
            ("patch", "healthpolicies/status"), ("create", "pods/eviction")}
# Of single devices out of use: the part "dra" runs with the shipped role.
DEVICES = {("patch", "devicehealths"), ("list", "resourceslices"),
           *((verb, "devicetaintrules") for verb in ("list", "watch", "create", "patch", "delete"))}
# What MPIJobs have beside pods.
MPI = ("configmaps", "serviceaccounts", "roles", "rolebindings", "pods/exec")
SCALER = "horizontalpodautoscalers"
ACCOUNT = "system:serviceaccount:holdfast-system:holdfast-operator"
LATE_MS = 500
LEASE = "1ca428e5.training-operator.kubeflow.org"


def setup(w):
    return w.install()


def shipped(w, *flags):
    """The objects of `holdfast manifests --operator`."""
    if not has_verb(w.program, "manifests"):
        raise Skip("this holdfast has no verb 'manifests'")
    text = subprocess.run([w.program, "manifests", "--operator", *flags], capture_output=True,
                          text=True, check=True).stdout
    text = w.cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=text)
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        item, end = decoder.raw_decode(text.lstrip())
        found += item["items"] if item["kind"] == "List" else [item]
        text = text.lstrip()[end:]
    return found


def grant(w, objects):
    """Makes the account and its rights; those objects."""
    keep = [o for o in objects if o["kind"] in (
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")]
    for kind in ("Namespace", None):
        for o in keep:
            if kind in (None, o["kind"]):
                w.cluster.kubectl("apply", "-f", "-", text=json.dumps(o))
    return keep


def check_enough(w):
    """With the shipped role alone jobs run, restart, are suspended, finished and deleted"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    keep = grant(w, shipped(w))
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
                    and r.split("/")[0] not in OTHER_KINDS)
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
    w.end_pods(w.pods(ns))
    w.until("the job is gone", lambda: w.api.find("pytorchjobs", ns, "job") is None, 60)
    want(w.api.list("events", ns), "no events")
    w.api.create("mpijobs", ns, mpijob(ns, "pi"))
    running("pi", 2)
    # Which workers run is changed in the ConfigMap.
    w.until("the worker is found", lambda: "pi-worker-0:1" in w.api.get(
        "configmaps", ns, "pi-config")["data"]["discover_hosts.sh"])
    names = {r: [o["metadata"]["name"] for o in w.api.list(r, ns)]
             for r in ("roles", "rolebindings", "serviceaccounts")}
    for resource, found in names.items():
        want("pi-launcher" in found, f"no {resource} pi-launcher, but {found}")


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


class Story:
    """A job's life that uses every right but those of a bad day; pushed on from outside, so that it
    gets as far as the operator can bring it."""

    plural = "pytorchjobs"
    makes = ("pods", "services")

    def __init__(self, w):
        self.w, self.ns = w, w.namespace()
        self.fails, self.failed, self.suspended = 3, None, False
        w.api.create("pytorchjobs", self.ns, pytorchjob("job", self.ns, 1, run_policy={
            "ttlSecondsAfterFinished": 0, "cleanPodPolicy": "All"}))

    def suspend(self, yes):
        self.w.api.patch("pytorchjobs", self.ns, "job", {"spec": {"runPolicy": {"suspend": yes}}})
        self.suspended = yes

    def push(self):
        pods = self.w.pods(self.ns, "job")
        if self.suspended:
            if not pods:
                self.suspend(False)
            return
        worker = next((p for p in pods if p["metadata"]["name"] == "job-worker-0"), None)
        if len(pods) < 2 or worker["metadata"]["uid"] == self.failed or any(
                p["status"].get("phase") != "Running" for p in pods):
            return
        if self.fails == 0:
            self.w.end_pods(pods)
            return
        # The same again, so that the event is the same too; the first may go unseen, as the job is
        # suspended with it.
        self.w.end_pod(worker, 1)
        self.failed = worker["metadata"]["uid"]
        self.fails -= 1
        if self.fails == 2:
            self.suspend(True)


def mpijob(ns, name):
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob",
            "metadata": {"name": name, "namespace": ns},
            "spec": {"mpiReplicaSpecs": {kind: {"replicas": 1, "template": {"spec": {"containers": [
                {"name": "mpi", "image": "i"}]}}} for kind in ("Launcher", "Worker")}}}


class MpiStory:
    """An MPIJob that gets another worker and another account: hosts and rights change with them."""

    plural = "mpijobs"
    makes = MPI[:4]

    def __init__(self, w):
        self.w, self.ns, self.workers = w, w.namespace(), 1
        w.api.create("mpijobs", self.ns, mpijob(self.ns, "job"))

    def push(self):
        pods = self.w.pods(self.ns, "job")
        if len(pods) < 1 + self.workers:
            return
        if self.workers == 2:
            # The account that was made for it goes with the pod that used it.
            launcher = next(p for p in pods if p["metadata"]["name"] == "job-launcher")
            if launcher["spec"].get("serviceAccountName") == "job-launcher":
                self.w.api.delete("pods", self.ns, "job-launcher")
            return
        self.workers = 2
        self.w.api.patch("mpijobs", self.ns, "job", {"spec": {"mpiReplicaSpecs": {"Worker": {
            "replicas": 2}}}})
        job = self.w.api.get("mpijobs", self.ns, "job")
        launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
        launcher["spec"]["serviceAccountName"] = "own"
        self.w.api.patch("mpijobs", self.ns, "job", {"spec": {"mpiReplicaSpecs": {"Launcher": {
            "template": launcher}}}})


class ScalerStory:
    """An elastic job whose bounds change, and that is suspended: so does its autoscaler, and it goes."""

    plural = "pytorchjobs"
    makes = (SCALER,)

    def __init__(self, w):
        self.w, self.ns, self.most = w, w.namespace(), 3
        job = pytorchjob("job", self.ns, 1)
        del job["spec"]["pytorchReplicaSpecs"]["Master"]
        job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {
                "type": "Utilization", "averageUtilization": 80}}}]}
        w.api.create("pytorchjobs", self.ns, job)

    def push(self):
        found = self.w.api.find(SCALER, self.ns, "job")
        if not found or found["spec"]["maxReplicas"] != self.most:
            return
        change = {"runPolicy": {"suspend": True}}
        if self.most == 3:
            self.most, change = 4, {"elasticPolicy": {"maxReplicas": 4}}
        self.w.api.patch("pytorchjobs", self.ns, "job", {"spec": change})


class FailedStory:
    """A job that fails while its other rank runs: the operator ends that pod and keeps it."""

    plural = "pytorchjobs"
    makes = ("pods", "services")

    def __init__(self, w):
        self.w, self.ns, self.ended = w, w.namespace(), False
        w.api.create("pytorchjobs", self.ns, pytorchjob("job", self.ns, 1, policy="Never"))

    def push(self):
        pods = self.w.pods(self.ns, "job")
        if self.ended or len(pods) < 2 or any(p["status"].get("phase") != "Running" for p in pods):
            return
        self.w.end_pod(next(p for p in pods if p["metadata"]["name"] == "job-worker-0"), 1)
        self.ended = True


class Conflicts(Story):
    """Somebody else writes to the job all the time, and what the operator knows is old."""

    def push(self):
        self.w.api.patch("pytorchjobs", self.ns, "job", {"metadata": {"labels": {
            "n": str(time.monotonic_ns())}}})
        super().push()


class LostReplies:
    """Connections break as soon as there is something that the operator has not heard of yet."""

    def __init__(self, w, proxy, story):
        self.w, self.proxy, self.story, self.seen = w, proxy, story, set()
        self.ns, self.plural = story.ns, story.plural

    def push(self):
        found = {o["metadata"]["uid"] for r in self.story.makes for o in self.w.api.list(r, self.ns)}
        if not found <= self.seen:
            self.proxy.say("cut")
        self.seen |= found
        self.story.push()


def rights(role, namespaced):
    """Every (verb, resource) of a role, but for the kinds that are not built yet."""
    found = [(v, r, namespaced) for rule in role["rules"] for r in rule["resources"]
             for v in rule["verbs"] if r.split("/")[0] not in OTHER_KINDS]
    # Asked for in the API server, by check_owners.
    return [f for f in found if not f[1].endswith("/finalizers")
            and f[:2] not in LOST_NODES | REMEDIES | DEVICES]


def without(role, verb, resource, group=None):
    """The role, less this right; group: in that API group alone."""
    less = copy.deepcopy(role)
    less["rules"] = []
    for rule in role["rules"]:
        if verb not in rule["verbs"] or resource not in rule["resources"] or (
                group and group not in rule["apiGroups"]):
            less["rules"].append(rule)
            continue
        for verbs, resources in ((rule["verbs"], [r for r in rule["resources"] if r != resource]),
                                 ([v for v in rule["verbs"] if v != verb], [resource])):
            if verbs and resources:
                less["rules"].append({**rule, "verbs": verbs, "resources": resources})
    return less


def missed(w, verb, resource, since):
    """Whether the operator was refused this, and has said so."""
    words = f'cannot {verb} resource \\"{resource}\\"'
    if resource == "pods/exec":  # it is a right that a role of a launcher gives
        verb, resource, words = "create", "roles", "attempting to grant RBAC permissions"
    refused = any(c["code"] == 403 and (c["verb"], c["resource"]) == (verb, resource)
                  for c in audit.calls(w.cluster.path("audit.log"), user=ACCOUNT)
                  if c["at"] >= since)
    said = [l for l in w.operators[-1].said().splitlines()
            if words in l]
    return (refused and said) or None


def story_of(verb, resource):
    """What makes an operator use this right."""
    if resource in MPI:
        return MpiStory
    if resource == SCALER:
        return ScalerStory
    if (verb, resource) == ("patch", "pods"):
        return FailedStory
    return Conflicts if (verb, resource) == ("get", "pytorchjobs") else Story


def one_right_less(w, role, verb, resource, namespaced):
    """Runs an operator that lacks this right, until it has missed it."""
    flags = ["--leader-elect"] if namespaced else []
    replies = verb == "get" and resource in ("pods", "services", SCALER, *MPI)
    tell_without(w, (role, without(role, verb, resource)), (verb, resource), story_of(verb, resource),
                 flags, replies)


def tell_without(w, roles, right, make, flags, replies):
    """Runs an operator with the second role for the first, until it has missed the right.

    make: its story; replies: of which it does not hear.
    """
    (role, less), (verb, resource) = roles, right
    w.cluster.kubectl("replace", "-f", "-", text=json.dumps(less))
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    token = w.api.token_of("holdfast-system", "holdfast-operator")
    if right == ("create", "leases"):
        w.api.delete("leases", "holdfast-system", LEASE)
    with Proxy(w.cluster.port(API), LATE_MS if replies or make is Conflicts else 0) as proxy:
        config = w.cluster.kubeconfig("less", token=token, port=proxy.port)
        name = "-".join(["without", verb, resource.replace("/", "-"), *flags[1:]])
        o = w.operator(name, config=config, flags=flags,
                       env={"MY_POD_NAMESPACE": "holdfast-system"}, start=False)
        o.start(ready_s=0)
        story = make(w)
        if replies:
            story = LostReplies(w, proxy, story)

        def tried():
            try:
                story.push()
            except client.Refused as e:
                if e.code not in (404, 409):  # the job has ended, or a pod is another one by now
                    raise
            return missed(w, verb, resource, since)
        client.until(f"without {verb} {resource} it says that it may not", tried, 60, 0.2)
        want(o.child.poll() is None, f"without {verb} {resource} it has ended")
        w.end_operators()
    w.cluster.kubectl("replace", "-f", "-", text=json.dumps(role))
    if w.api.find(story.plural, story.ns, "job"):
        w.api.delete(story.plural, story.ns, "job")


def check_each(w):
    """Each verb of the role is needed: without it the operator is refused, says so and lives on"""
    if w.options.peer:
        raise Skip("for Holdfast alone")
    # Under upstream's CRDs the ledger is an annotation: "patch" is needed for that alone.
    w.cluster.add_upstream_crds()
    bad, tried = [], 0
    for role in shipped(w):
        if role["kind"] not in ("Role", "ClusterRole") or (
                role["metadata"]["name"] != "holdfast-operator"):
            continue
        for verb, resource, namespaced in rights(role, role["kind"] == "Role"):
            tried += 1
            try:
                one_right_less(w, role, verb, resource, namespaced)
            except Exception as e:
                bad.append(str(e))
                w.end_operators()
                w.cluster.kubectl("replace", "-f", "-", text=json.dumps(role))
    if bad:
        raise Fail(f"{len(bad)} of {tried}: " + "; ".join(bad))
    return f"{tried} rights, one at a time"
