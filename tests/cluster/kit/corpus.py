# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Jobs of every kind and what happens to them: run by two operators, they must come out equal.

An entry is a manifest and acts.  The acts of all entries go on in step: each entry's first act,
then a look at everything, each one's second, and so on.
"""

KINDS = {  # plural, replica map, container
    "PyTorchJob": ("pytorchjobs", "pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfjobs", "tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgboostjobs", "xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddlejobs", "paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxjobs", "jaxReplicaSpecs", "jax"),
    "MPIJob": ("mpijobs", "mpiReplicaSpecs", "mpi"),
}
KILLED, BROKEN = 137, 1  # retryable and not, under ExitCode


class Entry:
    def __init__(self, job, acts):
        self.job, self.acts = job, acts
        self.name, self.kind = job["metadata"]["name"], job["kind"]
        self.plural = KINDS[self.kind][0]


# ---- acts
def end(*ranks, code=0):
    """These ranks' pods end; "worker" stands for all of them."""
    return ("end", ranks, code)


def patch(spec):
    return ("patch", {"spec": spec})


def suspend(true=True):
    return patch({"runPolicy": {"suspend": true}})


def scale(count):
    """The Workers, by the scale subresource."""
    return ("scale", count)


def restarts(rank, count):
    """The kubelet has started the containers of that rank so often again."""
    return ("restarts", rank, count)


def admit():
    """Volcano has room for the group."""
    return ("admit",)


# ---- manifests
def role(kind, count, policy=None, container=None, pod=None, meta=None, more=()):
    """A replica spec; count None: left out."""
    main = {"name": KINDS[kind][2], "image": "localhost/busybox:1", "command": ["train"],
            **(container or {})}
    made = {"template": {"spec": {"containers": [main, *more], **(pod or {})}}}
    if count is not None:
        made["replicas"] = count
    if policy:
        made["restartPolicy"] = policy
    if meta:
        made["template"]["metadata"] = meta
    return made


class Corpus:
    def __init__(self):
        self.entries = []

    def add(self, kind, name, *acts, roles=None, run=None, spec=None, annotations=None, **more):
        """roles: {type: count}, or a whole replica spec; more: of every role."""
        replicas = {t: r if isinstance(r, dict) else role(kind, r, **more)
                    for t, r in (roles or {}).items()}
        job = {"apiVersion": "kubeflow.org/v1", "kind": kind,
               "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
               "spec": {KINDS[kind][1]: replicas, **(spec or {})}}
        if run is not None:
            job["spec"]["runPolicy"] = run
        self.entries.append(Entry(job, list(acts)))


