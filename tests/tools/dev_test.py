#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""./dev and tools/need, with a package manager that only writes down what it is asked."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEBIAN = 'ID=debian\nVERSION_ID="12"\n'


class Need(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.log = os.path.join(self.root, "log")
        os.makedirs(os.path.join(self.root, "tree/tools"))
        shutil.copy(os.path.join(TOP, "tools/need"), os.path.join(self.root, "tree/tools/need"))
        self.write("tree/tools/packages", "build  liba-dev  pc:there-is-no-such-lib\n"
                   "build  shell  cmd:sh\ntest  libb-dev  pc:there-is-no-such-lib\n"
                   "example  torch  py:there_is_no_such_module\n")
        self.write("os-release", DEBIAN)
        self.program("apt-get", f'echo "apt-get $*" >>{self.log}')
        self.program("dpkg-query", 'case " $INSTALLED " in *" $4 "*) echo installed;; esac')
        self.program("sudo", f'echo "sudo $*" >>{self.log}\n[ "$1" != -n ] || shift\nexec "$@"')
        self.program("id", "echo ${FAKE_UID:-0}")

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as f:
            f.write(text)

    def program(self, name, body):
        path = os.path.join(self.root, "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + body + "\n")
        os.chmod(path, 0o755)

    def need(self, *args, **environment):
        env = {"PATH": os.path.join(self.root, "bin") + ":" + os.environ["PATH"],
               "DEV_OS_RELEASE": os.path.join(self.root, "os-release"), **environment}
        run = subprocess.run([os.path.join(self.root, "tree/tools/need"), *args], env=env,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        asked = ""
        if os.path.exists(self.log):
            with open(self.log, encoding="utf-8") as f:
                asked = f.read()
        return run.returncode, run.stderr, asked

    def test_calls_nothing_where_all_is_there(self):
        self.assertEqual(self.need("build", INSTALLED="liba-dev"), (0, "", ""))

    def test_installs_what_is_missing_and_only_for_the_purpose(self):
        code, err, asked = self.need("build")
        self.assertEqual(code, 0)
        self.assertIn("missing packages: liba-dev (download", err)
        self.assertRegex(asked, r"apt-get -q -y --no-install-recommends install liba-dev\n")
        self.assertNotIn("libb-dev", asked)
        self.assertNotIn("torch", asked)
        self.assertNotIn("sudo", asked)

    def test_uses_sudo_where_not_root_and_never_asks_without_a_terminal(self):
        code, _, asked = self.need("build", "test", FAKE_UID="1000")
        self.assertEqual(code, 0)
        self.assertRegex(asked, r"sudo -n env .* install liba-dev libb-dev\n")

    def test_fails_with_the_names_when_the_package_manager_does(self):
        self.program("apt-get", 'case "$*" in *-y*) echo "E: no space"; exit 100;; esac')
        code, err, _ = self.need("build")
        self.assertEqual(code, 1)
        self.assertIn("E: no space", err)
        self.assertIn("could not install: liba-dev", err)

    def test_names_the_packages_on_another_system(self):
        self.write("os-release", "ID=fedora\nVERSION_ID=43\n")
        code, err, asked = self.need("build")
        self.assertEqual((code, asked), (1, ""))
        self.assertIn("Debian 12, Debian 13 and Ubuntu 24.04 only", err)
        self.assertTrue(err.endswith("liba-dev\n"), err)

    def test_goes_on_on_another_system_that_has_what_is_needed(self):
        self.write("os-release", "ID=fedora\nVERSION_ID=43\n")
        self.write("tree/tools/packages", "build  libc6-dev  -\nbuild  shell  cmd:sh\n")
        self.assertEqual(self.need("build"), (0, "", ""))

    def test_an_example_gets_only_what_the_list_names(self):
        code, err, asked = self.need("--example", "torch")
        self.assertEqual(code, 0)
        self.assertIn("install torch\n", asked)
        code, err, _ = self.need("--example", "rootkit")
        self.assertEqual(code, 1)
        self.assertIn("'rootkit' is not a package examples may ask for", err)


class PythonEnv(unittest.TestCase):
    """With a Python that makes environments of a script."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.makedirs(os.path.join(self.root, "tree/tools"))
        shutil.copy(os.path.join(TOP, "tools/python-env"), os.path.join(self.root, "tree/tools"))
        with open(os.path.join(self.root, "tree/tools/packages"), "w", encoding="utf-8") as f:
            f.write("pip  gpu[cpu]==1.0  -\nexample  other  -\n")
        self.python = os.path.join(self.root, "python")
        with open(self.python, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\necho "$*" >>{self.root}/log\n'
                    'for last; do :; done\n'
                    'case "$1 $2" in *nothing*) exit 1 ;; "-c "*) echo 1.13.0a0 ;; esac\n'
                    'case "$2" in\n'
                    f'venv) mkdir -p "$last/bin" && cp {self.python} "$last/bin/python" ;;\n'
                    'pip) [ -z "$BROKEN" ] ;;\nesac\n')
        os.chmod(self.python, 0o755)

    def env(self, *args, **environment):
        run = subprocess.run([os.path.join(self.root, "tree/tools/python-env"), *args],
                             env={**os.environ, "HOME": self.root, "DEV_PYTHON": self.python,
                                  **environment},
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return run.returncode, run.stdout.strip(), run.stderr

    def asked(self):
        with open(os.path.join(self.root, "log"), encoding="utf-8") as f:
            return f.read()

    def test_says_whether_it_is_there_and_makes_nothing(self):
        self.assertEqual(self.env("--there", "gpu[cpu]==1.0"), (1, "", ""))
        self.assertNotIn("venv", self.asked())
        made = self.env("gpu[cpu]==1.0")[1]
        self.assertEqual(self.env("--there", "gpu[cpu]==1.0"), (0, made, ""))

    def test_installs_once_and_says_where(self):
        code, folder, err = self.env("gpu[cpu]==1.0")
        self.assertEqual(code, 0, err)
        self.assertTrue(os.path.exists(os.path.join(folder, "bin/python")))
        self.assertIn("missing packages of PyPI: gpu[cpu]==1.0", err)
        self.assertIn("pip install --quiet --disable-pip-version-check gpu[cpu]==1.0", self.asked())
        code, again, err = self.env("gpu[cpu]==1.0")
        self.assertEqual((code, again, err), (0, folder, ""))
        self.assertEqual(self.asked().count("pip install"), 1)

    def test_what_a_broken_run_left_is_made_again(self):
        code, _, err = self.env("gpu[cpu]==1.0", BROKEN="1")
        self.assertEqual(code, 1)
        self.assertIn("pip could not install: gpu[cpu]==1.0", err)
        self.assertEqual(self.env("gpu[cpu]==1.0")[0], 0)

    def test_keeps_a_package_of_the_system(self):
        alone = self.env("gpu[cpu]==1.0")[1]
        code, folder, err = self.env("--keep", "torch", "gpu[cpu]==1.0")
        self.assertEqual(code, 0, err)
        self.assertNotEqual(folder, alone)
        self.assertIn(f"-m venv --system-site-packages {folder}", self.asked())
        self.assertIn(f"--constraint {folder}/keep gpu[cpu]==1.0", self.asked())
        with open(os.path.join(folder, "keep"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "torch==1.13.0a0\n")
        self.assertEqual(self.env("--there", "--keep", "torch", "gpu[cpu]==1.0"), (0, folder, ""))
        code, _, err = self.env("--keep", "nothing", "gpu[cpu]==1.0")
        self.assertEqual(code, 1)
        self.assertIn("has no package 'nothing'", err)

    def test_takes_only_what_the_list_names(self):
        code, _, err = self.env("other")
        self.assertEqual(code, 1)
        self.assertIn("'other' is not a package examples may ask for", err)


class Dev(unittest.TestCase):
    def dev(self, *args):
        run = subprocess.run([os.path.join(TOP, "dev"), *args], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_lists_every_verb_it_has(self):
        code, out = self.dev("help")
        self.assertEqual(code, 0)
        for verb in ["build", "clean", "run", *os.listdir(os.path.join(TOP, "tools/dev.d"))]:
            self.assertRegex(out, rf"(?m)^  {verb} ")

    def test_refuses_a_verb_it_does_not_have(self):
        for verb in ("fly", "../tools/need", "Build"):
            code, out = self.dev(verb)
            self.assertEqual(code, 2)
            self.assertIn("usage: ./dev", out)

    def test_every_verb_says_how_it_is_used_and_does_nothing(self):
        for verb in ["build", "clean", *os.listdir(os.path.join(TOP, "tools/dev.d"))]:
            for flag in ("-h", "--help"):
                code, out = self.dev(verb, flag)
                self.assertEqual(code, 0, out)
                self.assertRegex(out, rf"^usage: ./dev {verb}\b")

    def test_refuses_arguments_that_mean_nothing(self):
        for args, why in (
            (("build", "all"), "build takes no 'all'"),
            (("clean", "--all"), "clean takes no '--all'"),
            (("fuzz", "long"), "'long' is not a number of seconds"),
            (("fuzz", "0"), "'0' is not a number of seconds"),
            (("fuzz", "10", "../json"), "there is no harness '../json'"),
            (("lint", "--fox"), "lint has no option '--fox'"),
            (("lint", "src/nix.c"), "there is no file 'src/nix.c' here"),
            (("test", "json"), "it runs all tests and takes no 'json'"),
        ):
            code, out = self.dev(*args)
            self.assertEqual(code, 2, args)
            self.assertIn(why, out)

    def test_run_wants_a_file(self):
        code, out = self.dev("run")
        self.assertEqual(code, 1)
        self.assertIn("which file?", out)

    def test_every_package_line_can_be_understood(self):
        with open(os.path.join(TOP, "tools/packages"), encoding="utf-8") as f:
            lines = [l.split() for l in f if l.strip() and not l.startswith("#")]
        for line in lines:
            self.assertEqual(len(line), 3, line)
            # Of PyPI one version, the same for everybody.
            self.assertRegex(line[1], r"^[a-z0-9-]+(\[[a-z]+\])?==[0-9.]+$" if line[0] == "pip"
                             else r"^[a-z0-9][a-z0-9.+-]+$")
            self.assertRegex(line[2], r"^((cmd|pc|py):\S+|-)$")


if __name__ == "__main__":
    unittest.main()
