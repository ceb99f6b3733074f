#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""tools/image: what runs here runs from the image alone."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = shutil.which("ls")  # any program with libraries


class ImageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, name="a.tar", program=PROGRAM):
        path = os.path.join(self.folder, name)
        run = subprocess.run([os.path.join(TOP, "tools", "image"), "--program", program, "--output",
                              path, "--tag", "t:1"], capture_output=True, text=True, check=False)
        return run, path

    def members(self):
        run, path = self.make()
        self.assertEqual(run.returncode, 0, run.stderr)
        with tarfile.open(path) as t:
            manifest = json.load(t.extractfile("manifest.json"))[0]
            config = json.load(t.extractfile(manifest["Config"]))
            layer = t.extractfile(manifest["Layers"][0]).read()
        return manifest, config["config"], layer

    def test_the_same_program_gives_the_same_bytes(self):
        texts = []
        for name in ("a.tar", "b.tar"):
            with open(self.make(name)[1], "rb") as f:
                texts.append(f.read())
        self.assertEqual(texts[0], texts[1])

    def test_it_is_nobodys_and_starts_the_program(self):
        manifest, config, layer = self.members()
        self.assertEqual(manifest["RepoTags"], ["t:1"])
        self.assertEqual(config["User"], "65532")
        self.assertEqual(config["Entrypoint"], ["/usr/bin/holdfast"])
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            self.assertIn("etc/ssl/certs/ca-certificates.crt", t.getnames())
            for member in t:
                self.assertEqual((member.uid, member.mode & 0o022), (0, 0) if not member.issym()
                                 else (0, 0o022), member.name)

    @unittest.skipUnless(os.getuid() == 0, "chroot needs root")
    def test_the_program_runs_from_it_alone(self):
        _, _, layer = self.members()
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            t.extractall(self.folder)
        os.chmod(self.folder, 0o755)
        run = subprocess.run(["chroot", "--userspec=65532:65532", self.folder, "/usr/bin/holdfast",
                              "--version"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_program_that_is_not_there_is_told(self):
        run, path = self.make(program="/nowhere")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("/nowhere", run.stderr)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
