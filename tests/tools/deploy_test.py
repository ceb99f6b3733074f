#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""What deploy/ holds is what its tools make, and asks for no more than the program needs."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tools", "lib"), os.path.join(TOP, "tests", "cluster")]
sys.dont_write_bytecode = True
import crd_schema
import rbac_rules
import yaml_subset


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def shared():
    return json.loads(read("deploy", "schema", "pod-template.json"))


class CrdTest(unittest.TestCase):
    def test_the_files_are_what_the_tool_makes(self):
        run = subprocess.run([os.path.join(TOP, "tools", "crds"), "check"], capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_each_fits_into_the_annotation_of_kubectl_apply_with_room_to_spare(self):
        for kind in crd_schema.KINDS:
            size = len(json.dumps(crd_schema.crd(kind, shared()), separators=(",", ":")))
            self.assertLess(size, 80000, kind)

    def test_the_reader_of_the_reference_reads_what_the_tool_has_written(self):
        def as_text(value):
            if isinstance(value, dict):
                return {k: as_text(v) for k, v in value.items()}
            if isinstance(value, list):
                return [as_text(v) for v in value]
            return str(value).lower() if isinstance(value, bool) else str(value)
        for kind, (plural, *_) in crd_schema.KINDS.items():
            self.assertEqual(yaml_subset.parse(read("deploy", "crds", plural + ".yaml")),
                             as_text(crd_schema.crd(kind, shared())), kind)

    def test_no_description_is_inside_a_pod_template(self):
        self.assertNotIn('"description": "', json.dumps(shared()["template"]).replace(
            '"description": {"type"', ""))

    def test_every_field_of_ours_is_described(self):
        for kind in crd_schema.KINDS:
            spec = crd_schema.crd(kind, shared())["spec"]["versions"][0]["schema"][
                "openAPIV3Schema"]["properties"]["spec"]["properties"]
            for name, field in spec.items():
                self.assertIn("description", field, name)
            policy = spec["runPolicy"]["properties"]
            for name, field in {**policy, **policy["recovery"]["properties"]}.items():
                if name not in ("nodeLost", "device"):
                    self.assertIn("description", field, "%s %s" % (kind, name))

    def test_an_openapi_document_becomes_a_structural_schema(self):
        core = {"components": {"schemas": {
            "io.k8s.api.core.v1.PodTemplateSpec": {
                "description": "d", "type": "object", "properties": {
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/x.ObjectMeta"}],
                                 "default": {}},
                    "spec": {"type": "object", "required": ["a"], "x-kubernetes-unions": [],
                             "properties": {"a": {"type": "string", "default": ""},
                                            "b": {"type": "string", "default": "TCP"},
                                            "q": {"$ref": "#/components/schemas/x.Quantity"},
                                            "ephemeralContainers": {"type": "array"}}}}},
            "x.ObjectMeta": {"type": "object", "properties": {
                **{k: {"type": "string"} for k in ("annotations", "labels", "name", "namespace",
                                                   "uid")},
                "finalizers": {"type": "array", "x-kubernetes-list-type": "set"}}},
            "x.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]}}}}
        scaling = {"components": {"schemas": {
            "io.k8s.api.autoscaling.v2.MetricSpec": {"type": "object"}}}}
        with tempfile.TemporaryDirectory() as tmp:
            os.makedirs(os.path.join(tmp, "tools", "lib"))
            os.makedirs(os.path.join(tmp, "deploy", "schema"))
            for name in ("crds", "lib/crd_schema.py", "lib/crd_policy.py", "lib/crd_tables.py"):
                with open(os.path.join(tmp, "tools", name), "w", encoding="utf-8") as f:
                    f.write(read("tools", name))
            paths = []
            for name, document in (("c", core), ("a", scaling)):
                paths.append(os.path.join(tmp, name))
                with open(paths[-1], "w", encoding="utf-8") as f:
                    json.dump(document, f)
            subprocess.run([sys.executable, os.path.join(tmp, "tools", "crds"), "schema", *paths],
                           check=True)
            with open(os.path.join(tmp, "deploy", "schema", "pod-template.json"),
                      encoding="utf-8") as f:
                template = json.load(f)["template"]
        self.assertNotIn("uid", template["properties"]["metadata"]["properties"])
        spec = template["properties"]["spec"]
        self.assertEqual(sorted(spec["properties"]), ["a", "b", "q"])
        self.assertEqual(spec["properties"]["a"], {"type": "string"})
        self.assertEqual(spec["properties"]["b"], {"type": "string", "default": "TCP"})
        self.assertTrue(spec["properties"]["q"]["x-kubernetes-int-or-string"])
        self.assertNotIn("x-kubernetes-unions", spec)


class EmbedTest(unittest.TestCase):
    def embed(self, **files):
        with tempfile.TemporaryDirectory() as tmp:
            words = []
            for section, text in files.items():
                path = os.path.join(tmp, section)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                words += [section.rstrip("0123456789"), path]
            out = os.path.join(tmp, "out.c")
            subprocess.run([os.path.join(TOP, "tools", "embed-manifests"), out, *words], check=True)
            with open(out, encoding="utf-8") as f:
                return f.read()

    def test_marked_words_become_places_and_the_marks_go(self):
        made = self.embed(OPERATOR="a: b # --namespace\nimage: c:1 # --image\nd: e # other\n")
        self.assertIn('{HF_MANIFEST_NAMESPACE, "b"}', made)
        self.assertIn('{HF_MANIFEST_IMAGE, "c:1"}', made)
        self.assertNotIn("# --", made)
        self.assertIn("# other", made)

    def test_what_crds_have_in_common_is_kept_once(self):
        block = "".join("  line %d\n" % i for i in range(300))
        made = self.embed(CRDS1="one\n" + block + "end\n", CRDS2="two\n" + block)
        self.assertEqual(made.count("line 299"), 1)
        self.assertIn('"one\\n"', made)

    def test_any_byte_is_carried(self):
        made = self.embed(WARN='a: "q\\t\\u00e9\u00e9??="\n')
        self.assertIn('\\"q\\\\t', made)
        self.assertIn("\\303\\251\\?\\?=", made)


RULE = re.compile(r"- apiGroups: \[(?P<groups>[^]]*)\]\s+resources:(?P<resources>.*?)\s"
                  r"(?:resourceNames:(?P<names>.*?)\s)?verbs: \[(?P<verbs>[^]]*)\]", re.S)


def words(text):
    return [w for w in re.findall(r'[^\s,\[\]"]+', text) if w != "-"] or [""]


def granted(text):
    """{(group, resource): verbs} of one role."""
    found = {}
    for rule in RULE.finditer(text):
        for group in words(rule["groups"]):
            for resource in words(rule["resources"]):
                found.setdefault((group, resource), []).extend(words(rule["verbs"]))
    return found


class RightsTest(unittest.TestCase):
    documents = [d for name in ("operator/rbac.yaml", "operator/gang.yaml", "page/page.yaml",
                                 "rollout/rbac.yaml")
                 for d in re.sub(r"(?m)^\s*#.*\n", "", read("deploy", *name.split("/")))
                 .split("\n---\n")]

    needed = (("ClusterRole", "holdfast-operator", rbac_rules.CLUSTER),
              ("ClusterRole", "holdfast-operator-gang-scheduling", rbac_rules.GANG),
              ("ClusterRole", "holdfast-operator-page", rbac_rules.PAGE),
              ("ClusterRole", "holdfast-rollout-operator", rbac_rules.ROLLOUT),
              ("Role", "holdfast-rollout-operator", rbac_rules.ROLLOUT_NAMESPACE),
              ("Role", "holdfast-operator", rbac_rules.NAMESPACE),
              ("Role", "holdfast-operator-node-leases", rbac_rules.NODE_LEASES))

    def role(self, kind, name):
        (text,) = [d for d in self.documents
                   if re.search(r"^kind: %s\nmetadata:\n  name: %s$" % (kind, name), d, re.M)]
        return granted(text)

    def test_a_role_grants_what_is_needed_and_nothing_else(self):
        for kind, name, needed in self.needed:
            role = self.role(kind, name)
            self.assertEqual({k: sorted(v) for k, v in role.items()},
                             {k: sorted(v) for k, v in needed.items()}, kind)

    def test_each_right_is_needed_by_code_that_is_there(self):
        for _, _, needed in self.needed:
            for what, verbs in needed.items():
                for verb, (path, text) in verbs.items():
                    self.assertTrue(text in read(path), "%s %s: %s" % (verb, what, path))

    def test_nothing_is_granted_by_a_star(self):
        self.assertNotIn("*", "".join(self.documents))


class UserRolesTest(unittest.TestCase):
    documents = read("deploy", "operator", "roles.yaml").split("\n---\n")

    def test_admins_may_do_what_editors_may(self):
        rules = {re.search(r"^  name: (\S+)", d, re.M)[1]: d.split("\nrules:\n", 1)[1].rstrip()
                 for d in self.documents}
        self.assertEqual(rules["kubeflow-training-admin"], rules["kubeflow-training-edit"])

    def test_no_role_is_made_again_by_the_controller_for_aggregation(self):
        self.assertNotIn("\naggregationRule:", "\n".join(self.documents))


class AgentRightsTest(unittest.TestCase):
    text = re.sub(r"(?m)^\s*#.*\n", "", read("deploy", "agent", "rbac.yaml"))

    def test_the_agents_role_grants_what_its_code_asks_for(self):
        # What for: publish.c patches and creates, holders.c, health_watch.c and job_watches.c list and watch, silence.c gets its
        # Lease, by a Role of that namespace.
        self.assertIn("namespace: kube-node-lease", self.text)
        self.assertEqual(granted(self.text), {
            ("", "nodes"): ["get"],
            ("", "nodes/status"): ["patch"],
            ("holdfast.dev", "devicehealths"): ["create", "list", "watch"],
            ("holdfast.dev", "devicehealths/status"): ["patch"],
            ("", "pods"): ["list", "watch"],
            ("", "pods/status"): ["patch"],
            ("", "events"): ["create", "patch"],
            ("coordination.k8s.io", "leases"): ["get"],
            **{("kubeflow.org", kind): ["list", "watch"] for kind in (
                "jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")},
        })

    def test_the_policy_looks_at_each_status_that_the_role_may_write(self):
        policy = read("deploy", "agent", "policy.yaml")
        for resource in ("nodes/status", "pods/status", "devicehealths/status", "devicehealths"):
            self.assertIn(resource, policy)
        self.assertIn("failurePolicy: Fail", policy)

    def test_its_service_account_is_the_one_that_the_policy_matches(self):
        name = re.search(r"kind: ServiceAccount\nmetadata:\n  name: (\S+)", self.text)[1]
        self.assertIn("endsWith(':%s')" % name, read("deploy", "agent", "policy.yaml"))


class DeploymentTest(unittest.TestCase):
    """The restricted pod security standard, line by line."""
    text = read("deploy", "operator", "deployment.yaml")

    def test_it_passes_the_restricted_standard(self):
        for line in ("runAsNonRoot: true", "seccompProfile: {type: RuntimeDefault}",
                     "allowPrivilegeEscalation: false", "capabilities: {drop: [ALL]}",
                     "readOnlyRootFilesystem: true"):
            self.assertIn(line, self.text)
        for word in ("hostNetwork", "hostPID", "hostPath", "privileged", "hostPort"):
            self.assertNotIn(word, self.text)

    def test_its_namespace_enforces_it(self):
        self.assertIn("pod-security.kubernetes.io/enforce: restricted",
                      read("deploy", "operator", "namespace.yaml"))


class PolicyTest(unittest.TestCase):
    def test_each_rule_names_its_scope(self):
        """The API server adds a scope that is absent, and then each `kubectl apply` changes the policy again."""
        found = 0
        for folder in ("agent", "mend", "rollout", "policy"):
            for name in os.listdir(os.path.join(TOP, "deploy", folder)):
                if not name.endswith(".yaml"):
                    continue
                for line in read("deploy", folder, name).splitlines():
                    if "apiGroups:" in line and "operations:" in line:
                        found += 1
                        self.assertIn("scope:", line, f"deploy/{folder}/{name}")
        self.assertGreater(found, 5)


if __name__ == "__main__":
    unittest.main()
