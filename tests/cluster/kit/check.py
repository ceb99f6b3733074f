# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What a part of the conformance run is made of: checks, the world they look at, their results."""

import json
import os
import subprocess
import threading
import time
import traceback

from . import build, client
from .operator import Operator, Peer

PEER_FLAGS = ["-kube-api-qps", "1000", "-kube-api-burst", "2000", "-controller-threads", "8"]


class Skip(Exception):
    """This cannot be shown here; the text says why."""


class Fail(Exception):
    """It is not so."""


def want(true, text):
    if not true:
        raise Fail(text)


def equal(what, found, wanted):
    if found != wanted:
        raise Fail(f"{what}: found {json.dumps(found, default=str)[:500]}, "
                   f"wanted {json.dumps(wanted, default=str)[:500]}")


class Results:
    def __init__(self, out):
        self.out = out
        self.passed, self.failed, self.skipped = 0, [], []

    def say(self, text):
        print(text, file=self.out, flush=True)

    def line(self, word, part, title, more=""):
        self.say(f"{word:<5} {part}: {title}{more}")


class World:
    """A cluster with a part's needs met, and what checks use."""

    def __init__(self, part, cluster, options):
        self.part, self.cluster, self.options = part, cluster, options
        self.api = cluster.client()
        self.operators = []
        self.namespaces = 0
        self.program = options.program

    # ---- the program under test
    def operator(self, name="operator", flags=(), config=None, start=True, env=None):
        if self.options.peer:
            made = Peer(self.cluster, PEER_FLAGS)
        else:
            if not has_verb(self.program, "operator"):
                raise Skip("this holdfast has no verb 'operator'")
            made = Operator(self.cluster, self.program, name, config, flags, env)
        self.operators.append(made)
        return made.start() if start else made

    def end_operators(self):
        for o in self.operators:
            o.kill()
        self.operators = []

    def holdfast(self, *arguments, ns=None, code=0, timeout_s=60):
        """A verb of the program; its standard output.  code: what it must return, None for any."""
        argv = [self.program, *arguments] + (["-n", ns] if ns else [])
        run = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL,
                             env={**os.environ, "KUBECONFIG": self.cluster.path("kubeconfig.admin"),
                                  "ASAN_OPTIONS": "detect_leaks=1"})
        if code is not None and run.returncode != code:
            raise Fail(f"holdfast {' '.join(arguments)}: exit code {run.returncode}, wanted {code}: "
                       + (run.stderr or run.stdout).strip()[-400:])
        return run.stdout

    def follow(self, script):
        """Runs what a person types at a shell, with holdfast and kubectl in PATH; its output."""
        path = ":".join([os.path.dirname(self.program), os.path.dirname(build.find("kubectl")), os.environ["PATH"]])
        run = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=180,
                             env={**os.environ, "PATH": path, "KUBECONFIG": self.cluster.path("kubeconfig.admin")})
        want(run.returncode == 0, f"{script.strip()[:100]}: {(run.stderr or run.stdout).strip()[-500:]}")
        return run.stdout

    # ---- objects
    def namespace(self, prefix=None):
        """A new namespace."""
        self.namespaces += 1
        name = f"{prefix or self.part}-{self.namespaces}"

        def made():
            if not self.api.find("namespaces", None, name):
                self.api.create("namespaces", None, {"metadata": {"name": name}})
            return True
        client.until("a namespace is made", made)
        return name

    def install(self):
        """The job kinds: ours where the program has them, else as the Go operator ships them."""
        if not self.options.peer and has_verb(self.program, "manifests"):
            run = subprocess.run([self.program, "manifests", "--crds"], capture_output=True,
                                 text=True)
            if run.returncode != 0:
                raise build.Broken("holdfast manifests --crds: " + run.stderr.strip()[-300:])
            self.cluster.kubectl("apply", "--server-side", "-f", "-", text=run.stdout)
            self.cluster.until_established()
            return "our CRDs"
        self.cluster.add_upstream_crds()
        return "upstream's CRDs"

    def job(self, ns, name):
        return self.api.get("pytorchjobs", ns, name)

    def pods(self, ns, job=None):
        pods = self.api.list("pods", ns, job and f"training.kubeflow.org/job-name={job}")
        return sorted(pods, key=lambda p: p["metadata"]["name"])

    def until(self, what, get, timeout_s=60, every_s=0.1):
        return self.cluster.until(what, get, timeout_s) if every_s == 0.1 else \
            client.until(what, get, timeout_s, every_s)

    def until_condition(self, ns, name, kind, timeout_s=60):
        def seen():
            job = self.job(ns, name)
            return job if condition(job, kind) == "True" else None
        try:
            return self.until(f"{name} is {kind}", seen, timeout_s)
        except TimeoutError as e:
            job = self.api.find("pytorchjobs", ns, name)
            raise TimeoutError(f"{e}; its status: {json.dumps((job or {}).get('status'))[:600]}") \
                from None

    def end_pod(self, pod, code=0, reason=None):
        """Say, as a kubelet would, that every container of the pod has ended."""
        end_pod(self.api, pod, code, reason)

    def end_pods(self, pods):
        """All of them end with 0, the master last: with its end the others may be taken away."""
        for pod in sorted(pods, key=lambda p: "-master-" in p["metadata"]["name"]):
            self.end_pod(pod)


