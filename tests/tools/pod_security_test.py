#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Every pod of the manifests meets the Pod Security Standard "restricted", except the agent's.

The rules are those of Kubernetes 1.36 (kubernetes.io/docs/concepts/security/pod-security-standards). Manifests are read
from deploy/, and as rendered by `holdfast manifests`, helm and kustomize where these programs are there.
"""

import copy
import glob
import os
import re
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tools", "lib"), os.path.join(TOP, "tests", "cluster")]
sys.dont_write_bytecode = True
import yaml_subset
from kit import render

HOLDFAST = os.path.join(TOP, "build", "holdfast")
WORKLOADS = {"Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob"}
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SELINUX = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
SYSCTLS = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
           "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
           "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
           "net.ipv4.tcp_keepalive_probes"}
CONFINED = {"RuntimeDefault", "Localhost"}
# What the agent needs beyond the standard; docs/how-to/install-agent.md says what for.
AGENT = {"hostPID", "privileged", "hostPath", "runAsNonRoot", "runAsUser", "seccompProfile",
         "allowPrivilegeEscalation", "capabilities"}


def containers(pod):
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from pod.get(key) or ()


def contexts(pod):
    """The security context of the pod and of each container."""
    yield pod.get("securityContext") or {}
    for container in containers(pod):
        yield container.get("securityContext") or {}


def _of_containers(pod):
    own = pod.get("securityContext") or {}
    for container in containers(pod):
        context = container.get("securityContext") or {}
        dropped = (context.get("capabilities") or {}).get("drop") or []
        added = (context.get("capabilities") or {}).get("add") or []
        if context.get("privileged") == "true":
            yield "privileged"
        if context.get("allowPrivilegeEscalation") != "false":
            yield "allowPrivilegeEscalation"
        if "ALL" not in dropped or set(added) - {"NET_BIND_SERVICE"}:
            yield "capabilities"
        if (context.get("runAsNonRoot") or own.get("runAsNonRoot")) != "true":
            yield "runAsNonRoot"
        if (context.get("seccompProfile") or own.get("seccompProfile") or {}).get("type") not in CONFINED:
            yield "seccompProfile"
        if context.get("procMount") not in (None, "Default"):
            yield "procMount"
        if any(port.get("hostPort") not in (None, "0") for port in container.get("ports") or ()):
            yield "hostPort"
        hooks = [container.get(k) for k in ("livenessProbe", "readinessProbe", "startupProbe")]
        hooks += list((container.get("lifecycle") or {}).values())
        if any((hook.get(kind) or {}).get("host") for hook in hooks if hook for kind in ("httpGet", "tcpSocket")):
            yield "host of a probe"


def _of_contexts(pod):
    for context in contexts(pod):
        linux = context.get("seLinuxOptions") or {}
        if context.get("runAsUser") == "0":
            yield "runAsUser"
        if linux.get("type") not in SELINUX or linux.get("user") or linux.get("role"):
            yield "seLinuxOptions"
        if (context.get("appArmorProfile") or {}).get("type") not in CONFINED | {None}:
            yield "appArmorProfile"
        if (context.get("windowsOptions") or {}).get("hostProcess") == "true":
            yield "hostProcess"
        if {s["name"] for s in context.get("sysctls") or ()} - SYSCTLS:
            yield "sysctls"


def breaches(pod, annotations=None):
    """The rules of "restricted" that a pod's spec breaks."""
    found = {key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key) == "true"}
    for volume in pod.get("volumes") or ():
        found |= {kind for kind in volume if kind != "name" and kind not in VOLUMES}
    for name, value in (annotations or {}).items():
        if name.startswith("container.apparmor.security.beta.kubernetes.io/") and not re.match(
                "runtime/default$|localhost/", value):
            found.add("appArmorProfile")
    return found | set(_of_containers(pod)) | set(_of_contexts(pod))


def documents(text):
    """The objects with pods, and the Namespaces; CRDs and policies are left out unread."""
    for part in yaml_subset.documents(text):
        kind = re.search(r"^kind: (\w+)$", part, re.M)
        if kind and kind[1] in WORKLOADS | {"Namespace"}:
            yield yaml_subset.parse(part)


