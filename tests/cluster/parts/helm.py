# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The real helm and kubectl -k install, change and remove Holdfast on a real API server while jobs run."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time

from kit import build, image, render
from kit.check import Fail, Skip, condition, equal, want
from parts import incluster

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside", "helm"]
MINUTES = 8

RELEASE, OPERATOR, AGENT, MEND = "holdfast", incluster.OPERATOR, incluster.AGENT, "holdfast-mend"
REPOSITORY, TAG = incluster.IMAGE.rsplit(":", 1)
NS = "jobs"
SECRET_MAX = 1 << 20
# Objects that come and go by themselves or with CRDs, or that the jobs of this part have.
PASSING = {"apiservices.apiregistration.k8s.io", "events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io",
           "pods", "services", "pytorchjobs.kubeflow.org", "componentstatuses",
           "controllerrevisions.apps", "replicasets.apps"}
COLUMN = """        - name: Cause
          jsonPath: ".status.recovery.last.cause"
          type: string
          description: Cause of the last restart.
"""


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    incluster.load_holdfast(w)
    incluster.load_image(w, image.write_lookup, incluster.LOOKUP)
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", NS, "default"))
    w.empty = inventory(w)
    # An older version of the chart: one printer column less.
    w.older = w.cluster.path("older")
    shutil.copytree(render.CHART, w.older)
    edit(os.path.join(w.older, "templates/crds/pytorchjobs.yaml"), COLUMN, "")
    edit(os.path.join(w.older, "Chart.yaml"), "\nversion: ", "\nversion: 0.0.1-")
    return "helm " + build.version("helm")


def edit(path, old, new):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    equal(f"places in {path}", text.count(old), 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))


def helm(w, *arguments):
    home = {f"HELM_{n}_HOME": w.cluster.path("helm") for n in ("CACHE", "CONFIG", "DATA")}
    return render.run(build.find("helm"), *arguments, env={
        **os.environ, **home, "KUBECONFIG": w.cluster.path("kubeconfig.admin")})


def change(w, verb, chart, *values, more=()):
    """helm install or helm upgrade, as the README of the chart says."""
    flags = ["--set-string", f"image.tag={TAG}"]
    for value in (f"image.repository={REPOSITORY}", f"operator.pytorchInitContainerImage={incluster.LOOKUP}",
                  *values):
        flags += ["--set", value]
    return helm(w, verb, RELEASE, chart, "--namespace", OPERATOR, "--create-namespace", *flags,
                *more, "--wait", "--timeout", "180s")


def inventory(w):
    """{(kind, namespace, name)} of all that lasts."""
    names = w.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    lines = w.cluster.kubectl("get", "-A", ",".join(sorted(set(names) - PASSING)), "-o", "go-template={{range .items}}"
                              '{{.kind}} {{or .metadata.namespace "-"}} {{.metadata.name}}{{"\\n"}}{{end}}')
    return {tuple(l.split()) for l in lines.splitlines() if l.strip()}


def left(w):
    return {o for o in inventory(w) - w.empty if o[0] != "DeviceHealth"}


def until_left(w, wanted):
    """Waits until these kinds are all that an installation has left."""
    try:
        w.until("the rest is gone", lambda: {o[0] for o in left(w)} == set(wanted), 60)
    except TimeoutError:
        raise Fail(f"left: {sorted(o for o in left(w) if o[0] not in wanted)}") from None


def worker_job(name, command):
    """Without a master there is no init container, whose image is not here."""
    container = {"name": "pytorch", "image": "localhost/busybox:1", "command": ["sh", "-c", command]}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": name, "namespace": NS},
            "spec": {"pytorchReplicaSpecs": {"Worker": {
                "replicas": 2, "restartPolicy": "OnFailure", "template": {"spec": {
                    "terminationGracePeriodSeconds": 1, "containers": [container]}}}}}}


def uids(w, name):
    return {p["metadata"]["name"]: (p["metadata"]["uid"], sum(
        c["restartCount"] for c in p["status"]["containerStatuses"])) for p in w.pods(NS, name)}


def until_job(w, name, kind, timeout_s=120):
    w.until(f"{name} is {kind}",
            lambda: condition(w.api.get("pytorchjobs", NS, name), kind) == "True", timeout_s)


def trains(w, name):
    """A new job runs to its end."""
    w.api.create("pytorchjobs", NS, worker_job(name, "true"))
    until_job(w, name, "Succeeded")


def columns(w):
    crd = json.loads(w.cluster.kubectl("get", "crd", "pytorchjobs.kubeflow.org", "-o", "json"))
    return [c["name"] for c in crd["spec"]["versions"][0]["additionalPrinterColumns"]]


