#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""package_test.py TREE: checks what the Python package promises without any other library."""

import os
import re
import subprocess
import sys
import unittest

TREE = os.path.abspath(sys.argv[1])
PYTHON = os.path.join(TREE, "python")
SOURCE = os.path.join(PYTHON, "src")
# This text makes imports of these packages fail, though they may be installed.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {!r}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Missing())
"""
LIBRARIES = ("torch", "transformers", "lightning", "pytorch_lightning")


def read(*path):
    with open(os.path.join(TREE, *path), encoding="utf-8") as file:
        return file.read()


def run(code, folder=SOURCE):
    # -S: without site-packages, so that only the standard library can be imported.
    return subprocess.run([sys.executable, "-S", "-c", code], cwd=folder, env={}, capture_output=True, text=True)


class Package(unittest.TestCase):
    def error_of_import(self, module):
        done = run(WITHOUT.format(LIBRARIES) + f"import {module}")
        self.assertEqual(done.returncode, 1)
        return done.stderr.strip().split("\n")[-1]

    def test_a_module_without_its_library_says_how_to_install_it(self):
        for module, command in (("transformers", "pip install 'transformers[torch]'"), ("torch", "pip install torch"),
                                ("lightning", "pip install lightning"),
                                ("pytorch_lightning", "pip install pytorch-lightning")):
            error = self.error_of_import("holdfast_report." + module)
            self.assertRegex(error, f"^ImportError: holdfast_report.{module} needs .*: {re.escape(command)} ")
            self.assertIn("No module named", error)

    def test_a_lightning_module_names_the_other_package(self):
        self.assertIn("use holdfast_report.pytorch_lightning", self.error_of_import("holdfast_report.lightning"))
        self.assertIn("use holdfast_report.lightning", self.error_of_import("holdfast_report.pytorch_lightning"))

    def test_report_needs_the_standard_library_alone(self):
        for folder in (SOURCE, PYTHON):
            done = run("import sys; sys.path.insert(0, ''); from holdfast_report import report; report(1); "
                       "print(*sorted({m.partition('.')[0] for m in sys.modules}))", folder)
            self.assertEqual(done.stderr, "")
            names = set(done.stdout.split())
            self.assertIn("holdfast_report", names)
            if hasattr(sys, "stdlib_module_names"):  # Python 3.10
                self.assertEqual(names - sys.stdlib_module_names, {"holdfast_report", "__main__"} - sys.stdlib_module_names)

    def test_the_single_file_is_the_text_of_the_package(self):
        self.assertEqual(read("python", "holdfast_report.py"), read("python", "src", "holdfast_report", "__init__.py"))

    def test_the_package_has_the_version_of_the_program(self):
        project = re.search(r'^version = "(.*)"$', read("python", "pyproject.toml"), re.M)
        program = re.search(r"^  version: '(.*)',$", read("meson.build"), re.M)
        self.assertEqual(project.group(1), program.group(1))

    def test_the_package_brings_the_license(self):
        self.assertEqual(read("python", "LICENSE"), read("LICENSE"))

    def test_type_checkers_find_the_types(self):
        self.assertEqual(read("python", "src", "holdfast_report", "py.typed"), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
