#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The Helm chart: its generated files are current, and it installs what `holdfast manifests` prints.

Rendering needs helm and kubectl, in PATH or as tests/cluster/cluster built them, and build/holdfast.
"""

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "cluster"), os.path.join(TOP, "tools", "lib")]
sys.dont_write_bytecode = True
import yaml_subset
from kit import render

CHART = render.CHART
HOLDFAST = os.path.join(TOP, "build", "holdfast")
NO_CRDS = "crds.enabled=false"  # they are large
SECRET_MAX = 1 << 20  # of the data of a Secret
SECRET_GOAL = SECRET_MAX // 2


HELM, KUBECTL = render.find("helm", "helm"), render.find("kubernetes", "kubectl")
CAN_RENDER = unittest.skipUnless(HELM and KUBECTL and os.path.exists(HOLDFAST),
                                 "needs helm, kubectl and build/holdfast")


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def manifests(*flags):
    return render.run(HOLDFAST, "manifests", *flags)


def notes(*values):
    """What helm prints after an installation."""
    flags = [word for v in values for word in ("--set", v)]
    return render.run(HELM, "install", "holdfast", CHART, "--dry-run=client", *flags).split("\nNOTES:\n")[1]


def without_namespaces(found):
    return {k: v for k, v in found.items() if k[0] != "Namespace"}


class SourceTest(unittest.TestCase):
    def test_generated_files_values_schema_and_versions_agree(self):
        made = run(os.path.join(TOP, "tools", "chart"), "check")
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_the_check_names_a_stale_template_a_value_without_schema_and_a_version(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tools", "deploy", "meson.build"):
                path = os.path.join(TOP, name)
                copy = shutil.copytree if os.path.isdir(path) else shutil.copy
                copy(path, os.path.join(folder, name))
            chart = os.path.join(folder, "deploy", "helm", "holdfast")
            for name, old, new in (
                    ("templates/operator/rbac.yaml", "verbs: [get", "verbs: [list, get"),
                    ("values.yaml", "  replicas: 1\n", "  replicas: 1\n  # More.\n  novel: 1\n"),
                    ("Chart.yaml", "appVersion: ", "appVersion: 9")):
                path = os.path.join(chart, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                self.assertIn(old, text)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text.replace(old, new, 1))
            made = run(sys.executable, os.path.join(folder, "tools", "chart"), "check")
        self.assertEqual(made.returncode, 1)
        for part in ("templates/operator/rbac.yaml: run tools/chart", "README.md: run tools/chart",
                     "operator.novel is not in values.schema.json", "appVersion is not"):
            self.assertIn(part, made.stderr)

    def test_the_release_fits_into_a_secret(self):
        """Helm stores the chart and the rendered text in a Secret: JSON, gzip, base64."""
        templates, files = [], []
        for where, _, names in sorted(os.walk(CHART)):
            for name in sorted(names):
                path = os.path.join(where, name)
                with open(path, "rb") as f:
                    data = base64.b64encode(f.read()).decode()
                relative = os.path.relpath(path, CHART)
                (templates if relative.startswith("templates/") else files).append(
                    {"name": relative, "data": data})
        # As many objects as there can be: everything that deploy/ has.
        text = ""
        for where, _, names in sorted(os.walk(os.path.join(TOP, "deploy"))):
            if "helm" not in where:
                ends = (".yaml", ".json") if where.endswith("dashboards") else ".yaml"
                for name in sorted(n for n in names if n.endswith(ends)):
                    with open(os.path.join(where, name), encoding="utf-8") as f:
                        text += "---\n# Source: holdfast/templates/x.yaml\n" + f.read()
        release = json.dumps({"name": "holdfast", "chart": {"templates": templates, "files": files},
                              "manifest": text, "version": 1})
        stored = base64.b64encode(gzip.compress(release.encode(), 9))
        self.assertGreater(len(text), 1000000)
        self.assertLess(len(stored), SECRET_GOAL)


@CAN_RENDER
class RenderTest(unittest.TestCase):
    maxDiff = 4000

    def equal(self, text, wanted):
        found, wanted = without_namespaces(render.objects(text)), without_namespaces(render.objects(wanted))
        self.assertEqual(sorted(found), sorted(wanted))
        for key, document in wanted.items():
            self.assertEqual(found[key], document, key)

    def test_helm_finds_nothing_to_complain_about(self):
        made = run(HELM, "lint", "--strict", CHART)
        self.assertEqual(made.returncode, 0, made.stdout)

    def test_the_defaults_are_what_holdfast_manifests_prints(self):
        self.equal(render.helm("crds.keep=false"), manifests())

    def test_a_kept_crd_differs_by_one_annotation(self):
        kept, plain = render.objects(render.helm()), render.objects(render.helm("crds.keep=false"))
        for key, document in plain.items():
            if key[0] == "CustomResourceDefinition":
                self.assertEqual(kept[key], document.replace(
                    "metadata:\n", "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n", 1))
            else:
                self.assertEqual(kept[key], document)

    def test_the_agent_is_what_holdfast_manifests_prints(self):
        found = render.objects(render.helm("crds.keep=false", "agent.enabled=true"))
        wanted = render.objects(manifests("--agent"))
        for key, document in wanted.items():
            self.assertEqual(found[key], document, key)
        self.assertEqual(set(found), set(render.objects(render.helm())) | set(wanted))

    def test_mending_and_rollouts_are_what_holdfast_manifests_prints(self):
        """In the namespace of the release, and one without the other."""
        for ns in ("holdfast-system", "team"):
            plain = render.objects(render.helm(NO_CRDS, ns=ns))
            self.assertNotIn("holdfast-mend", "".join(plain.values()))
            for values, flags in ((["mender.enabled=true"], ["--mender"]), (["rollouts.enabled=true"], ["--rollouts"]),
                                  (["mender.enabled=true", "rollouts.enabled=true"], ["--mender", "--rollouts"])):
                found = render.objects(render.helm(NO_CRDS, *values, ns=ns))
                wanted = {**plain, **render.objects(manifests("-n", ns, *flags))}
                self.assertEqual(sorted(found), sorted(wanted))
                for key, document in wanted.items():
                    self.assertEqual(found[key], document, key)

    def test_pods_that_mend_get_the_pull_secrets(self):
        key = ("ServiceAccount", "holdfast-mender", "holdfast-mend")
        plain, found = (render.objects(render.helm(NO_CRDS, "mender.enabled=true", *more))[key]
                        for more in ((), ("imagePullSecrets[0].name=registry",)))
        self.assertNotIn("imagePullSecrets", plain)
        self.assertEqual(yaml_subset.parse(found)["imagePullSecrets"], [{"name": "registry"}])

    def test_the_notes_say_how_to_stop_what_acts(self):
        for value, name in (("mender.enabled", "holdfast-mend-operator"), ("rollouts.enabled", "holdfast-rollout-operator")):
            line = f"kubectl delete clusterrolebinding {name}"
            self.assertIn(line, notes(f"{value}=true"))
            self.assertNotIn(line, notes())

    def test_a_gang_scheduler_brings_its_rights_and_its_flag(self):
        self.equal(render.helm("crds.keep=false", "operator.gangSchedulerName=volcano"),
                   manifests("--gang-scheduler-name", "volcano"))

    def test_the_page_brings_its_rights_its_service_and_its_flags(self):
        plain = render.objects(render.helm(NO_CRDS))
        found = render.objects(render.helm(NO_CRDS, "page.enabled=true", "page.hosts={localhost,h.example}"))
        with open(os.path.join(TOP, "deploy", "page", "page.yaml"), encoding="utf-8") as f:
            wanted = render.objects(f.read())
        self.assertEqual({k: found[k] for k in set(found) - set(plain)}, wanted)
        self.assertNotIn("page", "".join(plain.values()))
        deployment = found[("Deployment", "holdfast-operator", "holdfast-system")]
        for line in ("--page=:8082", "--page-host=localhost", "--page-host=h.example", "containerPort: 8082"):
            self.assertIn(line, deployment)
        policy = render.objects(render.helm(NO_CRDS, "page.enabled=true", "networkPolicy.enabled=true",
                                            "networkPolicy.pageFrom[0].podSelector.matchLabels.a=b"))
        self.assertIn("port: page", policy[("NetworkPolicy", "holdfast-operator", "holdfast-system")])

    def test_a_cluster_with_upstreams_crds_gets_the_policies(self):
        self.equal(render.helm("crds.keep=false", "crds.jobs=false", "admission.deny=true"),
                   manifests("--operator", "--policy"))

    def test_namespace_and_image_are_put_everywhere(self):
        digest = "sha256:" + "0" * 64
        self.equal(render.helm("crds.enabled=false", "admission.warn=false", "image.repository=r.example/h",
                            "image.digest=" + digest, ns="team"),
                   manifests("--operator", "-n", "team", "--image", "r.example/h@" + digest))

    def test_without_user_roles_only_the_operators_own_are_left(self):
        roles = [k[1] for k in render.objects(render.helm(NO_CRDS, "userRoles=false")) if k[0] == "ClusterRole"]
        self.assertEqual(roles, ["holdfast-operator"])

    def test_the_alerts_are_those_of_the_file(self):
        with open(os.path.join(TOP, "deploy", "alerts.yaml"), encoding="utf-8") as f:
            groups = "".join("  " + l for l in f if l.strip() and not l.startswith("#"))
        wanted = render.objects("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n"
                         "  name: holdfast\n  namespace: holdfast-system\n"
                         "  labels: {app.kubernetes.io/name: holdfast, a: b}\nspec:\n" + groups)
        key = ("PrometheusRule", "holdfast", "holdfast-system")
        found = render.objects(render.helm(NO_CRDS, "alerts.enabled=true", "alerts.labels.a=b"))
        self.assertEqual(found[key], wanted[key])
        fewer = render.objects(render.helm(NO_CRDS, "alerts.enabled=true", "alerts.disabled={HoldfastJobHeld}"))[key]
        self.assertEqual(fewer.count("alert: "), found[key].count("alert: ") - 1)
        self.assertNotIn("HoldfastJobHeld", fewer)

    def test_the_runbooks_may_be_elsewhere(self):
        key = ("PrometheusRule", "holdfast", "holdfast-system")
        plain = render.objects(render.helm(NO_CRDS, "alerts.enabled=true"))[key]
        moved = render.objects(render.helm(NO_CRDS, "alerts.enabled=true", "alerts.runbookBase=https://git.example/"))[key]
        self.assertEqual(moved, plain.replace("runbook_url: docs", "runbook_url: https://git.example/docs"))
        self.assertEqual(moved, render.objects(render.helm(NO_CRDS, "alerts.enabled=true", "alerts.runbookBase=https://git.example"))[key])
        self.assertEqual(moved.count("runbook_url: https://git.example/docs/reference/runbooks.md#"),
                         plain.count("alert: "))

    def test_the_dashboards_are_those_of_kustomize(self):
        found = {k: v for k, v in render.objects(render.helm(NO_CRDS, "dashboards.enabled=true")).items()
                 if k[0] == "ConfigMap"}
        self.assertEqual(found, render.objects(render.kustomize(os.path.join(TOP, "deploy", "dashboards"))))
        self.assertEqual(len(found), 2)
        changed = render.helm(NO_CRDS, "dashboards.enabled=true", "dashboards.annotations.grafana_folder=Holdfast")
        self.assertEqual(changed.count("grafana_folder: Holdfast"), 2)

    def test_the_network_policies_are_those_of_kustomize(self):
        def policies(text):
            return {k: v for k, v in render.objects(text).items() if k[0] == "NetworkPolicy"}
        wanted = {}
        for part in ("operator", "agent"):
            wanted |= render.objects(render.kustomize(os.path.join(TOP, "deploy", "network", part)))
        self.assertEqual(len(wanted), 2)
        self.assertEqual(policies(render.helm(NO_CRDS, "networkPolicy.enabled=true", "agent.enabled=true")), wanted)
        self.assertEqual(len(policies(render.helm(NO_CRDS, "networkPolicy.enabled=true"))), 1)
        self.assertEqual(policies(render.helm(NO_CRDS, "agent.enabled=true")), {})
        for text in policies(render.helm(
                NO_CRDS, "networkPolicy.enabled=true", "agent.enabled=true", "networkPolicy.apiServerCIDRs={10.0.0.1/32}",
                "networkPolicy.apiServerPorts={8443}", "networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b",
                "networkPolicy.extraEgress[0].ports[0].port=3128")).values():
            self.assertIn("  - ports:\n    - port: 8443\n      protocol: TCP\n    to:\n    - ipBlock:\n"
                          "        cidr: 10.0.0.1/32\n  - ports:\n    - port: 3128\n", text)
            self.assertIn("  ingress:\n  - from:\n    - podSelector:\n        matchLabels:\n          a: b\n    ports:\n",
                          text)

    def test_the_network_policies_select_the_pods_and_name_their_ports(self):
        found = render.objects(render.helm(NO_CRDS, "networkPolicy.enabled=true", "agent.enabled=true"))
        for part, kind, ns in (("operator", "Deployment", "holdfast-system"), ("agent", "DaemonSet", "holdfast-agent")):
            policy = yaml_subset.parse(found[("NetworkPolicy", f"holdfast-{part}", ns)])["spec"]
            pod = yaml_subset.parse(found[(kind, f"holdfast-{part}", ns)])["spec"]["template"]
            wanted = policy["podSelector"]["matchLabels"]
            self.assertEqual({k: pod["metadata"]["labels"].get(k) for k in wanted}, wanted)
            ports = {p["name"] for c in pod["spec"]["containers"] for p in c["ports"]}
            self.assertEqual({p["port"] for rule in policy["ingress"] for p in rule["ports"]} - ports, set())

    def test_a_scrape_keeps_the_labels_of_the_jobs(self):
        found = render.objects(render.helm(NO_CRDS, "metrics.serviceMonitor=true", "agent.enabled=true"))
        self.assertIn("honorLabels: true", found[("ServiceMonitor", "holdfast-operator", "holdfast-system")])

    def test_every_value_reaches_the_pods(self):
        for part, name in (("operator", "Deployment"), ("agent", "DaemonSet")):
            text = render.helm(NO_CRDS, "agent.enabled=true", *(f"{part}.{v}" for v in (
                "extraArgs={--a=1}", "extraEnv[0].name=E", "extraEnv[0].value=V",
                "resources.limits.memory=7Gi", "podAnnotations.an=on", "podLabels.la=bel",
                "nodeSelector.disk=fast", "tolerations[0].key=ta", "priorityClassName=prio",
                "affinity.nodeAffinity.x=y")), "imagePullSecrets[0].name=registry",
                "image.pullPolicy=Always")
            (pod,) = [v for k, v in render.objects(text).items() if k[0] == name]
            for line in ("- --a=1", "- name: E\n          value: V", "memory: 7Gi", "an: \"on\"",
                         "la: bel", "disk: fast", "- key: ta", "priorityClassName: prio", "x: \"y\"",
                         "- name: registry", "imagePullPolicy: Always"):
                self.assertIn(line, pod, part)

    def test_the_config_file_is_mounted(self):
        found = render.objects(render.helm(NO_CRDS, "operator.config.recovery.restartScope=Job", "agent.enabled=true",
                                 "agent.rules.rules[0].detector=xid"))
        config = found[("ConfigMap", "holdfast-operator", "holdfast-system")]
        self.assertIn("operator.yaml: |\n    recovery:\n      restartScope: Job", config)
        rules = found[("ConfigMap", "holdfast-agent", "holdfast-agent")]
        self.assertIn('{"rules":[{"detector":"xid"}]}', rules)
        (pod,) = [v for k, v in found.items() if k[0] == "DaemonSet"]
        self.assertIn("- --rules=/etc/holdfast/rules.json", pod)

    def test_right_values_are_taken(self):
        render.helm(NO_CRDS, "image.repository=localhost:5000/team/holdfast", "operator.config.recovery.nodeLost.afterSeconds=40",
                    "operator.config.recovery.logRules[0].name=slow", "operator.config.recovery.logRules[0].must=appear within 30m")

    def test_wrong_values_are_refused_with_a_reason(self):
        for values, reason in (
                (["operator.replica=2"], "replica"),
                (["operator.replicas=two"], "replicas"),
                (["image.digest=sha256:1"], "digest"),
                (["operator.config.recover.a=1"], "config"),
                (["operator.config.recovery.restartScope=Jobb"], "/operator/config/recovery/restartScope"),
                (["operator.config.recovery.nodeLost.afterSeconds=0"], "/operator/config/recovery/nodeLost/afterSeconds"),
                (["operator.config.recovery.nodeLost.after=40"], "'after' not allowed"),
                (["image.repository=registry.example/holdfast:1"], "/image/repository"),
                (["alerts.disabled={HoldfastJobHelt}"], "/alerts/disabled/0"),
                (["agent.csi=true"], "agent.csi needs agent.enabled=true"),
                (["operator.watchNamespace=A_B"], "watchNamespace"),
                (["networkPolicy.apiServerCIDRs={10.0.0.1}"], "apiServerCIDRs"),
                (["networkPolicy.apiServerPorts={0}"], "apiServerPorts"),
                (["page.enabled=true", "operator.replicas=2"], "needs operator.replicas=1"),
                (["page.hosts={a b}"], "hosts"),
                (["mender.enabled=yes"], "mender"),
                (["mender.enabled=true", "operator.watchNamespace=team"], "works on no node"),
                (["rollouts.enabled=true", "operator.watchNamespace=team"], "works on no node"),
                (["admission.deny=true"], "set crds.jobs=false, or admission.deny=false"),
                (["agent.enabled=true", "agent.namespace=holdfast-system"], "needs a namespace of its own")):
            with self.assertRaises(AssertionError) as caught:
                render.helm(*values)
            self.assertIn(reason, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
