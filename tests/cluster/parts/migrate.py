# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""From the Go operator to Holdfast and back, as docs/how-to/migrate.md says it, under running jobs."""

from kit import client, compare, corpus
from kit.check import PEER_FLAGS, Skip, equal, parallel, want
from kit.operator import Operator

NEEDS = {"kwok": 2}
BUILD = ["control", "kwok", "peer"]
MINUTES = 6

NS = "migrate"
# Running, suspended and finished ones, of every kind.
TAKEN = ("-succeeds", "-scheduled", "-suspended", "-born-suspended", "-cleans-all", "-rich",
         "pytorch-elastic", "pytorch-alone", "tf-all-types", "paddle-servers", "mpi-slots")


def setup(w):
    if w.options.peer:
        raise Skip("it runs both")
    w.cluster.add_peer(PEER_FLAGS)
    return "upstream's CRDs and the Go operator"


def pods(w, ns=NS):
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in w.api.list("pods", ns)}


def same(what, found, wanted):
    """Two dictionaries; what differs alone is told."""
    keys = {k for k in set(found) | set(wanted) if found.get(k) != wanted.get(k)}
    equal(what, {str(k): found.get(k) for k in keys}, {str(k): wanted.get(k) for k in keys})


def objects(w):
    return {(r, o["metadata"]["name"]): o["metadata"]["uid"]
            for r in ("services", "configmaps", "serviceaccounts", "roles", "rolebindings")
            for o in w.api.list(r, NS)}


def first(w, entries, wanted):
    """The first act of those that have not come to it yet."""
    parallel(wanted, lambda e: compare.act(w, NS, e, e.acts[0]))


def unlike(entries, before, after):
    """What changed that no row of docs/reference/differences.md names."""
    found = []
    for e in entries:
        for path, x, y in compare.differences(before[e.name], after[e.name]):
            place, row = compare.row(e, 0, path, x, y)
            # Its own events, and their messages, come beside the other's.
            if not row and not path.startswith(("/events/", "/said/")):
                found.append(place)
    return found


def check_there(w):
    """Holdfast takes over running, suspended and finished jobs of every kind: no pod is touched"""
    entries = [e for e in corpus.entries() if e.name.endswith(TAKEN)]
    done = [e for e in entries if e.name.endswith("-cleans-all")]
    w.api.create("namespaces", None, {"metadata": {"name": NS}})
    parallel(entries, lambda e: w.api.create(e.plural, NS, e.job))
    compare.settle(w, NS, entries, compare.QUIET_S["go"])
    first(w, entries, done + [e for e in entries if e.name.endswith("-suspended")
                              and not e.name.endswith("born-suspended")])
    compare.settle(w, NS, entries, compare.QUIET_S["go"])
    before, lived, owned = compare.look(w.api, NS, entries), pods(w), objects(w)
    want(len(lived) > len(entries), f"{len(lived)} pods run")
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                      text=w.holdfast("manifests", "--crds"))
    w.cluster.stop("peer")
    o = Operator(w.cluster, w.program).start()
    w.operators.append(o)
    compare.settle(w, NS, entries, compare.QUIET_S["holdfast"])
    same("pods", pods(w), lived)
    left = unlike(entries, before, compare.look(w.api, NS, entries))
    want(not left, f"{len(left)} things changed, the first: " + "; ".join(left[:3])[:600])
    same("objects", {k: v for k, v in objects(w).items() if k in owned}, owned)
    # And it has them in hand.
    ends = [e for e in entries if e.name.endswith("-succeeds")]
    born = [e for e in entries if e.name.endswith("-born-suspended") and e.acts]
    first(w, entries, ends + born)
    compare.settle(w, NS, entries, compare.QUIET_S["holdfast"])
    seen = compare.look(w.api, NS, entries)
    for e in entries:
        last = seen[e.name]["status"]["order"][-1]
        if e in ends or e in done:
            equal(f"{e.name} is", last, "Succeeded")
        elif e in born:
            equal(f"{e.name} is", last, "Running")
    return f"{len(entries)} jobs, {len(lived)} pods"


def check_back(w):
    """And back: the Go operator goes on with the jobs that Holdfast made and left"""
    entries = [e for e in corpus.entries() if e.name.endswith(TAKEN)]
    new = [e for e in corpus.entries() if e.name.endswith("-own-port")]
    o = Operator(w.cluster, w.program).start()
    w.operators.append(o)
    parallel(new, lambda e: w.api.create(e.plural, NS, e.job))
    compare.settle(w, NS, entries + new, compare.QUIET_S["holdfast"])
    before, lived = compare.look(w.api, NS, entries + new), pods(w)
    equal("exit code", o.stop(), 0)
    w.cluster.again("peer")
    compare.settle(w, NS, entries + new, compare.QUIET_S["go"])
    same("pods", pods(w), lived)
    seen = compare.look(w.api, NS, entries + new)
    for e in entries + new:
        equal(f"conditions of {e.name}", flat(seen[e.name]), flat(before[e.name]))
    w.api.forget()
    parallel(new, lambda e: compare.act(w, NS, e, corpus.end("master-0", "chief-0", "worker")))
    compare.settle(w, NS, entries + new, compare.QUIET_S["go"])
    seen = compare.look(w.api, NS, new)
    for e in new:
        equal(f"{e.name} is", seen[e.name]["status"]["order"][-1], "Succeeded")
    return f"{len(entries + new)} jobs, {len(lived)} pods"


