# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""An older holdfast, built from this repository's history and kept by its commit."""

import fcntl
import os
import subprocess
import tempfile

from . import build

# No version is released yet: a commit with the agent, restarts in place and acts on nodes.
COMMIT = "40c8e80074bc0dc143dce61288f058f284205605"


def run(*argv, cwd=build.TOP):
    done = subprocess.run(argv, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        raise build.Broken(f"{' '.join(argv)[:80]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def program():
    """The path of the older program; builds it if it is not there."""
    folder = os.path.join(os.path.dirname(build.cache()), "older-" + COMMIT[:12])
    path = os.path.join(folder, "holdfast")
    if os.path.exists(path):
        return path
    known = subprocess.run(["git", "cat-file", "-e", COMMIT + "^{commit}"], cwd=build.TOP, capture_output=True)
    if known.returncode != 0:
        raise build.Unavailable(f"this clone's history does not have commit {COMMIT[:12]}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            make(path)
    return path


def make(path):
    with tempfile.TemporaryDirectory(prefix="hf-older-") as tree:
        archive = os.path.join(tree, "tree.tar")
        run("git", "archive", "--output", archive, COMMIT)
        run("tar", "-xf", archive, "-C", tree)
        # The program alone, also if a newer compiler warns of something.
        run("tools/configure", "build", "-Dtests=false", "-Dwerror=false", cwd=tree)
        run("ninja", "-C", "build", "holdfast", cwd=tree)
        made = f"{path}.{os.getpid()}"
        run("cp", os.path.join(tree, "build/holdfast"), made)
        os.replace(made, path)