RICH = {  # a template with something of everything
    "container": {
        "args": ["--epochs", "2"], "env": [{"name": "MASTER_PORT", "value": "1"},
                                           {"name": "A", "value": "$(MASTER_PORT)"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
    "pod": {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
             "initContainers": [{"name": "fetch", "image": "localhost/busybox:1"}],
             "nodeSelector": {"type": "kwok"}, "restartPolicy": "Always",
             "terminationGracePeriodSeconds": 5, "enableServiceLinks": False,
             "tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "meta": {"labels": {"team": "vision", "training.kubeflow.org/job-name": "mine"},
             "annotations": {"sidecar.istio.io/inject": "false"}},
    "more": [{"name": "logs", "image": "localhost/busybox:1"}],
}


def common(c, kind, roles, first, last):
    """What every kind is tried with.  first: the ranks that decide; last: one that fails."""
    short = kind[:-3].lower()

    def add(name, *acts, **more):
        c.add(kind, f"{short}-{name}", *acts, roles=more.pop("roles", roles), **more)
    add("succeeds", end(first, "worker"))
    add("rich", **RICH)
    add("killed", end(last, code=KILLED), policy="ExitCode")
    add("broken", end(last, code=BROKEN), policy="ExitCode")
    add("never", end(last, code=BROKEN), policy="Never")
    add("born-suspended", suspend(False), run={"suspend": True})
    add("suspended", suspend(), suspend(False), policy="Never")
    add("keeps-all", end(first), run={"cleanPodPolicy": "None"})
    add("cleans-running", end(first), run={"cleanPodPolicy": "Running"})
    add("cleans-all", end(first), run={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 9000})
    add("scheduled", run={"schedulingPolicy": {"minAvailable": 1, "queue": "q"}})
    add("failed-all", end(last, code=BROKEN), policy="Never", run={"cleanPodPolicy": "All"})
    add("failed-late", end(last, code=BROKEN), end("worker-0", "master-0", "chief-0", "launcher"),
        policy="Never")
    add("late-ends", end(first), end("worker", code=BROKEN))
    add("deadline", patch({"runPolicy": {"activeDeadlineSeconds": 1}}), policy="Never",
        run={"cleanPodPolicy": "All"})
    add("backoff", restarts(last, 1), policy="OnFailure", run={"backoffLimit": 1})
    add("udp", container={"ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]})
    add("side-first", pod={"containers": [
        {"name": "side", "image": "localhost/busybox:1", "env": [
            {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"name": KINDS[kind][2], "image": "localhost/busybox:1", "command": ["train"]}]})
    if kind != "MPIJob":  # whose service has no port
        add("own-port", container={"ports": [{"name": port_name(kind), "containerPort": 4242},
                                             {"name": "b", "containerPort": 4243}]})
        add("no-port-name", container={"ports": [{"containerPort": 8080}]})


def port_name(kind):
    return "master" if kind == "PaddleJob" else kind.lower() + "-port"


def pytorch(c):
    both = {"Master": 1, "Worker": 2}
    common(c, "PyTorchJob", both, "master-0", "worker-1")

    def add(name, *acts, **more):
        c.add("PyTorchJob", f"pytorch-{name}", *acts, **more)
    add("alone", end("master-0"), roles={"Master": 1})
    add("backoff-zero", roles=both, policy="OnFailure", run={"backoffLimit": 0})
    add("workers", end("worker"), roles={"Worker": 3})
    add("no-count", roles={"Master": 1, "Worker": None})
    add("on-failure", end("worker-0", code=BROKEN), roles=both, policy="OnFailure")
    add("always", end("worker-0", code=BROKEN), roles=both, policy="Always")
    add("master-fails", end("master-0", code=BROKEN), roles=both, policy="Never")
    add("host-network", roles={"Master": 1}, pod={"hostNetwork": True})
    add("no-room", roles={"Master": 1}, pod={"nodeSelector": {"type": "none"}})
    add("nproc", roles=both, spec={"nprocPerNode": "4"})
    add("nproc-gpu", roles=both, spec={"nprocPerNode": "gpu"})
    add("up", scale(3), roles={"Master": 1, "Worker": 1})
    add("down", scale(1), roles={"Master": 1, "Worker": 3})
    add("elastic", end("worker-0"), roles={"Worker": 2}, spec={"elasticPolicy": {
        "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "etcd", "rdzvHost": "etcd",
        "rdzvPort": 2379, "rdzvId": "run", "rdzvConf": [{"key": "a", "value": "1"},
                                                        {"key": "b", "value": "2"}],
        "maxRestarts": 7, "standalone": True}})
    add("elastic-bare", scale(3), roles={"Worker": 2}, spec={"elasticPolicy": {}})
    add("elastic-max", roles={"Worker": 2}, spec={"elasticPolicy": {"maxReplicas": 4}})
    scaled = {"minReplicas": 1, "maxReplicas": 3, "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": 80}}},
        {"type": "Pods", "pods": {"metric": {"name": "loss", "selector": {"matchLabels": {"a/b": "c"}}},
                                  "target": {"type": "AverageValue", "averageValue": "1000m"}}}]}
    add("scaled", patch({"elasticPolicy": {"maxReplicas": 5}}), end("worker"), roles={"Worker": 2},
        spec={"elasticPolicy": scaled})
    add("scaled-by-default", suspend(), suspend(False), roles={"Worker": 2},
        spec={"elasticPolicy": {"maxReplicas": 2, "metrics": []}})
    add("scaled-born-suspended", roles={"Worker": 2}, spec={"elasticPolicy": scaled},
        run={"suspend": True})
    add("scaled-no-more", patch({"elasticPolicy": {"metrics": None}}), roles={"Worker": 2},
        spec={"elasticPolicy": scaled})
    add("rdzv", suspend(), suspend(False), roles={"Worker": 2}, spec={"elasticPolicy": {
        "minReplicas": 1, "maxReplicas": 3, "rdzvId": "run"}})
    add("elastic-master", roles=both, spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3}})
    add("one-type-more", patch({"pytorchReplicaSpecs": {"Worker": role("PyTorchJob", 2)}}),
        roles={"Master": 1})
    add("port-twice", roles=both, container={"ports": [{"name": "x", "containerPort": 23456}]})
    add("one-type-less", patch({"pytorchReplicaSpecs": {"Worker": None}}), roles=both)
    add("elastic-old-nproc", roles={"Worker": 2}, spec={"elasticPolicy": {"nProcPerNode": 2}})


def tensorflow(c):
    common(c, "TFJob", {"Chief": 1, "Worker": 2}, "chief-0", "worker-1")

    def add(name, *acts, **more):
        c.add("TFJob", f"tf-{name}", *acts, **more)
    add("local", end("worker-0"), roles={"Worker": 1})
    add("all-types", roles={"Chief": 1, "Evaluator": 1, "PS": 2, "Worker": 2})
    add("master", end("master-0"), roles={"Master": 1, "Worker": 1, "PS": 1})
    add("first-worker", end("worker-0"), roles={"Worker": 2, "PS": 1})
    add("all-workers", end("worker-0"), end("worker-1"), roles={"Worker": 2, "PS": 1},
        spec={"successPolicy": "AllWorkers"})
    add("dynamic", roles={"Worker": 2, "PS": 1}, spec={"enableDynamicWorker": True})
    add("dynamic-fails", end("worker-1", code=BROKEN), roles={"Worker": 2, "PS": 1},
        spec={"enableDynamicWorker": True})
    add("lower-case", end("worker-0"), roles={"worker": 2, "ps": 1})
    add("evaluator", end("evaluator-0"), roles={"Evaluator": 1})
    add("only-ps", roles={"PS": 2})
    add("masters", end("master-0"), end("master-1"), roles={"Master": 2, "Worker": 1})
    add("dynamic-chief", roles={"Chief": 1, "Worker": 2, "PS": 2}, spec={"enableDynamicWorker": True})
    add("none", roles={"Worker": 0})
    add("no-ps", roles={"Worker": 1, "PS": 0})
    add("no-chief", roles={"Chief": 0, "Worker": 2})
    add("long-" + "n" * 48, roles={"Chief": 1, "Worker": 2})
    add("ps-fails", end("ps-0", code=BROKEN), roles={"Worker": 2, "PS": 1}, policy="Never")


def xgboost(c):
    common(c, "XGBoostJob", {"Master": 1, "Worker": 2}, "master-0", "worker-1")
    c.add("XGBoostJob", "xgboost-alone", end("master-0"), roles={"Master": 1})
    c.add("XGBoostJob", "xgboost-no-workers", roles={"Master": 1, "Worker": 0})
    c.add("XGBoostJob", "xgboost-master-fails", end("master-0", code=BROKEN),
          roles={"Master": 1, "Worker": 1}, policy="Never")


def paddle(c):
    common(c, "PaddleJob", {"Worker": 2}, "worker", "worker-1")

    def add(name, *acts, **more):
        c.add("PaddleJob", f"paddle-{name}", *acts, **more)
    add("servers", end("master-0"), roles={"Master": 1, "Worker": 2})
    add("masters", roles={"Master": 2, "Worker": 2})
    add("up", scale(3), roles={"Worker": 1})
    add("none", roles={"Worker": 0})
    add("elastic", roles={"Worker": 2}, spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4,
                                                               "maxRestarts": 3}})


