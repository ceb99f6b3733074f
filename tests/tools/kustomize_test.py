#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""deploy/kustomize builds what `holdfast manifests` prints.

Needs kubectl, in PATH or as tests/cluster/cluster built it, and build/holdfast.
"""

import glob
import os
import shutil
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
        for folder in ("crds", "operator", "agent", "policy", "mend", "mender", "rollout"):
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

    def test_another_kubectl_builds_the_same(self):
        other = shutil.which("kubectl")
        if not other or os.path.samefile(other, render.find("kubernetes", "kubectl")):
            self.skipTest("needs a second kubectl in PATH")
        folder = os.path.join(render.KUSTOMIZE, "overlays", "kubeflow")
        self.assertEqual(render.run(other, "kustomize", folder), render.kustomize(folder))

    def test_components_add_their_objects_and_change_nothing(self):
        """Those of the operator go to its namespace, that of the agent to the agent's."""
        for overlay, ns in (("standalone", "holdfast-system"), ("kubeflow", "kubeflow")):
            plain, found = ({render.identity(d): d for d in render.kustomize_with(
                resources=["overlays/" + overlay], components=["components/agent", *more]).split("\n---\n")}
                for more in ((), ("components/dashboards", "components/network-policy", "components/network-policy-agent")))
            self.assertEqual(set(found) - set(plain), {
                ("ConfigMap", "holdfast-dashboard-fleet", ns), ("ConfigMap", "holdfast-dashboard-operator", ns),
                ("NetworkPolicy", "holdfast-operator", ns), ("NetworkPolicy", "holdfast-agent", "holdfast-agent")})
            for key, document in plain.items():
                self.assertEqual(found[key].strip(), document.strip(), key)

    def test_mending_and_rollouts_are_what_holdfast_manifests_prints(self):
        for overlay, ns in (("standalone", "holdfast-system"), ("kubeflow", "kubeflow")):
            plain = render.objects(render.kustomize_with(resources=["overlays/" + overlay]))
            for components, flags in ((["mender"], ["--mender"]), (["rollouts"], ["--rollouts"]),
                                      (["mender", "rollouts"], ["--mender", "--rollouts"])):
                self.equal(render.kustomize_with(resources=["overlays/" + overlay], components=[
                    "components/" + name for name in ["mend", *components]]), {**plain, **manifests("-n", ns, *flags)})

    def test_an_image_is_put_everywhere(self):
        wanted = manifests("--image", "r.example/team/h:2")
        self.equal(render.kustomize_with(image=("r.example/team/h", "2"), resources=["overlays/standalone"]), wanted)
        deployment = wanted[("Deployment", "holdfast-operator", "holdfast-system")]
        self.assertEqual(deployment.count("r.example/team/h:2"), 2)

    def test_the_page_adds_its_objects_and_three_lines(self):
        for overlay, ns in (("standalone", "holdfast-system"), ("kubeflow", "kubeflow")):
            plain, found = ({render.identity(d): d for d in render.kustomize_with(
                resources=["overlays/" + overlay], components=more).split("\n---\n")} for more in ([], ["components/page"]))
            added = {key: found[key] for key in set(found) - set(plain)}
            self.assertEqual(set(added), {("ClusterRole", "holdfast-operator-page", ""),
                                          ("ClusterRoleBinding", "holdfast-operator-page", ns), ("Service", "holdfast-page", ns)})
            changed = [key for key in plain if plain[key].strip() != found[key].strip()]
            self.assertEqual(changed, [("Deployment", "holdfast-operator", ns)])
            for line in ("--page=:8082", "--page-host=localhost", "containerPort: 8082"):
                self.assertIn(line, found[changed[0]])

    def test_csi_adds_a_driver_a_flag_of_each_program_and_three_folders(self):
        before, after = (render.objects(render.kustomize_with(resources=["overlays/standalone"],
                                                              components=["components/agent", *more]))
                         for more in ([], ["components/csi"]))
        driver = ("CSIDriver", "exec.holdfast.dev", "")
        self.assertEqual(sorted(set(after) - set(before)), [driver])
        changed = {key for key in before if before[key] != after[key]}
        self.assertEqual({kind for kind, _, _ in changed}, {"DaemonSet", "Deployment"})
        # The chart has the same.
        chart = render.objects(render.helm("crds.enabled=false", "agent.enabled=true", "agent.csi=true"))
        self.assertIn("volumeLifecycleModes:\n  - Ephemeral", chart[driver])
        agent = ("DaemonSet", "holdfast-agent", "holdfast-agent")
        for text in (after[agent], chart[agent]):
            self.assertIn("- --csi-kubelet-dir=/var/lib/kubelet", text)
            self.assertIn("mountPropagation: Bidirectional", text)
        for objects in (after, chart):
            text = next(v for (kind, _, _), v in objects.items() if kind == "Deployment")
            self.assertIn("- --exec-csi-driver=exec.holdfast.dev", text)


if __name__ == "__main__":
    unittest.main()
