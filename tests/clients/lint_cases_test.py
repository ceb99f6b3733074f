#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The rules in the program and those in the CRDs agree: lint_cases_test.py HOLDFAST

`holdfast lint` gets the jobs that tests/cluster/crd_test shows to an API server. Its rules are those of the embedded plane
and of the operator.
"""

import concurrent.futures
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import crd_cases

# The jobs that the program and the CRDs judge differently, and which of the two is stricter.
DIFFER = {
    # An API server drops a null entry before it checks the job; the program refuses it, since its author meant something.
    "PyTorchJob: a null replica": "program",
    "TFJob: a null replica": "program",
    "PaddleJob: a null replica": "program",
    "JAXJob: a null replica": "program",
    # Upstream checks managedBy for every kind but these; the operator does not touch such a job.
    "MPIJob: managed by 'example.com/me'": "program",
    "MPIJob: managed by ''": "program",
    "JAXJob: managed by 'example.com/me'": "program",
    "JAXJob: managed by ''": "program",
    # The CRDs need this limit because of the cost of CEL rules.
    "TFJob: 17 types": "CRDs",
    # Only gang schedulers read this field, and the program has none.
    "runPolicy: a quantity that is none": "CRDs",
}


def lint(holdfast, job):
    run = subprocess.run([holdfast, "lint", "-"], input=json.dumps(job), capture_output=True,
                         text=True, timeout=60, check=False)
    return run.returncode == 0, run.stdout + run.stderr


def main(holdfast):
    run = subprocess.run([holdfast, "version", "-o", "json"], capture_output=True, text=True,
                         check=True)
    kinds = json.loads(run.stdout)["kinds"]
    cases = [c for c in crd_cases.all_cases() if c.job["kind"] in kinds]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda c: lint(holdfast, c.job), cases))
    for case, (good, text) in zip(cases, answers):
        wanted = case.refusal is None
        if case.name in DIFFER:
            wanted = DIFFER[case.name] == "CRDs"
        if good != wanted or "Sanitizer" in text:
            failed += 1
            print("FAIL  %s: the CRDs %s it, lint says: %s"
                  % (case.name, "take" if case.refusal is None else "refuse", text.strip()[:300]))
    print("%d cases of %s, %d differ" % (len(cases), ", ".join(kinds), failed))
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
