# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""kubectl in full and the Python SDK, unchanged, on a real cluster whose jobs really run."""

import glob
import os
import shutil
import subprocess

from kit import build
from kit.check import Fail, Skip
from parts import incluster

NEEDS = {"node": "real-0", "inside": True}
BUILD = ["control", "node", "inside"]
MINUTES = 5
TESTS = os.path.join(build.TOP, "tests/clients")


def setup(w):
    if w.options.peer:
        raise Skip("the Go operator's CRDs know less")
    incluster.load_holdfast(w)
    incluster.load_images(w)
    incluster.install(w)
    return "the operator in a pod, our CRDs"


def run(w, argv, timeout_s, **env):
    """A test in a language of its own; its last line."""
    config = w.cluster.path("kubeconfig.client")
    shutil.copy(w.cluster.path("kubeconfig.admin"), config)
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s,
                         stdin=subprocess.DEVNULL, env={**os.environ, "KUBECONFIG": config, **env})
    said = ran.stdout + ran.stderr
    if ran.returncode != 0:
        with open(w.cluster.path(os.path.basename(argv[-1]) + "-client.txt"), "w", encoding="utf-8") as f:
            f.write(said)
        raise Fail(said.strip()[-1500:])
    return (ran.stdout.strip() or ran.stderr.strip()).splitlines()[-1]


def check_kubectl(w):
    """kubectl of the cluster's version: explain, edit, apply by both sides, patch, scale, wait, logs, delete"""
    return run(w, [os.path.join(TESTS, "cluster_test.sh"), build.find("kubectl"),
                   w.cluster.path("new")], 400)


def check_old_kubectl(w):
    """Debian 12's kubectl 1.20, sixteen versions older, as far as it goes"""
    folder = w.cluster.path("deb")
    os.makedirs(folder)
    # Where apt runs as another user it could not write there.
    got = shutil.which("apt-get") and subprocess.run(
        ["apt-get", "-o", "APT::Sandbox::User=root", "download", "kubernetes-client"], cwd=folder,
        capture_output=True, text=True)
    packages = glob.glob(os.path.join(folder, "*.deb"))
    if not got or not packages:
        raise Skip("no package kubernetes-client can be had")
    subprocess.run(["dpkg-deb", "-x", packages[0], folder], check=True)
    program = os.path.join(folder, "usr/bin/kubectl")
    version = subprocess.run([program, "version", "--client"], capture_output=True,
                             text=True).stdout
    if 'Minor:"20' not in version:
        raise Skip("that package is another version: " + version.strip()[:200])
    return run(w, [os.path.join(TESTS, "cluster_test.sh"), program, w.cluster.path("old"), "old"],
               400)


def check_sdk(w):
    """kubeflow-training 1.9.4: create_job, wait_for_job_conditions, get_job_logs, update_job, delete_job"""
    got = subprocess.run([os.path.join(TESTS, "get_sdk.sh"), os.path.join(
        os.path.dirname(build.cache()), "sdk-1.9.4")], capture_output=True, text=True)
    if got.returncode != 0:
        raise Skip(got.stderr.strip()[-300:])
    return run(w, [got.stdout.strip(), os.path.join(TESTS, "sdk_test.py")], 400,
               HOLDFAST_TEST_IMAGE="localhost/busybox:1")