def template(document):
    spec = document["spec"]
    if document["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return document if document["kind"] == "Pod" else spec["template"]


def source():
    found = ""
    for path in sorted(glob.glob(os.path.join(TOP, "deploy", "*", "*.yaml"))):
        with open(path, encoding="utf-8") as f:
            found += "\n---\n" + f.read()
    return found


class StandardTest(unittest.TestCase):
    """The rules find what they are for."""

    def setUp(self):
        (deployment,) = [d for d in documents(source()) if d["kind"] == "Deployment"]
        self.pod = template(deployment)["spec"]

    def broken(self, change, annotations=None):
        pod = copy.deepcopy(self.pod)
        change(pod, pod["containers"][0])
        return breaches(pod, annotations)

    def test_the_operator_breaks_none(self):
        self.assertEqual(breaches(self.pod), set())

    def test_each_rule_finds_its_breach(self):
        for rule, change in (
                ("hostNetwork", lambda p, c: p.update(hostNetwork="true")),
                ("hostPID", lambda p, c: p.update(hostPID="true")),
                ("hostIPC", lambda p, c: p.update(hostIPC="true")),
                ("hostPath", lambda p, c: p["volumes"].append({"name": "x", "hostPath": {"path": "/"}})),
                ("nfs", lambda p, c: p["volumes"].append({"name": "x", "nfs": {"path": "/"}})),
                ("privileged", lambda p, c: c["securityContext"].update(privileged="true")),
                ("allowPrivilegeEscalation", lambda p, c: c["securityContext"].pop("allowPrivilegeEscalation")),
                ("capabilities", lambda p, c: c["securityContext"].pop("capabilities")),
                ("capabilities", lambda p, c: c["securityContext"]["capabilities"].update(add=["SYS_ADMIN"])),
                ("runAsNonRoot", lambda p, c: p["securityContext"].pop("runAsNonRoot")),
                ("runAsNonRoot", lambda p, c: c["securityContext"].update(runAsNonRoot="false")),
                ("runAsUser", lambda p, c: c["securityContext"].update(runAsUser="0")),
                ("seccompProfile", lambda p, c: p["securityContext"].pop("seccompProfile")),
                ("seccompProfile", lambda p, c: c["securityContext"].update(seccompProfile={"type": "Unconfined"})),
                ("procMount", lambda p, c: c["securityContext"].update(procMount="Unmasked")),
                ("hostPort", lambda p, c: c["ports"][0].update(hostPort="80")),
                ("host of a probe", lambda p, c: c["livenessProbe"]["httpGet"].update(host="10.0.0.1")),
                ("seLinuxOptions", lambda p, c: p["securityContext"].update(seLinuxOptions={"type": "spc_t"})),
                ("appArmorProfile", lambda p, c: c["securityContext"].update(appArmorProfile={"type": "Unconfined"})),
                ("hostProcess", lambda p, c: c["securityContext"].update(windowsOptions={"hostProcess": "true"})),
                ("sysctls", lambda p, c: p["securityContext"].update(sysctls=[{"name": "kernel.msgmax"}]))):
            self.assertEqual(self.broken(change), {rule}, rule)

    def test_a_second_container_and_an_init_container_count(self):
        for key in ("containers", "initContainers"):
            found = self.broken(lambda p, c, key=key: p.setdefault(key, []).append({"name": "more"}))
            self.assertEqual(found, {"allowPrivilegeEscalation", "capabilities"})

    def test_an_annotation_that_turns_apparmor_off_counts(self):
        name = "container.apparmor.security.beta.kubernetes.io/operator"
        self.assertEqual(self.broken(lambda p, c: None, {name: "unconfined"}), {"appArmorProfile"})
        self.assertEqual(self.broken(lambda p, c: None, {name: "runtime/default"}), set())


class ManifestsTest(unittest.TestCase):
    def judge(self, text, wanted):
        """All pods but the agent's meet the standard, and each namespace enforces what its pods need."""
        found = set()
        for document in documents(text):
            name, labels = document["metadata"]["name"], document["metadata"].get("labels") or {}
            level = labels.get("pod-security.kubernetes.io/enforce")
            if document["kind"] == "Namespace":
                self.assertEqual(level, "privileged" if name in ("holdfast-agent", "holdfast-mend") else "restricted")
                continue
            found.add(name)
            pod = template(document)
            self.assertEqual(breaches(pod["spec"], (pod.get("metadata") or {}).get("annotations")),
                             AGENT if name == "holdfast-agent" else set(), name)
        self.assertEqual(found, wanted)

    def test_deploy(self):
        self.judge(source(), {"holdfast-operator", "holdfast-agent"})

    @unittest.skipUnless(os.path.exists(HOLDFAST), "needs build/holdfast")
    def test_holdfast_manifests(self):
        self.judge(render.run(HOLDFAST, "manifests", "--gang-scheduler-name", "volcano"), {"holdfast-operator"})
        self.judge(render.run(HOLDFAST, "manifests", "--agent"), {"holdfast-agent"})
        self.judge(render.run(HOLDFAST, "manifests", "--mender"), set())
        self.judge(render.run(HOLDFAST, "manifests", "--rollouts"), set())

    @unittest.skipUnless(render.find("kubernetes", "kubectl") and render.find("helm", "helm"), "needs helm and kubectl")
    def test_the_chart_whatever_its_values(self):
        for values in ((), ("operator.replicas=2", "operator.config.recovery.restartScope=Job",
                            "operator.gangSchedulerName=volcano", "operator.extraArgs={--zap-devel}",
                            "operator.extraEnv[0].name=E", "operator.extraEnv[0].value=V", "operator.podAnnotations.a=b")):
            objects = render.objects(render.helm("crds.enabled=false", "agent.enabled=true", "mender.enabled=true",
                                                 "rollouts.enabled=true", *values))
            self.judge("\n---\n".join(objects.values()), {"holdfast-operator", "holdfast-agent"})

    @unittest.skipUnless(render.find("kubernetes", "kubectl"), "needs kubectl")
    def test_kustomize(self):
        for overlay in ("standalone", "kubeflow"):
            self.judge(render.kustomize_with(resources=["overlays/" + overlay]), {"holdfast-operator"})


if __name__ == "__main__":
    unittest.main()
