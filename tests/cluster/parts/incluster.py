# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Operator and agent as pods of a real kubelet, as `holdfast manifests` says; jobs really train there."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess

from kit import audit, build, client, image, inside, machine
from kit.check import Fail, Skip, equal, want

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 6
IMAGE = "registry.example/holdfast:1"
OPERATOR, AGENT = "holdfast-system", "holdfast-agent"
NS = "incluster"
LOOKUP, BARE, DELIVERY = "localhost/lookup:1", "localhost/bare:1", "localhost/kubectl-delivery:1"
RESOURCE = "nvidia.com/gpu"
PYTHON = "/usr/bin/python3"
EXAMPLE = os.path.join(build.TOP, "examples/pytorch-ddp.yaml")
MPI_EXAMPLE = os.path.join(build.TOP, "examples/mpi-pi.yaml")
# What Debian's PyTorch needs of the machine, and Open MPI beside that.
SYSTEM = ("/usr", "/etc/alternatives")
MPI_SYSTEM = (*SYSTEM, "/etc/openmpi")


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    load_holdfast(w)
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    return "pods with names and Service addresses, our image"


def load_holdfast(w):
    """What a person would do, but for the registry."""
    path = w.cluster.path("holdfast.tar")
    run = subprocess.run([os.path.join(build.TOP, "dev"), "image", "--tag", IMAGE, "--output", path],
                         capture_output=True, text=True, cwd=build.TOP)
    if run.returncode != 0:
        raise build.Broken("./dev image: " + run.stderr.strip()[-300:])
    inside.load(w.cluster, path)
    w.archive = path


def load_image(w, write, name, *more):
    """Puts an image on the node; write: the function of kit/image.py that makes it."""
    path = w.cluster.path("image.tar")
    write(path, name, *more)
    inside.load(w.cluster, path)
    os.unlink(path)


def load_images(w):
    """What jobs and their init containers run in."""
    load_image(w, image.write_bare, BARE)
    load_image(w, image.write_lookup, LOOKUP)
    load_image(w, image.write_delivery, DELIVERY, build.find("kubectl"))


def kubectl(w, *arguments, text=None):
    return w.cluster.kubectl(*arguments, text=text)


def manifests(w, *which):
    return w.holdfast("manifests", *which, "--image", IMAGE)


def install(w):
    """As before, with the two flags that an administrator without a registry would add."""
    text = manifests(w)
    args = "args: [--leader-elect]"
    equal("places for flags", text.count(args), 1)
    kubectl(w, "apply", "-f", "-", text=text.replace(
        args, f"args: [--leader-elect, --pytorch-init-container-image={LOOKUP}, "
              f"--mpi-kubectl-delivery-image={DELIVERY}]"))
    rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    # Until its predecessor is gone, that one may still lead.
    w.until("one operator is left", lambda: len(w.api.list("pods", OPERATOR)) == 1, 60)


def rolled_out(w, ns, kind, name):
    try:
        kubectl(w, "-n", ns, "rollout", "status", kind, name, "--timeout=120s")
    except build.Broken as e:
        raise build.Broken(f"{e}; " + kubectl(w, "-n", ns, "get", "events", "-o", "custom-columns="
                                              "R:.reason,M:.message")[-900:]) from None


def pod(w, ns):
    """The one pod there that lives."""
    found = [p for p in w.api.list("pods", ns) if not p["metadata"].get("deletionTimestamp")]
    equal("pods in " + ns, len(found), 1)
    return found[0]


