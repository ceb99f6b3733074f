#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The figures of Holdfast on this machine, and how busy the machine was meanwhile.

Nothing is judged: a figure belongs to the machine, the load and the moment it was taken in."""

import argparse
import hashlib
import http.client
import json
import os
import platform
import re
import select
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

import agent
import fleet
import inplace
import jobset
import local
import page
import recovery

JOBS = 1000
STARTS = 10
SUBMITS = 10
RANKS = 3
API = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"


def pause(seconds):
    select.select([], [], [], seconds)


def percentile(samples, part):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- what is printed
class Figures:
    """Rows as they are measured: printed at once, kept for --json."""

    def __init__(self, before):
        self.before = before
        self.rows = []

    def head(self, title):
        print(f"\n{title}")

    def add(self, name, value, unit, samples, what, **more):
        """value is the middle one where there are samples; more are figures beside it."""
        self.rows.append({"figure": name, "value": value, "unit": unit, "samples": samples,
                          "what": what, **more})
        beside = ", ".join(f"{k} {number(v)}" for k, v in more.items())
        line = f"  {name:<32} {number(value):>10} {unit:<8} {samples:>7}  {what}"
        if beside:
            line += f" ({beside})"
        old = self.before.get(name)
        if old:
            line += f"  [was {number(old)}, x{value / old:.2f}]"
        print(line, flush=True)


def number(value):
    if isinstance(value, str):
        return value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


# ---- the machine
def calibrate():
    """How long the same work takes, again and again: a quiet machine shows one number."""
    block = bytes(1 << 20)
    took = []
    for _ in range(200):
        start = time.perf_counter()
        hashlib.sha256(block).digest()
        took.append((time.perf_counter() - start) * 1e3)
    return took


def cpu_ticks():
    fields = [int(f) for f in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
    return {"all": sum(fields), "idle": fields[3] + fields[4], "steal": fields[7]}


def file_system(path):
    """The kind and the device of what path lies on."""
    best = ("", "", "")
    for line in read("/proc/mounts").splitlines():
        device, at, kind = line.split()[:3]
        if (path + "/").startswith(at.rstrip("/") + "/") and len(at) >= len(best[0]):
            best = (at, kind, device)
    return f"{best[1]} on {best[2]}"


def sync_times(folder):
    """fdatasync behind a write of 4 KiB, as a commit does it: what the disk gives."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(100):
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - start) * 1e6)
    return took


class Machine:
    def __init__(self, folder, build):
        self.load = os.getloadavg()
        self.ticks = cpu_ticks()
        self.start = time.monotonic()
        before = calibrate()
        sync = sync_times(folder)
        model = re.search(r"^model name\s*: (.*)", read("/proc/cpuinfo"), re.M)
        options = {o["name"]: o["value"] for o in json.loads(
            read(f"{build}/meson-info/intro-buildoptions.json"))}
        compiler = re.search(r"^C compiler for the host machine: .*?\((\S+ \S+)",
                             read(f"{build}/meson-logs/meson-log.txt"), re.M)
        self.facts = {
            "cpu": model.group(1) if model else platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "build": f"{options['buildtype']}, {compiler.group(1) if compiler else 'unknown'}",
            "disk": file_system(os.path.realpath(folder)),
            "fdatasync_p50_us": percentile(sync, 0.5),
            "fdatasync_p99_us": percentile(sync, 0.99),
            "load_before": [round(l, 2) for l in self.load],
            "calibration_p50_ms": percentile(before, 0.5),
        }
        self.before = before
        facts = self.facts
        print(f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}; "
              f"build: {facts['build']}")
        print(f"files: {facts['disk']}; fdatasync of 4 KiB: p50 {facts['fdatasync_p50_us']:.0f} us, "
              f"p99 {facts['fdatasync_p99_us']:.0f} us")
        print(f"load before: {' '.join(str(l) for l in facts['load_before'])}")
        if options["buildtype"] != "release":
            print(f"{build} is no release build: these are not the figures of one")

    def close(self):
        after = calibrate()
        ticks = cpu_ticks()
        spent = {k: ticks[k] - self.ticks[k] for k in ticks}
        every = self.before + after
        middle = percentile(every, 0.5)
        self.facts |= {
            "load_after": [round(l, 2) for l in os.getloadavg()],
            "wall_s": round(time.monotonic() - self.start, 1),
            "busy_percent": round(100 * (1 - spent["idle"] / max(1, spent["all"]))),
            "steal_percent": round(100 * spent["steal"] / max(1, spent["all"]), 1),
            "noise_p90": round(percentile(every, 0.9) / middle, 2),
            "noise_p99": round(percentile(every, 0.99) / middle, 2),
            "drift": round(percentile(after, 0.5) / percentile(self.before, 0.5), 2),
        }
        facts = self.facts
        print(f"\nload after: {' '.join(str(l) for l in facts['load_after'])}; "
              f"{facts['wall_s']:.0f} s, all cores {facts['busy_percent']} % busy, "
              f"{facts['steal_percent']} % stolen")
        print(f"noise: the same work took x{facts['noise_p90']} of its middle time at p90, "
              f"x{facts['noise_p99']} at p99, and x{facts['drift']} at the end of the beginning's "
              "(a quiet machine: 1.0x)")


