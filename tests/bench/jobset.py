# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""JobSet's restart in place, beside that of part inplace: the real JobSet and control plane, kwok's nodes, played agents.

The gate InPlaceRestart is on. JobSet runs without its webhooks, because nothing on loopback has its Service: the manifest
has the values that they would fill in. jobset_bench plays the agents."""

import os

import fleet
import inplace

from kit import build, client
from kit.cluster import PEER_HEALTH, PEER_METRICS, PEER_WEBHOOK

NAME, NS = "gang", "default"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NS}/jobsets"
CONFIG = """\
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
featureGates: {{InPlaceRestart: true}}
internalCertManagement: {{enable: false}}
leaderElection: {{leaderElect: false}}
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "127.0.0.1:{metrics}", certDir: "{folder}"}}
webhook: {{port: {webhook}, certDir: "{folder}"}}
"""


def manifest(ranks):
    """A Job for each node. What the webhook asks for: backoffLimit, podReplacementPolicy, and completions as parallelism."""
    per_node = inplace.RANKS_PER_NODE
    container = {"name": "worker", "image": "none", "resources": {
        "limits": {"nvidia.com/gpu": str(inplace.GPUS_PER_NODE // per_node)}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": {"maxRestarts": 100, "restartStrategy": "InPlaceRestart"},
            "successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "replicatedJobs": [{"name": "w", "replicas": ranks // per_node, "template": {"spec": {
                "parallelism": per_node, "completions": per_node, "completionMode": "Indexed",
                "backoffLimit": 2147483647, "podReplacementPolicy": "Failed",
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}}]}}


def start_controller(cluster):
    """JobSet's CRD and its controller. Returns the controller's process."""
    cluster.kubectl("apply", "--server-side", "-f",
                    os.path.join(build.source("jobset"), "config/components/crd/bases"))
    cluster.until_established()
    health = cluster.port(PEER_HEALTH)
    cluster.write("jobset.yaml", CONFIG.format(folder=cluster.folder, health=health, metrics=cluster.port(PEER_METRICS),
                                               webhook=cluster.port(PEER_WEBHOOK)))
    cluster.start("jobset", [build.find("jobset"), "--config", "jobset.yaml", "--kubeconfig", "kubeconfig.operator",
                             "--zap-log-level", "error"])
    cluster.until("JobSet is ready", lambda: cluster.healthy(health), 120)
    return fleet.Process(next(p for p in cluster.pids("jobset") if fleet.program(p) == "jobset"))


def create_pods(cluster, ranks):
    api = cluster.client()
    api.call("POST", JOBSETS, manifest(ranks))
    client.until("the pods of the JobSet run", lambda: ranks == sum(
        p["status"].get("phase") == "Running" for p in api.list("pods", NS)), 1800, 1)


def measure(bench, ranks):
    build.build(["control", "kwok", "jobset"])
    nodes = ranks // inplace.RANKS_PER_NODE
    with fleet.Run(bench, "jobset", nodes, patient=True) as run:
        process = start_controller(run.cluster)
        create_pods(run.cluster, ranks)
        follower = run.follow()
        before, cpu = follower.look(), process.cpu_s()
        restarts = bench.program("jobset", run.cluster.path("kubeconfig.admin"), NS, NAME, inplace.TIMES)
        for f in restarts:
            bench.figures.add(f"jobset.restart.{ranks}.{f['restart']}", float(f["seconds"]), "s", 1,
                              f"{ranks:,} ranks on {nodes} nodes, JobSet 0.12: an agent starts anew until all workers may "
                              f"start, restart {f['restart']}",
                              down=float(f["down"]), written=float(f["written"]),
                              agent_writes=int(f["agent_writes"]), agent_events=int(f["events"]))
        # The first attempt of all pods is part of it: one more write of the status.
        bench.figures.add(f"jobset.writes.{ranks}", inplace.count_writes(follower.look() - before) / (inplace.TIMES + 1),
                          "writes", inplace.TIMES + 1, "of the controller for one restart, beside events",
                          cpu_s=(process.cpu_s() - cpu) / (inplace.TIMES + 1))
