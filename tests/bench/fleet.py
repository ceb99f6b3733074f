# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""An operator on a real control plane under load: Holdfast, and the Go operator beside it.

Each run has a cluster of its own, kwok's nodes, and jobs of 1 master and 3 workers."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "cluster"))
from kit import audit, build, client, machine
from kit.cluster import Cluster
from kit.operator import Operator

RANKS = 4
NODES = 20
REPLACED = 50
JOBS_PER_NAMESPACE = 1500  # as in fleet_bench.c, which says why
PEER_FLAGS = ["-kube-api-qps", "1000", "-kube-api-burst", "2000", "-controller-threads", "8"]


def field(path, name):
    with open(path, encoding="utf-8") as file:
        return int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.M).group(1))


class Process:
    """What a process has cost so far."""

    def __init__(self, pid):
        self.pid = pid

    def cpu_s(self):
        """Of all its threads; ticks of 10 ms."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        return field(f"/proc/{self.pid}/status", "VmRSS") / 1024

    def peak_mib(self):
        return field(f"/proc/{self.pid}/status", "VmHWM") / 1024

    def rest(self, quiet_s=3.0):
        """Until it has started: next to no CPU for a while."""
        for _ in range(100):
            before = self.cpu_s()
            client.pause(quiet_s)
            if self.cpu_s() - before <= 0.02 * quiet_s:
                return


class Run:
    """One operator, one cluster. which: holdfast, go, or jobset, which its caller starts.
    patient: no node counts as silent, although kwok cannot renew the Leases of many nodes on a busy machine.
    """

    def __init__(self, bench, which, nodes=NODES, patient=False):
        self.bench, self.which, self.nodes, self.patient = bench, which, nodes, patient
        self.folder = tempfile.mkdtemp(prefix="holdfast-fleet-", dir="/var/tmp")
        self.cluster = Cluster(os.path.join(self.folder, "k"))
        self.operator = self.process = None

    def __enter__(self):
        self.cluster.up(owner=os.getpid(), manager_flags=["--node-monitor-grace-period=30m"] if self.patient else ())
        self.cluster.add_kwok(self.nodes, lease_s=600 if self.patient else 40, endless=self.which == "jobset")
        if self.which == "go":
            self.cluster.add_peer(PEER_FLAGS)
            self.process = Process(next(p for p in self.cluster.pids("peer") if program(p) == "training-operator"))
        elif self.which == "holdfast":
            self.install()
            self.operator = Operator(self.cluster, self.bench.holdfast).start()
            self.process = Process(self.operator.child.pid)
        return self

    def __exit__(self, *_):
        if self.operator:
            self.operator.kill()
        machine.clear(self.cluster.folder)
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def install(self):
        manifests = subprocess.run([self.bench.holdfast, "manifests", "--crds"],
                                   capture_output=True, text=True, check=True).stdout
        self.cluster.kubectl("apply", "--server-side", "-f", "-", text=manifests)
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all",
                             "--timeout=60s")

    def load(self, mode, *args):
        admin = self.cluster.path("kubeconfig.admin")
        return self.bench.program("fleet", admin, "default", mode, *args)[0]

    def follow(self):
        """The operator's calls as they come."""
        return audit.Follower(self.cluster.path("audit.log"), user="operator",
                              key=lambda c: (c["verb"], c["resource"], c["code"]))

    def all_told(self, wanted):
        """Whether each job's status says that so many of its ranks run."""
        for job in self.cluster.client().list("pytorchjobs"):
            ranks = job.get("status", {}).get("replicaStatuses", {})
            if sum(r.get("active", 0) for r in ranks.values()) != wanted:
                return False
        return True

    def settle(self, follower, ranks=RANKS, quiet_s=6.0):
        """Until each job is told of and no request was made for a while: its own Lease and the
        watches apart, which go on for ever.  Each operator is measured up to the same state."""
        for _ in range(600):
            before = own_calls(follower.look())
            client.pause(quiet_s)
            if own_calls(follower.look()) == before and self.all_told(ranks):
                return
        raise SystemExit("fleet: the operator did not come to rest")

    def measure(self, jobs):
        """Figures of so many jobs, all at once."""
        self.process.rest()
        follower = self.follow()
        for i in range(1, (jobs - 1) // JOBS_PER_NAMESPACE + 1):
            self.cluster.kubectl("create", "namespace", f"default-{i}")
        idle, cpu, before = self.process.rss_mib(), self.process.cpu_s(), follower.look()
        f = self.load("jobs", jobs, 3600)
        self.settle(follower)
        cpu = self.process.cpu_s() - cpu
        calls = follower.look() - before
        total = sum(calls.values())
        creates = sum(n for (verb, what, code), n in calls.items()
                      if verb == "create" and what in ("pods", "services") and code < 300)
        return {
            "time_s": max(float(f["pods_s"]), float(f["services_s"])), "cpu_s": cpu,
            "peak_mib": self.process.peak_mib(), "idle_mib": idle,
            "after_mib": self.process.rss_mib(), "calls": total, "beyond": total - creates,
            "conflicts": sum(n for (_, _, code), n in calls.items() if code == 409),
            "table": calls,
        }


def own_calls(counts):
    return sum(n for (verb, what, _), n in counts.items() if verb != "watch" and what != "leases")


def program(pid):
    return os.path.basename(os.readlink(f"/proc/{pid}/exe"))


def show(bench, which, jobs, figures):
    add = bench.figures.add
    name = f"operator.{which}.{jobs}"
    what = f"{jobs:,} jobs of 4 ranks, {'the Go operator' if which == 'go' else 'Holdfast'}: "
    add(f"{name}.time", figures["time_s"], "s", 1, what + "until every pod and service is there")
    add(f"{name}.cpu", figures["cpu_s"], "s", 1, what + "CPU until it rests again",
        ms_per_job=figures["cpu_s"] * 1e3 / jobs)
    add(f"{name}.peak", figures["peak_mib"], "MiB", 1, what + "peak RSS",
        idle_before=figures["idle_mib"], at_rest_after=figures["after_mib"])
    add(f"{name}.calls", figures["calls"], "calls", 1, what + "requests",
        beyond_creates=figures["beyond"], conflicts=figures["conflicts"])
    rows = sorted(figures["table"].items(), key=lambda kv: -kv[1])
    print("      " + ", ".join(f"{v} {r} {c}: {n}" for (v, r, c), n in rows if n >= jobs // 10))


def replacements(bench, run, jobs):
    count = min(REPLACED, jobs)
    f = run.load("replace", 0, count)
    bench.figures.add(f"operator.{run.which}.replace", float(f["p50_ms"]), "ms", count,
                      "a pod's failure (exit 137) until its replacement, one at a time",
                      p90=float(f["p90_ms"]), max=float(f["max_ms"]))


def floor(bench, run, jobs):
    f = run.load("floor", jobs)
    bench.figures.add(f"operator.floor.{jobs}", float(f["created_s"]), "s", 1,
                      f"the pods and services of {jobs:,} jobs from a bare load generator")


def measure(bench, sizes, alone):
    """sizes: with the Go operator and the bare load beside; alone: Holdfast and nothing else."""
    build.build(["control", "kwok"] + (["peer"] if sizes else []))
    for jobs in sizes:
        for which in ("holdfast", "go"):
            with Run(bench, which) as run:
                show(bench, which, jobs, run.measure(jobs))
                if jobs == min(sizes):
                    replacements(bench, run, jobs)
                if which == "holdfast":
                    floor(bench, run, jobs)
    for jobs in alone:
        with Run(bench, "holdfast") as run:
            show(bench, "holdfast", jobs, run.measure(jobs))