def end_pod(api, pod, code=0, reason=None):
    """Say, as a kubelet would, that every container of the pod has ended."""
    ns, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    started = pod["status"].get("startTime") or now()
    api.patch("pods", ns, name, {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": [{
            "name": c["name"], "image": c["image"], "imageID": "", "ready": False,
            "restartCount": 0, "started": False,
            "state": {"terminated": {
                "exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error"),
                "startedAt": started, "finishedAt": now(), "containerID": "test://" + name}}}
            for c in pod["spec"]["containers"]]}}, "status")


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def condition(job, kind):
    """The status of a condition, or None."""
    for c in (job.get("status") or {}).get("conditions") or []:
        if c["type"] == kind:
            return c["status"]
    return None


VERBS = {}


def has_verb(program, verb):
    if (program, verb) not in VERBS:
        run = subprocess.run([program, verb, "--help"], capture_output=True, text=True)
        VERBS[program, verb] = run.returncode == 0
    return VERBS[program, verb]


def pytorchjob(name, ns, workers=3, policy="OnFailure", run_policy=None, container=None, **master):
    """A manifest: one master and some workers."""
    def replica(count):
        c = {"name": "pytorch", "image": "localhost/busybox:1", **(container or {})}
        return {"replicas": count, "restartPolicy": policy,
                "template": {"spec": {"containers": [c], **master}}}
    replicas = {"Master": replica(1)}
    if workers:
        replicas["Worker"] = replica(workers)
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
           "metadata": {"name": name, "namespace": ns}, "spec": {"pytorchReplicaSpecs": replicas}}
    if run_policy is not None:
        job["spec"]["runPolicy"] = run_policy
    return job


def parallel(items, do, threads=8):
    """do(item) for each, on some threads; the first exception is raised."""
    items = list(items)
    left, failed, lock = iter(items), [], threading.Lock()

    def work():
        while not failed:
            with lock:
                item = next(left, None)
            if item is None:
                return
            try:
                do(item)
            except Exception as e:
                failed.append(e)

    team = [threading.Thread(target=work, daemon=True) for _ in range(min(threads, len(items)))]
    for t in team:
        t.start()
    for t in team:
        t.join()
    if failed:
        raise failed[0]


def checks(module):
    """The functions check_… of a part, in the order they are written."""
    found = [f for n, f in vars(module).items() if n.startswith("check_") and callable(f)]
    return sorted(found, key=lambda f: f.__code__.co_firstlineno)


def run(world, module, results, only=None):
    """Every check of a part; a failure ends that check alone."""
    for check in checks(module):
        if only and only not in check.__name__:
            continue
        if not one(world, check, results, world.options.ci) and world.options.halt:
            return


def one(world, check, results, again):
    """One check; true unless it failed.  again: once more on a failure, which is then said."""
    title = check.__doc__.strip().splitlines()[0].rstrip(".")
    start = time.monotonic()
    before = f"at the second try; {again}; " if isinstance(again, str) else ""
    failed = False
    try:
        note = check(world)
        results.passed += 1
        results.line("ok", world.part, title, f" ({before}{f'{note}, ' if note else ''}"
                                              f"{time.monotonic() - start:.1f} s)")
    except Skip as e:
        results.skipped.append(f"{world.part}: {title}: {e}")
        results.line("skip", world.part, title, f": {e}")
    except Exception as e:
        failed = True
        with open(world.cluster.path("failures.txt"), "a", encoding="utf-8") as f:
            f.write(f"{check.__name__}\n{traceback.format_exc()}\n")
        if again is True:
            world.end_operators()
            return one(world, check, results, f"the first: {e}")
        results.failed.append(f"{world.part}: {title}")
        results.line("FAIL", world.part, title, f": {e}")
        snapshot(world, world.cluster.path(f"state-{check.__name__}.json"))
    if not (failed and world.options.halt):
        world.end_operators()
    return not failed


def snapshot(world, path):
    """What a person looks at after a failure: jobs, pods and events as they were."""
    found = {}
    kinds = [r for r, group in client.GROUPS.items() if group == "kubeflow.org/v1"]
    for resource in (*kinds, "pods", "events", "leases"):
        try:
            found[resource] = world.api.list(resource)[:200]
        except Exception as e:
            found[resource] = str(e)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(found, f, indent=1)
