# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The store's contract (src/store/CONTRACT.md) through src/kube, on a real API server."""

import os
import subprocess

from kit import audit
from kit.check import Fail, Skip, condition, equal, parallel, pytorchjob, want

NEEDS = {}
BUILD = ["control"]
MINUTES = 5


def setup(w):
    return w.install()


def check_contract(w):
    """The contract suite passes on a real API server"""
    program = os.path.join(w.options.build, "tests/contract/test_contract_cluster")
    if not os.path.exists(program):
        raise Skip(f"{program} is not built")
    log = w.cluster.path("contract.log")
    with open(log, "wb") as out:
        run = subprocess.run([program], stdout=out, stderr=out, timeout=900, env={
            **os.environ, "HOLDFAST_TEST_KUBECONFIG": w.cluster.path("kubeconfig.admin"),
            "ASAN_OPTIONS": "detect_leaks=1"})
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    failed = [l for l in lines if "FAILED" in l]
    if run.returncode != 0:
        raise Fail(f"exit code {run.returncode}: " + "; ".join((failed or lines[-3:])[:4])[:500])
    passed = [l for l in lines if "PASSED" in l]
    return passed[-1].strip("[] ") if passed else None


def check_pages(w):
    """A server that streams no lists: the suite passes, and lists of 1,100 jobs are read in pages"""
    ns = w.namespace()
    count = 1100
    parallel(range(count), lambda i: w.api.create("pytorchjobs", ns, pytorchjob(
        f"job-{i}", ns, 0, run_policy={"suspend": True})))
    w.cluster.state["programs"]["apiserver"]["argv"] += ["--feature-gates", "WatchList=false"]
    w.cluster.restart("apiserver")
    w.until("the API server is back", w.cluster.ready)
    note = check_contract(w)
    w.operator()
    w.until("each job was seen", lambda: all(
        condition(j, "Suspended") == "True" for j in w.api.list("pytorchjobs", ns)), 120)
    pages = audit.count(w.cluster.path("audit.log"), user="operator",
                        key=lambda c: (c["verb"], c["resource"], c["code"]))
    equal("pages of the list of jobs", pages["list", "pytorchjobs", 200], 3)
    want(pages["watch", "pytorchjobs", 422] <= 1, "it asks for a stream again and again")
    return f"{note}, then {count} jobs in 3 pages"
