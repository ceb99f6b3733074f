# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""One cluster: its control plane, nodes and the programs beside it."""

import base64
import json
import os
import shutil
import signal
import subprocess
import urllib.request

from . import build, client, image, inside, machine

# Offsets into the ports of the cluster.
(API, ETCD, ETCD_PEER, MANAGER, SCHEDULER, KWOK, KUEUE_HEALTH, KUEUE_METRICS, KUEUE_WEBHOOK,
 KUBELET, KUBELET_HEALTH, PEER_METRICS, PEER_HEALTH, PEER_WEBHOOK, SPARE, SPARE2) = range(16)

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [operator, rotated]}
- {level: Metadata, verbs: [delete], resources: [{group: "", resources: [pods]}]}
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
"""
# kwok deletes by name what it once saw marked for deletion, again when the server was away: after a
# restart of the server a thousand pods that had taken such names went with the old ones.
KWOK_POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kwok-deletes-what-is-marked}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}
  matchConditions:
  - {name: by-kwok, expression: request.userInfo.username == 'kwok'}
  validations:
  - {expression: has(oldObject.metadata.deletionTimestamp), message: this pod is not marked for deletion}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kwok-deletes-what-is-marked}
spec: {policyName: kwok-deletes-what-is-marked, validationActions: [Deny]}
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: local, cluster: {{server: "https://{address}:{port}", certificate-authority: {folder}/tls.crt}}}}]
users: [{{name: {who}, user: {{{how}}}}}]
contexts: [{{name: local, context: {{cluster: local, user: {who}, namespace: default}}}}]
current-context: local
"""
CONTAINERD = """\
version = 3
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "localhost/pause:1"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/containerd/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{folder}/cni"
"""
KUBELET_CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
address: {address}
port: {port}
healthzBindAddress: 127.0.0.1
healthzPort: {health}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
cgroupsPerQOS: {pod_groups}
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
podLogsDir: {folder}/pod-logs
volumePluginDir: {folder}/plugins
containerRuntimeEndpoint: unix://{folder}/containerd.sock
evictionHard: {{memory.available: 10Mi, nodefs.available: 1%, imagefs.available: 1%}}
{more}"""
KUEUE_CONFIG = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "127.0.0.1:{metrics}"}}
webhook: {{port: {webhook}, certDir: {folder}/kueue-certs}}
leaderElection: {{leaderElect: false}}
internalCertManagement: {{enable: false}}
integrations: {{frameworks: [kubeflow.org/pytorchjob, kubeflow.org/tfjob, kubeflow.org/xgboostjob, kubeflow.org/paddlejob, kubeflow.org/jaxjob]}}
"""


class Died(build.Broken):
    """A program of the cluster did not live."""