def resumed(w, ns, name):
    """Suspends a PyTorchJob and resumes it; the names under which its ranks meet then."""
    def mine():
        return w.api.list("pods", ns, f"training.kubeflow.org/job-name={name}")

    def met():
        return [v["value"] for p in mine() for v in p["spec"]["containers"][0]["env"]
                if v["name"] == "PET_RDZV_ID" and p["status"].get("phase") == "Running"]
    ranks = len(mine())
    w.api.patch("pytorchjobs", ns, name, {"spec": {"runPolicy": {"suspend": True}}})
    client.until(f"{name} has no pods", lambda: not mine(), 60)
    w.api.patch("pytorchjobs", ns, name, {"spec": {"runPolicy": {"suspend": False}}})
    client.until(f"{name} runs", lambda: len(met()) == ranks, 60)
    return met()


def check_again(w):
    """There, back, and there again: what the Go operator made in between runs on"""
    ns = "again"
    c = corpus.Corpus()
    c.add("JAXJob", "up", roles={"Worker": 2}, policy="ExitCode")
    c.add("JAXJob", "replaced", roles={"Worker": 2}, policy="ExitCode")
    c.add("JAXJob", "untouched", roles={"Worker": 2}, policy="ExitCode")
    c.add("TFJob", "tf", roles={"Worker": 2, "PS": 1}, policy="ExitCode")
    c.add("PyTorchJob", "gang", roles={"Master": 1, "Worker": 2}, policy="ExitCode",
          run={"recovery": {"restartScope": "Job"}})
    c.add("MPIJob", "mpi", roles={"Launcher": 1, "Worker": 1})
    c.add("PyTorchJob", "meet", roles={"Worker": 2}, policy="ExitCode",
          spec={"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "rdzvId": "run"}})
    w.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                      text=w.holdfast("manifests", "--crds"))
    w.cluster.stop("peer")
    w.api.create("namespaces", None, {"metadata": {"name": ns}})
    for e in c.entries:
        w.api.create(e.plural, ns, e.job)
    o = Operator(w.cluster, w.program).start()
    w.operators.append(o)
    compare.settle(w, ns, c.entries, compare.QUIET_S["holdfast"])
    # A second generation, so that what has no stamps is no pod of the first one.
    w.end_pod(w.api.get("pods", ns, "gang-worker-0"), 137)
    equal("where a job meets that was suspended", resumed(w, ns, "meet"), ["run-2", "run-2"])
    compare.settle(w, ns, c.entries, compare.QUIET_S["holdfast"])
    equal("exit code", o.stop(), 0)
    w.cluster.again("peer")
    compare.settle(w, ns, c.entries, compare.QUIET_S["go"])
    w.api.patch("jaxjobs", ns, "up", {"spec": {"replicas": 3}}, "scale")
    w.api.patch("mpijobs", ns, "mpi", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    for name in ("replaced-worker-1", "tf-worker-1", "gang-worker-1"):
        w.end_pod(w.api.get("pods", ns, name), 137)
    # As the page says to do.
    equal("where it meets under the Go operator", resumed(w, ns, "meet"), ["run", "run"])
    compare.settle(w, ns, c.entries, compare.QUIET_S["go"])
    lived = pods(w, ns)
    made = [p for p in w.api.list("pods", ns)
            if "holdfast.dev/generation" not in (p["metadata"].get("annotations") or {})]
    equal("pods that the Go operator made", sorted(p["metadata"]["name"] for p in made),
          ["gang-worker-1", "meet-worker-0", "meet-worker-1", "mpi-worker-1", "replaced-worker-1",
           "tf-worker-1", "up-worker-2"])
    w.cluster.stop("peer")
    o = Operator(w.cluster, w.program).start()
    w.operators.append(o)
    compare.settle(w, ns, c.entries, compare.QUIET_S["holdfast"])
    same("pods", pods(w, ns), lived)
    # And it has them in hand: one rank ends, and it alone is made anew; of a gang all are.
    for name in ("up-worker-2", "gang-worker-1"):
        w.end_pod(w.api.get("pods", ns, name), 137)
    anew = {"up-worker-2", "gang-master-0", "gang-worker-0", "gang-worker-1"}

    def replaced():
        now = pods(w, ns)
        return all(now.get(name) not in (None, lived[name]) for name in anew)
    client.until("what ended is made anew", replaced, 60)
    kept = {k: v for k, v in lived.items() if k not in anew}
    same("other pods", {k: v for k, v in pods(w, ns).items() if k not in anew}, kept)
    met = resumed(w, ns, "meet")
    want(len(met) == 2 and len(set(met)) == 1, f"two ranks meet at {met}")
    return f"{len(c.entries)} jobs, {len(made)} of {len(lived)} pods made in between"


def flat(seen):
    return {k: v["status"] for k, v in seen["status"]["conditions"].items()}
