#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""k9s_test.py HOLDFAST: each plugin of deploy/k9s/plugins.yaml does on a plane what its description says.

The test replaces variables and starts the commands as k9s 0.51 does (internal/view/env.go, exec.go); the output goes to the
test instead of less.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tools" / "lib"))
sys.dont_write_bytecode = True
import yaml_subset
from plane import call, until

HOLDFAST = os.path.abspath(sys.argv[1])
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
REMEDIATIONS = "/apis/holdfast.dev/v1alpha1/remediations"
# $NAME, $!NAME, ${NAME} or ${!NAME}: groups 2 and 4 are names.
VARIABLE = re.compile(r"\$(!?)([\w-]+)|\$\{(!?)([\w%/: -]+)\}")
KEYS = {"shortCut": str, "description": str, "scopes": list, "command": str, "args": list, "pipes": list,
        "confirm": str, "dangerous": str}
REQUIRED = {"shortCut", "description", "scopes", "command"}
# Keys that k9s has in every table, and in those of nodes.
TAKEN = {"Shift-N", "Shift-A", "Shift-S", "Shift-O", "Shift-P", "Shift-J", "Shift-C", "Shift-M", "Shift-X", "Shift-Z"}
CHANGES = {"suspend", "resume", "restart", "delete"}


def plugins():
    with open(TOP / "deploy" / "k9s" / "plugins.yaml", encoding="utf-8") as f:
        return yaml_subset.parse(f.read())["plugins"]


def substitute(text, env):
    return VARIABLE.sub(lambda m: env.get((m[2] or m[4]).upper(), m[0]), text)


class FileTest(unittest.TestCase):
    def test_each_plugin_has_what_k9s_wants(self):
        for name, plugin in plugins().items():
            self.assertEqual(REQUIRED - set(plugin), set(), name)
            for key, value in plugin.items():
                self.assertIsInstance(value, KEYS[key], (name, key))
            for pipe in plugin["pipes"]:
                self.assertGreaterEqual(len(shlex.split(pipe)), 2, "k9s drops a pipe of one word")

    def test_shortcuts_are_free_and_differ_within_a_view(self):
        taken = set()
        for plugin in plugins().values():
            self.assertRegex(plugin["shortCut"], "^Shift-[A-Z]$")
            self.assertNotIn(plugin["shortCut"], TAKEN)
            for scope in plugin["scopes"]:
                self.assertNotIn((scope, plugin["shortCut"]), taken)
                taken.add((scope, plugin["shortCut"]))

    def test_what_changes_a_job_asks_first_and_is_hidden_when_read_only(self):
        for name, plugin in plugins().items():
            changes = bool(CHANGES & set(plugin["args"]))
            self.assertEqual((plugin.get("confirm") == "true", plugin.get("dangerous") == "true"), (changes, changes), name)


class PlaneTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.plane = cls.folder / "plane"
        (cls.folder / "bin").mkdir()
        os.symlink(HOLDFAST, cls.folder / "bin" / "holdfast")
        with open(cls.folder / "up.log", "wb") as log:
            cls.server = subprocess.Popen([HOLDFAST, "up", "--listen", "127.0.0.1:0", "--data-dir", str(cls.plane)],
                                          stdout=log, stderr=log)
        until("the plane", (cls.plane / "kubeconfig").exists)
        # Where k9s finds a kubeconfig if nothing names one.
        (cls.folder / ".kube").mkdir()
        shutil.copy(cls.plane / "kubeconfig", cls.folder / ".kube" / "config")
        cls.context = re.search(r"current-context: (\S+)", (cls.plane / "kubeconfig").read_text())[1]

    @classmethod
    def tearDownClass(cls):
        subprocess.run([HOLDFAST, "down", "--data-dir", str(cls.plane), "--timeout", "60s"], check=False,
                       capture_output=True, timeout=90)
        cls.server.kill()
        cls.server.wait()
        shutil.rmtree(cls.folder)

    def api(self, path, body=None):
        return call(self.plane, path, body)

    def press(self, name, resource, selected, kubeconfig=True):
        """The output that the pager gets, as after the plugin's key."""
        plugin = plugins()[f"holdfast-{name}"]
        self.assertIn(resource, plugin["scopes"])
        path = str(self.plane / "kubeconfig") if kubeconfig else ""
        env = {"KUBECONFIG": path, "CONTEXT": self.context, "NAMESPACE": "default", "NAME": selected,
               "RESOURCE_NAME": resource}
        argv = [plugin["command"], *(substitute(a, env) for a in plugin["args"])]
        self.assertEqual(plugin["pipes"], ["less -K"])
        made = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env={
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder)})
        # What is written to stderr would be overwritten by the pager.
        self.assertEqual(made.stderr, "", argv)
        return made.stdout

    def create(self, name, command):
        container = {"name": "pytorch", "image": "none", "command": ["sh", "-c", command]}
        self.api(JOBS, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": {
            "pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {
                "terminationGracePeriodSeconds": 1, "containers": [container]}}}}}})

    def is_true(self, name, condition):
        return any(c["type"] == condition and c["status"] == "True"
                   for c in self.api(f"{JOBS}/{name}")["status"]["conditions"])

    def test_a_job(self):
        self.create("llm", "echo hello from $RANK; exec sleep 1000")
        until("it runs", lambda: self.is_true("llm", "Running"))
        self.assertIn("default/llm is Running", self.press("why", "pytorchjobs", "llm"))
        self.assertIn("Kind:          PyTorchJob", self.press("describe", "pytorchjobs", "llm"))
        until("its log", lambda: "hello from 0" in self.press("logs", "pytorchjobs", "llm"))
        uid = self.api("/api/v1/namespaces/default/pods/llm-master-0")["metadata"]["uid"]
        self.press("restart", "pytorchjobs", "llm")
        until("another pod", lambda: self.api("/api/v1/namespaces/default/pods/llm-master-0")["metadata"]["uid"] != uid)
        until("it runs again", lambda: self.is_true("llm", "Running"))
        self.press("suspend", "pytorchjobs", "llm")
        until("it is suspended", lambda: self.is_true("llm", "Suspended"))
        self.press("resume", "pytorchjobs", "llm")
        until("it runs once more", lambda: self.is_true("llm", "Running"))

    def test_a_job_that_is_gone_says_so_in_the_pager(self):
        self.assertRegex(self.press("why", "pytorchjobs", "gone"), "holdfast: .*gone")

    def test_without_a_kubeconfig_of_k9s_the_one_at_home_is_used(self):
        self.assertIn("node local is Ready", self.press("why-node", "nodes", "local", kubeconfig=False))

    def test_a_node(self):
        self.assertIn("node local is Ready", self.press("why-node", "nodes", "local"))

    @unittest.skipUnless(shutil.which("kubectl"), "needs kubectl")
    def test_the_remediations_of_a_node(self):
        for name, node in (("local-1", "local"), ("other-1", "other")):
            self.api(REMEDIATIONS, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "Remediation",
                                    "metadata": {"name": name}, "spec": {
                                        "node": node, "rung": "person", "attempt": 1, "nonce": "0" * 32}})
        self.assertRegex(self.press("remediations", "nodes", "local"), r"\Alocal-1\tperson\t\S*\t[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
