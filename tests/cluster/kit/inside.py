# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A node whose pods have what they have in a cluster: names, Service addresses, the API server.

The node has a network namespace of its own, and what kube-proxy writes there ends with it:

    the machine          hftestN 10.245.N.1: the API server listens here, and nowhere else
    the node             eth0 10.245.N.2: kubelet, kube-proxy (nftables)
    a pod                10.244.N.x, routed by the node (CNI's ptp: no bridge that a reply from a
                         pod to a pod could take past kube-proxy)
"""

import json
import os
import shutil
import subprocess

from . import build, image, machine

DNS = "10.0.0.10"
PROXY_CONFIG = """\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {{kubeconfig: {folder}/kubeconfig.admin}}
hostnameOverride: {name}
clusterCIDR: {pods}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
# These belong to the machine.
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
"""
# As kubeadm installs it, without names from elsewhere.
COREDNS = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            ttl 5
        }
        cache 5
    }
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: DNS_ADDRESS
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      containers:
      - name: coredns
        image: localhost/coredns:1
        args: [-conf, /etc/coredns/Corefile]
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}
          readOnlyRootFilesystem: true
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /etc/coredns, readOnly: true}]
      volumes: [{name: config, configMap: {name: coredns}}]
""".replace("DNS_ADDRESS", DNS)
KUBELET_MORE = f"clusterDNS: [{DNS}]\nclusterDomain: cluster.local\nresolvConf: \"\"\n"
# What the API server is called in a cluster, for its certificate.
NAMES = ",DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"


def address(number):
    """Of the machine, on the bridge to its node."""
    return f"10.245.{number}.1"


def node_address(number):
    return f"10.245.{number}.2"


def pods(number):
    return f"10.244.{number}.0/24"


def api_flags(number):
    return ["--bind-address", address(number), "--advertise-address", address(number)]


def cni(number):
    return json.dumps({"cniVersion": "1.0.0", "name": machine.bridge(number), "plugins": [{
        "type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": pods(number)}]],
                                "routes": [{"dst": "0.0.0.0/0"}]}}]})


def join(cluster):
    """A cable from the bridge to the namespace in which the node's first process is."""
    number = cluster.state["number"]
    device, end = machine.bridge(number), machine.cable(number)

    def other():
        mine = os.readlink("/proc/self/ns/net")
        for pid in cluster.pids("node"):
            if os.readlink(f"/proc/{pid}/ns/net") != mine:
                return pid
        return None
    pid = cluster.until("the node has a network of its own", other)
    if os.path.exists("/sys/class/net/" + end):  # of a node that has just ended
        subprocess.run(["ip", "link", "delete", end], check=True)
    for command in (["ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns",
                     str(pid)],
                    ["ip", "link", "set", end, "master", device, "up"],
                    ["ip", "route", "replace", pods(number), "via", node_address(number), "dev",
                     device]):
        subprocess.run(command, check=True)


def load(cluster, path):
    """An image's archive, into the node."""
    run = subprocess.run([build.find("ctr"), "-a", cluster.path("containerd.sock"), "-n", "k8s.io",
                          "images", "import", path], capture_output=True, text=True)
    if run.returncode != 0:
        raise build.Broken(f"ctr images import {path}: {run.stderr.strip()[-300:]}")


def add_dns(cluster):
    path = cluster.path("coredns.tar")
    image.write_program(path, "localhost/coredns:1", "/coredns", build.find("coredns"))
    load(cluster, path)
    os.unlink(path)
    cluster.kubectl("apply", "-f", "-", text=COREDNS)
    cluster.kubectl("-n", "kube-system", "rollout", "status", "deployment", "coredns",
                    "--timeout=120s")


def why_not():
    """Why there can be no such node here, beside what holds for any node."""
    if not shutil.which("nft"):
        return "nft is not installed"
    return "" if os.path.exists("/usr/lib/cni/ptp") else "the CNI plugin ptp is not there"