def processes(found):
    """Of a pod's first container, seen from the machine, the oldest first: that is the container's own."""
    wanted = found["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    pids = []
    for path in glob.glob("/proc/[0-9]*/cgroup"):
        try:
            with open(path, encoding="utf-8") as f:
                if wanted in f.read():
                    pids.append(int(path.split("/")[2]))
        except OSError:
            pass
    want(pids, f"no process of {found['metadata']['name']}")
    # The machine's numbers begin anew at their end, so the smallest one may be a child.
    return sorted(pids, key=lambda pid: (machine.started_at(pid) or 0, pid))


def about(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(l.rstrip("\n").split(":\t", 1) for l in f if ":\t" in l)


def refused(w, ns, account):
    """Requests of a ServiceAccount that were forbidden."""
    user = f"system:serviceaccount:{ns}:{account}"
    return sorted({f"{c['code']} {c['verb']} {c['resource']}" for c in audit.calls(
        w.cluster.path("audit.log"), user=user) if c["code"] in (401, 403)})


def fetch(w, address, port, path):
    """The machine has a way to pods."""
    run = subprocess.run(["curl", "-sS", "--fail", "--max-time", "10",
                          f"http://{address}:{port}{path}"], capture_output=True, text=True)
    want(run.returncode == 0, f"{path}: {run.stderr.strip()}")
    return run.stdout


def check_operator(w):
    """The manifests as they are: applied by kubectl, ready, with the rights they name and no more"""
    kubectl(w, "apply", "-f", "-", text=manifests(w))
    rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    # Again, as a pipeline would.
    said = kubectl(w, "apply", "-f", "-", text=manifests(w))
    changed = [l for l in said.splitlines() if not l.endswith(" unchanged")]
    equal("a second apply changes", changed, [])
    found = pod(w, OPERATOR)
    pid = processes(found)[0]
    told = about(pid)
    equal("user", told["Uid"].split()[0], "65532")
    equal("capabilities", int(told["CapEff"], 16), 0)
    equal("no new privileges, seccomp", (told["NoNewPrivs"], told["Seccomp"]), ("1", "2"))
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
        root = next(l.split() for l in f if l.split()[4] == "/")
    want("ro" in root[5].split(","), "its root can be written: " + root[5])
    lease = w.api.get("leases", OPERATOR, "1ca428e5.training-operator.kubeflow.org")
    want(lease["spec"]["holderIdentity"].startswith(found["metadata"]["name"]),
         "the lease is held by " + lease["spec"]["holderIdentity"])
    equal("refused", refused(w, OPERATOR, "holdfast-operator"), [])
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        kib = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
    return f"{kib / 1024:.0f} MiB resident"


def check_metrics(w):
    """Its Service is found by name from another pod, and answers"""
    install(w)
    url = f"http://holdfast-operator.{OPERATOR}.svc.cluster.local:8080/metrics"
    run_pod(w, "look", ["sh", "-c", f"wget -q -O - {url} | grep ^holdfast_build_info"])
    want('version="' in kubectl(w, "-n", NS, "logs", "look"), "no version is told")


def run_pod(w, name, command):
    w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", NS, "default"))
    if w.api.find("pods", NS, name):
        kubectl(w, "-n", NS, "delete", "pod", name)
    w.api.create("pods", NS, {"metadata": {"name": name}, "spec": {
        "restartPolicy": "OnFailure", "containers": [{
            "name": "c", "image": "localhost/busybox:1", "command": command}]}})
    w.until(f"{name} ends", lambda: w.api.get("pods", NS, name)["status"].get("phase") == "Succeeded",
            60)


def read_example(w, path, name):
    job = json.loads(kubectl(w, "create", "--dry-run=client", "-o", "json", "-f", path))
    job["metadata"] = {"name": name, "namespace": NS}
    return job


def on_this_machine(spec, system):
    """A pod in this machine's programs, read-only, instead of an image of gigabytes."""
    spec["terminationGracePeriodSeconds"] = 1
    spec["volumes"] = [{"name": f"system-{i}", "hostPath": {"path": path}}
                       for i, path in enumerate(system)]
    spec["containers"][0].update(image=BARE, volumeMounts=[
        {"name": f"system-{i}", "mountPath": path, "readOnly": True}
        for i, path in enumerate(system)])


def example(w, name, steps=150):
    """The example, with a folder for its checkpoints."""
    job = read_example(w, EXAMPLE, name)
    folder = w.cluster.path("data-" + name)
    os.makedirs(folder, mode=0o755)
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        on_this_machine(spec, SYSTEM)
        spec["volumes"].append({"name": "data", "hostPath": {"path": folder}})
        container = spec["containers"][0]
        container["volumeMounts"].append({"name": "data", "mountPath": "/data"})
        container["env"] = [{"name": "CHECKPOINTS", "value": "/data"},
                            {"name": "STEPS", "value": str(steps)}]
    return job


def can_train(w):
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        raise Skip("there is no PyTorch (Debian: python3-torch)")
    load_images(w)
    install(w)


def said(w, name, rank="master-0"):
    """By a rank, the first one mostly; nothing while it does not run."""
    try:
        return kubectl(w, "-n", NS, "logs", f"{name}-{rank}", "--tail=-1")
    except build.Broken:
        return ""


def succeeded(w, plural, name, rank):
    """Waits for the end of a job; what this rank has said."""
    def over():
        job = w.api.get(plural, NS, name)
        kinds = {c["type"]: c["status"] for c in job.get("status", {}).get("conditions", [])}
        want(kinds.get("Failed") != "True", f"{name} has failed: {json.dumps(job.get('status'))[:600]}")
        return kinds.get("Succeeded") == "True"
    try:
        w.until(f"{name} has Succeeded", over, 300)
    except TimeoutError as e:
        raise TimeoutError(f"{e}; {rank}: {said(w, name, rank)[-300:]}; " +
                           w.holdfast("why", f"{plural[:-1]}/{name}", ns=NS, code=None)[:1200]) from None
    return said(w, name, rank)


def ended(w, name):
    """Waits for its end; the last words of rank 0."""
    done = re.search(r"done: step (\d+), loss (\S+), digest (\w+)",
                     succeeded(w, "pytorchjobs", name, "master-0"))
    want(done, "rank 0 does not say that it is done")
    return done.group(3)


def check_train(w):
    """examples/pytorch-ddp.yaml trains in pods: names by CoreDNS, the headless service, the init container"""
    can_train(w)
    w.api.create("pytorchjobs", NS, example(w, "plain"))
    w.digest = ended(w, "plain")
    waits = w.api.get("pods", NS, "plain-worker-0")["spec"]["initContainers"][0]
    equal("its init container", waits["image"], LOOKUP)
    want("nslookup plain-master-0" in waits["command"][-1], f"it runs {waits['command']}")
    return "digest " + w.digest


def check_killed(w):
    """A worker killed on the way: restarted with its gang, resumed from the checkpoint, the same result"""
    can_train(w)
    w.api.create("pytorchjobs", NS, example(w, "killed"))
    w.until("it has made a checkpoint", lambda: "step 50/" in said(w, "killed"), 120)
    victim = w.api.get("pods", NS, "killed-worker-1")
    os.kill(processes(victim)[0], signal.SIGKILL)
    w.until("the worker is another one", lambda: (lambda p: p and p["metadata"]["uid"] !=
            victim["metadata"]["uid"])(w.api.find("pods", NS, "killed-worker-1")), 60)
    digest = ended(w, "killed")
    want("resumed at step" in said(w, "killed"), "it began from the beginning")
    if not hasattr(w, "digest"):
        check_train(w)
    equal("digest", digest, w.digest)
    job = w.api.get("pytorchjobs", NS, "killed")
    counts = job["status"]["recovery"]["restarts"]
    equal("restarts for the application", counts.get("application"), 1)
    return "digest " + digest


def check_moved(w):
    """The operator's pod is deleted while a job trains: the next one goes on, no rank is touched"""
    can_train(w)
    w.api.create("pytorchjobs", NS, example(w, "moved"))
    w.until("it trains", lambda: "step 25/" in said(w, "moved"), 120)
    uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in w.pods(NS, "moved")}
    old = pod(w, OPERATOR)["metadata"]
    kubectl(w, "-n", OPERATOR, "delete", "pod", old["name"])
    rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    ended(w, "moved")
    equal("pods", {p["metadata"]["name"]: p["metadata"]["uid"] for p in w.pods(NS, "moved")}, uids)
    equal("refused", refused(w, OPERATOR, "holdfast-operator"), [])
    # While it begins and ends it is not ready; but it is never taken for dead.
    dead = [e["message"] for e in w.api.list("events", OPERATOR) if "Liveness" in e["message"]]
    equal("liveness probes that failed", dead, [])


def can_compute(w):
    for what, argv in (("Open MPI (openmpi-bin)", ["mpirun", "--version"]),
                       ("mpi4py (python3-mpi4py)", [PYTHON, "-c", "import mpi4py"])):
        if not shutil.which(argv[0]) or subprocess.run(argv, capture_output=True).returncode != 0:
            raise Skip("there is no " + what)
    load_images(w)
    install(w)
    # The launcher's init container asks for some, which this kubelet does not look at (cluster.py).
    room = {"ephemeral-storage": "50Gi"}
    w.api.patch("nodes", None, "real-0", {"status": {"capacity": room, "allocatable": room}}, "status")


def may_exec(w, account, name):
    """Whether the API server lets an account of ours exec into that pod."""
    review = w.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{NS}:{account}", "resourceAttributes": {
                "namespace": NS, "verb": "create", "resource": "pods", "subresource": "exec",
                "name": name}}})
    return review["status"]["allowed"]


