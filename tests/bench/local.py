# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""holdfast run beside torchrun, with the same training of two ranks.

HOLDFAST_BENCH_ROOT names the root folder of a system with PyTorch, for a machine without one: the ranks of
both launchers run there (chroot, as root).  Variables for torchrun (PET_…, USE_LIBUV) come from the shell."""

import os
import re
import select
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.realpath(__file__))
STEPS, SPAN = 600, 0.1  # a minute, 10 reports a second of each rank
KILLS = 3
STOPS = 3


def pause(seconds):
    select.select([], [], [], seconds)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        pause(0.005)
    raise SystemExit("bench: local: waited too long")


class Place:
    """Where the ranks run: this system, or the root folder that was named."""

    def __init__(self, bench):
        self.root = os.environ.get("HOLDFAST_BENCH_ROOT", "").rstrip("/")
        self.bench = bench
        self.name = f"holdfast-bench-{os.getpid()}"
        self.inside = f"/tmp/{self.name}" if self.root else f"{bench.folder}/{self.name}"
        self.folder = self.root + self.inside
        os.makedirs(self.folder)
        shutil.copy(f"{HERE}/train_local.py", self.folder)
        shutil.copy(f"{HERE}/../../python/holdfast_report.py", self.folder)
        rank = f"{self.folder}/rank.sh"
        # The pod's names, and the socket for reports as the root folder has it.
        with open(rank, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n"
                       f"mount --bind /etc/hosts '{self.root}/etc/hosts' || exit\n"
                       f"exec env HOLDFAST_AGENT_SOCKET=\"${{HOLDFAST_AGENT_SOCKET#{self.root}}}\" "
                       f"chroot '{self.root}' python3 -u {self.inside}/train_local.py \"$@\"\n")
        os.chmod(rank, 0o755)

    def wrap(self, argv):
        """argv with /proc and /dev in the root folder, in a mount namespace of its own."""
        if not self.root:
            return argv
        mounts = "".join(f"mount --rbind /{d} '{self.root}/{d}' && " for d in ("proc", "dev"))
        return ["unshare", "-m", "sh", "-c", mounts + 'exec "$@"', "sh", *argv]

    def processes(self):
        """Those of the training, launchers among them."""
        found = []
        for pid in os.listdir("/proc"):
            if pid.isdigit() and "train_local.py" in (line := read(f"/proc/{pid}/cmdline")) and \
                    self.name in line:
                found.append(int(pid))
        return found

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Launcher:
    """One start of the training, by holdfast or by torchrun."""

    def __init__(self, place, name, number, args):
        self.place = place
        self.name = name
        self.folder = f"{place.folder}/{name}-{number}"
        os.makedirs(self.folder)
        words = [f"{place.inside}/{name}-{number}", *map(str, args)]
        script = f"{place.inside}/train_local.py"
        env = dict(os.environ)
        if name == "torchrun":
            argv = ["torchrun", "--nproc_per_node", "2", "--max_restarts", "3", script, *words]
            argv = ["chroot", place.root, *argv] if place.root else argv
        else:
            env["HOLDFAST_DIR"] = f"{place.folder}/state"
            program = ["--", f"{place.folder}/rank.sh"] if place.root else [script]
            argv = [place.bench.holdfast, "run", "--nproc", "2", "--max-restarts", "3", *program, *words]
        self.log = open(f"{self.folder}/log", "wb")
        self.start = time.time()
        self.process = subprocess.Popen(place.wrap(argv), env=env, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def firsts(self, n, what="first"):
        """When each rank made its first step, of its n-th start; None: not yet."""
        lines = [read(f"{self.folder}/{what}-{rank}").splitlines() for rank in (0, 1)]
        if min(len(l) for l in lines) < n:
            return None
        return [float(l[n - 1].split()[0]) for l in lines]

    def killed(self):
        text = read(f"{self.folder}/killed").split()
        return float(text[0]) if text else None

    def wait(self, what):
        """What `what` returns, once it is not empty; ends the bench if the launcher fails before."""
        def look():
            if self.process.poll():
                self.must_end()
            return what()
        return wait_for(look)

    def end(self):
        code = self.process.wait(240)
        self.log.close()
        return code

    def must_end(self):
        code = self.end()
        if code != 0:
            raise SystemExit(f"bench: local: {self.name}: code {code}\n{read(self.folder + '/log')[-1500:]}")

    def interrupt(self):
        """Seconds from Ctrl-C until nothing of it runs any more."""
        start = time.monotonic()
        os.killpg(self.process.pid, signal.SIGINT)
        self.end()
        wait_for(lambda: not self.place.processes())
        return time.monotonic() - start


def helpers(place, pid):
    """Holdfast's processes: `run`, and the shims of its pods."""
    shims = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        line = read(f"/proc/{other}/cmdline")
        if "\0shim\0pod\0" in line and place.name in line:
            shims.append(int(other))
    return [pid, *shims]


