#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""tools/krew: the manifest fits the archives, and the real krew installs the plugin."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cluster"))
sys.dont_write_bytecode = True
from kit import build

HOLDFAST = os.path.join(TOP, "build", "holdfast")
KREW = build.program("krew", "krew")
URL = "https://registry.example/releases"


@unittest.skipUnless(os.path.exists(HOLDFAST), "needs build/holdfast")
class KrewTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, program=HOLDFAST, name="out"):
        output = os.path.join(self.folder, name)
        return output, subprocess.run(
            [os.path.join(TOP, "tools", "krew"), program, "--url", URL, "--home",
             "https://registry.example", "--output", output], capture_output=True, text=True, check=False)

    def files(self, name="out"):
        output, run = self.make(name=name)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(os.path.join(output, "holdfast.yaml"), encoding="utf-8") as f:
            text = f.read()
        (url, checksum), = re.findall(r"uri: (\S+)\n\s+sha256: (\w+)\n", text)
        return text, os.path.join(output, os.path.basename(url)), checksum

    def test_the_checksum_is_that_of_the_archive_and_the_same_each_time(self):
        _, archive, checksum = self.files()
        with open(archive, "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), checksum)
        self.assertEqual(self.files("again")[2], checksum)
        with tarfile.open(archive) as t:
            self.assertEqual(sorted(t.getnames()), ["LICENSE", "kubectl-holdfast"])

    def test_a_file_that_is_no_program_is_refused(self):
        output, run = self.make(program=__file__)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no 64-bit little-endian ELF file", run.stderr)
        self.assertEqual(os.listdir(output), [])

    @unittest.skipUnless(os.path.exists(KREW), "needs krew: tests/cluster/cluster build krew")
    def test_krew_installs_it(self):
        _, archive, _ = self.files()
        env = {**os.environ, "KREW_ROOT": os.path.join(self.folder, "krew"), "KREW_NO_UPGRADE_CHECK": "1"}
        manifest = os.path.join(os.path.dirname(archive), "holdfast.yaml")
        run = subprocess.run([KREW, "install", f"--manifest={manifest}", f"--archive={archive}"],
                             capture_output=True, text=True, env=env, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        plugin = os.path.join(env["KREW_ROOT"], "bin", "kubectl-holdfast")
        run = subprocess.run([plugin, "why", "--help"], capture_output=True, text=True, check=False)
        self.assertIn("kubectl holdfast why", run.stdout)


if __name__ == "__main__":
    unittest.main()
