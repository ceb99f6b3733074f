# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The same jobs by the Go operator and by Holdfast: what differs stands in docs/reference/differences.md."""

import os

from kit import compare, corpus
from kit.check import PEER_FLAGS, Skip, parallel, want
from kit.operator import Operator, Peer

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "peer"]
MINUTES = 15
# The Go operator drops events of a greater burst, by chance.
AT_ONCE, BETWEEN_S = 20, 2

def setup(w):
    if w.options.peer:
        raise Skip("it runs both")
    return w.install()


def in_turn(w, who, ns, entries, some, do):
    """do() to some of the entries, a few at once; then all come to rest."""
    for i in range(0, len(some), AT_ONCE):
        parallel(some[i:i + AT_ONCE], do)
        compare.settle(w, ns, entries, BETWEEN_S)
    compare.settle(w, ns, entries, compare.QUIET_S[who])


def run(w, who, ns, entries, operator):
    """What is seen after each round of acts."""
    w.api.create("namespaces", None, {"metadata": {"name": ns}})
    operator.start()
    in_turn(w, who, ns, entries, entries, lambda e: w.api.create(e.plural, ns, e.job))
    seen = [compare.look(w.api, ns, entries)]
    for i in range(max(len(e.acts) for e in entries)):
        in_turn(w, who, ns, entries, [e for e in entries if i < len(e.acts)],
                lambda e, i=i: compare.act(w, ns, e, e.acts[i]))
        seen.append(compare.look(w.api, ns, entries))
    operator.stop()
    return seen


def both(w, entries, scheduler=None):
    """[(place, row or None)] of all differences, whichever operator runs these jobs."""
    gang = ["--gang-scheduler-name", scheduler] if scheduler else []
    ns = {who: f"{who}-{scheduler or 'none'}" for who in ("go", "holdfast")}
    theirs = run(w, "go", ns["go"], entries, Peer(w.cluster, [
        *PEER_FLAGS, "-namespace", ns["go"], *gang]))
    ours = run(w, "holdfast", ns["holdfast"], entries, Operator(
        w.cluster, w.program, name=f"operator-{scheduler or 'none'}",
        flags=["--namespace", ns["holdfast"], *gang]))
    return [compare.row(e, number, path, x, y)
            for number, (a, b) in enumerate(zip(theirs, ours))
            for e in entries if number <= len(e.acts)
            for path, x, y in compare.differences(a[e.name], b[e.name])]


def judge(w, entries, found, name, kinds):
    """Each difference has a row, and each row of this corpus a difference."""
    left = [place for place, row in found if not row]
    with open(w.cluster.path(name + ".txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(left) + "\n")
    want(not left, f"{len(left)} differences that the table has not, the first: "
                   + "; ".join(left[:3])[:600])
    shown = {row for _, row in found if row}
    unseen = [r for r, seen_as in compare.SEEN_AS.items()
              if seen_as and r not in shown and (r in compare.GANG_ROWS) == (name != "differences")]
    want(not unseen or kinds, f"no job shows {unseen} of docs/reference/differences.md")
    return f"{len(entries)} jobs, {len(shown)} kinds of difference"


def check_corpus(w):
    """Every object, variable, label, condition and event is the same but for what the table says"""
    kinds = os.environ.get("HOLDFAST_TEST_KINDS", "").split()
    entries = corpus.entries(kinds)
    return judge(w, entries, both(w, entries), "differences", kinds)


def check_gang(w):
    """The same with Volcano, and with a scheduler that reads scheduler-plugins' groups"""
    w.cluster.add_podgroups()
    entries, found = [], []
    for scheduler in ("volcano", "plugins-scheduler"):
        entries.append(corpus.gang(scheduler))
        found += both(w, entries[-1], scheduler)
    return judge(w, [e for some in entries for e in some], found, "differences-gang",
                 os.environ.get("HOLDFAST_TEST_KINDS"))
