#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""tools/image: what runs here runs from the image alone."""

import hashlib
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

    def test_root_owns_the_files_and_another_user_starts_the_program(self):
        manifest, config, layer = self.members()
        self.assertEqual(manifest["RepoTags"], ["t:1"])
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(config["Entrypoint"], ["/usr/bin/holdfast"])
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            self.assertIn("etc/ssl/certs/ca-certificates.crt", t.getnames())
            for member in t:
                self.assertEqual((member.uid, member.mode & 0o022), (0, 0) if not member.issym()
                                 else (0, 0o022), member.name)

    def test_labels_name_version_and_licence(self):
        _, config, _ = self.members()
        labels = config["Labels"]
        with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as f:
            self.assertIn(f"version: '{labels['org.opencontainers.image.version']}'", f.read())
        self.assertEqual(labels["org.opencontainers.image.licenses"], "Apache-2.0")
        self.assertEqual(labels["org.opencontainers.image.created"], "1970-01-01T00:00:00Z")

    def test_the_bill_of_materials_has_each_file_and_its_package(self):
        _, _, layer = self.members()
        with open(os.path.join(self.folder, "a.spdx.json"), encoding="utf-8") as f:
            bill = json.load(f)
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        listed = {f["fileName"].removeprefix("./"): f for f in bill["files"]}
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            programs = [m for m in t if m.isfile() and m.mode & 0o100]
            self.assertEqual(sorted(listed), sorted(m.name for m in programs))
            for member in programs:
                data = t.extractfile(member).read()
                sums = {c["algorithm"]: c["checksumValue"] for c in listed[member.name]["checksums"]}
                self.assertEqual(sums["SHA256"], hashlib.sha256(data).hexdigest())
        owners = {r["relatedSpdxElement"]: r["spdxElementId"] for r in bill["relationships"]
                  if r["relationshipType"] == "CONTAINS"}
        self.assertEqual(sorted(owners), sorted(f["SPDXID"] for f in bill["files"]))
        names = {p["SPDXID"]: p["name"] for p in bill["packages"]}
        libc = next(f for name, f in listed.items() if name.endswith("/libc.so.6"))
        self.assertEqual(names[owners[libc["SPDXID"]]], "libc6")

    def test_a_file_that_is_no_program_is_refused(self):
        run, path = self.make(program=__file__)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no 64-bit little-endian ELF file", run.stderr)
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc"), "needs gcc-aarch64-linux-gnu")
    def test_a_program_for_another_machine_brings_the_libraries_of_that_machine(self):
        source, program = (os.path.join(self.folder, n) for n in ("p.c", "p"))
        with open(source, "w", encoding="utf-8") as f:
            f.write("int main(void) { return 0; }\n")
        subprocess.run(["aarch64-linux-gnu-gcc", "-o", program, source], check=True)
        run, path = self.make(program=program)
        if not os.path.exists("/lib/aarch64-linux-gnu/libc.so.6"):
            self.assertIn("aarch64-linux-gnu", run.stderr)
            return
        self.assertEqual(run.returncode, 0, run.stderr)
        with tarfile.open(path) as t:
            manifest = json.load(t.extractfile("manifest.json"))[0]
            self.assertEqual(json.load(t.extractfile(manifest["Config"]))["architecture"], "arm64")

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