def check_mpi(w):
    """examples/mpi-pi.yaml: mpirun reaches its workers by kubexec, the API server and the launcher's own rights"""
    can_compute(w)
    job = read_example(w, MPI_EXAMPLE, "pi")
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        on_this_machine(replica["template"]["spec"], MPI_SYSTEM)
    w.api.create("mpijobs", NS, job)
    for index in range(2):
        w.until("the launcher has its rights", lambda i=index: may_exec(
            w, "pi-launcher", f"pi-worker-{i}"))
    equal("into itself, a stranger's, by another account",
          [may_exec(w, *who) for who in (("pi-launcher", "pi-launcher"), ("pi-launcher", "look"),
                                         ("default", "pi-worker-0"))], [False] * 3)
    text = succeeded(w, "mpijobs", "pi", "launcher")
    for rank in range(2):
        want(f"rank {rank} of 2 on pi-worker-{rank}: pi is 3.14159" in text,
             f"rank {rank} did not compute: {text[-500:]}")
    user = f"system:serviceaccount:{NS}:pi-launcher"
    into = {c["name"] for c in audit.calls(w.cluster.path("audit.log"), user=user)
            if c["resource"] == "pods/exec" and c["code"] < 400}
    equal("it went into", sorted(into), ["pi-worker-0", "pi-worker-1"])
    equal("refused", refused(w, OPERATOR, "holdfast-operator"), [])


