# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Jobs whose pods get holdfast exec from the operator, on a real kubelet: hostPath, CSI, restarts in place, log rules."""

import json
import os

from kit import build, render
from kit.check import Skip, equal, want
from parts.incluster import AGENT, IMAGE, OPERATOR, kubectl, load_holdfast, processes, rolled_out

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 4
# The agent finds the pod of a process by its control group.
POD_GROUPS = True
DRIVER = "exec.holdfast.dev"
MOUNT = "/holdfast/run"
# Rank 0 fails once; after that both ranks wait for ever. The first start may be too early for a generation.
FAIL_ONCE = """
echo "$HOSTNAME generation ${HOLDFAST_GENERATION:-1}"
case "$HOSTNAME ${HOLDFAST_GENERATION:-1}" in *-worker-0" 1") sleep 4; exit 3 ;; esac
exec sleep 1000000
"""


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    load_holdfast(w)
    w.csi = False
    return "operator and agent as pods, our image"


def install(w, csi=False):
    """What an administrator applies, by kustomize, but for the name of the image."""
    if w.csi == csi and w.api.find("deployments", OPERATOR, "holdfast-operator"):
        return
    more = ["components/csi"] if csi else []
    text = render.kustomize_with(resources=["overlays/standalone"], components=["components/agent", *more])
    kubectl(w, "apply", "--server-side", "--force-conflicts", "-f", "-", text=text.replace("holdfast:0.1.0", IMAGE))
    rolled_out(w, AGENT, "daemonset", "holdfast-agent")
    rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    w.until("one operator is left", lambda: len(w.api.list("pods", OPERATOR)) == 1, 60)
    w.csi = csi


