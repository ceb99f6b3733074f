# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A job of any kind by its ranks: who runs, who ends how, what was charged, what people are told."""

import collections
import contextlib
import json
import signal
import time

from . import client, history
from .check import Fail, condition, end_pod, equal, want
from .cluster import ETCD
from .corpus import KINDS, role
from .load import restarts

QUICK = {"backoff": {"initialSeconds": 1}}  # the second restart waits for a second, not for ten
NO_COSTS = {"application": 0, "infrastructure": 0, "device": 0}


def job(kind, ns, name, roles, policy=None, container=None, pod=None, **run):
    """A manifest.  roles: {type: count}; run: of runPolicy."""
    made = {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name, "namespace": ns},
            "spec": {KINDS[kind][1]: {t: role(kind, n, policy, container, pod)
                                      for t, n in roles.items()}}}
    if run:
        made["spec"]["runPolicy"] = run
    return made


def made(w, ns):
    """{pod: uids of all that ever had this name}, of a namespace."""
    return history.made(w.cluster.port(ETCD), "pods", ns)


def pytorch(w, workers=3, policy="OnFailure", ns=None, name="job", container=None, pod=None, **run):
    """A PyTorchJob that runs, with an operator."""
    if not w.operators:
        w.operator()
    run["recovery"] = {**QUICK, **run.get("recovery", {})}
    ns = ns or w.namespace()
    made = Ranks(w, ns, job("PyTorchJob", ns, name, {"Master": 1, "Worker": workers}, policy, container,
                            pod, **run))
    made.until_running()
    return made


