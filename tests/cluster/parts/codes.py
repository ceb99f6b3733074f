# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""restartPolicy, of every kind of job and of ranks that decide and others: ExitCode above all."""

from kit.check import condition, equal, parallel, want
from kit.ranks import QUICK, Clock, Ranks, job, made
NEEDS = {"kwok": 3}
BUILD = ["control", "kwok"]
MINUTES = 3
LEASE_S = 6  # a verdict waits for nodes to renew theirs: every 1.5 s

# What a kind is tried with, a rank by whose end the job ends, and one that only belongs to it.
KINDS = {
    "PyTorchJob": ({"Master": 1, "Worker": 2}, "master-0", "worker-1"),
    "TFJob": ({"Chief": 1, "PS": 1, "Worker": 2}, "chief-0", "ps-0"),
    "XGBoostJob": ({"Master": 1, "Worker": 2}, "master-0", "worker-1"),
    "PaddleJob": ({"Worker": 3}, "worker-0", "worker-2"),
    "JAXJob": ({"Worker": 3}, "worker-0", "worker-2"),
    "MPIJob": ({"Launcher": 1, "Worker": 2}, "launcher", "worker-1"),
}
LIMIT = 2


def setup(w):
    return w.install()


def jobs(w, policy, ranks=(0, 1), **run):
    """A job of each kind for each of these ranks; all run.  [(job, the rank that is to fail)]"""
    ns = w.namespace()
    if not w.operators:
        w.operator()
    found = []
    for kind, (roles, *of) in KINDS.items():
        for i in ranks:
            name = f"{kind[:-3].lower()}-{policy.lower()}-{i}"
            found.append((Ranks(w, ns, job(kind, ns, name, roles, policy, **run)), of[i]))
    each(found, lambda j, rank: j.until_running(timeout_s=120))
    return found


def had_pods(w, tried, times):
    """The rank that failed had so many pods, every other one."""
    pods = made(w, tried[0][0].ns)
    for j, rank in tried:
        j.made_times(1, {rank: times}, pods)


def each(tried, do):
    """do(job, rank) of all at once."""
    parallel(tried, lambda t: do(*t), len(tried))


def fails_and_restarts(tried, code):
    """One rank of each ends so, and runs again; the others are left alone."""
    def one(j, rank):
        before = j.uids()
        j.end(rank, code=code)
        j.until_again(rank, before)
        equal(f"{j.name}: the other ranks", {r: u for r, u in j.uids().items() if r != rank},
              {r: u for r, u in before.items() if r != rank})
    each(tried, one)


def check_retried(w):
    """ExitCode, every kind: 128 and above is tried again until backoffLimit, then Failed"""
    tried = jobs(w, "ExitCode", recovery=QUICK, backoffLimit=LIMIT)
    for code in (128, 143):
        fails_and_restarts(tried, code)
    each(tried, lambda j, rank: j.charged(application=LIMIT))
    clock = Clock()

    def last(j, rank):
        j.end(rank, code=137)
        j.has_failed("BackoffLimitExceeded",
                     f"Job {j.name} has failed because it has reached the specified backoff limit")
        j.charged(application=LIMIT + 1)
        j.says("was killed by SIGKILL (128+9)", "restartPolicy ExitCode")
    each(tried, last)
    took = str(clock)
    had_pods(w, tried, LIMIT + 1)
    return f"{len(tried)} jobs, all Failed within {took} of their last ends"


def check_final(w):
    """ExitCode, every kind: below 128 is Failed, never Restarting, and nothing is made again"""
    by_code = {code: jobs(w, "ExitCode") for code in (1, 2, 127)}
    clock = Clock()

    def fail(j, rank, code):
        j.end(rank, code=code)
        j.has_failed("ExitCode")
    parallel([(*t, code) for code, tried in by_code.items() for t in tried], lambda t: fail(*t), 36)
    took = str(clock)
    for code, tried in by_code.items():
        for j, _ in tried:
            equal(f"{j.name}: Restarting", condition(j.get(), "Restarting"), None)
            equal(f"{j.name}: events of a restart", j.events()[j.kind + "Restarting"][0], 0)
            j.last(exitCode=code, cause="application")
            j.charged()
        had_pods(w, tried, 1)
    return f"{sum(map(len, by_code.values()))} jobs, all Failed within {took}"


def check_others(w):
    """Always, OnFailure and Never, every kind: by the policy and not by the code"""
    for policy in ("Always", "OnFailure"):
        tried = jobs(w, policy, ranks=(1,), recovery=QUICK)
        for code in (1, 137):
            fails_and_restarts(tried, code)
        for j, _ in tried:
            j.charged(application=2)
            equal(f"{j.name}: Failed", condition(j.get(), "Failed"), None)
    tried = jobs(w, "Never")

    def once(j, rank):
        j.end(rank, code=137)
        j.has_failed("RestartPolicyNever")
        j.charged()
    each(tried, once)
    had_pods(w, tried, 1)


def check_succeeds(w):
    """ExitCode, every kind: a job that was tried again succeeds like any other"""
    tried = jobs(w, "ExitCode", recovery=QUICK)
    fails_and_restarts(tried, 255)

    def finish(j, _):
        # With the end of the one that decides the others may be taken away.
        j.end(*sorted(j.pods(), key=lambda r: r == KINDS[j.kind][1]), code=0)
        found = j.until_condition("Succeeded")
        for kind in ("Running", "Restarting"):
            equal(f"{j.name}: {kind}", condition(found, kind), "False")
        want(found["status"].get("completionTime"), j.name + ": completionTime is missing")
    each(tried, finish)
