# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Remediations on a real API server: the CRD's rules, the rights of the actor, and the program itself with its own token."""

import os
import subprocess
import tempfile

from kit import client
from kit.check import Fail, Skip, equal, has_verb, want

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 2
HERE, ELSEWHERE = "fake-0", "fake-1"
NS, MENDER, SYSTEM, OPERATOR = "holdfast-mend", "holdfast-mender", "holdfast-system", "holdfast-operator"
NONCE = "00112233445566778899aabbccddeeff"
BOOT = "11111111-1111-1111-1111-111111111111"
NOW = "2026-01-01T00:00:00.000001Z"
OWN_NODE, OWN_OBJECT = "for its own node alone", "to its own Remediation alone"
ONE_ACT, NO_MORE = "one intent for an approved act", "no more of the status"


def setup(w):
    if w.options.peer or not has_verb(w.program, "mend-node"):
        raise Skip("there is no actor")
    w.install()
    w.cluster.kubectl("apply", "--server-side", "-f", "-", text=w.holdfast("manifests", "--mender"))
    w.api.create("namespaces", None, {"metadata": {"name": SYSTEM}})
    w.api.create("serviceaccounts", SYSTEM, {"metadata": {"name": OPERATOR}})
    w.operator = w.cluster.client(w.api.token_of(SYSTEM, OPERATOR))
    w.until("the policies hold", lambda: refusal(lambda: w.api.create(
        "pods", NS, {"metadata": {"name": "any"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})))
    remediation(w, HERE, 1)
    w.mine = actor(w, HERE, 1)
    w.until("the actor's policy holds", lambda: refusal(lambda: write(w.mine, f"{HERE}-1", message="x")))
    return "the actor's own token, of a pod that the operator made"


def refusal(call):
    """What the server says against it; None: it was done."""
    try:
        call()
    except client.Refused as e:
        return e.message
    return None


def spec(node, number, **more):
    return {"node": node, "rung": "reset-device", "devices": [{"id": "0000:1a:00.0", "uuid": "GPU-1"}],
            "attempt": number, "nonce": NONCE, "requestedBy": "policy", **more}


def body(node, number, **more):
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "Remediation",
            "metadata": {"name": f"{node}-{number}"}, "spec": spec(node, number, **more)}


def approved():
    return {"phase": "Approved", "message": "approved",
            "approval": {"time": NOW, "bootID": BOOT, "resourceVersionOfNode": "1"},
            "saved": {"labels": {"nvidia.com/gpu.deploy.dcgm": "true"}}}


def remediation(w, node, attempt, status=None, **more):
    w.operator.create("remediations", None, body(node, attempt, **more))
    w.operator.patch("remediations", None, f"{node}-{attempt}", {"status": status or approved()}, "status")
    return f"{node}-{attempt}"


def pod(name, node=HERE, **more):
    """As src/api/remediation_pod.c makes it."""
    return {"metadata": {"name": "mend-" + name, "labels": {"app.kubernetes.io/name": "holdfast"}}, "spec": {
        "nodeName": node, "serviceAccountName": MENDER, "restartPolicy": "Never", "activeDeadlineSeconds": 3600,
        "terminationGracePeriodSeconds": 150, "priorityClassName": "system-node-critical", "hostPID": True,
        "hostNetwork": True, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "actor", "image": "holdfast", "command": ["holdfast", "mend-node", "--intent", name],
                        "args": ["--root=/host", "--proc=/proc", "--sys=/sys"],
                        "env": [{"name": "HOLDFAST_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                                {"name": "HOLDFAST_MEND_NONCE", "value": NONCE}],
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "resources": {"requests": {"memory": "32Mi"}, "limits": {"memory": "256Mi"}},
                        "securityContext": {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True},
                        "volumeMounts": [{"name": "host", "mountPath": "/host", "mountPropagation": "HostToContainer"}]}],
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}], **more}}


def actor_token(w, node, attempt):
    """Creates the pod and returns its token as its kubelet would get it."""
    made = w.operator.create("pods", NS, pod(f"{node}-{attempt}", node))["metadata"]
    return w.api.token_of(NS, MENDER, bound={
        "kind": "Pod", "apiVersion": "v1", "name": made["name"], "uid": made["uid"]})


def actor(w, node, attempt):
    """The pod, and a client with its token."""
    return w.cluster.client(actor_token(w, node, attempt))


