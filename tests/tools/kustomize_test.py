#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""deploy/kustomize builds what `holdfast manifests` prints.

Needs kubectl, in PATH or as tests/cluster/cluster built it, and build/holdfast.
"""

import glob
import os
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "cluster"))
sys.dont_write_bytecode = True
from kit import render

HOLDFAST = os.path.join(TOP, "build", "holdfast")
# Files of deploy/ for `holdfast manifests` alone: they need a flag.
LEFT_OUT = {"operator/gang.yaml", "policy/deny.yaml"}


def manifests(*flags):
    return render.objects(render.run(HOLDFAST, "manifests", *flags))


class SourceTest(unittest.TestCase):
    def test_each_file_is_a_resource(self):
        for folder in ("crds", "operator", "agent", "policy"):
            with open(os.path.join(TOP, "deploy", folder, "kustomization.yaml"), encoding="utf-8") as f:
                text = f.read()
            for path in glob.glob(os.path.join(TOP, "deploy", folder, "*.yaml")):
                name = os.path.basename(path)
                if name != "kustomization.yaml" and f"{folder}/{name}" not in LEFT_OUT:
                    self.assertIn(name, text, folder)


@unittest.skipUnless(render.find("kubernetes", "kubectl") and os.path.exists(HOLDFAST),
                     "needs kubectl and build/holdfast")
class BuildTest(unittest.TestCase):
    maxDiff = 4000

    def equal(self, text, wanted):
        found = render.objects(text)
        self.assertEqual(sorted(found), sorted(wanted))
        for key, document in wanted.items():
            self.assertEqual(found[key], document, key)

    def test_standalone_is_what_holdfast_manifests_prints(self):
        self.equal(render.kustomize_with(resources=["overlays/standalone"]), manifests())

    def test_kubeflow_differs_by_the_namespace_and_the_agent_keeps_its_own(self):
        wanted = manifests("-n", "kubeflow")
        del wanted[("Namespace", "kubeflow", "")]
        self.equal(render.kustomize_with(resources=["overlays/kubeflow"],
                                         components=["components/agent"]),
                   {**wanted, **manifests("--agent")})

    def adds(self, component, overlay="standalone", beside=()):
        """What a component adds to an overlay; nothing else may change."""
        beside = list(beside)
        plain = render.objects(render.kustomize_with(resources=["overlays/" + overlay], components=beside))
        found = render.objects(render.kustomize_with(resources=["overlays/" + overlay], components=beside + [component]))
        self.assertEqual({k: found.get(k) for k in plain}, plain)
        return set(found) - set(plain)

    def test_components_of_the_operator_go_to_its_namespace(self):
        for overlay, ns in (("standalone", "holdfast-system"), ("kubeflow", "kubeflow")):
            self.assertEqual(self.adds("components/dashboards", overlay), {
                ("ConfigMap", "holdfast-dashboard-fleet", ns), ("ConfigMap", "holdfast-dashboard-operator", ns)})
            self.assertEqual(self.adds("components/network-policy", overlay), {
                ("NetworkPolicy", "holdfast-operator", ns)})

    def test_the_network_policy_of_the_agent(self):
        self.assertEqual(self.adds("components/network-policy-agent", beside=["components/agent"]), {
            ("NetworkPolicy", "holdfast-agent", "holdfast-agent")})


if __name__ == "__main__":
    unittest.main()
