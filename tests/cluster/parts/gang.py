# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Scope Job: whatever fails, and whatever dies meanwhile, all ranks restart once, as one generation."""

import contextlib
import signal

from kit.check import Skip, condition, equal, parallel, want
from kit.ranks import Clock, pytorch, slow_to_end, still

NEEDS = {"kwok": 3}
BUILD = ["control", "kwok"]
MINUTES = 3
LEASE_S = 6  # a verdict waits for nodes to renew theirs: every 1.5 s

GENERATION = "holdfast.dev/generation"


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator has no scope")
    return w.install()


def gang(w, workers=4, policy="OnFailure", **more):
    recovery = {"restartScope": "Job", **more.pop("recovery", {})}
    return pytorch(w, workers, policy, recovery=recovery, **more)


def torn_down(job, failed):
    """All ranks are told to end; who had failed is gone with that; the uids that are left."""
    job.until("all ranks are told to end", lambda: not failed & set(job.pods())
              and len(job.ending()) == job.count - len(failed))
    return job.uids()


def active(job):
    """How many pods the job's status calls active, of Master and Worker."""
    counts = job.get()["status"]["replicaStatuses"]
    return [counts[t].get("active", 0) for t in ("Master", "Worker")]


def is_generation(job, number, application, before):
    """All ranks run as this generation, in pods of their own, and nothing was charged twice."""
    now = job.until_running(but=set(before.values()))
    equal("generations of the pods", sorted(
        {p["metadata"]["annotations"][GENERATION] for p in job.pods().values()}), [str(number)])
    job.until("the books are closed", lambda: job.recovery()["phase"] == "Running")
    equal("generation", job.recovery()["generation"], number)
    job.charged(application=application)
    found = job.get()
    equal("Restarting", condition(found, "Restarting"), "False")
    equal("Running", condition(found, "Running"), "True")
    job.until("all are counted", lambda: active(job) == [1, job.count - 1])
    job.made_times(number)
    return now


def check_one(w):
    """One rank fails: all ranks restart once, and status, events, metrics and why tell of it"""
    o = w.operator()
    job = gang(w)
    before = job.uids()
    equal("restartPolicy of the pods", {p["spec"]["restartPolicy"] for p in job.pods().values()},
          {"Never"})
    clock = Clock()
    job.end("worker-1", code=9)
    job.until_running(but=set(before.values()))
    took = str(clock)
    is_generation(job, 2, 1, before)
    job.last(generation=2, incident=1, cause="application", scope="Job", replica="worker-1",
             pod="job-worker-1", exitCode=9)
    want(job.recovery()["last"].get("runningAt"), "the record does not say since when all run again")
    job.until_event("ApplicationFailure", ["Incident 1: worker-1 exited with code 9",
                                           "application budget: 1 used, unlimited"])
    job.until_event("PyTorchJobRestarting", ["restarting because 1 Worker replica(s) failed"])
    equal("holdfast_job_restarts_total", o.metric("holdfast_job_restarts_total", scope="Job"), 1)
    equal("of that cause", o.metric("holdfast_job_restarts_total", cause="application", scope="Job"), 1)
    job.says("worker-1 exited with code 9", "all ranks restart as generation 2",
             "application budget: 1 used, unlimited", "every rank runs again")
    return f"all run again after {took}"


def check_several(w):
    """Every rank fails in the same moment, each with a code of its own: once, one charge"""
    o = w.operator()
    job = gang(w, workers=9, policy="ExitCode")
    before = job.uids()
    # Seen by the operator in one look.
    o.signal(signal.SIGSTOP)
    parallel(enumerate(sorted(before)), lambda r: job.end(r[1], code=130 + r[0]), 10)
    o.signal(signal.SIGCONT)
    now = is_generation(job, 2, 1, before)
    job.until_event("ApplicationFailure")
    # Seen one after the other, in whatever order they come.
    parallel(sorted(now), lambda r: job.end(r, code=137), 10)
    is_generation(job, 3, 2, now)
    job.until_event("ApplicationFailure", times=2)
    return f"{job.count} ranks, twice"


def check_peers(w):
    """Peers that fail while all are torn down, with a code that would end the job, cost nothing"""
    w.operator()
    job = gang(w, workers=5, policy="ExitCode", backoffLimit=1)
    before = job.uids()
    with slow_to_end(w):
        job.end("worker-2", code=143)
        left = torn_down(job, {"worker-2"})
        job.end("master-0", "worker-0", "worker-1", code=1)
        job.end("worker-3", code=0)
        still("nothing comes of it", lambda: job.charged(application=1), 2)
        equal("pods", job.uids(), left)
        job.says("generation 2 waits until 5 pod(s) of older generations are gone")
    is_generation(job, 2, 1, before)
    job.last(replica="worker-2", exitCode=143, scope="Job")
    equal("Failed", condition(job.get(), "Failed"), None)


def check_killed(w):
    """The operator is killed as it writes, deletes, waits and creates, and started again: still once"""
    o = w.operator()
    job = gang(w, workers=11)

    def written():
        return job.recovery()["generation"] > begun

    def deleting():
        return len(job.ending()) > 0

    def waiting():
        return len(job.ending()) == job.count - 1

    def creating():
        return any(p["metadata"]["annotations"][GENERATION] != str(begun)
                   for p in job.pods().values())
    for begun, moment in enumerate((written, deleting, waiting, creating), 1):
        before = job.uids()
        # Who waits has nobody that ends the pods.
        with slow_to_end(w) if moment is waiting else contextlib.nullcontext():
            job.end("worker-3", code=1)
            w.until(moment.__name__, moment, every_s=0.01)
            o.kill()
            o.start()
            if moment is waiting:
                o.kill()
                o.start()
        is_generation(job, begun + 1, begun, before)
    job.last(incident=4, generation=5, scope="Job")
    return "5 kills"


