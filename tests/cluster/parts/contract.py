# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The store's contract (src/store/README.md) through src/kube, on a real API server."""

import os
import subprocess

from kit.check import Fail, Skip

NEEDS = {}
BUILD = ["control"]
MINUTES = 3


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
