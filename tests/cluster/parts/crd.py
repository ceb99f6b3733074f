# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The CRDs and the admission policies of `holdfast manifests`, on a real API server."""

import os
import subprocess
import sys

from kit import build
from kit.check import Fail, Skip, has_verb

NEEDS = {}
BUILD = ["control"]
MINUTES = 2


def setup(w):
    if not has_verb(w.program, "manifests"):
        raise Skip("this holdfast has no verb 'manifests'")


def check_rules(w):
    """Some 300 jobs are taken or refused by CRDs and policies, and old ones can still be written"""
    program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crd_test")
    path = os.path.dirname(build.find("kubectl")) + os.pathsep + os.environ["PATH"]
    run = subprocess.run([sys.executable, program, w.program], capture_output=True, text=True,
                         timeout=600, env={**os.environ, "PATH": path,
                                           "KUBECONFIG": w.cluster.path("kubeconfig.admin")})
    lines = (run.stdout + run.stderr).strip().splitlines() or ["it said nothing"]
    if run.returncode != 0:
        bad = [l for l in lines if l.startswith("FAIL")] or lines[-5:]
        raise Fail("; ".join(bad[:5])[:1500] + "; " + lines[-1])
    return lines[-1]