def jax(c):
    common(c, "JAXJob", {"Worker": 2}, "worker", "worker-1")
    c.add("JAXJob", "jax-alone", end("worker-0"), roles={"Worker": 1})
    c.add("JAXJob", "jax-down", scale(1), roles={"Worker": 3})
    c.add("JAXJob", "jax-none", roles={"Worker": 0})
    c.add("JAXJob", "jax-to-none", scale(0), roles={"Worker": 2})
    c.add("JAXJob", "jax-suspended-late", end("worker-0"), suspend(), suspend(False), policy="Never",
          roles={"Worker": 2})
    c.add("JAXJob", "jax-on-failure", end("worker-0", code=BROKEN), roles={"Worker": 2},
          policy="OnFailure")


def mpi(c):
    both = {"Launcher": 1, "Worker": 2}
    common(c, "MPIJob", both, "launcher", "worker-1")

    def add(name, *acts, **more):
        c.add("MPIJob", f"mpi-{name}", *acts, **more)
    add("alone", end("launcher"), roles={"Launcher": 1})
    add("slots", roles=both, spec={"slotsPerWorker": 4, "mainContainer": "mpi"})
    add("own-clean-policy", end("launcher"), roles=both, spec={"cleanPodPolicy": "All"})
    add("launcher-fails", end("launcher", code=BROKEN), roles=both, policy="Never")
    add("no-command", roles={"Launcher": 1, "Worker": role("MPIJob", 1, container={"command": None})})
    add("gpu-launcher", roles={"Worker": 1, "Launcher": role("MPIJob", 1, container={
        "resources": {"limits": {"nvidia.com/gpu": "1"}}})})
    add("intel", roles={"Worker": 1, "Launcher": role("MPIJob", 1, container={
        "env": [{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}]})})
    add("account", roles={"Worker": 1, "Launcher": role("MPIJob", 1, pod={
        "serviceAccountName": "mine"})})
    add("fewer", patch({"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}),
        roles={"Launcher": 1, "Worker": 3})
    add("more", patch({"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}),
        roles={"Launcher": 1, "Worker": 1})
    add("args", roles={"Launcher": 1, "Worker": role("MPIJob", 1, container={
        "command": None, "args": ["foo", "bar"]})})
    add("two-clean-policies", end("launcher"), roles={"Launcher": 1, "Worker": 1},
        spec={"cleanPodPolicy": "None"}, run={"cleanPodPolicy": "All"})
    add("launcher-on-failure", end("launcher", code=BROKEN), roles={"Launcher": 1, "Worker": 1},
        policy="OnFailure")
    add("account-late", patch({"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {
        "serviceAccountName": "other"}}}}}), roles={"Launcher": 1, "Worker": 1})
    add("finalizers", roles=both, meta={"finalizers": ["example.com/x"], "labels": {"a": "b"}})
    add("slots-late", patch({"slotsPerWorker": 8}), roles={"Launcher": 1, "Worker": 1})
    add("gpu-beside", roles={"Worker": 1, "Launcher": role("MPIJob", 1, more=[
        {"name": "s", "image": "localhost/busybox:1", "resources": {"limits": {"amd.com/gpu": "1"}}}])})


