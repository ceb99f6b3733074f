# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A DRA driver (dradriver.py) beside the cluster's real kubelet, and its ResourceSlice of four GPUs."""

import os

from .agent import NODE, address

DRIVER = "gpu.example.com"
GATES = "--feature-gates=DRADeviceTaintRules=true"


def start(w):
    """The kubelet plugin; returns once the kubelet has registered it."""
    w.cluster.start("dra", ["/usr/bin/python3", "-P", os.path.join(os.path.dirname(__file__), "dradriver.py"),
                            w.cluster.path("kubelet"), DRIVER, f"https://127.0.0.1:{w.api.port}",
                            w.cluster.path("tls.crt"), w.api.token])
    def registered():
        with open(w.cluster.path("dra.log"), encoding="utf-8") as f:
            return "registered" in f.read().splitlines()
    w.until("the driver is registered", registered)


def publish(w, uuids, generation=1, names=("gpu-0", "gpu-1", "gpu-2", "gpu-3")):
    """The slice of the node: these names are the devices with these UUIDs."""
    spec = {"driver": DRIVER, "nodeName": NODE,
            "pool": {"name": NODE, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": name, "attributes": {
                "uuid": {"string": uuid}, "resource.kubernetes.io/pciBusID": {"string": address(i)}}}
                for i, (name, uuid) in enumerate(zip(names, uuids))]}
    if w.api.find("resourceslices", None, "gpus"):
        w.api.patch("resourceslices", None, "gpus", {"spec": spec})
    else:
        w.api.create("resourceslices", None, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                                              "metadata": {"name": "gpus"}, "spec": spec})


def define(w):
    """The class of these devices, and a template for one of them."""
    w.api.create("deviceclasses", None, {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}})
    for name, count in (("one", 1), ("three", 3)):
        w.api.create("resourceclaimtemplates", "default", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}}})


def pod_spec(template, image, command):
    """Of a pod with one claim from this template."""
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}],
            "containers": [{"name": "c", "image": image, "command": command,
                            "resources": {"claims": [{"name": "gpus"}]}}]}


def devices_of(w, pod):
    """The devices that the scheduler has allocated to the pod's claim; None: none yet."""
    for claim in w.api.list("resourceclaims", "default"):
        if any(r["name"] == pod for r in claim.get("status", {}).get("reservedFor") or []):
            return [r["device"] for r in claim["status"]["allocation"]["devices"]["results"]]
    return None
