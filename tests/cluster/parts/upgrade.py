# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""From an older holdfast to this one and back, CRDs first, under running jobs."""

import time

from kit import audit, check, client, compare, corpus, older
from kit.check import Skip, equal, want
from kit.operator import Operator

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok"]
MINUTES = 5

NS = "upgrade"
FLAGS = ["--leader-elect"]


def setup(w):
    if w.options.peer:
        raise Skip("for Holdfast alone")
    w.older = older.program()
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    apply_crds(w, w.older)
    w.cluster.until_established()
    w.jobs, w.present = jobs(), None
    return "CRDs of " + older.COMMIT[:12]


def jobs():
    """Jobs in which something is counted, and jobs that wait or have ended."""
    c = corpus.Corpus()
    c.add("PyTorchJob", "gang", roles={"Master": 1, "Worker": 2}, policy="ExitCode",
          run={"recovery": {"restartScope": "Job"}})
    c.add("PyTorchJob", "limited", roles={"Worker": 2}, policy="OnFailure", run={"backoffLimit": 9})
    c.add("JAXJob", "ranks", roles={"Worker": 3}, policy="ExitCode")
    c.add("TFJob", "servers", roles={"Chief": 1, "PS": 1, "Worker": 2}, policy="ExitCode")
    c.add("MPIJob", "mpi", roles={"Launcher": 1, "Worker": 2})
    c.add("XGBoostJob", "boost", roles={"Master": 1, "Worker": 1}, policy="ExitCode")
    c.add("PaddleJob", "suspended", roles={"Worker": 2}, run={"suspend": True})
    c.add("PyTorchJob", "done", roles={"Worker": 1}, run={"cleanPodPolicy": "None"})
    return c.entries


def apply_crds(w, program):
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                      text=older.run(program, "manifests", "--crds"))


def operator(w, program, name):
    made = Operator(w.cluster, program, name=name, flags=FLAGS)
    w.operators.append(made)
    return made.start()


def settle(w):
    compare.settle(w, NS, w.jobs, compare.QUIET_S["holdfast"])


def pods(w):
    """{name: (UID, restarts of its containers)}"""
    return {p["metadata"]["name"]: (p["metadata"]["uid"], sum(
        c["restartCount"] for c in p["status"].get("containerStatuses") or []))
        for p in w.api.list("pods", NS)}


def ledgers(w):
    """{job: its counters and last condition}"""
    found = {}
    for e in w.jobs:
        status = w.api.get(e.plural, NS, e.name)["status"]
        ledger = status.get("recovery") or {}
        found[e.name] = {"generation": ledger.get("generation"), "restarts": ledger.get("restarts"),
                         "startTime": status.get("startTime"),
                         "state": [c["type"] for c in status["conditions"] if c["status"] == "True"][-1]}
    return found


def deletions(w):
    """Requests of the operator that delete pods."""
    return sum(1 for c in audit.calls(w.cluster.path("audit.log"), user="operator")
               if c["resource"] == "pods" and c["verb"] == "delete")


def same(w, what, before):
    """Nothing has happened to the jobs since."""
    settle(w)
    now = state(w)
    for thing, found, wanted in zip(("pods", "ledgers", "deletions of pods"), now, before):
        if isinstance(wanted, dict):
            keys = sorted(k for k in set(found) | set(wanted) if found.get(k) != wanted.get(k))
            equal(f"{what}: {thing}", {k: found.get(k) for k in keys}, {k: wanted.get(k) for k in keys})
        else:
            equal(f"{what}: {thing}", found, wanted)


def state(w):
    return pods(w), ledgers(w), deletions(w)


def total(restarts):
    return sum((restarts or {}).values())


def fail(w, name):
    """A rank of the job is killed; the restart is counted once, and the job runs again."""
    before = total(ledgers(w)[name]["restarts"])
    lived = pods(w)
    check.end_pod(w.api, w.api.get("pods", NS, f"{name}-worker-1"), 137)
    w.until(f"{name}-worker-1 is replaced", lambda: pods(w).get(f"{name}-worker-1") not in
            (None, lived[f"{name}-worker-1"]), 90)
    w.until(f"{name} runs again", lambda: ledgers(w)[name]["state"] == "Running", 60)
    equal(f"restarts of {name}", total(ledgers(w)[name]["restarts"]), before + 1)


def take_over(w, old, program, name):
    """The next operator waits for the Lease of the present one; the seconds until it leads."""
    following = operator(w, program, name)
    start = time.monotonic()
    equal("exit code", old.stop(), 0)
    w.until(f"{name} leads", lambda: following.metric("leader_election_master_status") == 1, 60)
    return following, time.monotonic() - start


def check_up(w):
    """CRDs first, then the operator: no pod is deleted, all counts stay, and go on"""
    for e in w.jobs:
        w.api.create(e.plural, NS, e.job)
    w.present = operator(w, w.older, "older")
    settle(w)
    w.end_pod(w.api.get("pods", NS, "done-worker-0"))
    for name in ("gang", "ranks", "servers"):
        fail(w, name)
    settle(w)
    before = state(w)
    want(all(total(before[1][n]["restarts"]) == 1 for n in ("gang", "ranks", "servers")), str(before[1]))
    equal("gang has generation", before[1]["gang"]["generation"], 2)
    apply_crds(w, w.program)
    w.cluster.until_established()
    same(w, "newer CRDs", before)
    # The older operator under the newer CRDs, as in the moments of an upgrade.
    fail(w, "ranks")
    settle(w)
    before = state(w)
    w.present, took = take_over(w, w.present, w.program, "newer")
    same(w, "newer operator", before)
    for name in ("gang", "ranks", "servers"):
        fail(w, name)
    w.api.patch("paddlejobs", NS, "suspended", {"spec": {"runPolicy": {"suspend": False}}})
    w.until("suspended runs", lambda: ledgers(w)["suspended"]["state"] == "Running", 60)
    settle(w)
    w.operators = []  # this operator runs on into the next check
    return f"{len(w.jobs)} jobs, {len(before[0])} pods, newer operator leads after {took:.1f} s"


def check_back(w):
    """The operator first, then CRDs: back to the older version, with the counts that the newer one kept"""
    if not w.present:
        raise Skip("the upgrade has failed")
    before = state(w)
    w.operators = [w.present]
    w.present, took = take_over(w, w.present, w.older, "older-again")
    same(w, "older operator", before)
    fail(w, "gang")
    settle(w)
    before = state(w)
    apply_crds(w, w.older)
    w.cluster.until_established()
    same(w, "older CRDs", before)
    fail(w, "servers")
    equal("generation of gang", ledgers(w)["gang"]["generation"], before[1]["gang"]["generation"])
    ends = [w.api.get("pods", NS, n) for n in ("ranks-worker-0", "ranks-worker-1", "ranks-worker-2")]
    for pod in ends:
        w.end_pod(pod)
    client.until("ranks has succeeded", lambda: ledgers(w)["ranks"]["state"] == "Succeeded", 60)
    return f"{len(before[0])} pods, older operator leads after {took:.1f} s"
