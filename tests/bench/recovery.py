# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What failures cost: the simulator's speed, bytes of status, a gang of a thousand, a lost node."""

import json
import os
import re
import subprocess
import sys
import time

import fleet

from kit import build, client
from kit.check import end_pod, pytorchjob

SEEDS = 300
RANKS = 1000
ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")


def ledger(bench):
    """Bytes of status as they are written, from the brain alone."""
    for ranks in (1000, 10000):
        f = bench.program("step", ranks, 1, "status")[0]
        what = f"{ranks:,} replicas, status as it is written"
        bench.figures.add(f"status.rest.{ranks}", int(f["rest"]), "bytes", 1, what + ", at rest",
                          recovery=int(f["rest_recovery"]))
        bench.figures.add(f"status.restarted.{ranks}", int(f["restarted"]), "bytes", 1,
                          what + ", one rank restarted", recovery=int(f["restarted_recovery"]))


def simulator(bench):
    out = bench.run([os.path.join(ROOT, "dev"), "sim", "--seeds", str(SEEDS), "--start", "1"]).stdout
    rate = int(re.search(r"(\d+) seeds a second", out).group(1))
    said = re.search(r"(\d+) seeds, (\d+) hours, (\d+) troubles, (\d+) deaths.*?(\d+) requests", out)
    hours, troubles, deaths, requests = (int(n) for n in said.groups()[1:])
    bench.figures.add("sim.seeds", rate, "/s", SEEDS, "schedules of the simulator, of one core",
                      hours=hours, troubles=troubles, deaths=deaths, requests=requests)


def gang(bench):
    """A job of scope Job on kwok's nodes; one rank exits with 137."""
    build.build(["control", "kwok"])
    with fleet.Run(bench, "holdfast") as run:
        api = run.cluster.client()
        job = pytorchjob("gang", "default", RANKS - 1,
                         run_policy={"recovery": {"restartScope": "Job"}})
        api.create("pytorchjobs", "default", job)
        until_running(api, RANKS, 1)
        follower = run.follow()
        run.settle(follower, RANKS)
        before, calls = run.process.cpu_s(), follower.look()
        pod = api.get("pods", "default", "gang-worker-7")
        start = time.monotonic()
        end_pod(api, pod, 137)
        until_running(api, RANKS, 2)
        took = time.monotonic() - start
        run.settle(follower, RANKS)
        cpu, calls = run.process.cpu_s() - before, follower.look() - calls
        writes = {verb: sum(n for (v, what, _), n in calls.items() if v == verb and what == "pods")
                  for verb in ("create", "delete")}
        status = api.get("pytorchjobs", "default", "gang")["status"]
        bench.figures.add("gang.time", took, "s", 1,
                          f"{RANKS:,} ranks in scope Job on kwok: one exits until all run again")
        bench.figures.add("gang.cpu", cpu, "s", 1, "CPU of the operator meanwhile",
                          creates=writes["create"], deletes=writes["delete"],
                          statuses=sum(n for (v, what, _), n in calls.items()
                                       if v == "patch" and what.startswith("pytorchjobs")))
        bench.figures.add("gang.status", len(json.dumps(status, separators=(",", ":"))), "bytes", 1,
                          "its status after that",
                          charged=status["recovery"]["restarts"]["application"])


def until_running(api, ranks, generation):
    def all_run():
        return ranks == sum(
            p["status"].get("phase") == "Running" and
            p["metadata"]["annotations"].get("holdfast.dev/generation") == str(generation)
            for p in api.list("pods", "default") if "deletionTimestamp" not in p["metadata"])
    client.until(f"the gang runs as generation {generation}", all_run, 1800, 0.5)


LOSSES = {"silent": "nobody proves it", "node_deleted": "the Node object is deleted",
          "out_of_service": "the taint out-of-service is set"}


def lost(bench):
    """The checks of the conformance run in which a node's power goes, tuned and with stock timings."""
    for stock in (False, True):
        timings = "stock" if stock else "tuned"
        env = {**os.environ, **({"HOLDFAST_TEST_STOCK": "1"} if stock else {})}
        for check, what in LOSSES.items():
            run = subprocess.run([os.path.join(ROOT, "dev"), "conformance", "--build", bench.build,
                                  "--only", check, "nodes"],
                                 env=env, capture_output=True, text=True, check=False)
            said = re.search(r"replacements run after ([\d.]+) s", run.stdout)
            if run.returncode or not said:
                sys.exit("bench: " + (run.stdout + run.stderr)[-800:])
            bench.figures.add(f"lost.{check}.{timings}", float(said[1]), "s", 1,
                              f"power off until the replacement runs: {what}, {timings} timings")