def submit(w, ns, name, script, recovery=None, workers=2, **container):
    w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", ns, "default"))
    container = {"name": "pytorch", "image": "localhost/busybox:1", "command": ["sh", "-c", script], **container}
    w.api.create("pytorchjobs", ns, {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
        "spec": {"runPolicy": {"recovery": {"exec": "Inject", "restartScope": "Job", **(recovery or {})}},
                 "pytorchReplicaSpecs": {"Worker": {"replicas": workers, "restartPolicy": "OnFailure", "template": {
                     "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}}}})


def told(w, ns, name, rank):
    """Nothing while the container does not run."""
    try:
        return kubectl(w, "-n", ns, "logs", f"{name}-worker-{rank}", "-c", "pytorch", "--tail=-1")
    except build.Broken:
        return ""


def await_told(w, ns, name, rank, text):
    try:
        w.until(f"worker-{rank} prints '{text}'", lambda: text in told(w, ns, name, rank), 120)
    except Exception as e:
        raise TimeoutError(f"{e}; " + w.holdfast("why", name, ns=ns, code=None)[:1200] + kubectl(
            w, "-n", ns, "get", "events", "-o", "custom-columns=R:.reason,M:.message")[-900:]) from None


def restart_in_place(w, ns, **container):
    """A rank fails: both ranks start anew in their pods."""
    submit(w, ns, "train", FAIL_ONCE, **container)
    for rank in (0, 1):
        await_told(w, ns, "train", rank, f"train-worker-{rank} generation 1")
    before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in w.pods(ns, "train")}
    for rank in (0, 1):
        await_told(w, ns, "train", rank, f"train-worker-{rank} generation 2")
    pods = w.pods(ns, "train")
    equal("the pods", {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods}, before)
    for p in pods:
        equal("restarts by the kubelet", [c["restartCount"] for c in p["status"]["containerStatuses"]], [0])
    last = w.until("the restart is on record", lambda: (lambda r: r if r.get("runningAt") else None)(
        w.job(ns, "train")["status"]["recovery"].get("last") or {}), 60)
    equal("the record", (last["inPlace"], last["exitCode"], last["scope"]), (True, 3, "Job"))
    return pods


def mounts_of(pod):
    """{mount point: options} of the pod's own container."""
    with open(f"/proc/{processes(pod)[0]}/mountinfo", encoding="utf-8") as f:
        return {line.split()[4]: line.split()[5].split(",") for line in f}


def check_inject(w):
    """exec is copied by an init container, the agent's folder is mounted, and a gang restarts in its pods"""
    install(w)
    ns = w.namespace()
    pods = restart_in_place(w, ns)
    spec = pods[0]["spec"]
    init = spec["initContainers"][0]
    equal("the init container", (init["name"], init["image"]), ("holdfast-exec", IMAGE))
    equal("the command", spec["containers"][0]["command"][:4], ["/holdfast/bin/holdfast-exec", "--", "sh", "-c"])
    want({"path": "/run/holdfast", "type": "DirectoryOrCreate"} in [v.get("hostPath") for v in spec["volumes"]],
         f"volumes: {spec['volumes']}")
    mounts = mounts_of(pods[0])
    for place in (MOUNT, "/holdfast/bin"):
        want("ro" in mounts[place], f"{place} can be written: {mounts[place]}")
    first = processes(pods[0])[0]
    equal("the first process", os.path.basename(os.readlink(f"/proc/{first}/exe")), "holdfast-exec")
    with open(f"/proc/{first}/status", encoding="utf-8") as f:
        kib = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    want(kib < 2048, f"exec has {kib} KiB resident")
    w.api.delete("pytorchjobs", ns, "train")
    return f"exec has {kib} KiB resident"


def check_no_command(w):
    """A container without a command: the job is held, and the condition says what to write"""
    install(w)
    ns = w.namespace()
    submit(w, ns, "bare", "", command=[])
    job = w.until_condition(ns, "bare", "holdfast.dev/Held")
    message = next(c["message"] for c in job["status"]["conditions"] if c["type"] == "holdfast.dev/Held")
    want("containers[0].command" in message and "write the command here" in message, message)
    equal("its pods", w.pods(ns, "bare"), [])


def check_log_rules(w):
    """A rule of action Event tells the pod, a hang restarts in place, and a bad number fails the job"""
    install(w)
    ns = w.namespace()
    rules = [{"name": "speed", "pattern": r"speed=(\S+)", "must": "be above 10", "action": "Event"},
             {"name": "steps", "pattern": r"step \d+", "must": "recur within 3s"},
             {"name": "loss", "pattern": r"loss=(\S+)$", "must": "be finite", "action": "FailJob"}]
    submit(w, ns, "rules", """
echo "step 1 speed=2"
case $HOLDFAST_GENERATION in 2) sleep 1; echo "step 2 loss=nan" ;; esac
exec sleep 1000000
""", {"logRules": rules}, workers=1)
    job = w.until_condition(ns, "rules", "Failed", 120)
    recovery = job["status"]["recovery"]
    equal("the verdict", recovery["verdict"]["reason"], "LogRule")
    equal("the end", (recovery["last"]["exitCode"], recovery["restarts"]["application"]), (229, 1))
    hang = recovery["history"][0]
    equal("the restart before", (hang["exitCode"], hang["inPlace"]), (225, True))
    w.until("the pod has the event", lambda: [e for e in w.api.list("events", ns) if e["reason"] == "LogRule"
                                              and "'speed': 2 is not above 10" in e["message"]], 30)
    end = w.until("the pod is ended", lambda: w.pods(ns, "rules")[0]["status"]["containerStatuses"][0]["state"].get(
        "terminated"), 60)
    want(end["exitCode"] == 229 and "log rule 'loss': nan is not finite" in end["message"], f"it ended so: {end}")


def check_wrong_rule(w):
    """A rule that is wrong: the API server refuses its form, and the operator holds the job for its pattern"""
    install(w)
    ns = w.namespace()
    try:
        submit(w, ns, "form", "true", {"logRules": [{"name": "x", "must": "recur every 3s"}]})
        raise AssertionError("the API server takes it")
    except Exception as e:
        want("logRules[0].must" in str(e), str(e)[:300])
    submit(w, ns, "pattern", "true", {"logRules": [{"name": "x", "must": "recur within 3s", "pattern": "("}]})
    job = w.until_condition(ns, "pattern", "holdfast.dev/Held")
    message = next(c["message"] for c in job["status"]["conditions"] if c["type"] == "holdfast.dev/Held")
    want("logRules[0].pattern" in message and "missing closing parenthesis" in message, message)


RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
          "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


def check_csi(w):
    """A namespace that enforces the restricted standard refuses the hostPath; by CSI the gang restarts in place"""
    install(w)
    ns = w.namespace()
    w.api.patch("namespaces", None, ns, {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    submit(w, ns, "early", "exec sleep 1000000", securityContext=RIGHTS)
    w.until("the pod is refused", lambda: [e for e in w.api.list("events", ns) if
                                           "hostPath" in e["message"] and "violates PodSecurity" in e["message"]], 60)
    w.api.delete("pytorchjobs", ns, "early")
    install(w, csi=True)
    w.until("the kubelet knows the driver", lambda: DRIVER in [
        d["name"] for d in ((w.api.find("csinodes", None, "real-0") or {}).get("spec") or {}).get("drivers") or []], 60)
    pods = restart_in_place(w, ns, securityContext=RIGHTS)
    volume = next(v for v in pods[0]["spec"]["volumes"] if v["name"] == "holdfast-agent")
    equal("the volume", volume.get("csi"), {"driver": DRIVER, "readOnly": True})
    want("ro" in mounts_of(pods[0])[MOUNT], f"{MOUNT} can be written")
    uids = [p["metadata"]["uid"] for p in pods]
    w.api.delete("pytorchjobs", ns, "train")
    w.until("the kubelet has cleaned up", lambda: not [uid for uid in uids if os.path.exists(
        w.cluster.path("private", "kubelet", "pods", uid))], 90)
    # The agent's folder itself is still there.
    names = json.dumps(sorted(os.listdir(os.path.join("/proc", str(processes(agent_pod(w))[0]), "root", "run",
                                                      "holdfast"))))
    want("exec.sock" in names and "health.sock" in names, f"the agent's folder: {names}")


def agent_pod(w):
    return next(p for p in w.api.list("pods", AGENT) if not p["metadata"].get("deletionTimestamp"))