class Cluster:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.children = {}
        self.state = {}

    # ---- files
    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def save(self):
        self.write("cluster.json.new", json.dumps(self.state, indent=1))
        os.replace(self.path("cluster.json.new"), self.path("cluster.json"))

    @classmethod
    def load(cls, folder):
        c = cls(folder)
        with open(c.path("cluster.json"), encoding="utf-8") as f:
            c.state = json.load(f)
        return c

    def port(self, which):
        return machine.ports(self.state["number"])[which]

    @property
    def inside(self):
        """Whether pods reach the API server: see kit/inside.py."""
        return self.state.get("inside", False)

    @property
    def address(self):
        return inside.address(self.state["number"]) if self.inside else "127.0.0.1"

    # ---- processes
    def start(self, name, argv, private=False, env=None, kept=False):
        """Start a program and remember how.

        private: with mounts and pids of its own (root).  kept: started again when it ends by
        itself, as in a real cluster the kubelet does: the scheduler ends itself on purpose when
        an API server that was killed has forgotten what it had promised.
        """
        if kept:
            argv = ["sh", "-c", 'while :; do "$@"; echo "ended with $?"; sleep 1; done', name, *argv]
        self.state["programs"][name] = {"argv": argv, "private": private, "env": env or {}}
        self.save()
        self.again(name)

    def again(self, name):
        how = self.state["programs"][name]
        argv = how["argv"]
        if how["private"]:
            # When the first process of the namespace dies, all of it ends: containers too.
            own = ["--net"] if self.inside and name == "node" else []
            argv = ["unshare", "--mount", "--pid", *own, "--fork", "--kill-child", "--mount-proc",
                    *argv]
        log = open(self.path(name + ".log"), "ab")
        with log:
            self.children[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True,
                env={**os.environ, machine.MARK: self.folder, "HOLDFAST_TEST_PROGRAM": name,
                     **how["env"]})
        if self.inside and name == "node":
            inside.join(self)

    def pids(self, name):
        mark = f"HOLDFAST_TEST_PROGRAM={name}".encode()
        for pid in machine.processes(self.folder):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if mark in f.read().split(b"\0"):
                        yield pid
            except OSError:
                pass

    def send(self, name, number):
        for pid in machine.alive(self.pids(name)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self, name, number=signal.SIGKILL):
        """End a program and wait until it is gone."""
        pids = list(self.pids(name))
        self.send(name, number)
        client.until(f"{name} ends", lambda: not machine.alive(self.pids(name)) and
                     not any(map(machine.lingers, pids)), 90)
        if name in self.children:
            self.children.pop(name).wait()

    def restart(self, name, number=signal.SIGKILL):
        self.stop(name, number)
        self.again(name)

    def stays(self, name, for_s=3):
        """A program that was started has not ended at once."""
        try:
            self.children[name].wait(for_s)
        except subprocess.TimeoutExpired:
            return
        self.tell_death(name)

    def tell_death(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
            lines = f.read().strip().splitlines() or ["(nothing in its log)"]
        raise Died(f"{name} has died: {lines[-1][:300]}")

    def dead(self):
        return [n for n, c in self.children.items() if c.poll() is not None]

    def until(self, what, get, timeout_s=60):
        def asked():
            gone = self.dead()
            if gone:
                self.tell_death(gone[0])
            return get()
        return client.until(what, asked, timeout_s)

    # ---- clients
    def client(self, token="admin-token", **options):
        return client.Client(self.port(API), self.path("tls.crt"), token, address=self.address,
                             **options)

    def client_pair(self, who, known=True):
        """PEM texts of a certificate and its key for a user who may do all.

        known: signed by the one that an API server with --client-ca-file tls.crt takes; else by
        itself.
        """
        run = dict(check=True, cwd=self.folder, capture_output=True)
        subject = ["-newkey", "rsa:2048", "-nodes", "-keyout", f"{who}.key", "-subj",
                   f"/O=system:masters/CN={who}"]
        if known:
            subprocess.run(["openssl", "req", *subject, "-out", f"{who}.csr"], **run)
            subprocess.run(["openssl", "x509", "-req", "-in", f"{who}.csr", "-CA", "tls.crt", "-CAkey",
                            "tls.key", "-CAcreateserial", "-days", "1", "-out", f"{who}.crt"], **run)
        else:
            subprocess.run(["openssl", "req", "-x509", *subject, "-out", f"{who}.crt"], **run)
        texts = []
        for end in ("crt", "key"):
            with open(self.path(f"{who}.{end}"), encoding="utf-8") as f:
                texts.append(f.read())
        return texts

    def kubeconfig(self, who, token=None, token_file=None, port=None, pair=None):
        how = f"tokenFile: {token_file}" if token_file else f"token: {token or who + '-token'}"
        if pair:
            how = "client-certificate: {}, client-key: {}".format(*pair)
        name = self.write(f"kubeconfig.{who}", KUBECONFIG.format(
            address="127.0.0.1" if port else self.address, port=port or self.port(API),
            folder=self.folder, who=who, how=how))
        os.chmod(name, 0o600)
        return name

    def kubectl(self, *arguments, text=None, check=True):
        run = subprocess.run([build.find("kubectl"), "--kubeconfig", self.path("kubeconfig.admin"),
                              *arguments], input=text, capture_output=True, text=True)
        if check and run.returncode != 0:
            raise build.Broken(f"kubectl {' '.join(arguments)[:80]}: {run.stderr.strip()[-300:]}")
        return run.stdout

    def until_established(self):
        """All CRDs.  kubectl ends at once where one has no conditions yet."""
        def established():
            try:
                return self.kubectl("wait", "--for=condition=Established", "crd", "--all",
                                    "--timeout=60s") or True
            except build.Broken as e:
                if "accessor error" not in str(e):
                    raise
                return None
        self.until("the CRDs are established", established)

    # ---- the control plane
    def up(self, owner=None, flags=(), manager_flags=(), pods_inside=False, scheduler_flags=()):
        """etcd, kube-apiserver, controller-manager, scheduler.

        flags: more for the API server; manager_flags, scheduler_flags: for the two others.
        pods_inside: pods of the node to come reach the API server, and have ServiceAccounts.
        """
        if os.path.exists(self.folder):
            machine.clear(self.folder)
        os.makedirs(self.folder, mode=0o700)
        self.state = {"number": machine.take(self.folder, owner), "programs": {},
                      "inside": pods_inside}
        self.save()
        if pods_inside:
            machine.make_bridge(self.state["number"], self.address)
        self.make_keys()
        self.write("tokens.csv", 'admin-token,admin,admin,"system:masters"\n'
                                 'operator-token,operator,operator,"system:masters"\n'
                                 'kwok-token,kwok,kwok,"system:masters"\n')
        self.write("audit.yaml", AUDIT_POLICY)
        for who in ("admin", "operator", "kwok"):
            self.kubeconfig(who)
        local = "http://127.0.0.1:%d"
        self.start("etcd", [
            build.find("etcd"), "--data-dir", self.path("etcd"),
            "--listen-client-urls", local % self.port(ETCD),
            "--advertise-client-urls", local % self.port(ETCD),
            "--listen-peer-urls", local % self.port(ETCD_PEER),
            "--initial-advertise-peer-urls", local % self.port(ETCD_PEER),
            "--initial-cluster", "default=" + local % self.port(ETCD_PEER),
            # Nothing is compacted: ten thousand jobs come near the 2 GiB that it allows by itself.
            "--quota-backend-bytes", str(8 << 30),
            "--unsafe-no-fsync", "--log-level", "warn"])
        self.start("apiserver", [
            build.find("kube-apiserver"), "--etcd-servers", local % self.port(ETCD),
            "--secure-port", str(self.port(API)),
            "--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key",
            "--token-auth-file", "tokens.csv", "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-signing-key-file", "sa.key", "--service-account-key-file", "sa.key",
            "--service-cluster-ip-range", "10.0.0.0/16", "--allow-privileged",
            *(inside.api_flags(self.state["number"]) if pods_inside else (
                "--bind-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
                "--disable-admission-plugins", "ServiceAccount")),
            "--kubelet-preferred-address-types", "InternalIP",
            "--audit-policy-file", "audit.yaml", "--audit-log-path", "audit.log",
            "--etcd-compaction-interval", "0",  # kit/history.py reads all of it
            *flags])
        self.until("the API server is ready", self.ready, 120)
        own = ["--kubeconfig", "kubeconfig.admin", "--authentication-kubeconfig", "kubeconfig.admin",
               "--authorization-kubeconfig", "kubeconfig.admin", "--bind-address", "127.0.0.1",
               "--leader-elect=false"]
        self.start("controller-manager", [
            build.find("kube-controller-manager"), *own, "--secure-port", str(self.port(MANAGER)),
            "--service-account-private-key-file", "sa.key", "--root-ca-file", "tls.crt",
            "--controllers", "*,-bootstrapsigner,-tokencleaner",
            "--flex-volume-plugin-dir", self.path("plugins"),
            "--kube-api-qps", "300", "--kube-api-burst", "600", *manager_flags], kept=True)
        self.start("scheduler", [build.find("kube-scheduler"), *own, "--secure-port",
                                 str(self.port(SCHEDULER)), "--kube-api-qps", "1000",
                                 "--kube-api-burst", "2000", *scheduler_flags], kept=True)
        self.until("the controller-manager works",
                   lambda: self.client().find("serviceaccounts", "default", "default"))
        return self

    def ready(self):
        return self.client().raw("GET", "/readyz")[0] == 200

    def make_keys(self):
        run = dict(check=True, cwd=self.folder, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
        names = "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost" + (
            f",IP:{self.address}{inside.NAMES}" if self.inside else "")
        old = os.umask(0o077)
        subprocess.run(["openssl", "genrsa", "-out", "sa.key", "2048"], **run)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                        "tls.key", "-out", "tls.crt", "-days", "30", "-subj", "/CN=127.0.0.1",
                        "-addext", names], **run)
        os.umask(old)

    # ---- nodes
    def add_kwok(self, count, group="fake", lease_s=40, endless=False):
        """Nodes that only say so: pods bound to them become Running at once. endless: pods of Jobs stay so.

        Each group is a process of its own, "kwok" or "kwok-GROUP": stopped, its nodes fall silent
        and their pods are in nobody's hands, as when machines lose power.
        """
        api = self.client()
        room = {"cpu": "640", "memory": "2560Gi", "ephemeral-storage": "10Ti",
                "nvidia.com/gpu": "64", "pods": "5000"}
        first = group == "fake"
        program = "kwok" if first else "kwok-" + group
        for i in range(count):
            api.create("nodes", None, self.kwok_node(f"{group}-{i}", group, room))
        more = []
        if endless:
            stages = os.path.join(build.source("kwok"), "kustomize/stage/pod/fast")
            texts = []
            for name in ("ready", "delete"):
                with open(os.path.join(stages, f"pod-{name}.yaml"), encoding="utf-8") as f:
                    texts.append(f.read())
            more = ["--config", self.write(program + ".yaml", "---\n".join(texts))]
        self.start(program, [
            build.find("kwok"), *more, "--kubeconfig", "kubeconfig.kwok", "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node={group}",
            # Without Leases the nodes are not ready for a moment every 50 s, and their pods neither.
            "--node-lease-duration-seconds", str(lease_s), "--node-ip=127.0.0.1",
            "--server-address", f"127.0.0.1:{self.port(KWOK if first else SPARE)}"], kept=True)
        if first:
            self.kubectl("apply", "-f", "-", text=KWOK_POLICY)
        self.until("kwok's nodes are ready",
                   lambda: len(self.ready_nodes(f"type=kwok,group={group}")) == count)
        if first:
            self.until("kwok may not delete what lives", self.kwok_is_held)

    @staticmethod
    def kwok_node(name, group, room):
        return {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"type": "kwok", "group": group,
                                                      "kubernetes.io/hostname": name},
                             "annotations": {"kwok.x-k8s.io/node": group}},
                "status": {"allocatable": room, "capacity": room}}

    def kwok_is_held(self):
        """Whether the policy works yet: tried on a pod that no node gets."""
        api = self.client()
        if not api.find("pods", "default", "held"):
            api.create("pods", "default", {"metadata": {"name": "held"}, "spec": {
                "schedulingGates": [{"name": "holdfast.dev/held"}],
                "containers": [{"name": "c", "image": "none"}]}})
        status, _, said = self.client("kwok-token").raw(
            "DELETE", "/api/v1/namespaces/default/pods/held", {"kind": "DeleteOptions", "apiVersion": "v1",
                                                               "dryRun": ["All"]})
        if status // 100 == 2 or b"not marked" not in said:
            return False
        api.delete("pods", "default", "held")
        return True

    def ready_nodes(self, selector=None):
        return [n["metadata"]["name"] for n in self.client().list("nodes", selector=selector)
                if any(c["type"] == "Ready" and c["status"] == "True"
                       for c in n["status"].get("conditions", []))]

    @staticmethod
    def why_no_node():
        """Why a real kubelet cannot run here; '' when it can, as far as can be told before."""
        if os.getuid() != 0:
            return "a real kubelet needs root"
        run = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                             capture_output=True, text=True)
        if run.returncode != 0:
            return "no namespaces of one's own here: " + run.stderr.strip()[-200:]
        for program in ("ip", "runc", "busybox"):
            if not shutil.which(program):
                return program + " is not installed"
        if not os.path.exists("/usr/lib/cni/bridge"):
            return "the CNI plugins are not in /usr/lib/cni"
        number = machine.bridge(machine.NUMBERS)
        run = subprocess.run(["ip", "link", "add", number, "type", "bridge"], capture_output=True,
                             text=True)
        if run.returncode != 0:
            return "no network bridge can be made: " + run.stderr.strip()[-200:]
        subprocess.run(["ip", "link", "delete", number], check=False)
        return ""

    def add_node(self, name="real-0", pod_groups=False):
        """containerd and a kubelet of this machine: pods really run (image localhost/busybox:1).

        pod_groups: each pod has a control group that is named by its UID, as everywhere but here.
        """
        why = self.why_no_node() or (inside.why_not() if self.inside else "")
        if why:
            raise build.Unavailable(why)
        for folder in ("cni", "cni-state", "kubelet", "pod-logs"):
            os.makedirs(self.path(folder))
        number = self.state["number"]
        address = inside.node_address(number) if self.inside else f"10.244.{number}.1"
        self.write("containerd.toml", CONTAINERD.format(folder=self.folder))
        self.write("cni/10-net.conflist", inside.cni(number) if self.inside else
                   self.bridge_conflist(machine.bridge(number), f"10.244.{number}"))
        self.write("kubelet.yaml", KUBELET_CONFIG.format(
            folder=self.folder, address=address, port=self.port(KUBELET),
            health=self.port(KUBELET_HEALTH), pod_groups="true" if pod_groups else "false", more=(
                inside.KUBELET_MORE if self.inside else "") + (
                    f"cgroupRoot: /{machine.make_groups(number)}\n" if pod_groups else "")))
        if not self.inside:
            machine.make_bridge(number, address)
        # Both in one private namespace; what they write to /run, /var/lib and the like is its own.
        folders = {os.path.dirname(build.find(p)) for p in ("containerd", "kubelet")}
        here = os.path.dirname(os.path.abspath(__file__))
        for which in ("kubelet", "cni", *(["agent"] if self.inside else [])):
            self.mount_point(which)
        for which in ("pause", "busybox"):
            image.write(self.path(f"image-{which}.tar"), f"localhost/{which}:1")
        more = []
        if self.inside:
            more = [inside.address(number)]
            self.write("kube-proxy.yaml", inside.PROXY_CONFIG.format(
                folder=self.folder, name=name, pods=inside.pods(number)))
        self.start("node", ["bash", os.path.join(here, "node.sh"), self.folder, name, address, *more],
                   private=True, env={"PATH": ":".join([*sorted(folders), os.environ["PATH"]])})
        self.until(f"node {name} is ready", lambda: name in self.ready_nodes(), 120)
        if self.inside:
            inside.add_dns(self)

    def bridge_conflist(self, device, net):
        return json.dumps({
            "cniVersion": "1.0.0", "name": device, "plugins": [{
                "type": "bridge", "bridge": device, "isGateway": True,
                "ipam": {"type": "host-local", "dataDir": self.path("cni-state"),
                         "ranges": [[{"subnet": net + ".0/24", "gateway": net + ".1"}]],
                         "routes": [{"dst": "0.0.0.0/0"}]}}]})

    # ---- programs beside it
    def add_kueue(self):
        """The real Kueue, without its webhooks: jobs are made with runPolicy.suspend=true.

        The CRDs of the job kinds must be there.
        """
        if os.getuid() != 0:
            raise build.Unavailable("Kueue reads its certificates from /etc/kueue, which needs root")
        crds = os.path.join(build.source("kueue"), "config/components/crd/bases")
        self.client().create("namespaces", None, {"metadata": {"name": "kueue-system"}})
        self.kubectl("apply", "--server-side", "-f", crds)
        self.until_established()
        os.makedirs(self.path("kueue-certs"))
        for name in ("tls.crt", "tls.key"):
            shutil.copy(self.path(name), self.path("kueue-certs", name))
        self.write("kueue.yaml", KUEUE_CONFIG.format(
            folder=self.folder, health=self.port(KUEUE_HEALTH), metrics=self.port(KUEUE_METRICS),
            webhook=self.port(KUEUE_WEBHOOK)))
        self.start_with_mount("kueue", self.path("kueue-certs"), "kueue", [
            build.find("kueue"), "--config", "kueue.yaml", "--kubeconfig", "kubeconfig.admin",
            "--feature-gates=VisibilityOnDemand=false"])
        self.until("Kueue is ready", lambda: self.healthy(self.port(KUEUE_HEALTH)), 120)

    def start_with_mount(self, name, what, where, argv):
        """A program that reads what lies here at a fixed place of the machine."""
        where = self.mount_point(where)
        self.start(name, ["sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', what, where,
                          *argv], private=True)

    @staticmethod
    def mount_point(which):
        where = machine.MOUNT_POINTS[which][0]
        os.makedirs(where, exist_ok=True)
        return where

    @staticmethod
    def healthy(port, path="/readyz"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def add_upstream_crds(self):
        """The job kinds as the Go operator ships them."""
        self.kubectl("apply", "--server-side", "-k",
                     os.path.join(build.source("peer"), "manifests/base/crds"))
        self.until_established()

    def add_podgroups(self):
        """The kinds that gang schedulers read."""
        self.kubectl("apply", "--server-side", "-f",
                     os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))),
                                  "crds/podgroups.yaml"))
        self.until_established()

    def peer_again(self, flags):
        """The Go operator once more, with these flags."""
        argv = self.state["programs"]["peer"]["argv"]
        argv[argv.index("-zap-log-level") + 2:] = flags
        self.again("peer")
        self.until("the Go operator is ready", lambda: self.healthy(self.port(PEER_HEALTH)), 120)

    def add_peer(self, flags=(), crds=True):
        """The Go training-operator, for runs side by side.

        It will not start without a certificate, which its own rotator writes into a Secret that a
        kubelet would hand back as files; here that is done by hand.  The webhook itself is removed:
        nothing on loopback could reach it by Service.
        """
        if os.getuid() != 0:
            raise build.Unavailable("the Go operator reads its certificates from a fixed folder, "
                                    "which needs root")
        api = self.client()
        api.create("namespaces", None, {"metadata": {"name": "kubeflow"}})
        if crds:
            self.add_upstream_crds()
        api.create("secrets", "kubeflow", {"metadata": {"name": "training-operator-webhook-cert"}})
        api.call("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "validator.training-operator.kubeflow.org"},
            "webhooks": [{
                "name": "validator.pytorchjob.training-operator.kubeflow.org",
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
                "clientConfig": {"service": {"name": "training-operator", "namespace": "kubeflow",
                                             "path": "/validate-kubeflow-org-v1-pytorchjob"}},
                "rules": [{"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"],
                           "operations": ["CREATE", "UPDATE"], "resources": ["pytorchjobs"]}]}]})
        certs = self.path("peer-certs")
        os.makedirs(certs)
        self.start_with_mount("peer", certs, "peer", [
            build.find("training-operator"), "-kubeconfig", "kubeconfig.operator",
            "-metrics-bind-address", f"127.0.0.1:{self.port(PEER_METRICS)}",
            "-health-probe-bind-address", f"127.0.0.1:{self.port(PEER_HEALTH)}",
            "-webhook-server-port", str(self.port(PEER_WEBHOOK)), "-zap-log-level", "error",
            *flags])
        wanted = ("tls.crt", "tls.key", "ca.crt", "ca.key")
        data = self.until("the Go operator makes its certificate", lambda: (lambda d: d if all(
            d.get(k) for k in wanted) else None)(
                api.get("secrets", "kubeflow", "training-operator-webhook-cert").get("data") or {}))
        for name in wanted:
            with open(os.path.join(certs, name), "wb") as f:
                f.write(base64.b64decode(data[name]))
        self.until("the Go operator is ready", lambda: self.healthy(self.port(PEER_HEALTH)), 120)
        api.call("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
                           "validator.training-operator.kubeflow.org")

    @staticmethod
    def fetch(port, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode(errors="replace")

    # ---- the end
    def down(self, keep=False):
        machine.clear(self.folder, keep)
        for child in self.children.values():
            child.wait()
        self.children = {}

    def logs(self, to):
        """Keep what a person would look at, after the end too."""
        os.makedirs(to, exist_ok=True)
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".json", ".txt")):
                shutil.copy(self.path(name), os.path.join(to, name))
