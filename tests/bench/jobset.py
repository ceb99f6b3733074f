# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""JobSet's restart in place, beside that of part inplace: the real JobSet and control plane, kwok's nodes, played agents.

The gate InPlaceRestart is on, and JobSet runs without its webhooks: the manifest has what they would fill in. A played
agent does what JobSet's agent does in a pod (cmd/in-place-restart-agent): it writes its attempt into the pod's annotation
by server-side apply, starts anew when the JobSet calls that attempt outdated, and lets the worker run when the attempt is
the present one. What favours JobSet here: containers restart in no time and without the kubelet's delay, and one watch of
the JobSet stands for the one of each pod."""

import http.client
import json
import os
import queue
import threading
import time

import fleet

from kit import build, client

NAME, NS = "gang", "default"
ATTEMPT = "jobset.sigs.k8s.io/in-place-restart-attempt"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NS}/jobsets"
TIMES = 3
WRITERS = 32  # connections of the played agents
CONFIG = """\
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
featureGates: {{InPlaceRestart: true}}
internalCertManagement: {{enable: false}}
leaderElection: {{leaderElect: false}}
clientConnection: {{qps: 1000, burst: 2000}}
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "127.0.0.1:{metrics}", certDir: {folder}}}
webhook: {{port: {webhook}, certDir: {folder}}}
"""


def manifest(ranks, per_node, gpus):
    container = {"name": "worker", "image": "none", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": {"maxRestarts": 100, "restartStrategy": "InPlaceRestart"},
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "replicatedJobs": [{"name": "w", "replicas": ranks // per_node, "template": {"spec": {
                "parallelism": per_node, "completions": per_node, "completionMode": "Indexed",
                "backoffLimit": 2147483647, "podReplacementPolicy": "Failed",
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}}]}}


class Agents:
    """The agents in all pods of the JobSet."""

    def __init__(self, cluster, pods):
        self.cluster = cluster
        self.attempts = dict.fromkeys(pods, None)
        self.lifted, self.writes = set(), 0
        self.work, self.lock = queue.Queue(), threading.Lock()
        self.state = (None, None)  # previous, current
        self.changed = threading.Condition()
        for _ in range(WRITERS):
            threading.Thread(target=self.write, daemon=True).start()
        threading.Thread(target=self.watch, daemon=True).start()

    def write(self):
        api = self.cluster.client()
        while True:
            pod, attempt = self.work.get()
            api.call("PATCH", f"/api/v1/namespaces/{NS}/pods/{pod}?fieldManager=in-place-restart-agent&force=true", {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "annotations": {ATTEMPT: str(attempt)}}},
                client.APPLY)
            with self.lock:
                self.attempts[pod] = attempt
                self.writes += 1
            self.obey(pod)

    def start(self, pod):
        """The agent of a container that has just started."""
        self.lifted.discard(pod)
        current = self.state[1]
        self.work.put((pod, 0 if current is None else current + 1))

    def obey(self, pod):
        previous, current = self.state
        with self.lock:
            attempt = self.attempts[pod]
        if attempt is None:
            return
        if previous is not None and attempt <= previous:
            with self.lock:
                self.attempts[pod] = None
            self.start(pod)
        elif attempt == current:
            with self.changed:
                self.lifted.add(pod)
                self.changed.notify_all()

    def watch(self):
        api = self.cluster.client()
        while True:
            connection = api.connection()
            connection.request("GET", f"{JOBSETS}?watch=true&fieldSelector=metadata.name%3D{NAME}", headers={
                "Authorization": "Bearer " + api.token})
            try:
                for line in connection.getresponse():
                    status = json.loads(line)["object"].get("status") or {}
                    self.state = (status.get("previousInPlaceRestartAttempt"), status.get("currentInPlaceRestartAttempt"))
                    for pod in list(self.attempts):
                        self.obey(pod)
            except (OSError, http.client.HTTPException):
                pass
            api.forget()

    def until_lifted(self, timeout_s=600):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.lifted) == len(self.attempts), timeout_s):
                raise SystemExit(f"bench: jobset: {len(self.lifted)} of {len(self.attempts)} ranks run; {self.state}")

    def restart(self, pod):
        """One rank fails. Returns the seconds until all ranks run, and the writes of the agents."""
        self.writes, begin = 0, time.monotonic()
        self.start(pod)
        self.lifted.clear()
        self.until_lifted()
        return time.monotonic() - begin, self.writes


def begin(run, cluster, ranks, per_node, gpus):
    """JobSet's CRD, its controller, and the pods of a JobSet."""
    source = os.path.join(build.source("jobset"), "config/components/crd/bases")
    cluster.kubectl("apply", "--server-side", "-f", source)
    cluster.until_established()
    health, metrics, webhook = cluster.port(12), cluster.port(11), cluster.port(13)
    cluster.write("jobset.yaml", CONFIG.format(folder=cluster.folder, health=health, metrics=metrics, webhook=webhook))
    cluster.start("jobset", [build.find("jobset"), "--config", "jobset.yaml", "--kubeconfig", "kubeconfig.operator",
                             "--zap-log-level", "error"])
    cluster.until("JobSet is ready", lambda: cluster.healthy(health), 120)
    api = cluster.client()
    api.call("POST", JOBSETS, manifest(ranks, per_node, gpus))

    def running():
        pods = [p["metadata"]["name"] for p in api.list("pods", NS) if p["status"].get("phase") == "Running"]
        return pods if len(pods) == ranks else None
    return client.until("the pods run", running, 1800, 1)


def measure(bench, ranks, per_node, gpus):
    build.build(["control", "kwok", "jobset"])
    with fleet.Run(bench, "jobset", ranks // per_node, patient=True) as run:
        pods = begin(run, run.cluster, ranks, per_node, gpus)
        agents = Agents(run.cluster, pods)
        follower = run.follow()
        for pod in pods:
            agents.start(pod)
        agents.until_lifted()
        for number in range(1, TIMES + 1):
            client.pause(5)
            before = follower.look()
            took, writes = agents.restart(pods[7])
            client.pause(1)
            calls = follower.look() - before
            own = sum(n for (verb, what, _), n in calls.items()
                      if verb not in ("watch", "get", "list") and what not in ("leases", "events"))
            bench.figures.add(f"jobset.restart.{ranks}.{number}", took, "s", 1,
                              f"{ranks:,} pods on {ranks // per_node} nodes, JobSet 0.12: one agent starts anew until all "
                              f"ranks run, restart {number}", agent_writes=writes, controller_writes=own)