def gang(scheduler):
    """With a gang scheduler: volcano lets groups in by an act, another by none."""
    c = Corpus()
    volcano = scheduler == "volcano"
    let_in = [admit()] if volcano else []
    asks = {"container": {"resources": {"requests": {"cpu": "250m", "nvidia.com/gpu": 1},
                                        "limits": {"nvidia.com/gpu": 1}}}}
    for kind, roles, first in (("PyTorchJob", {"Master": 1, "Worker": 2}, "master-0"),
                               ("TFJob", {"PS": 1, "Worker": 2}, "worker"),
                               ("XGBoostJob", {"Master": 1, "Worker": 2}, "master-0"),
                               ("PaddleJob", {"Worker": 2}, "worker"),
                               ("JAXJob", {"Worker": 2}, "worker"),
                               ("MPIJob", {"Launcher": 1, "Worker": 2}, "launcher")):
        short = kind[:-3].lower()

        def add(name, *acts, kind=kind, roles=roles, short=short, **more):
            c.add(kind, f"{scheduler}-{short}-{name}", *let_in, *acts, roles=more.pop("with_roles", roles),
                  **more)
        add("plain", end(first), **asks)
        add("policy", end(first), run={"cleanPodPolicy": "All", "schedulingPolicy": {
            "minAvailable": 2, "queue": "research", "priorityClass": "high",
            "scheduleTimeoutSeconds": 90}}, **asks)
        add("limits", run={"schedulingPolicy": {"minResources": {"cpu": "1500m", "memory": "2048Mi"}}},
            container={"resources": {"limits": {"memory": "512Mi"}}})
        add("suspended", suspend(), suspend(False), *let_in, policy="Never", **asks)

    def pytorch_job(name, *acts, **more):
        c.add("PyTorchJob", f"{scheduler}-{name}", *let_in, *acts, **more)
    pytorch_job("up", scale(3), roles={"Master": 1, "Worker": 1}, **asks)
    c.add("PyTorchJob", f"{scheduler}-born-suspended", suspend(False), *let_in, roles={"Worker": 2},
          run={"suspend": True})
    pytorch_job("own-scheduler", roles={"Worker": 1}, pod={"schedulerName": "mine"})
    pytorch_job("named-scheduler", roles={"Worker": 1}, pod={"schedulerName": scheduler})
    pytorch_job("annotated", roles={"Worker": 1}, annotations={
        "volcano.sh/preemptable": "true", "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "holdfast.dev/restart": "never"})
    pytorch_job("killed", end("worker-1", code=KILLED), roles={"Worker": 2}, policy="ExitCode")
    pytorch_job("scaled", suspend(), roles={"Worker": 2}, spec={"elasticPolicy": {
        "maxReplicas": 2, "metrics": []}})
    return c.entries


def entries(kinds=None):
    c = Corpus()
    for add in (pytorch, tensorflow, xgboost, paddle, jax, mpi):
        add(c)
    c.add("PyTorchJob", "multikueue", roles={"Master": 1},
          run={"managedBy": "kueue.x-k8s.io/multikueue"})
    c.add("TFJob", "managed", roles={"Worker": 2}, run={"managedBy": "kubeflow.org/training-operator"})
    names = [e.name for e in c.entries]
    assert len(names) == len(set(names)), names
    return [e for e in c.entries if not kinds or e.kind in kinds]