def check_blind(w):
    """Ranks fail while no operator is there: all restart once when there is one again"""
    o = w.operator()
    job = gang(w, workers=5)
    before = job.uids()
    o.kill()
    job.end("worker-0", "worker-1", "master-0", code=1)
    o.start()
    job.until("it restarts", lambda: job.recovery()["generation"] == 2)
    is_generation(job, 2, 1, before)


def check_succeeded(w):
    """A rank that had succeeded runs again with the others, and without them never"""
    w.operator()
    job = gang(w)
    before = job.uids()
    job.end("worker-2", code=0)
    job.until("it is counted", lambda: job.get()["status"]["replicaStatuses"]["Worker"].get(
        "succeeded") == 1)
    w.api.delete("pods", job.ns, "job-worker-2")
    job.until("its pod is gone", lambda: "worker-2" not in job.pods())
    still("it is not run again", lambda: equal("pods", job.uids(), {
        rank: uid for rank, uid in before.items() if rank != "worker-2"}), 3)
    job.charged()
    job.end("worker-0", code=1)
    is_generation(job, 2, 1, before)
    equal("succeeded", job.get()["status"]["replicaStatuses"]["Worker"].get("succeeded", 0), 0)


def check_suspend(w):
    """Suspended in the middle of a restart, and resumed: no pod of the generation between, one charge"""
    o = w.operator()
    job = gang(w)
    before = job.uids()
    with slow_to_end(w):
        job.end("worker-1", code=1)
        torn_down(job, {"worker-1"})
        job.suspend()
        found = job.until_condition("Suspended")
        for kind in ("Running", "Restarting"):
            equal(kind, condition(found, kind), "False")
        # Kueue would give the quota away at none.
        job.until("what is there counts as active", lambda: active(job) == [1, job.count - 2])
        o.kill()
        o.start()
    job.until("no pod is left", lambda: not job.pods())
    job.until("none is active", lambda: active(job) == [0, 0])
    still("none is made", lambda: equal("pods", job.pods(), {}), 3)
    job.charged(application=1)
    job.suspend(False)
    job.until_running()
    equal("generation", job.recovery()["generation"], 3)
    job.charged(application=1)
    job.made_times(2)
    equal("Suspended", condition(job.get(), "Suspended"), "False")

    # Resumed before the pods of then are gone: they are waited for all the same.
    before = job.uids()
    with slow_to_end(w):
        job.end("worker-1", code=1)
        left = torn_down(job, {"worker-1"})
        job.suspend()
        job.until_condition("Suspended")
        job.suspend(False)
        job.until("it is resumed", lambda: condition(job.get(), "Suspended") == "False")
        still("the old ones are waited for", lambda: equal("pods", job.uids(), left), 3)
    job.until_running(but=set(before.values()))
    equal("generation", job.recovery()["generation"], 5)
    job.charged(application=2)
    job.made_times(3)


def check_backoff(w):
    """backoffLimit reached: Failed in upstream's words, what runs is cleaned up, nothing is made"""
    w.operator()
    job = gang(w, backoffLimit=1, cleanPodPolicy="Running")
    before = job.uids()
    job.end("worker-1", code=1)
    now = is_generation(job, 2, 1, before)
    clock = Clock()
    job.end("worker-0", "worker-3", code=1)
    text = "Job job has failed because it has reached the specified backoff limit"
    job.has_failed("BackoffLimitExceeded", text)
    took = str(clock)
    job.charged(application=2)
    job.until("what runs is taken away", lambda: set(job.pods()) == {"worker-0", "worker-3"})
    equal("those that ended are kept", {r: job.uids()[r] for r in job.pods()},
          {r: now[r] for r in ("worker-0", "worker-3")})
    job.until_event("PyTorchJobFailed", [text])
    job.says("the job fails: BackoffLimitExceeded", "application budget: limit 1, exceeded by incident 2")
    job.made_times(2)
    return f"Failed {took} after the last end"


def check_wanted(w):
    """A rank that a person deletes, and `holdfast restart`: all ranks once, nothing is charged"""
    w.operator()
    job = gang(w)
    before = job.uids()
    w.api.delete("pods", job.ns, "job-worker-1")
    now = is_generation(job, 2, 0, before)
    job.last(cause="user", scope="Job", replica="worker-1")
    w.holdfast("restart", "job", ns=job.ns)
    is_generation(job, 3, 0, now)
    job.last(cause="user", scope="Job")
    job.until_event("RestartWanted", ["nothing is charged"], times=2)


def check_trains_on(w):
    """After a restart the gang ends as any job does"""
    w.operator()
    job = gang(w, workers=2)
    before = job.uids()
    job.end("master-0", code=137)
    is_generation(job, 2, 1, before)
    w.end_pods(job.pods().values())
    found = job.until_condition("Succeeded")
    for kind in ("Running", "Restarting"):
        equal(kind, condition(found, kind), "False")
    want(found["status"].get("completionTime"), "completionTime is missing")
