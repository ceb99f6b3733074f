# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Two thousand jobs at once."""

import os

from kit.load import Load

NEEDS = {"kwok": 5}
BUILD = ["control", "kwok"]
MINUTES = 10


def setup(w):
    return w.install()


def check_many(w):
    """2,000 jobs at once: all run, a hundredth fails once, all succeed, no pod doubled"""
    load = Load(w, int(os.environ.get("HOLDFAST_TEST_JOBS", "2000")), fail_every=100)
    o = w.operator()
    load.create()
    took = load.until_running(timeout_s=600)
    load.fail_some()
    load.finish(timeout_s=600)
    note = f"{load.audit()}, all running {took:.0f} s after the last was made"
    return note if w.options.peer else f"{note}, {o.rss_bytes() >> 20} MiB"
