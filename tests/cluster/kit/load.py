# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Jobs under way while something is broken, and the books that show whether that did any harm."""

import collections
import json
import time

from . import audit, client, history
from .check import Fail, condition, equal, parallel, pytorchjob, want
from .cluster import ETCD


class Load:
    """Jobs of a master and a worker; the worker of every `fail_every`th fails once, with code 1."""

    def __init__(self, world, count, fail_every=2, ns=None, tag="load"):
        self.w, self.count, self.tag = world, count, tag
        self.ns = ns or world.namespace()
        self.names = [f"{tag}-{i}" for i in range(count)]
        self.fail = set(self.names[::fail_every]) if fail_every else set()
        self.failed = {}  # name of a pod -> uid that was made to fail
        self.api = world.cluster.client(timeout_s=10)

    # ---- steps that may meet a server that is not there
    def persist(self, what, do, gone=False, timeout_s=120):
        """Do it until it is known to be done; `do` must be fit for being done twice.

        gone: done is also what can be done no more, as the object is not there.
        """
        def tried():
            try:
                do()
                return True
            except client.Refused as e:
                if e.reason == "AlreadyExists":
                    return True
                # A server that has just started says 404 too, of kinds it has not read yet.
                if e.code == 404 and e.reason == "NotFound" and gone:
                    return True
                if e.code in (409, 429) or e.code >= 500:
                    return False
                raise
        client.until(what, tried, timeout_s)

    def read(self, what, get, timeout_s=120):
        return client.until(what, lambda: [get()], timeout_s)[0]

    def create(self, names=None):
        parallel(names or self.names, lambda n: self.persist("a job is made", lambda: self.api.create(
            "pytorchjobs", self.ns, pytorchjob(n, self.ns, 1))))

    def running(self):
        return {p["metadata"]["name"]: p for p in self.api.list("pods", self.ns)
                if p["status"].get("phase") == "Running"
                and not p["metadata"].get("deletionTimestamp")}

    def until_running(self, names=None, timeout_s=120):
        """All pods of these jobs run; returns how many seconds that took."""
        start = time.monotonic()
        wanted = {f"{n}-{r}-0" for n in names or self.names for r in ("master", "worker")}

        def all_run():
            missing = wanted - set(self.running())
            return not missing
        try:
            client.until("all pods run", all_run, timeout_s, 0.5)
        except TimeoutError as e:
            missing = sorted(wanted - set(self.read("pods", self.running)))
            raise Fail(f"{e}; {len(missing)} of {len(wanted)} do not: {missing[:4]} "
                       f"{self.tell(missing[0]) if missing else ''}") from None
        return time.monotonic() - start

    def tell(self, pod):
        job = self.read("the job", lambda: self.api.find("pytorchjobs", self.ns,
                                                         pod.rsplit("-", 2)[0]))
        return json.dumps((job or {}).get("status"))[:700]

    def fail_some(self):
        """The failures, each on a pod that runs, once."""
        def one(job):
            name = job + "-worker-0"
            if name in self.failed:
                return
            pod = self.read(name, lambda: self.api.get("pods", self.ns, name))

            def end():
                try:
                    self.w.end_pod(pod, 1)
                except client.Refused as e:
                    if e.code != 409:
                        raise  # a conflict: this pod is gone, so it was seen to have failed
            self.persist("a pod fails", end, gone=True)
            self.failed[name] = pod["metadata"]["uid"]
        parallel(sorted(self.fail & set(self.names)), one)

    def finish(self, timeout_s=180):
        """Every pod ends well; all jobs must then have succeeded."""
        self.until_running(timeout_s=timeout_s)
        parallel(self.read("pods", self.running).values(),
                 lambda p: self.persist("a pod ends", lambda: self.w.end_pod(p), gone=True))

        def left():
            return [j for j in self.api.list("pytorchjobs", self.ns)
                    if condition(j, "Succeeded") != "True"]
        try:
            client.until("every job has succeeded", lambda: not left(), timeout_s, 0.5)
        except TimeoutError as e:
            stuck = self.read("jobs", left)
            raise Fail(f"{e}; {len(stuck)} of {self.count} are stuck, such as "
                       f"{stuck[0]['metadata']['name']}: {json.dumps(stuck[0].get('status'))[:700]}"
                       ) from None

    # ---- the books
    def audit(self):
        """No pod doubled, no failure counted twice or forgotten, nobody's failure made up."""
        made = history.made(self.w.cluster.port(ETCD), "pods", self.ns)
        wrong = [f"{name} {len(made[name])} times, not {wanted}" for name, wanted in (
            (f"{n}-{r}-0", 1 + (f"{n}-{r}-0" in self.failed))
            for n in self.names for r in ("master", "worker")) if len(made[name]) != wanted]
        want(not wrong, f"{len(wrong)} pods were made more or less often than they should: "
             f"{', '.join(wrong[:4])}; {self.deleted()}")
        for name, uid in self.failed.items():
            equal(f"{name}: the pod that was replaced", made[name][0], uid)
        for job in self.api.list("pytorchjobs", self.ns):
            name = job["metadata"]["name"]
            charged = restarts(job)
            if charged is None:
                continue
            equal(f"{name}: what its ledger has counted", charged, {
                "application": int(name in self.fail and name + "-worker-0" in self.failed),
                "infrastructure": 0, "device": 0})
        counted = sum(restarts(j) is not None for j in self.api.list("pytorchjobs", self.ns))
        return f"{self.count} jobs, {len(self.failed)} failures" + (
            "" if counted == self.count or self.w.options.peer else
            f", only {counted} with a ledger")

    def deleted(self):
        """Who has deleted pods of this load, for people."""
        by = collections.Counter(
            f"{c['user']} ({c['agent'].split('/')[0]}): {c['code']}"
            for c in audit.calls(self.w.cluster.path("audit.log"))
            if c["verb"] == "delete" and c["resource"] == "pods" and c["namespace"] == self.ns)
        return "pods were deleted by " + (", ".join(f"{w} × {n}" for w, n in by.items()) or "nobody")


def restarts(job):
    """The restarts in a job's ledger, by class; None where there is no ledger."""
    ledger = (job.get("status") or {}).get("recovery")
    if ledger is None:
        text = job["metadata"].get("annotations", {}).get("holdfast.dev/ledger")
        ledger = json.loads(text) if text else None
    if ledger is None:
        return None
    ledger = ledger.get("recovery", ledger)
    counts = ledger.get("restarts") or {}
    return {k: counts.get(k, 0) for k in ("application", "infrastructure", "device")}