def act(**more):
    return {"nonce": NONCE, "actor": "a1", "startedAt": NOW, "bootID": BOOT, **more}


def write(api, name, **status):
    return api.patch("remediations", None, name, {"status": status}, "status")


def refused(rows):
    for what, call, word in rows:
        said = refusal(call)
        if said is None:
            raise Fail(f"{what} was done")
        want(word in said, f"{what} was refused for {said}")
    return f"{len(rows)} writes"


def check_crd(w):
    """The CRD: the name, the spec that does not change but for cancel, values that mean nothing"""
    name = remediation(w, ELSEWHERE, 50)

    def change(**more):
        return lambda: w.operator.patch("remediations", None, name, {"spec": more})
    rows = [(f"name {name}", lambda name=name: w.operator.create("remediations", None, {**body(HERE, 51), "metadata": {
        "name": name}}), "must be NODE-ATTEMPT") for name in (
            "other", f"{HERE}-52", f"{HERE}-051", f"{HERE}51", f"{HERE}-1-51")]
    rows += [(f"a change of {k}", change(**{k: v}), "only cancel may change") for k, v in (
        ("node", HERE), ("rung", "reboot"), ("nonce", "f" * 32), ("deadlineSeconds", 60), ("dryRun", True),
        ("devices", [{"uuid": "GPU-2"}]), ("bootID", "x"), ("policy", "p"), ("requestedBy", "me"),
        ("fault", {"class": "reboot"}))]
    rows += [(f"spec {more}", lambda more=more: w.operator.create("remediations", None, body(HERE, 51, **more)), word)
             for more, word in (({"nonce": "short"}, "spec.nonce"), ({"rung": "explode"}, "spec.rung"),
                                ({"attempt": 0}, "spec.attempt"), ({"devices": []}, "needed for reset-device"),
                                ({"devices": [{"uuid": "-i"}]}, "uuid"), ({"deadlineSeconds": 1}, "deadlineSeconds"),
                                ({"devices": [{"uuid": f"GPU-{i}"} for i in range(17)]}, "spec.devices"))]
    said = refused(rows)
    w.operator.patch("remediations", None, name, {"spec": {"cancel": True}})
    refused([("cancel taken back", change(cancel=False), "may only change to true")])
    row = w.cluster.kubectl("get", "rem", name).splitlines()
    equal("the columns", row[0].split(), ["NAME", "NODE", "RUNG", "PHASE", "AGE", "MESSAGE"])
    return said


def check_actor(w):
    """An actor writes one intent and one result to its own object"""
    name = remediation(w, HERE, 2)
    api = actor(w, HERE, 2)
    refused([
        ("an act without an intent", lambda: write(api, name, act=act()), ONE_ACT),
        ("a foreign nonce", lambda: write(api, name, phase="Acting", act=act(nonce="f" * 32)), "repeats the nonce"),
        ("an external object to delete", lambda: write(api, name, phase="Acting", act=act(), saved={
            "external": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}}), NO_MORE),
        ("another boot", lambda: write(api, name, phase="Acting", act=act(bootID="x")), "another boot"),
        ("no boot", lambda: write(api, name, phase="Acting", act=act(bootID=None)), "another boot"),
        ("a success", lambda: write(api, name, phase="Succeeded", act=act()), ONE_ACT),
        ("an intent with a message", lambda: write(api, name, phase="Acting", act=act(), message="x"), NO_MORE),
        ("an intent with a proof", lambda: write(api, name, phase="Acting", act=act(), proof={"time": NOW}), NO_MORE),
        ("an own approval", lambda: write(api, name, phase="Acting", act=act(bootID="x"), approval={"bootID": "x"}),
         NO_MORE),
        ("other labels", lambda: write(api, name, phase="Acting", act=act(), saved={"labels": {"a": "b"}}), NO_MORE),
        ("an outcome", lambda: write(api, name, phase="Acting", act=act(), outcome="Succeeded"), NO_MORE)])
    write(api, name, act={"nonce": NONCE, "endedAt": NOW, "message": "busy", "holders": [{"pid": 7, "comm": "x"}]})
    write(api, name, phase="Acting", act=act(endedAt=None, holders=[]), saved={"persistenceMode": {"GPU-1": "on"}})
    refused([
        ("a second intent", lambda: write(api, name, phase="Acting", act=act(startedAt="2026-01-02T00:00:00Z")),
         "does not change the intent"),
        ("another process", lambda: write(api, name, act=act(actor="a2", endedAt=NOW)), "does not change the intent"),
        ("back to Approved", lambda: write(api, name, phase="Approved", act=act()), "act"),
        ("other modes", lambda: write(api, name, act=act(endedAt=NOW), saved={"persistenceMode": {"GPU-1": "off"}}),
         NO_MORE)])
    write(api, name, act=act(endedAt=NOW, exitCode=0, tool="nvidia-smi", message="done"))
    refused([("a second result", lambda: write(api, name, act=act(endedAt=NOW, exitCode=1)), ONE_ACT)])
    equal("the status", w.api.get("remediations", None, name)["status"]["phase"], "Acting")