def agent(w, name=IMAGE):
    kubectl(w, "apply", "-f", "-", text=manifests(w, "--crds"))
    kubectl(w, "apply", "-f", "-", text=w.holdfast("manifests", "--agent", "--image", name))
    rolled_out(w, AGENT, "daemonset", "holdfast-agent")


def health(w):
    return (w.api.find("devicehealths", None, "real-0") or {}).get("status") or {}


def start_plugin(w):
    if subprocess.run([PYTHON, "-c", "import grpc"], capture_output=True).returncode != 0:
        raise Skip("the device plugin needs grpcio (Debian: python3-grpcio)")
    if "plugin" not in w.cluster.state["programs"]:
        w.cluster.start("plugin", [
            PYTHON, "-P", os.path.join(build.HERE, "kit/deviceplugin.py"),
            w.cluster.path("private", "kubelet", "device-plugins"), w.cluster.path("unhealthy"),
            RESOURCE])
    w.until("the kubelet offers devices", lambda: w.api.get("nodes", None, "real-0")["status"][
        "allocatable"].get(RESOURCE) == "4", 60)


def detectors(w):
    return {d["name"]: d["state"] for d in health(w).get("detectors") or []}


def check_agent(w):
    """The agent as it is printed: it reads the kernel's log and asks the kubelet, with its rights"""
    start_plugin(w)
    agent(w)
    seen = w.until("it sees the kernel's log and the kubelet", lambda: (lambda d: d if all(
        d.get(n) == "On" for n in ("xid", "aer", "plugin", "count")) else None)(detectors(w)), 90)
    equal("a driver's library", seen["ecc"], "Off")
    kinds = {c["type"]: c["status"] for c in w.api.get("nodes", None, "real-0")["status"]["conditions"]}
    want("AcceleratorUnhealthy" in kinds, f"conditions of the node: {sorted(kinds)}")
    text = fetch(w, pod(w, AGENT)["status"]["podIP"], 7445, "/metrics")
    want("holdfast_agent_detector_up" in text, "no metrics")
    equal("refused", refused(w, AGENT, "holdfast-agent"), [])