def cpu(pid):
    fields = read(f"/proc/{pid}/schedstat").split()
    return int(fields[0]) / 1e9 if fields else 0.0


def memory(pid):
    found = re.search(r"^Pss:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.M)
    return int(found.group(1)) / 1024 if found else 0.0


def resident(pid):
    found = re.search(r"^VmRSS:\s+(\d+)", read(f"/proc/{pid}/status"), re.M)
    return int(found.group(1)) / 1024 if found else 0.0


def minute(place, name, spread, figures):
    run = Launcher(place, name, "minute", [STEPS, SPAN])
    first = run.wait(lambda: run.firsts(1))
    if name == "holdfast":
        pids = helpers(place, run.process.pid)
        before, began = [cpu(p) for p in pids], time.monotonic()
        pause(STEPS * SPAN / 2)
        spent = [cpu(p) - b for p, b in zip(pids, before)]
        took = time.monotonic() - began
        figures.add("local.cpu", 100 * spent[0] / took, "%", 1, "of a core, holdfast run",
                    with_shims=100 * sum(spent) / took)
        figures.add("local.memory", resident(pids[0]), "MiB", 1, "resident, holdfast run",
                    own=memory(pids[0]), shims=sum(memory(p) for p in pids[1:]))
    run.must_end()
    spread(f"local.first.{name}", [max(first) - run.start], "s", f"{name}: start to the first step")
    spread(f"local.total.{name}", [time.time() - run.start], "s", f"{name}: {STEPS} steps of {SPAN} s")


def kills(place, name, spread):
    took, started = [], []
    for i in range(KILLS):
        run = Launcher(place, name, f"kill{i}", [60, SPAN, 20])
        killed = run.wait(run.killed)
        took.append(max(run.wait(lambda: run.firsts(2))) - killed)
        started.append(max(run.firsts(2, "start")) - killed)
        run.must_end()
    spread(f"local.restart.{name}", started, "s", f"{name}: SIGKILL of a rank until both programs start anew")
    spread(f"local.kill.{name}", took, "s", f"{name}: SIGKILL of a rank until all ranks made a step")


def stops(place, name, spread):
    took = []
    for i in range(STOPS):
        run = Launcher(place, name, f"stop{i}", [STEPS, SPAN])
        run.wait(lambda: run.firsts(1))
        took.append(run.interrupt())
    spread(f"local.stop.{name}", took, "s", f"{name}: Ctrl-C until no process is left")


def local(bench, spread):
    place = Place(bench)
    try:
        for name in ("torchrun", "holdfast"):
            minute(place, name, lambda *a: spread(bench.figures.add, *a), bench.figures)
        for part in (kills, stops):
            for name in ("torchrun", "holdfast"):
                part(place, name, lambda *a: spread(bench.figures.add, *a))
        kept = f"{place.folder}/state/runs"
        logs = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(kept) for f in files)
        bench.figures.add("local.kept", logs / 1024, "KiB", len(os.listdir(kept)),
                          "kept of these runs: logs and objects")
    finally:
        for pid in place.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        place.close()
