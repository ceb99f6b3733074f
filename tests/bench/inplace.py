# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Restarts in place of a gang: a real control plane, played nodes and processes, and what the server needs alone.

Beside it stands the re-creation of the same gang on kwok's nodes."""

import os
import re
import signal
import subprocess
import time

import fleet
from local import pause, read
from recovery import until_running

from kit import build
from kit.check import end_pod, pytorchjob

MACHINE_RANKS = 8
MACHINE_KILLS = 100
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


# Each process of a rank notes its start, and kills itself when a line comes to the pipe of its rank.
MACHINE_JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: gang}}
spec:
  runPolicy:
    backoffLimit: {kills}
    recovery: {{restartScope: Job, inPlaceLimit: {kills}, backoff: {{initialSeconds: 1, resetAfterSeconds: 1}}}}
  pytorchReplicaSpecs:
    Master: &rank
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: pytorch
            image: none
            command: [sh, -c, "echo >>{folder}/starts; read line <{folder}/rank-$RANK; kill -9 $$$$"]
    Worker: {{<<: *rank, replicas: {workers}}}
"""


def until_started(run, folder, starts):
    """Until all ranks together have started this often."""
    end = time.monotonic() + 60
    while read(f"{folder}/starts").count("\n") < starts:
        if time.monotonic() > end or run.poll() is not None:
            raise SystemExit("bench: inplace: the ranks do not start: " + read(f"{folder}/log")[-400:])
        pause(0.002)


def machine_restart(run, folder, turn):
    """Ends one rank's process by SIGKILL; returns the time until all ranks have started again."""
    begin = time.monotonic()
    with open(f"{folder}/rank-{turn % MACHINE_RANKS}", "w", encoding="utf-8") as pipe:
        pipe.write("end\n")
    until_started(run, folder, MACHINE_RANKS * (turn + 2))
    return time.monotonic() - begin


def machine(bench):
    """Eight real processes on this machine, one of them killed again and again."""
    folder = f"{bench.folder}/machine"
    os.makedirs(folder)
    for rank in range(MACHINE_RANKS):
        os.mkfifo(f"{folder}/rank-{rank}")
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as file:
        file.write(MACHINE_JOB.format(kills=MACHINE_KILLS + 1, workers=MACHINE_RANKS - 1, folder=folder))
    with open(f"{folder}/log", "wb") as out:
        run = subprocess.Popen([bench.holdfast, "run", f"{folder}/job.yaml", "--progress", "plain"],
                               stdout=out, stderr=out, env={**os.environ, "XDG_STATE_HOME": folder})
    try:
        until_started(run, folder, MACHINE_RANKS)
        took = []
        for turn in range(MACHINE_KILLS):
            pause(3)  # the job counts as healthy after a second, and its next restart is not delayed
            took.append(machine_restart(run, folder, turn))
        pods = len(set(re.findall(r"pod/(\S+) running", read(f"{folder}/log"))))
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(60)
    took.sort()
    bench.figures.add("inplace.machine", took[len(took) // 2], "s", len(took),
                      f"{MACHINE_RANKS} ranks on this machine: SIGKILL of one until all have started again",
                      p99=took[int(len(took) * 0.99) - 1], max=took[-1], pods=pods)


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
    with fleet.Run(bench, "holdfast", nodes, patient=True) as run:
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
