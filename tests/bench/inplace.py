# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Restarts in place of a gang: a real control plane, played nodes and processes, and what the server needs alone.

Beside it stands the re-creation of the same gang on kwok's nodes. Before it: what holdfast exec costs."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import fleet
from local import cpu, pause, read
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


EXEC_SECONDS = 60
EXEC_STATES = {"rest": (0, "at rest"), "reports": (10, "10 reports a second of one rank")}
# A rank: reports so many steps a second, or none.
EXEC_RANK = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from holdfast_report import report
step, rate = 0, int(sys.argv[2])
while True:
    threading.Event().wait(1 / rate if rate else None)
    step += 1
    report(step, total=1000000, loss=0.5)
"""


class PlayedAgent:
    """The sockets of a node's agent, for one exec."""

    def __init__(self, folder):
        self.socket = f"{folder}/agent.sock"
        self.reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.reports.bind(self.socket)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(f"{folder}/exec.sock")
        self.listener.listen(1)
        self.listener.settimeout(30)
        self.peer = None

    def read_reports(self):
        """How many have come since the last call."""
        count = 0
        self.reports.setblocking(False)
        while True:
            try:
                self.reports.recv(4096)
                count += 1
            except BlockingIOError:
                return count

    def order(self):
        """exec's first report, and the order to start."""
        self.peer, _ = self.listener.accept()
        self.peer.recv(4096)
        self.peer.send(b"target generation=1 attempt=0 wait=60 grace=30 first_generation=1 first_attempt=0")

    def close(self):
        for one in (self.reports, self.listener, self.peer):
            if one:
                one.close()


def resident_kib(pid):
    """Counted page by page: VmRSS of /proc/PID/status may be 63 pages behind."""
    return int(re.search(r"^Rss:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.M).group(1))


def exec_in(bench, state):
    """holdfast-exec, as it is injected into pods, connected to an agent, around one rank."""
    rate, what = EXEC_STATES[state]
    folder = f"{bench.folder}/exec-{state}"
    os.makedirs(folder)
    program = f"{bench.build}/src/exec/holdfast-exec"
    agent = PlayedAgent(folder)
    run = subprocess.Popen([program, "--termination-log", f"{folder}/termination", "--", sys.executable, "-c", EXEC_RANK,
                            os.path.join(fleet.build.TOP, "python"), str(rate)],
                           env={**os.environ, "HOLDFAST_AGENT_SOCKET": agent.socket})
    try:
        agent.order()
        pause(3)
        agent.read_reports()
        kind = "not static" if "/libc" in read(f"/proc/{run.pid}/maps") else "static"
        begin, before, came, peak = time.monotonic(), cpu(run.pid), 0, 0
        while time.monotonic() < begin + EXEC_SECONDS:
            pause(0.2)
            came += agent.read_reports()
            peak = max(peak, resident_kib(run.pid))
        took = time.monotonic() - begin
        percent = 100 * (cpu(run.pid) - before) / took
        if run.poll() is not None:
            raise SystemExit(f"bench: inplace: holdfast-exec ended with {run.returncode}")
    finally:
        run.terminate()
        run.wait(60)
        agent.close()
    bench.figures.add(f"inplace.exec.{state}.memory", peak, "KiB", 1, f"resident, holdfast-exec ({kind}), {what}")
    bench.figures.add(f"inplace.exec.{state}.cpu", percent, "%", 1, f"of a core, over {took:.0f} s, {what}",
                      messages_per_second=came / took)


def executor(bench):
    for state in EXEC_STATES:
        exec_in(bench, state)


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


def count_writes(calls):
    return sum(n for (verb, what, _), n in calls.items()
               if verb not in ("watch", "get", "list") and what not in ("leases", "events"))


def recreate(bench, run, ranks):
    """The same gang without restarts in place: one pod fails, and all pods are created again."""
    api = run.cluster.client()
    api.patch("pytorchjobs", "default", JOB, {"spec": {"runPolicy": {"recovery": {"inPlace": "Never"}}}})
    run.settle(run.follow(), ranks)
    generation = api.get("pytorchjobs", "default", JOB)["status"]["recovery"]["generation"]
    pod = api.get("pods", "default", f"{JOB}-worker-0")
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
        writes = count_writes(follower.look() - before)
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