class Ranks:
    """One job.  Ranks go by the end of their pods' names: worker-1."""

    def __init__(self, w, ns, manifest):
        self.w, self.ns, self.kind = w, ns, manifest["kind"]
        self.name = manifest["metadata"]["name"]
        self.plural, replicas = KINDS[self.kind][:2]
        self.count = sum(r["replicas"] for r in manifest["spec"][replicas].values())
        w.api.create(self.plural, ns, manifest)

    # ---- what is there
    def get(self):
        return self.w.api.get(self.plural, self.ns, self.name)

    def pods(self):
        return {p["metadata"]["name"][len(self.name) + 1:]: p for p in self.w.pods(self.ns, self.name)}

    def uids(self):
        return {rank: p["metadata"]["uid"] for rank, p in self.pods().items()}

    def ending(self):
        return {rank for rank, p in self.pods().items() if p["metadata"].get("deletionTimestamp")}

    def running(self, but=()):
        """Ranks whose pod runs and is none of these."""
        return {rank: p["metadata"]["uid"] for rank, p in self.pods().items()
                if p["status"].get("phase") == "Running" and p["metadata"]["uid"] not in but
                and not p["metadata"].get("deletionTimestamp")}

    def recovery(self):
        return self.get()["status"]["recovery"]

    def events(self):
        """{reason: [how often, the last message]}"""
        found = collections.defaultdict(lambda: [0, ""])
        for e in self.w.api.list("events", self.ns):
            about = e["involvedObject"]
            if (about["kind"], about["name"]) == (self.kind, self.name):
                found[e["reason"]][0] += e.get("count") or 1
                found[e["reason"]][1] = e["message"]
        return found

    def why(self):
        return self.w.holdfast("why", f"{self.kind.lower()}/{self.name}", ns=self.ns, code=None)

    # ---- what is waited for
    def until(self, what, get, timeout_s=60):
        try:
            return self.w.until(f"{self.name}: {what}", get, timeout_s)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; {self.why()[:1500]} "
                               f"{json.dumps(self.get().get('status'))[:900]}") from None

    def until_running(self, but=(), timeout_s=60):
        """All ranks run, in no pod of these uids, and the job says so; their uids."""
        found = self.until("all ranks run", lambda: (lambda r: r if len(r) == self.count else None)(
            self.running(but)), timeout_s)
        self.until_condition("Running")
        return found

    def until_again(self, rank, old, timeout_s=60):
        """This rank runs in another pod, and so does the job."""
        self.until(rank + " runs again", lambda: self.running(old.values()).get(rank), timeout_s)
        self.until_running(timeout_s=timeout_s)

    def until_condition(self, kind, timeout_s=60):
        def seen():
            found = self.get()
            return found if condition(found, kind) == "True" else None
        return self.until("is " + kind, seen, timeout_s)

    def until_event(self, reason, words=(), times=1):
        """Events are told a moment later than what they tell of."""
        def told():
            count, message = self.events()[reason]
            return count == times and all(word in message for word in words)
        try:
            self.until(f"the event {reason} is told {times} times", told, 20)
        except TimeoutError as e:
            raise Fail(f"{e}; events: {json.dumps(self.events())[:900]}") from None

    # ---- what is done
    def end(self, *ranks, code=1, reason=None):
        """These ranks end, each as its kubelet would say it."""
        pods = self.pods()
        for rank in ranks:
            end_pod(self.w.api, pods[rank], code, reason)

    def tell(self, rank, containers=True, conditions=(), **status):
        """More of a pod's status, as control plane or kubelet write it.  containers: they stay."""
        pod = self.pods()[rank]
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": dict(status)}
        if conditions:
            patch["status"]["conditions"] = [*pod["status"].get("conditions", []), *conditions]
        if not containers:
            patch["status"]["containerStatuses"] = None
        self.w.api.patch("pods", self.ns, pod["metadata"]["name"], patch, "status")

    def suspend(self, yes=True):
        self.w.api.patch(self.plural, self.ns, self.name, {"spec": {"runPolicy": {"suspend": yes}}})

    # ---- the books
    def made_times(self, times, others=None, found=None):
        """Each rank has had so many pods; others: {rank: times}.  found: what made() said of all."""
        found = made(self.w, self.ns) if found is None else found
        found = {pod[len(self.name) + 1:]: len(uids) for pod, uids in found.items()
                 if pod.startswith(self.name + "-")}
        equal(f"{self.name}: how many pods each rank had", found,
              {**dict.fromkeys(found, times), **(others or {})})
        equal(f"{self.name}: how many ranks there were", len(found), self.count)

    def charged(self, **costs):
        equal(f"{self.name}: what is charged", restarts(self.get()) or NO_COSTS, {**NO_COSTS, **costs})

    def last(self, **wanted):
        """The record of the last restart has these."""
        found = self.recovery()["last"]
        equal(f"{self.name}: the record", {k: found.get(k) for k in wanted}, wanted)

    def says(self, *words):
        """`holdfast why` has these words."""
        text = self.why()
        for word in words:
            want(word in text, f"{self.name}: why lacks '{word}': {text[:900]}")

    def has_failed(self, verdict, message=None, timeout_s=60):
        """Failed with all that belongs to it; the job."""
        found = self.until_condition("Failed", timeout_s)
        status = found["status"]
        last = status["conditions"][-1]
        # Of an MPIJob whose rank fails it upstream has a reason of its own.
        own = self.kind == "MPIJob" and verdict == "RestartPolicyNever"
        equal(f"{self.name}: the last condition", (last["type"], last["reason"]),
              ("Failed", ("MPIJob" if own else "") + self.kind + "Failed"))
        if message:
            equal(f"{self.name}: its message", last["message"], message)
        for kind in ("Running", "Restarting"):
            want(condition(found, kind) != "True", f"{self.name}: {kind} beside Failed")
        want(status.get("completionTime"), f"{self.name}: completionTime is missing")
        equal(f"{self.name}: the verdict", status["recovery"]["verdict"]["reason"], verdict)
        return found


class Clock:
    def __init__(self):
        self.start = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self.start:.1f} s"


@contextlib.contextmanager
def slow_to_end(w):
    """Pods that are told to end take their time, and new ones to begin."""
    w.cluster.send("kwok", signal.SIGSTOP)
    try:
        yield
    finally:
        w.cluster.send("kwok", signal.SIGCONT)


def still(what, check, seconds):
    """check() passes all that time."""
    end = time.monotonic() + seconds

    def over():
        check()
        return time.monotonic() >= end
    client.until(what, over, seconds + 30, 0.25)
