# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The device plugin of the tests (deviceplugin.py) beside the cluster's real kubelet."""

import os
import subprocess

from .check import Skip

PYTHON = "/usr/bin/python3"


def needed():
    if subprocess.run([PYTHON, "-c", "import grpc"], capture_output=True).returncode != 0:
        raise Skip("the device plugin needs grpcio (Debian: python3-grpcio)")


def start(w, *resource):
    """With four devices; which of them are unhealthy a file says: see says()."""
    w.cluster.start("plugin", [PYTHON, "-P", os.path.join(os.path.dirname(__file__), "deviceplugin.py"),
                               w.cluster.path("private", "kubelet", "device-plugins"), said(w),
                               *resource])


def said(w):
    return w.cluster.path("unhealthy")


def says(w, *bad):
    """These devices are unhealthy, the others are not."""
    with open(said(w) + ".new", "w", encoding="ascii") as f:
        f.write(" ".join(bad))
    os.rename(said(w) + ".new", said(w))
