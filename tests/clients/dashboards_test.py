#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""dashboards_test.py HOLDFAST FOLDER: each query of the Grafana dashboards returns data, and the alerts are valid.

A plane runs jobs that succeed, recover and wait; an operator and an agent beside it serve their metrics, and a real
Prometheus scrapes them. FOLDER keeps the downloaded Prometheus. Exit code 77: Prometheus cannot be had here.
"""
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
import plane

TOP = pathlib.Path(__file__).resolve().parents[2]
HOLDFAST = os.path.abspath(sys.argv[1])
KEPT = os.path.abspath(sys.argv[2])
until = functools.partial(plane.until, patience=120.0)
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
POLICIES = "/apis/holdfast.dev/v1alpha1/healthpolicies"
HEALTH = "/apis/holdfast.dev/v1alpha1/devicehealths"
# The first three starts fail.
FAILING = 'echo x >>{0}; [ $(wc -l <{0}) -gt 3 ] || {{ sleep 2; exit 1; }}; exec sleep 1000'
REPORT = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
own = pathlib.Path(sys.argv[2], str(os.getpid()))
own.mkdir()
(own / "cgroup").write_text(f"0::/kubepods/besteffort/pod{sys.argv[3]}/c\\n")
from holdfast_report import report
report(41, own_ms=31, total=100, rank=0)
"""
# What Grafana puts in for its variables.
RANGES = {"$__rate_interval": "1m"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def job(name, command, **run_policy):
    """Workers alone, without a master for which an init container would wait."""
    container = {"name": "pytorch", "image": "none", "command": ["sh", "-c", command]}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": name},
            "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": {"Worker": {
                "replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {
                    "terminationGracePeriodSeconds": 1, "containers": [container]}}}}}}


class World:
    """A plane, an operator, an agent and a Prometheus, each a process of its own."""

    def __init__(self, folder, prometheus):
        self.folder, self.programs = folder, prometheus
        self.processes = []
        self.plane = folder / "plane"
        self.env = {**os.environ, "KUBECONFIG": str(self.plane / "kubeconfig")}

    def start(self, name, *command):
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=self.env, start_new_session=True)
        self.processes.append(process)
        return process

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def port(self, name, key):
        return until(f"{name} says its port", lambda: re.search(
            rf'"msg":"Starting".*"{key}":"(\d+)"', self.log(name)))[1]

    def api(self, path, body=None):
        return plane.call(self.plane, path, body)

    def state(self, name, condition):
        conditions = self.api(f"{JOBS}/{name}")["status"]["conditions"]
        return any(c["type"] == condition and c["status"] == "True" for c in conditions)

    def begin(self):
        self.start("up", HOLDFAST, "up", "--no-operator", "--listen", "127.0.0.1:0", "--data-dir", str(self.plane))
        until("the plane is there", (self.plane / "kubeconfig").exists)
        self.node = until("the node", lambda: self.api("/api/v1/nodes")["items"][0]["metadata"]["name"])
        (self.folder / "operator.yaml").write_text("recovery:\n  restartScope: Job\n  settleSeconds: 1\n  backoff: {initialSeconds: 1}\n")
        self.start("operator", HOLDFAST, "operator", "--config", str(self.folder / "operator.yaml"), "--leader-elect", "--leader-election-namespace", "default",
                   "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0")
        proc = self.folder / "proc"
        (proc / "sys/kernel/random").mkdir(parents=True)
        shutil.copy("/proc/sys/kernel/random/boot_id", proc / "sys/kernel/random")
        for name in ("sys/bus/pci/devices", "sys/class/infiniband"):
            (self.folder / name).mkdir(parents=True)
        os.mkfifo(self.folder / "kmsg")
        self.start("agent", HOLDFAST, "agent", "--node-name", self.node, "--kmsg", str(self.folder / "kmsg"),
                   "--state-dir", str(self.folder / "state"), "--nvml", str(self.folder / "no-library.so"),
                   "--kubelet-socket", str(self.folder / "no-socket"), "--sysfs", str(self.folder / "sys"),
                   "--proc", str(proc), "--report-socket", str(self.folder / "reports"), "--listen", "127.0.0.1:0")
        self.begin_prometheus()

    def begin_prometheus(self):
        targets = {"holdfast-operator": self.port("operator", "metricsPort"), "holdfast-agent": self.port("agent", "port")}
        lines = ["global: {scrape_interval: 1s, evaluation_interval: 1s}",
                 f"rule_files: [{json.dumps(str(TOP / 'deploy/alerts.yaml'))}]", "scrape_configs:"]
        for name, port in targets.items():
            lines += [f"  - job_name: {name}", "    honor_labels: true",
                      f"    static_configs: [{{targets: ['127.0.0.1:{port}']}}]"]
        (self.folder / "prometheus.yml").write_text("\n".join(lines) + "\n")
        self.prometheus = f"http://127.0.0.1:{free_port()}"
        self.start("prometheus", os.path.join(self.programs, "prometheus"),
                   f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                   f"--web.listen-address={self.prometheus[7:]}", "--log.level=warn")
        until("Prometheus scrapes both", lambda: len(self.query("up == 1")) == 2)

    def query(self, text):
        """The samples that are numbers."""
        where = f"{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": text})
        with urllib.request.urlopen(where, timeout=20) as answer:
            found = json.load(answer)["data"]["result"]
        return [s for s in found if s["value"][1] != "NaN"]

    def rules(self):
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/rules", timeout=20) as answer:
            return [r for g in json.load(answer)["data"]["groups"] for r in g["rules"]]

    def act(self):
        """What happens on a cluster: jobs end, fail, recover and wait, ranks report, a device fails."""
        self.api(JOBS, job("flaky", FAILING.format(self.folder / "starts")))
        self.api(JOBS, job("waiting", "exec sleep 1000", suspend=True))
        for i in range(3):
            self.api(JOBS, job(f"short-{i}", "exit 0"))
            until("a job that succeeds", lambda i=i: self.state(f"short-{i}", "Succeeded"))
        until("a job that recovers",
              lambda: self.api(f"{JOBS}/flaky")["status"]["recovery"]["generation"] == 4)
        until("a job that is suspended", lambda: self.state("waiting", "Suspended"))
        until("it runs", lambda: self.state("flaky", "Running"))
        # A rate needs a second value: one more job starts after the first starts were scraped.
        until("a scrape", lambda: self.query("holdfast_job_start_duration_seconds_count"))
        self.api(JOBS, job("late", "exec sleep 1000"))
        until("another job runs", lambda: self.state("late", "Running"))
        pod = self.api("/api/v1/namespaces/default/pods/flaky-worker-0")
        subprocess.run([sys.executable, "-c", REPORT, str(TOP / "python"), str(self.folder / "proc"),
                        pod["metadata"]["uid"]], check=True, timeout=30,
                       env={**self.env, "HOLDFAST_AGENT_SOCKET": str(self.folder / "reports")})
        self.api(POLICIES, {"apiVersion": "holdfast.dev/v1alpha1", "kind": "HealthPolicy",
                            "metadata": {"name": "gpus"}, "spec": {"mode": "quarantine"}})
        (self.folder / "kmsg").write_text("NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.\n")
        until("a device that failed", lambda: self.api(f"{HEALTH}/{self.node}")["status"]["state"] == "Unhealthy")

    def end(self):
        subprocess.run([HOLDFAST, "down", "--data-dir", str(self.plane), "--timeout", "60s"], env=self.env,
                       check=False, capture_output=True, timeout=90)
        for process in self.processes:
            process.kill()
            process.wait()


