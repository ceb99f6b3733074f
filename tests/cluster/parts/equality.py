# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The same jobs by the Go operator and by Holdfast: what differs stands in docs/differences.md."""

import json
import os
import re
import time

from kit import client, compare, corpus
from kit.check import PEER_FLAGS, Skip, equal, parallel, want
from kit.operator import Operator, Peer

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "peer"]
MINUTES = 6

TABLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../docs/differences.md")
# How a row of the table looks here: KIND JOB ROUND/PATH GO -> HOLDFAST.
SEEN_AS = {
    "D1": r'/pods/\S+/metadata/annotations(/holdfast\.dev/| null -> \{"holdfast\.dev/)',
    "D2": r" \d/status/recovery null -> ",
    "D3": r"/events/(Normal (SuccessfulCreateService|ExitedWithCode)|Warning FailedCreate(Pod|Service))"
          r" true -> null",
    "D4": r"/events/Warning ApplicationFailure null -> true",
    "D5": r'/status/(order \["Created", "Running"\] -> \["Created", "Restarting", "Running"\]'
          r'|conditions/Restarting null -> \{"status": "False")',
    "D6": r'/status/conditions/Running/(reason|message) .* -> ".*(Settling|waits for the cause of a '
          r'failure\.)"',
    "D7": r"\S+-broken 1/(status/completionTime null|events/(Warning \w+Restarting|Normal \w+Failed) true)",
    "D8": r'\S+-suspended 1/status/startTime "there" -> null',
    "D9": r"\S+-born-suspended 0/status/replicaStatuses null -> ",
    "D10": r" 1/status/replicaStatuses/Worker/selector null -> ",
    "D11": r"/events/Warning Unschedulable true -> null",
}
# Nothing has happened for so long: nothing more will.  Ours waits longer for the cause of an end.
QUIET_S = {"go": 6, "holdfast": 25}
ROUND_S = 120


def setup(w):
    if w.options.peer:
        raise Skip("it runs both")
    return w.install()


def rows():
    """The numbers of the table's rows."""
    with open(TABLE, encoding="utf-8") as f:
        return re.findall(r"^\| (D\d+) \|", f.read(), re.MULTILINE)


def moving(w, ns, entries):
    """What must stand still: who is there and how, and what is said of the jobs."""
    pods = [(p["metadata"]["uid"], p["status"].get("phase"),
             bool(p["metadata"].get("deletionTimestamp"))) for p in w.api.list("pods", ns)]
    jobs = []
    for plural in sorted({e.plural for e in entries}):
        for j in w.api.list(plural, ns):
            s = j.get("status") or {}
            jobs.append((j["metadata"]["name"],
                         sorted((c["type"], c["status"], c["reason"])
                                for c in s.get("conditions") or []),
                         json.dumps(s.get("replicaStatuses"), sort_keys=True)))
    return sorted(pods), sorted(jobs, key=lambda j: j[0])


def settle(w, ns, entries, quiet_s):
    last, since, begun = None, time.monotonic(), time.monotonic()
    while time.monotonic() - begun < ROUND_S:
        seen = moving(w, ns, entries)
        if seen != last:
            last, since = seen, time.monotonic()
        elif time.monotonic() - since >= quiet_s:
            return
        client.pause(0.5)


def act(w, ns, entry, what):
    kind, *how = what
    if kind == "patch":
        w.api.patch(entry.plural, ns, entry.name, how[0])
    elif kind == "scale":
        w.api.patch(entry.plural, ns, entry.name, {"spec": {"replicas": how[0]}}, "scale")
    else:
        ranks, code = how
        for pod in w.api.list("pods", ns, f"training.kubeflow.org/job-name={entry.name}"):
            rank = pod["metadata"]["name"][len(entry.name) + 1:]
            if pod["status"].get("phase") == "Running" and (
                    rank in ranks or rank.rpartition("-")[0] in ranks):
                w.end_pod(pod, code)


def run(w, who, entries, operator):
    """What is seen after each round of acts."""
    ns = f"equality-{who}"
    w.api.create("namespaces", None, {"metadata": {"name": ns}})
    operator.start()
    parallel(entries, lambda e: w.api.create(e.plural, ns, e.job))
    settle(w, ns, entries, QUIET_S[who])
    seen = [compare.look(w.api, ns, entries)]
    for i in range(max(len(e.acts) for e in entries)):
        parallel([e for e in entries if i < len(e.acts)],
                 lambda e, i=i: act(w, ns, e, e.acts[i]))
        settle(w, ns, entries, QUIET_S[who])
        seen.append(compare.look(w.api, ns, entries))
    operator.stop()
    return seen


def check_corpus(w):
    """Every object, variable, label, condition and event is the same but for what the table says"""
    kinds = os.environ.get("HOLDFAST_TEST_KINDS", "").split()
    entries = corpus.entries(kinds)
    theirs = run(w, "go", entries, Peer(w.cluster, [*PEER_FLAGS, "-namespace", "equality-go"]))
    ours = run(w, "holdfast", entries, Operator(
        w.cluster, w.program, flags=["--namespace", "equality-holdfast"]))
    shown, left = set(), []
    for number, (a, b) in enumerate(zip(theirs, ours)):
        for e in entries:
            if number > len(e.acts):
                continue
            for path, x, y in compare.differences(a[e.name], b[e.name]):
                place = f"{e.kind} {e.name} {number}{path} {json.dumps(x)} -> {json.dumps(y)}"
                row = next((r for r, seen_as in SEEN_AS.items() if re.search(seen_as, place)), None)
                if row:
                    shown.add(row)
                else:
                    left.append(place)
    with open(w.cluster.path("differences.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(left) + "\n")
    want(not left, f"{len(left)} differences that the table has not, the first: "
                   + "; ".join(left[:3])[:600])
    equal("rows of docs/differences.md", rows(), list(SEEN_AS))
    unseen = [r for r in SEEN_AS if r not in shown]
    want(not unseen or kinds, f"no job shows {unseen} of docs/differences.md")
    return f"{len(entries)} jobs, {len(shown)} kinds of difference"