# ---- a plane
class Plane:
    """`holdfast up` in a folder, and a client of it."""

    def __init__(self, bench, folder):
        self.bench = bench
        self.folder = folder
        self.process = None
        self.client = None
        bench.planes.append(self)

    def start(self):
        """Seconds from starting the program to the line that says it is ready."""
        log = open(self.folder + ".log", "ab")
        start = time.perf_counter()
        # Ctrl-C is for this program: it ends the pods too, which a plane would leave running.
        self.process = subprocess.Popen(
            [self.bench.holdfast, "up", "--listen", "127.0.0.1:0", "--data-dir", self.folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        log.close()
        line = self.process.stdout.readline()
        took = time.perf_counter() - start
        if not line.startswith(b"export KUBECONFIG="):
            raise SystemExit(f"bench: holdfast up: {read(self.folder + '.log')[-600:]}")
        return took

    @property
    def kubeconfig(self):
        return self.folder + "/kubeconfig"

    def stop(self):
        """As SIGTERM does; pods run on."""
        self.client = None
        if self.process:
            self.process.terminate()
            self.process.wait(30)
            self.process.stdout.close()
        self.process = None

    def down(self):
        """And its pods."""
        self.client = None
        if os.path.isdir(self.folder):
            subprocess.run([self.bench.holdfast, "down", "--data-dir", self.folder,
                            "--timeout", "20s"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(30)
            self.process.stdout.close()
        self.process = None

    def cpu(self):
        """Seconds on a core so far."""
        return int(read(f"/proc/{self.process.pid}/schedstat").split()[0]) / 1e9

    def memory(self):
        """Resident MiB: all of it, and what no file backs."""
        status = read(f"/proc/{self.process.pid}/status")
        return [int(re.search(rf"^{f}:\s+(\d+)", status, re.M).group(1)) / 1024
                for f in ("VmRSS", "RssAnon")]

    def settle(self):
        """Until it has done what it was told: next to no CPU for half a second."""
        for _ in range(60):
            before = self.cpu()
            pause(0.5)
            if self.cpu() - before < 0.005:
                return

    def call(self, method, path, body=None):
        if not self.client:
            host, port = re.search(r"https://([^:]+):(\d+)", read(self.kubeconfig)).groups()
            context = ssl.create_default_context(cafile=self.folder + "/ca.pem")
            self.client = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
        headers = {"Authorization": "Bearer " + read(self.folder + "/token").strip(),
                   "Content-Type": "application/json"}
        self.client.request(method, path, json.dumps(body) if body else None, headers)
        answer = self.client.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status != 404:
            raise SystemExit(f"bench: {method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def load(self, what, connections, requests, seconds, first=0):
        """One run of api_bench; its figures and the CPU that the server spent on a request."""
        before = self.cpu()
        figures = self.bench.program("api", self.kubeconfig, what, connections, requests, seconds,
                                     first)[0]
        figures["server_us"] = (self.cpu() - before) / float(figures["requests"]) * 1e6
        return figures

    def fill(self, jobs, first=0):
        if jobs > first:
            self.load("create", 8, jobs - first, 120, first)
            self.settle()


class Bench:
    def __init__(self, build, before):
        self.build = os.path.abspath(build)
        self.holdfast = self.build + "/holdfast"
        self.planes = []
        self.folder = tempfile.mkdtemp(prefix="holdfast-bench-",
                                       dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.filled = None
        self.figures = Figures(before)
        self.machine = None
        self.jobs, self.alone = [], []

    def program(self, name, *args):
        """The lines of one of the C programs, as dictionaries."""
        run = self.run([f"{self.build}/tests/bench/{name}_bench", *map(str, args)])
        return [dict(w.split("=", 1) for w in line.split() if "=" in w) |
                {"words": [w for w in line.split() if "=" not in w]}
                for line in run.stdout.splitlines()]

    def run(self, argv):
        run = subprocess.run(argv, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise SystemExit(f"bench: {' '.join(argv)}: {run.returncode} {run.stderr[-600:]}")
        return run

    def plane(self, name):
        return Plane(self, f"{self.folder}/{name}")

    def filled_plane(self):
        """One that has the jobs in its folder and is not running."""
        if not self.filled:
            plane = self.plane("filled")
            plane.start()
            plane.fill(JOBS)
            plane.stop()
            self.filled = plane
        return self.filled

    def close(self):
        for plane in self.planes:
            plane.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the parts
    def up(self):
        add = self.figures.add
        took, cpu = [], []
        for i in range(STARTS):
            plane = self.plane(f"empty{i}")
            took.append(plane.start() * 1e3)
            cpu.append(plane.cpu() * 1e3)
            plane.down()
        spread(add, "up.empty", took, "ms", "holdfast up in a new folder, until it says it is ready",
               cpu_ms=percentile(cpu, 0.5))
        plane = self.plane("again")
        plane.start()
        plane.stop()
        self.restarts("up.again", plane, "the same in a folder that has its keys, no jobs")
        self.restarts("up.jobs", self.filled_plane(), f"the same with {JOBS:,} jobs stored")

    def restarts(self, name, plane, what):
        took, cpu = [], []
        for _ in range(STARTS):
            took.append(plane.start() * 1e3)
            cpu.append(plane.cpu() * 1e3)
            plane.stop()
        spread(self.figures.add, name, took, "ms", what, cpu_ms=percentile(cpu, 0.5))

    def submit(self):
        add = self.figures.add
        plane = self.plane("submit")
        plane.start()
        first, last, shims = [], [], []
        for i in range(SUBMITS):
            started = submit_one(plane, f"submit-{i}", f"{self.folder}/ranks-{i}")
            first.append(started[0] * 1e3)
            last.append(started[-1] * 1e3)
            shims += shim_memory(plane)
            remove(plane, f"submit-{i}")
        plane.down()
        what = f"create of a PyTorchJob (1 master, {RANKS - 1} workers) sent, until"
        spread(add, "submit.first_process", first, "ms", f"{what} the first rank's own clock")
        spread(add, "submit.last_process", last, "ms", f"{what} the last rank's own clock")
        spread(add, "submit.shim_memory", shims, "MiB", "what a running pod adds: PSS of its shim")

    def api(self):
        plane = self.plane("api")
        plane.start()
        self.rate(plane, "api.create.1", "POST of a suspended job, one after the other", "create", 1,
                  100, 20)
        plane.settle()
        for connections in (1, 8):
            self.rate(plane, f"api.get.{connections}", "GET of a job", "get", connections, 200000, 3)
        self.rate(plane, "api.list100.1", "LIST of 100 jobs", "list", 1, 10000, 3)
        self.rate(plane, "api.list100.8", "LIST of 100 jobs", "list", 8, 10000, 3)
        self.rate(plane, "api.create.8", "POST of a suspended job", "create", 8, JOBS - 100, 60, 100)
        plane.settle()
        self.rate(plane, "api.list1000.1", f"LIST of {JOBS:,} jobs", "list", 1, 10000, 3)
        self.rate(plane, "api.list1000.8", f"LIST of {JOBS:,} jobs", "list", 8, 10000, 3)
        f = plane.load("watch", 1, 500, 5)
        self.figures.add("api.watch.delay", float(f["p50_us"]), "us", int(f["requests"]),
                         "PATCH of a label sent, until its event is here", p99=float(f["p99_us"]))
        plane.down()

    def rate(self, plane, name, what, *args):
        f = plane.load(*args)
        plural = "" if f["connections"] == "1" else "s"
        self.figures.add(name, float(f["per_second"]), "/s", int(f["requests"]),
                         f"{what}, {f['connections']} connection{plural}, TLS and token",
                         p50_us=float(f["p50_us"]), p99_us=float(f["p99_us"]),
                         kB=float(f["bytes"]) / 1e3, server_cpu_us=f["server_us"])

    def memory(self):
        plane = self.plane("memory")
        plane.start()
        plane.settle()
        self.resident("memory.idle", plane, "holdfast up, ready and idle")
        plane.fill(JOBS)
        self.resident("memory.jobs", plane, f"with {JOBS:,} suspended jobs, 3 ranks each")
        plane.load("list", 1, 5, 10)
        plane.settle()
        self.resident("memory.jobs_listed", plane, "the same, when they were listed")
        plane.stop()
        plane.start()
        plane.settle()
        self.resident("memory.jobs_restarted", plane, "the same, after a restart")
        plane.stop()
        self.filled = self.filled or plane

    def resident(self, name, plane, what):
        rss, anonymous = plane.memory()
        self.figures.add(name, rss, "MiB", 1, what, anonymous=anonymous)

    def store(self):
        for args in (("-", 40000, 32), ("dir", 2000, 1), ("dir", 20000, 32)):
            folder = tempfile.mkdtemp(dir=self.folder)
            for f in self.program("store", folder if args[0] == "dir" else "-", *args[1:]):
                kind, where = f["words"][1:3]
                self.figures.add(f"store.{kind}.{where}.{f['in_flight']}", float(f["per_second"]),
                                 "/s", int(f["requests"]),
                                 f"{kind} of a pod, store in {where}, {f['in_flight']} in flight",
                                 cpu_us=float(f["cpu_us"]))

    def brain(self):
        for ranks, steps in ((1000, 2000), (10000, 150)):
            for f in self.program("step", ranks, steps):
                self.figures.add(f"brain.{f['words'][1]}.{ranks}", float(f["steps_per_second"]),
                                 "steps/s", steps, f"{STATES[f['words'][1]]}, {ranks:,} pods",
                                 arena_kB=float(f["bytes"]) / 1e3)
        for state, what in STATES.items():
            few, many = (self.instructions(1000, steps, state) for steps in (1, 11))
            self.figures.add(f"brain.{state}.1000.instructions", (many - few) / 10, "instr", 10,
                             f"{what}, 1,000 pods: one step, by callgrind")

    def instructions(self, ranks, steps, state):
        run = self.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                        "--toggle-collect=hf_job_step", f"{self.build}/tests/bench/step_bench",
                        str(ranks), str(steps), state])
        return int(re.search(r"Collected : (\d+)", run.stderr).group(1))

    def straggle(self):
        for f in self.program("straggle", 300):
            name, what = f["words"][1], f["words"][1].split("-")
            what = f"noise {what[1]} %, a rank slower by {what[3]} %, 64 ranks"
            # What is never found has no step at which it is.
            if float(f["recall"]) > 0:
                self.figures.add(f"straggle.{name}.steps", float(f["median"]), "steps",
                                 int(f["jobs"]), f"{what}: to the verdict", p99=float(f["p99"]))
            self.figures.add(f"straggle.{name}.recall", float(f["recall"]), "", int(f["jobs"]),
                             f"{what}: found", precision=float(f["precision"]))

    def pattern(self):
        for f in self.program("pattern"):
            name = f["words"][1]
            self.figures.add(f"pattern.{name}", float(f["ns"]) / 1000, "us", int(f["lines"]), PATTERN[name])

    def page(self):
        page.run(self)

    def operator(self):
        fleet.measure(self, self.jobs, self.alone)

    def status(self):
        recovery.ledger(self)

    def agent(self):
        agent.measure(self, percentile)

    def sim(self):
        recovery.simulator(self)

    def gang(self):
        recovery.gang(self)

    def exec(self):
        inplace.executor(self)

    def inplace(self):
        inplace.executor(self)
        inplace.machine(self)
        for ranks in self.ranks:
            inplace.measure(self, ranks)

    def jobset(self):
        for ranks in self.ranks:
            jobset.measure(self, ranks)

    def local(self):
        local.local(self, spread)

    def lost(self):
        recovery.lost(self)

    def json(self):
        for f in self.program("json", 20000):
            name = f["words"][1]
            self.figures.add(f"json.{name}", float(f["us"]), "us", int(f["rounds"]), JSON[name],
                             us_per_kB=float(f["us_per_kB"]))


STATES = {"quiet": "all ranks run", "failed": "one rank has just failed"}
JSON = {
    "fields": "9 fields of a Pod from its text, skipping the rest",
    "metadata": "a document and its metadata, skipping the rest",
    "parse": "the tree of a Pod from its text",
    "write": "the text of a Pod from its tree",
    "copy": "a copy of the tree",
    "yaml": "the tree of a Pod from its YAML",
}
PATTERN = {
    "builtin-log": "a log line of 112 bytes, against the lines of trainers: no step",
    "builtin-bracket": "a log line with a bracket, likewise",
    "builtin-bars": "2 KB of bars, likewise",
    "builtin-tqdm": "a bar of tqdm: a step",
    "own-log": "a log line of 112 bytes, against one expression: no step",
    "own-step": "a line with a step, likewise",
    "own-explodes": "an expression that explodes, on 2 KB: cut off",
    "rule-literal": "a rule, each of 16: loss=(\\S+) on a log line of 112 bytes without it",
    "rule-digits": "a rule, each of 16: digits and a slash, likewise",
    "rule-any-case": "a rule, each of 16: two words in any case, likewise",
    "rule-trainers": "a rule, each of 16: the lines of trainers, likewise",
    "rule-long-line": "a rule, each of 16: loss=(\\S+) on 2 KB of letters",
}
PARTS = {
    "straggle": "slow ranks of simulated jobs: found, and after how many steps",
    "up": "from holdfast up to ready",
    "submit": "from submit to the last process",
    "api": "the API as a client sees it",
    "memory": "resident memory of the plane",
    "store": "commits of the embedded store",
    "brain": "steps of the job brain",
    "status": "bytes of status at 1,000 and 10,000 replicas",
    "sim": "schedules of the simulator",
    "json": "reading and writing a Pod",
    "pattern": "steps from lines of log",
    "page": "the page: 100 viewers, 1,000 changes a second, lists of 10,000 jobs",
}
# Only when named: they take long, most because they build a Kubernetes with Go first.
BY_HAND = {
    "agent": "the agent of a node: line to condition, floods, what it costs at rest (four minutes)",
    "operator": "the operator under load on a real control plane, and the Go operator beside it",
    "gang": "a gang of 1,000 restarts on kwok's nodes",
    "exec": "memory and CPU of holdfast exec (two minutes)",
    "inplace": "that; a gang restarts in its pods, with played agents on a real control plane; the same gang re-created",
    "jobset": "the gang of inplace as a JobSet 0.12 that restarts in place, with played agents",
    "local": "holdfast run beside torchrun: a minute of training, kills, Ctrl-C (six minutes)",
    "lost": "a node loses power, on a real control plane: with proof and without, tuned and stock",
}


def spread(add, name, samples, unit, what, **more):
    add(name, percentile(samples, 0.5), unit, len(samples), what, min=min(samples),
        max=max(samples), **more)


def submit_one(plane, name, folder):
    """Seconds from sending the job to each rank's first word, in order."""
    os.mkdir(folder)
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{
        "name": "pytorch", "image": "none",
        "command": ["/bin/sh", "-c", f'date +%s.%N >"{folder}/.$RANK"; '
                    f'mv "{folder}/.$RANK" "{folder}/$RANK"; exec sleep 3600']}]}

    def replica(count):
        return {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}

    start = time.time()
    plane.call("POST", API, {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(RANKS - 1)}}})
    for _ in range(3000):
        pause(0.01)
        ranks = [f for f in os.listdir(folder) if not f.startswith(".")]
        if len(ranks) == RANKS:
            return sorted(float(read(f"{folder}/{r}")) - start for r in ranks)
    raise SystemExit(f"bench: the ranks of {name} did not start within 30 s")


def shim_memory(plane):
    """PSS of each shim of the plane's pods, in MiB."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = read(f"/proc/{pid}/cmdline").split("\0")
            if words[1:2] == ["shim"] and any(plane.folder in w for w in words):
                found.append(int(re.search(r"^Pss:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"),
                                           re.M).group(1)) / 1024)
        except OSError:
            continue
    return found


def remove(plane, name):
    plane.call("DELETE", f"{API}/{name}?propagationPolicy=Background")
    for _ in range(3000):
        if not plane.call("GET", "/api/v1/namespaces/default/pods")["items"]:
            return
        pause(0.01)
    raise SystemExit(f"bench: the pods of {name} did not go within 30 s")


def arguments():
    parts = "\n".join(f"  {name:<8} {what}" for name, what in PARTS.items())
    parts += "\nby hand:\n" + "\n".join(f"  {name:<8} {what}" for name, what in BY_HAND.items())
    parser = argparse.ArgumentParser(
        prog="./dev bench", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__, epilog=f"parts:\n{parts}")
    parser.add_argument("parts", nargs="*", metavar="PART", help="all but those by hand, if none is named")
    parser.add_argument("--jobs", metavar="N,...", default="300",
                        help="operator: how many at once, two clusters each (300); '' for none")
    parser.add_argument("--alone", metavar="N,...", default="",
                        help="operator: more sizes, for Holdfast without the Go operator")
    parser.add_argument("--ranks", metavar="N,...", default="1000", help="inplace, jobset: sizes of the gang (1000)")
    parser.add_argument("--json", metavar="FILE", help="write the figures, one JSON object a line")
    parser.add_argument("--against", metavar="FILE", help="show the figures of such a file beside")
    parser.add_argument("--build", default="build", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for part in args.parts:
        if part not in PARTS | BY_HAND:
            parser.error(f"no part '{part}': {', '.join(PARTS | BY_HAND)}")
    for name in ("jobs", "alone", "ranks"):
        text = getattr(args, name)
        try:
            setattr(args, name, [int(n) for n in text.split(",") if n])
        except ValueError:
            parser.error(f"--{name}: '{text}' is no list of numbers")
    return args


def earlier(path):
    lines = [json.loads(line) for line in read(path).splitlines()] if path else []
    return {line["figure"]: line["value"] for line in lines if "figure" in line}


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(args.build, earlier(args.against))
    bench.jobs, bench.alone, bench.ranks = args.jobs, args.alone, args.ranks
    try:
        bench.machine = Machine(bench.folder, bench.build)
        print(f"\n  {'figure':<32} {'value':>10} {'unit':<8} {'samples':>7}  what")
        for part in dict.fromkeys(args.parts or PARTS):
            bench.figures.head((PARTS | BY_HAND)[part])
            getattr(bench, part)()
        bench.machine.close()
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                for line in [{"machine": bench.machine.facts}, *bench.figures.rows]:
                    print(json.dumps(line), file=file)
    except KeyboardInterrupt:
        print("\nbench: interrupted; ending what was started", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        bench.close()


if __name__ == "__main__":
    main()