def check_others(w):
    """Nothing of another node or object, of an act that is not approved, cancelled or dry, or of anything else"""
    rows = []
    for attempt, status, more in ((10, {"phase": "Pending"}, {}), (11, {"phase": "Draining"}, {}),
                                  (12, {"phase": "Verifying"}, {}), (13, approved(), {"dryRun": True}),
                                  (14, {**approved(), "act": act()}, {})):
        name = remediation(w, HERE, attempt, status, **more)
        api = actor(w, HERE, attempt)
        rows.append((f"an act in {status['phase']} {more}",
                     lambda api=api, name=name: write(api, name, phase="Acting", act=act(actor="a2")),
                     "cancelled" if more else ONE_ACT))
    name = remediation(w, HERE, 15)
    api = actor(w, HERE, 15)
    w.operator.patch("remediations", None, name, {"spec": {"cancel": True}})
    rows.append(("a cancelled act", lambda: write(api, name, phase="Acting", act=act()), "cancelled"))
    foreign = remediation(w, ELSEWHERE, 2)
    rows += [
        ("another node's act", lambda: write(w.mine, foreign, phase="Acting", act=act()), OWN_NODE),
        ("another act here", lambda: write(w.mine, f"{HERE}-10", phase="Acting", act=act()), OWN_OBJECT),
        ("a spec", lambda: w.mine.patch("remediations", None, f"{HERE}-1", {"spec": {"cancel": True}}), "cannot patch"),
        ("a new object", lambda: w.mine.create("remediations", None, body(HERE, 60)), "cannot create"),
        ("a deletion", lambda: w.mine.delete("remediations", None, f"{HERE}-1"), "cannot delete"),
        ("a node", lambda: w.mine.patch("nodes", None, HERE, {"metadata": {"labels": {"a": "b"}}}), "cannot patch"),
        ("pods", lambda: w.mine.list("pods", NS), "cannot list"),
        ("secrets", lambda: w.mine.list("secrets", NS), "cannot list"),
        ("a pod", lambda: w.mine.create("pods", NS, pod("x")), "cannot create")]
    loose = w.cluster.client(w.api.token_of(NS, MENDER))
    rows.append(("a token without a pod", lambda: write(loose, f"{HERE}-1", phase="Acting", act=act()), OWN_NODE))
    return refused(rows)


def someone(w):
    """An account that may create pods in the namespace and remediations, but approves nothing."""
    w.api.apply("serviceaccounts", NS, "someone", {"apiVersion": "v1", "kind": "ServiceAccount",
                                                   "metadata": {"name": "someone"}})
    w.api.apply("clusterroles", None, "someone", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "someone"}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/ephemeralcontainers", "pods/exec"],
             "verbs": ["create", "patch", "get"]},
            {"apiGroups": ["holdfast.dev"], "resources": ["remediations", "remediations/status"],
             "verbs": ["create", "patch", "get"]}]})
    w.api.apply("clusterrolebindings", None, "someone", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "someone"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "someone"},
        "subjects": [{"kind": "ServiceAccount", "name": "someone", "namespace": NS}]})
    return w.cluster.client(w.api.token_of(NS, "someone"))