def queries():
    """{(file, panel, query as Grafana sends it)}"""
    found = []
    for path in sorted(glob.glob(str(TOP / "deploy/dashboards/*.json"))):
        with open(path, encoding="utf-8") as f:
            made = json.load(f)
        names = {v["name"] for v in made["templating"]["list"]}
        for panel in made["panels"]:
            for target in panel.get("targets", ()):
                text = target["expr"]
                for name, value in RANGES.items():
                    text = text.replace(name, value)
                for name in names:
                    text = text.replace(f"${name}", ".+")
                found.append((os.path.basename(path), panel["title"], text))
    return found


class DashboardsTest(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.world = World(pathlib.Path(cls.temporary.name), PROMETHEUS)
        try:
            cls.world.begin()
            cls.world.act()
        except BaseException:
            for name in ("up", "operator", "agent", "prometheus"):
                if (cls.world.folder / f"{name}.log").exists():
                    print(f"--- {name}\n{cls.world.log(name)[-1500:]}", file=sys.stderr)
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.world.end()
        cls.temporary.cleanup()

    def test_each_query_returns_data(self):
        left = queries()
        self.assertGreater(len(left), 40)

        def answered():
            left[:] = [q for q in left if not self.world.query(q[2])]
            return not left
        try:
            until("data", answered, patience=60)
        except AssertionError:
            self.fail("no data for:\n" + "\n".join(": ".join(q) for q in left))

    def test_the_variables_find_their_values(self):
        for path in glob.glob(str(TOP / "deploy/dashboards/*.json")):
            with open(path, encoding="utf-8") as f:
                variables = json.load(f)["templating"]["list"]
            for variable in variables:
                if variable["type"] != "query":
                    continue
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
                found = {s["metric"][label] for s in self.world.query(metric)}
                self.assertEqual(found, {"operator": {"holdfast-operator"}, "agent": {"holdfast-agent"},
                                         "namespace": {"default"}}[variable["name"]])

    def test_the_figures_are_those_of_the_run(self):
        def value(text):
            return sum(float(s["value"][1]) for s in self.world.query(text))
        until("three restarts", lambda: value('holdfast_job_restarts_total{cause="application"}') == 3)
        until("three ends", lambda: value("training_operator_jobs_successful_total") == 3)
        until("a node is quarantined", lambda: value('holdfast_health_nodes{what="quarantined"}') == 1)
        self.assertEqual(value('holdfast_job_status_condition{condition="Suspended", job="waiting"}'), 1)

    def test_prometheus_evaluates_the_alerts(self):
        rules = until("the alerts are evaluated", lambda: (lambda r: r and all(
            x["health"] == "ok" for x in r) and r)(self.world.rules()))
        state = {r["name"]: r["state"] for r in rules}
        self.assertEqual(state["HoldfastNoLeader"], "inactive")
        self.assertEqual({n for n, s in state.items() if s == "firing"}, set())


if __name__ == "__main__":
    PROMETHEUS = plane.find_prometheus(KEPT)
    unittest.main(argv=sys.argv[:1])
