# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Restarts in place of a gang: a real control plane, played nodes and processes, and what the server needs alone.

Beside it stands the re-creation of the same gang on kwok's nodes."""

import time

import fleet
from recovery import until_running

from kit import build
from kit.check import end_pod, pytorchjob

RANKS_PER_NODE = 8
GPUS_PER_NODE = 64  # of kwok's nodes
TIMES = 3
JOB = "gang"


def job(ranks, in_place):
    return pytorchjob(JOB, "default", ranks - 1, run_policy={"recovery": {
        "restartScope": "Job", "inPlace": in_place, "inPlaceLimit": 2 * TIMES,
        # Each restart is the first one: none of them is delayed.
        "backoff": {"initialSeconds": 1, "resetAfterSeconds": 1}}},
        container={"resources": {"limits": {"nvidia.com/gpu": str(GPUS_PER_NODE // RANKS_PER_NODE)}}})


def recreate(bench, run, ranks):
    """The same gang without restarts in place: one pod fails, and all pods are created again."""
    api = run.cluster.client()
    api.patch("pytorchjobs", "default", JOB, {"spec": {"runPolicy": {"recovery": {"inPlace": "Never"}}}})
    run.settle(run.follow(), ranks)
    generation = api.get("pytorchjobs", "default", JOB)["status"]["recovery"]["generation"]
    pod = api.get("pods", "default", f"{JOB}-worker-7")
    start = time.monotonic()
    end_pod(api, pod, 1)
    until_running(api, ranks, generation + 1)
    bench.figures.add(f"inplace.recreate.{ranks}", time.monotonic() - start, "s", 1,
                      f"{ranks:,} ranks: the pods are created again, and all run")


def measure(bench, ranks):
    build.build(["control", "kwok"])
    nodes = (ranks + RANKS_PER_NODE - 1) // RANKS_PER_NODE
    with fleet.Run(bench, "holdfast", nodes) as run:
        api = run.cluster.client()
        api.create("pytorchjobs", "default", job(ranks, "Auto"))
        until_running(api, ranks, 1)
        run.settle(run.follow(), ranks)
        admin = run.cluster.path("kubeconfig.admin")
        follower = run.follow()
        before, cpu = follower.look(), run.process.cpu_s()
        restarts = bench.program("inplace", admin, "default", JOB, "restart", TIMES)
        cpu = run.process.cpu_s() - cpu
        calls = follower.look() - before
        writes = sum(n for (verb, what, _), n in calls.items()
                     if verb != "watch" and verb != "get" and verb != "list" and
                     what not in ("leases", "events"))
        for f in restarts:
            bench.figures.add(f"inplace.restart.{ranks}.{f['restart']}", float(f["seconds"]), "s", 1,
                              f"{ranks:,} ranks on {f['nodes']} nodes: a termination until all processes "
                              f"started again, restart {f['restart']}",
                              down=float(f["down"]), agent_writes=int(f["agent_writes"]))
        bench.figures.add(f"inplace.writes.{ranks}", writes / TIMES, "writes", TIMES,
                          "of the operator for one restart, beside events", cpu_s=cpu / TIMES)
        floor = bench.program("inplace", admin, "default", JOB, "floor", TIMES)
        bench.figures.add(f"inplace.floor.{ranks}", min(float(f["seconds"]) for f in floor), "s", TIMES,
                          "as many writes and watch events without an operator, the fastest")
        recreate(bench, run, ranks)