def with_driver(w):
    """Our image with what NVIDIA's container runtime puts into it: a library, here a double."""
    made = w.cluster.path("libnvidia-ml.so.1")
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-std=gnu17", "-shared", "-fPIC", "-I",
                    os.path.join(build.TOP, "src"), "-o", made,
                    os.path.join(build.TOP, "tests/doubles/nvml.c")], check=True)
    layer = image.image.Layer()
    layer.copy(f"usr/lib/{os.uname().machine}-linux-gnu/libnvidia-ml.so.1", made, 0o755)
    name = "registry.example/holdfast-beside-a-driver:1"
    path = w.cluster.path("driver.tar")
    image.derive(w.archive, path, name, layer, ["HF_NVML_DOUBLE=/state/nvml"])
    inside.load(w.cluster, path)
    w.driver("devices 4\n")
    return name


def check_devices(w):
    """With a driver and a device plugin: who holds which device; one that is lost, and the node says so"""
    def driver(text):
        place = w.cluster.path("private", "holdfast-agent", "nvml")
        with open(place + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(place + ".new", place)
    w.driver = driver
    start_plugin(w)
    agent(w, with_driver(w))
    w.api.create("pods", NS, {"metadata": {"name": "holder"}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{
            "name": "trainer", "image": "localhost/busybox:1", "command": ["sleep", "3600"],
            "resources": {"limits": {RESOURCE: 2}}}]}})

    def held():
        """{device: its state} of those that our pod holds."""
        return {d.get("resourceID") or d["id"]: d["state"] for d in health(w).get("devices") or []
                if [h["pod"] for h in d.get("holders") or []] == ["holder"]}

    def degraded():
        return next((c["status"] for c in w.api.get("nodes", None, "real-0")["status"]["conditions"]
                     if c["type"] == "AcceleratorDegraded"), None)
    try:
        w.until("the driver is seen", lambda: detectors(w).get("ecc") == "On", 90)
        mine = w.until("it names the holder of two devices", lambda: (
            lambda h: sorted(h) if len(h) == 2 else None)(held()), 90)
        equal("states", set(held().values()), {"Healthy"})
        driver(f"devices 4\nlost {mine[0][-1]}\n")
        w.until("it is not Healthy", lambda: held()[mine[0]] != "Healthy", 60)
        w.until("the node says so", lambda: degraded() == "True", 60)
        equal("the other", held()[mine[1]], "Healthy")
        equal("refused", refused(w, AGENT, "holdfast-agent"), [])
    except TimeoutError as e:
        raise TimeoutError(f"{e}; {json.dumps(health(w).get('devices'))[:1500]}") from None
    finally:
        kubectl(w, "-n", NS, "delete", "pod", "holder")
    return f"{mine[0]} was lost"


def check_agent_of_another_node(w):
    """An agent's token writes to its own node and to no other: the policy knows where its pod is"""
    agent(w)
    found = pod(w, AGENT)
    token = w.api.token_of(AGENT, "holdfast-agent", bound={
        "kind": "Pod", "apiVersion": "v1", "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"]})
    mine = w.cluster.client(token)
    if not w.api.find("nodes", None, "other"):
        w.api.create("nodes", None, {"metadata": {"name": "other"}})
    change = {"status": {"conditions": [{"type": "AcceleratorUnhealthy", "status": "False"}]}}
    try:
        mine.patch("nodes", None, "other", change, "status")
        raise Fail("the status of another node was written")
    except client.Refused as e:
        want("its own node alone" in e.message, f"refused for {e.message}")
    finally:
        w.api.delete("nodes", None, "other")