def may_work_on_nodes(w, ns=OPERATOR):
    """[may approve acts, may change nodes for rollouts], of the operator's account."""
    account = f"system:serviceaccount:{ns}:holdfast-operator"
    return [w.cluster.kubectl("auth", "can-i", verb, resource, "--as", account, check=False).strip() for verb, resource in (
        ("approve", "remediations.holdfast.dev"), ("patch", "devicerollouts.holdfast.dev"))]


def notes(text):
    """The commands of the notes: the indented blocks below the numbered lines."""
    blocks = re.findall(r"^\d\. .*\n\n((?:    .*\n)+)", text, re.M)
    return [re.sub(r"^    ", "", b, flags=re.M) for b in blocks]


def check_install(w):
    """helm install brings a ready operator; the three commands of its notes run a job to its end"""
    start = time.monotonic()
    said = change(w, "install", w.older)
    took = time.monotonic() - start
    scripts = notes(said)
    equal("commands in the notes", len(scripts), 3)
    path = os.path.dirname(build.find("kubectl")) + ":" + os.environ["PATH"]
    env = {**os.environ, "PATH": path, "KUBECONFIG": w.cluster.path("kubeconfig.admin")}
    shown = ""
    for script in scripts:
        # No registry is in reach.
        script = script.replace("docker.io/library/busybox", "localhost/busybox:1")
        run = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, env=env, timeout=120)
        want(run.returncode == 0, f"{script[:80]}: {run.stderr.strip()[-300:]}")
        shown = run.stdout
    want("hello" in shown, "the third command shows: " + shown)
    w.until("hello has ended", lambda: condition(
        w.api.get("pytorchjobs", "default", "hello"), "Succeeded") == "True", 120)
    logs = w.cluster.kubectl("logs", "hello-worker-0")
    want("rank 1 of 2" in logs, "the worker prints " + logs)
    w.api.delete("pytorchjobs", "default", "hello")
    (secret,) = w.api.list("secrets", OPERATOR, "owner=helm")
    size = sum(len(base64.b64decode(v)) for v in secret["data"].values())
    want(size < SECRET_MAX // 2, f"the Secret of the release has {size} bytes")
    equal("refused", incluster.refused(w, OPERATOR, "holdfast-operator"), [])
    return f"ready after {took:.1f} s, Secret of {size / 1024:.0f} KiB"


def is_refused_among_actors(w):
    """An administrator's own pod, by the admission policy."""
    try:
        w.cluster.kubectl("-n", MEND, "run", "other", "--image=localhost/busybox:1", "--dry-run=server")
    except build.Broken as e:
        return "denied request: an actor" in str(e)
    return False


def check_upgrade(w):
    """helm upgrade brings newer CRDs, the agent, mending, rollouts and a config file, while a job runs on"""
    equal("columns", columns(w), ["State", "Age", "Restarts", "Generation"])
    equal("rights on nodes", may_work_on_nodes(w), ["no", "no"])
    w.api.create("pytorchjobs", NS, worker_job("lives", "sleep 3600"))
    until_job(w, "lives", "Running")
    before = uids(w, "lives")
    operator = incluster.pod(w, OPERATOR)
    change(w, "upgrade", render.CHART, "agent.enabled=true", "mender.enabled=true", "rollouts.enabled=true",
           "operator.config.recovery.restartScope=Job")
    equal("rights on nodes", may_work_on_nodes(w), ["yes", "yes"])
    w.until("a policy refuses other pods among actors", lambda: is_refused_among_actors(w), 60)
    equal("columns", columns(w), ["State", "Age", "Restarts", "Cause", "Generation"])
    want(incluster.pod(w, AGENT)["status"]["phase"] == "Running", "the agent does not run")
    w.until("the agent reports", lambda: w.cluster.kubectl("get", "devicehealths", "-o", "name"), 60)

    def started_again():
        said = w.cluster.kubectl("-n", OPERATOR, "logs", operator["metadata"]["name"], "--tail=-1")
        return said.count('"msg":"Starting"') == 2 and "Config file changed" in said
    start = time.monotonic()
    w.until("the operator uses its config file", started_again, 180)
    took = time.monotonic() - start
    now = incluster.pod(w, OPERATOR)
    equal("pod of the operator", now["metadata"]["uid"], operator["metadata"]["uid"])
    equal("restarts of its container", now["status"]["containerStatuses"][0]["restartCount"], 0)
    # The scope of the file: the end of one rank restarts all ranks as one generation.
    w.api.create("pytorchjobs", NS, worker_job("scope", "sleep 3600"))
    until_job(w, "scope", "Running")
    first = uids(w, "scope")
    os.kill(incluster.processes(w.pods(NS, "scope")[1])[0], signal.SIGKILL)
    w.until("both ranks are new", lambda: len(w.pods(NS, "scope")) == 2 and not (
        {p["metadata"]["uid"] for p in w.pods(NS, "scope")} & {u for u, _ in first.values()}), 90)
    w.api.delete("pytorchjobs", NS, "scope")
    equal("pods of the job", uids(w, "lives"), before)
    return f"config file in use {took:.0f} s after the upgrade"


def check_rollback(w):
    """helm rollback takes the agent, the rights, the file and the newer CRDs back, while the job runs on"""
    before = uids(w, "lives")
    helm(w, "rollback", RELEASE, "1", "--namespace", OPERATOR, "--wait", "--timeout", "180s")
    equal("columns", columns(w), ["State", "Age", "Restarts", "Generation"])
    for ns in (AGENT, MEND):
        w.until(f"namespace {ns} is gone", lambda ns=ns: w.api.find("namespaces", None, ns) is None, 120)
    equal("rights on nodes", may_work_on_nodes(w), ["no", "no"])
    want(not w.api.find("configmaps", OPERATOR, "holdfast-operator"), "the config file is still there")
    equal("pods of the job", uids(w, "lives"), before)
    trains(w, "rolled-back")


def check_uninstall(w):
    """helm uninstall leaves the kept CRDs and running jobs; without crds.keep nothing is left"""
    before = uids(w, "lives")
    helm(w, "uninstall", RELEASE, "--namespace", OPERATOR, "--wait")
    w.until("no pod of the operator is left", lambda: not w.api.list("pods", OPERATOR), 60)
    w.cluster.kubectl("delete", "namespace", OPERATOR, "--timeout=60s")
    until_left(w, ["CustomResourceDefinition"])
    equal("CRDs", len(left(w)), 10)
    equal("pods of the job", uids(w, "lives"), before)
    # A new release takes the kept CRDs and the job over.
    change(w, "install", render.CHART, "crds.keep=false")
    trains(w, "again")
    equal("pods of the job", uids(w, "lives"), before)
    helm(w, "uninstall", RELEASE, "--namespace", OPERATOR, "--wait")
    w.cluster.kubectl("delete", "namespace", OPERATOR, "--timeout=60s")
    until_left(w, [])
    w.until("the job's pods are gone too", lambda: not w.pods(NS), 60)


def overlay(w, name, *components):
    """The kustomization of an administrator: an overlay, the image, perhaps components."""
    folder = w.cluster.path("kustomize-" + name)
    os.makedirs(folder)

    def relative(path):
        return os.path.relpath(os.path.join(render.KUSTOMIZE, path), os.path.realpath(folder))
    with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as f:
        f.write(f"resources: [{relative('overlays/' + name)}]\n"
                + (f"components: [{', '.join(relative('components/' + c) for c in components)}]\n" if components else "")
                + f'images: [{{name: holdfast, newName: {REPOSITORY}, newTag: "{TAG}"}}]\n')
    return folder


def check_kustomize(w):
    """kubectl apply -k installs both overlays and components; kubectl delete -k removes everything"""
    folder = overlay(w, "standalone", "agent", "mend", "mender", "rollouts")
    w.cluster.kubectl("apply", "-k", folder)
    incluster.rolled_out(w, OPERATOR, "deployment", "holdfast-operator")
    incluster.rolled_out(w, AGENT, "daemonset", "holdfast-agent")
    said = w.cluster.kubectl("apply", "-k", folder)
    equal("a second apply changes", [l for l in said.splitlines() if not l.endswith(" unchanged")], [])
    equal("rights on nodes", may_work_on_nodes(w), ["yes", "yes"])
    trains(w, "standalone")
    w.cluster.kubectl("delete", "-k", folder, "--ignore-not-found", "--timeout=120s")
    until_left(w, [])
    w.api.create("namespaces", None, {"metadata": {"name": "kubeflow"}})
    folder = overlay(w, "kubeflow")
    w.cluster.kubectl("apply", "-k", folder)
    incluster.rolled_out(w, "kubeflow", "deployment", "holdfast-operator")
    trains(w, "kubeflow")
    equal("refused", incluster.refused(w, "kubeflow", "holdfast-operator"), [])
    w.cluster.kubectl("delete", "-k", folder, "--ignore-not-found", "--timeout=120s")
    want(w.api.find("namespaces", None, "kubeflow"), "the namespace of Kubeflow is gone")
    w.cluster.kubectl("delete", "namespace", "kubeflow", "--timeout=60s")
    until_left(w, [])


def check_takeover(w):
    """helm install --take-ownership takes CRDs over that training-operator's manifests have made"""
    w.cluster.add_upstream_crds()
    try:
        change(w, "install", render.CHART)
        raise Fail("helm takes CRDs over without being asked")
    except AssertionError as e:
        want("cannot be imported" in str(e), str(e))
    change(w, "install", render.CHART, more=["--take-ownership", "--force-conflicts"])
    want("Cause" in columns(w), "the CRDs are still upstream's")
    trains(w, "taken-over")
