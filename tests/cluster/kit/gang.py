# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A gang of ranks that train with torch under an injected holdfast exec on the real node, for part inplace.

Gang submits the job (each rank runs gang_rank.py), reads the ranks' log, and finds their processes. Its watch looks
at /proc all the time: it keeps each pair of processes of two generations that ran at the same time.
"""

import contextlib
import os
import shutil
import signal
import threading
import time

from . import build, check
from .check import equal, want
from .machine import started_at

RANKS = 8
NODE = "real-0"
JOB = "gang"
PYTHON = "/usr/bin/python3"
MARK = "TEST_GANG"
LOOK_S = 0.03
TOP = build.TOP


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Watch:
    """Looks for processes of two generations at once, until the end of the block."""

    def __init__(self, mark):
        self.mark = f"{MARK}={mark}".encode()
        self.known, self.others = {}, {}
        self.overlaps, self.looks = [], 0
        self.over, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.wait(LOOK_S):
            with contextlib.suppress(OSError):
                self.look()

    def about(self, pid):
        """(rank, generation) of a training process, False for any other, None while that is not known yet."""
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            if not program.startswith("python3"):
                return None if program in ("holdfast-exec", "runc", "exe") else False
            variables = dict(v.split(b"=", 1) for v in read(f"/proc/{pid}/environ").split(b"\0") if b"=" in v)
        except OSError:
            return None
        if f"{MARK}=".encode() + variables.get(MARK.encode(), b"") != self.mark:
            return False
        return int(variables[b"RANK"]), int(variables.get(b"HOLDFAST_GENERATION", b"1"))

    def find(self):
        """{PID: (rank, generation, start of the process)} of the training processes. Any thread may call it."""
        with self.lock:
            return self.find_locked()

    def find_locked(self):
        pids = [int(n) for n in os.listdir("/proc") if n.isdigit()]
        there = set(pids)
        self.others = {p: s for p, s in self.others.items() if p in there}
        found = {}
        for pid in pids:
            if pid in self.others and self.others[pid] == started_at(pid):
                continue
            start = started_at(pid)
            if start is None:
                continue
            if self.known.get(pid, (0, 0, None))[2] != start:
                about = self.about(pid)
                if about is False:
                    self.others[pid] = start
                if not about:
                    continue
                self.known[pid] = (*about, start)
            found[pid] = self.known[pid]
        return found

    def look(self):
        found = self.find()
        self.looks += 1
        newest = max((g for _, g, _ in found.values()), default=0)
        for pid, (rank, generation, start) in found.items():
            # Looked at again after the newer process was seen: so both run now.
            if generation < newest and started_at(pid) == start:
                self.overlaps.append(f"rank {rank} of generation {generation} beside generation {newest}")


class Gang:
    """The job and what its ranks do."""

    def __init__(self, w, recovery=None, master=None, job=None, grace_s=8, resources=None, ns=None, away=None):
        """recovery, job: more of runPolicy.recovery and of the metadata; master: more of the master's container.
        away: rank 0 starts on this node if it can, where nothing runs really, and the other ranks do not train."""
        self.w, self.ns = w, ns or w.namespace()
        self.folder = w.cluster.path("data-" + self.ns)
        os.makedirs(self.folder)
        shutil.copy(os.path.join(os.path.dirname(__file__), "gang_rank.py"), self.folder)
        w.until("the namespace has its account", lambda: w.api.find("serviceaccounts", self.ns, "default"))
        made = self.manifest(recovery or {}, master or {}, job or {}, grace_s, resources)
        if away:
            self.send_away(made["spec"]["pytorchReplicaSpecs"], away)
        w.api.create("pytorchjobs", self.ns, made)
        self.watch = Watch(self.ns)

    def manifest(self, recovery, master, more, grace_s, resources):
        mounts = {"usr": "/usr", "alternatives": "/etc/alternatives", "python": os.path.join(TOP, "python")}
        places = {**mounts, "python": "/python"}
        container = {"image": "localhost/bare:1", "command": [PYTHON, "-u", "/data/gang_rank.py"],
                     "env": [{"name": MARK, "value": self.ns}],
                     "volumeMounts": [{"name": n, "mountPath": places[n], "readOnly": True} for n in mounts] +
                                     [{"name": "data", "mountPath": "/data"}]}
        if resources:
            container["resources"] = {"requests": resources}
        made = check.pytorchjob(
            JOB, self.ns, RANKS - 1, container=container, terminationGracePeriodSeconds=grace_s,
            nodeSelector={"kubernetes.io/hostname": NODE},
            volumes=[{"name": n, "hostPath": {"path": p}} for n, p in {**mounts, "data": self.folder}.items()],
            run_policy={**more.pop("runPolicy", {}), "recovery": {
                "exec": "Inject", "restartScope": "Job",
                # Restarts wait for a second at most.
                "backoff": {"initialSeconds": 1, "maxSeconds": 1, "resetAfterSeconds": 1}, **recovery}})
        made["metadata"].update(more)
        spec = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
        spec["containers"][0] = {**spec["containers"][0], **master}
        return made

    @staticmethod
    def send_away(types, node):
        for spec in (t["template"]["spec"] for t in types.values()):
            spec["containers"][0] = {**spec["containers"][0], "env": [*spec["containers"][0]["env"], {
                "name": "TEST_IDLE", "value": "1"}]}
        spec = types["Master"]["template"]["spec"]
        del spec["nodeSelector"]
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100, "preference": {"matchExpressions": [{
                "key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}}]}}

    def __enter__(self):
        self.watch.__enter__()
        return self

    def __exit__(self, kind, *_):
        self.watch.__exit__()
        self.w.api.delete("pytorchjobs", self.ns, JOB)
        if kind is None:
            self.until("its pods are gone", lambda: not self.w.pods(self.ns, JOB))

    # ---- what is there
    def get(self):
        return self.w.job(self.ns, JOB)

    def recovery(self):
        return (self.get().get("status") or {}).get("recovery") or {}

    def generation(self):
        return self.recovery().get("generation", 1)

    def pods(self):
        """{rank: pod}"""
        return {rank_of(p): p for p in self.w.pods(self.ns, JOB)}

    def uids(self):
        return {r: p["metadata"]["uid"] for r, p in self.pods().items()}

    def lines(self):
        """[(time, rank, generation, phase, step)] of the ranks' log."""
        try:
            text = read(os.path.join(self.folder, "log")).decode()
        except FileNotFoundError:
            return []
        rows = [line.split() for line in text.splitlines(True) if line.endswith("\n")]
        return [(float(t), int(r), int(g), phase, int(step)) for t, r, g, phase, step in rows]

    def times(self, phase, generation):
        """{rank: when it first reached the phase}"""
        found = {}
        for at, rank, g, p, _ in self.lines():
            if (p, g) == (phase, generation):
                found.setdefault(rank, at)
        return found

    def last_step(self, generation, phase="step"):
        return max((s for _, _, g, p, s in self.lines() if (p, g) == (phase, generation)), default=None)

    def last_saved(self, generation):
        """The newest checkpoint up to this generation; None: there is none."""
        return max((s for _, rank, g, p, s in self.lines() if p == "saved" and rank == 0 and g <= generation), default=None)

    def process(self, rank):
        """The PID of the rank's training process, as this machine sees it."""
        found = [pid for pid, (r, _, _) in self.watch.find().items() if r == rank]
        equal(f"processes of rank {rank}", len(found), 1)
        return found[0]

    def exec_of(self, rank):
        with open(f"/proc/{self.process(rank)}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("PPid:"))

    def why(self):
        return self.w.holdfast("why", JOB, ns=self.ns, code=None)

    # ---- what is waited for
    def until(self, what, get, timeout_s=120):
        try:
            return self.w.until(what, get, timeout_s)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; {self.why()[:1800]}; the log's last lines: {self.lines()[-10:]}") from None

    def until_phase(self, rank, phase, generation, timeout_s=120):
        return self.until(f"rank {rank} is in phase {phase} of generation {generation}",
                          lambda: self.times(phase, generation).get(rank), timeout_s)

    def until_trains(self, generation, steps=3, timeout_s=180):
        """All ranks have done some steps in this generation."""
        def counted():
            done = [r for _, r, g, p, _ in self.lines() if (p, g) == ("step", generation)]
            return all(done.count(r) >= steps for r in range(RANKS))
        self.until(f"all ranks train in generation {generation}", counted, timeout_s)

    def record(self, generation):
        """The record of the restart to this generation; {}: there is none."""
        recovery = self.recovery()
        records = [recovery.get("last") or {}, *(recovery.get("history") or [])]
        return next((r for r in records if r.get("generation") == generation), {})

    def until_recorded(self, generation):
        """The record of the restart to this generation, once all ranks run and the first step is done."""
        def recorded():
            found = self.record(generation)
            return found if found.get("runningAt") and found.get("steppedAt") else None
        return self.until("the restart is on record", recorded, 60)

    def until_started(self, generation):
        """All ranks have started in this generation. Returns when the last one did."""
        self.until(f"all ranks have started in generation {generation}",
                   lambda: len(self.times("start", generation)) == RANKS)
        return max(self.times("start", generation).values())

    # ---- what is done
    def plan(self, rank, generation, phase, act):
        path = os.path.join(self.folder, f"plan-{rank}-{generation}")
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(f"{phase} {act}\n")
        os.rename(path + ".new", path)

    def kill(self, rank):
        """SIGKILL of the training process. Returns the time."""
        os.kill(self.process(rank), signal.SIGKILL)
        return time.time()

    # ---- what holds
    def never_overlapped(self):
        equal("processes of two generations at once", self.watch.overlaps[:3], [])
        want(self.watch.looks > 20 and self.watch.thread.is_alive(), f"/proc was looked at {self.watch.looks} times")
        first, last = {}, {}
        for at, _, generation, phase, _ in self.lines():
            last[generation] = at
            if phase == "start":
                first.setdefault(generation, at)
        for generation, began in first.items():
            before = last.get(generation - 1, 0)
            want(before <= began, f"a rank of generation {generation - 1} worked {before - began:.3f} s after the first "
                                  f"process of generation {generation}")

    def kept(self, uids, but=()):
        """The pods are those from before, but for these ranks, and the kubelet restarted no container."""
        now = self.uids()
        equal("ranks with another pod", sorted(r for r in now if now[r] != uids.get(r)), sorted(but))
        equal("restarts by the kubelet", {c["restartCount"] for p in self.pods().values()
                                          for c in p["status"]["containerStatuses"]}, {0})


def rank_of(pod):
    _, kind, index = pod["metadata"]["name"].rsplit("-", 2)
    return int(index) + (kind == "worker")


def name_of(rank):
    return "master-0" if rank == 0 else f"worker-{rank - 1}"