def check_pods(w):
    """Only the operator creates actors, of one form, and nothing enters them"""
    other = someone(w)
    w.until("the right is there", lambda: "only the operator" in str(refusal(
        lambda: other.create("pods", NS, pod("x-1")))))
    w.until("the policy of requests holds", lambda: "name of the user" in str(refusal(
        lambda: other.create("remediations", None, {**body(HERE, 22), "spec": {**spec(HERE, 22), "requestedBy": "x"}}))))

    def make(name="x-1", **more):
        return lambda: w.operator.create("pods", NS, pod(name, **more))

    def container(**more):
        return [{**pod("x-1")["spec"]["containers"][0], **more}]
    form = "one container, with command"
    said = refused([
        ("a pod of somebody else", lambda: other.create("pods", NS, pod("x-1")), "only the operator"),
        ("another account", make(serviceAccountName="default"), "account holdfast-mender"),
        ("no node", make(nodeName=None), "and a node"),
        ("another command", make(containers=container(command=["sh"])), form),
        ("another intent", make(containers=container(command=["holdfast", "mend-node", "--intent", "y-1"])), form),
        ("two containers", make(containers=container() + [{"name": "d", "image": "i"}]), form),
        ("an init container", make(initContainers=[{"name": "d", "image": "i"}]), form),
        ("restarts", make(restartPolicy="Always"), "runs once"),
        ("no deadline", make(activeDeadlineSeconds=None), "runs once"),
        ("another image", lambda: other.patch("pods", NS, f"mend-{HERE}-1", {"spec": {"containers": [
            {**pod(f"{HERE}-1")["spec"]["containers"][0], "image": "evil"}]}}), "does not change"),
        ("one more container", lambda: other.call("PATCH", client.path(
            "pods", NS, f"mend-{HERE}-1", "ephemeralcontainers"), {"spec": {"ephemeralContainers": [
                {"name": "e", "image": "i"}]}}, "application/strategic-merge-patch+json"), "nothing is added"),
        ("a shell", lambda: other.call("POST", client.path("pods", NS, f"mend-{HERE}-1", "exec", command="sh")),
         "nothing enters")])
    refused([
        ("an approval of somebody else", lambda: write(other, remediation(w, HERE, 20, {"phase": "Draining"}),
                                                       **approved()), "only the operator approves"),
        ("a new approval", lambda: write(other, remediation(w, HERE, 21), approval={"bootID": "x"}),
         "only the operator approves"),
        ("a request in another name", lambda: other.create("remediations", None, body(HERE, 22)), "name of the user")])
    own = f"system:serviceaccount:{NS}:someone"
    other.create("remediations", None, body(HERE, 22, requestedBy=own))
    return said


def check_program(w):
    """holdfast mend-node with the actor's own token: it writes intent and result, once"""
    name = remediation(w, HERE, 30, rung="reboot", devices=None)
    token = actor_token(w, HERE, 30)
    with tempfile.TemporaryDirectory() as folder:
        def put(path, text):
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return path
        put("proc/sys/kernel/random/boot_id", BOOT + "\n")
        # Never the machine's: a file that looks like sysrq-trigger.
        sysrq = put("sysrq", "")
        config = w.cluster.path(w.cluster.kubeconfig("mender", token))
        words = [w.program, "mend-node", "--intent", name, "--kubeconfig", config, "--proc", folder + "/proc",
                 "--sysrq", sysrq, "--only", "sysrq", "--sync-wait", "10ms"]
        env = {**os.environ, "HOLDFAST_NODE_NAME": HERE, "HOLDFAST_MEND_NONCE": NONCE}
        # With the token of another actor the policy refuses the intent.
        foreign = w.cluster.path(w.cluster.kubeconfig("mender2", actor_token(w, HERE, 31)))
        ended = subprocess.run([foreign if word == config else word for word in words], env=env, capture_output=True,
                               text=True, timeout=60)
        equal("exit code with another token", ended.returncode, 2)
        want(OWN_OBJECT in ended.stderr, f"refused for {ended.stderr}")
        ended = [subprocess.run(words, env=env, capture_output=True, text=True, timeout=60) for _ in range(2)]
        equal("exit codes", [e.returncode for e in ended], [1, 2])
        with open(sysrq, encoding="utf-8") as f:
            equal("letters", f.read(), "sub")
    status = w.api.get("remediations", None, name)["status"]
    equal("the phase", status["phase"], "Acting")
    equal("the act", (status["act"]["tool"], status["act"]["exitCode"], status["act"]["bootID"]), ("sysrq", 1, BOOT))
    equal("the labels stay", status["saved"]["labels"], approved()["saved"]["labels"])
