#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""in_place_test.py HOLDFAST EXEC: restarts in place with the real programs.

`holdfast up` runs two pods with `holdfast exec`, `holdfast agent` watches the node. The job is managed by another controller,
so the test writes the ledger itself, as the operator would: first the new generation with a hold, then the go.
"""
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

HOLDFAST, EXEC = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 90.0
PAUSE = threading.Event()
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
PODS = "/api/v1/namespaces/default/pods"
HEALTH = "/apis/holdfast.dev/v1alpha1/devicehealths"

# The test writes the control group that a kubelet would give the container into a folder. exec keeps the shell's pid.
POD = """
while [ ! -e "$FOLDER/go-$RANK" ]; do sleep 0.05; done
exec "$EXEC" --termination-log "$FOLDER/termination-$RANK" -- sh "$FOLDER/train.sh"
"""
# Each start writes a line; a child shows that the whole tree ends. The file "fail" of a rank ends it with code 7.
TRAIN = """
sleep 1000 &
echo "$HOLDFAST_GENERATION $HOLDFAST_ATTEMPT" >>"$FOLDER/starts-$RANK"
while [ ! -e "$FOLDER/fail-$RANK" ]; do sleep 0.05; done
rm "$FOLDER/fail-$RANK"
echo "rank $RANK failed" >&2
exit 7
"""


def find_processes(**environment):
    """The processes of this machine with these variables at their start; pods have PID namespaces of their own."""
    wanted = {f"{key}={value}".encode() for key, value in environment.items()}
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= set((path / "environ").read_bytes().split(b"\0")):
                found.append(int(path.name))
        except OSError:
            continue
    return sorted(found)


class Cluster:
    """`holdfast up` and its API."""

    def __init__(self, folder):
        self.folder = folder / "plane"
        self.log = open(folder / "up.log", "wb")
        self.process = subprocess.Popen([HOLDFAST, "up", "--listen", "127.0.0.1:0", "--data-dir", str(self.folder)],
                                        stdout=self.log, stderr=self.log)
        self.kubeconfig = self.folder / "kubeconfig"
        until(lambda: self.kubeconfig.exists() and self.kubeconfig.read_text(encoding="utf-8"), "a kubeconfig")
        text = self.kubeconfig.read_text(encoding="utf-8")
        self.server = next(line.split("server:")[1].strip() for line in text.splitlines() if "server:" in line)
        self.token = (self.folder / "token").read_text(encoding="ascii").strip()
        self.tls = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))

    def call(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(
            self.server + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.token, "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            error.msg = error.read().decode(errors="replace")
            raise

    def find(self, path):
        try:
            return self.call("GET", path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def close(self):
        subprocess.run([HOLDFAST, "down", "--data-dir", str(self.folder), "--timeout", "60s"], check=False,
                       stdout=self.log, stderr=self.log)
        self.process.kill()
        self.process.wait()
        self.log.close()


def until(question, what):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            found = question()
        except urllib.error.URLError:
            found = None
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        PAUSE.wait(0.02)


class InPlace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "proc/sys/kernel/random").mkdir(parents=True)
        (cls.folder / "proc/sys/kernel/random/boot_id").write_text(
            pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"), encoding="ascii")
        (cls.folder / "sys/bus/pci/devices").mkdir(parents=True)
        (cls.folder / "pod.sh").write_text(POD, encoding="ascii")
        (cls.folder / "train.sh").write_text(TRAIN, encoding="ascii")
        cls.cluster = Cluster(cls.folder)
        cls.node = until(lambda: (cls.cluster.find("/api/v1/nodes") or {}).get("items"),
                         "a node")[0]["metadata"]["name"]
        cls.agent = None

    @classmethod
    def tearDownClass(cls):
        cls.kill_agent()
        cls.cluster.close()
        cls.temporary.cleanup()

    @classmethod
    def start_agent(cls):
        with open(cls.folder / "agent.log", "ab") as log:
            cls.agent = subprocess.Popen(
                [HOLDFAST, "agent", "--node-name", cls.node, "--kubeconfig", str(cls.cluster.kubeconfig), "--kmsg", "",
                 "--state-dir", str(cls.folder / "state"), "--nvml", str(cls.folder / "none"),
                 "--kubelet-socket", str(cls.folder / "none"), "--sysfs", str(cls.folder / "sys"),
                 "--proc", str(cls.folder / "proc"), "--report-socket", str(cls.folder / "agent.sock"),
                 "--listen", "127.0.0.1:0"], stderr=log)

    @classmethod
    def kill_agent(cls):
        if cls.agent:
            cls.agent.kill()
            cls.agent.wait()
            cls.agent = None

    # --- the job, as the operator would write it

    def setUp(self):
        self.job = self.id().rsplit(".", 1)[1].replace("_", "-")[5:]
        self.wait_seconds = 60
        if not self.agent:
            self.start_agent()

    def tearDown(self):
        for rank in range(2):
            try:
                self.cluster.call("DELETE", f"{PODS}/{self.job}-worker-{rank}", {"gracePeriodSeconds": 0})
            except urllib.error.HTTPError:
                pass
            for name in ("starts", "fail", "go", "termination"):
                (self.folder / f"{name}-{rank}").unlink(missing_ok=True)

    def create(self, hold=()):
        template = {"spec": {"containers": [{"name": "pytorch", "image": "none"}]}}
        made = self.cluster.call("POST", JOBS, {
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": self.job, "namespace": "default"},
            "spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue",
                                   "recovery": {"inPlaceWaitSeconds": self.wait_seconds}},
                     "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}})
        self.uid = made["metadata"]["uid"]
        self.execs = {}
        self.write(generation=1)
        for rank in range(2):
            self.create_pod(rank, hold=rank in hold)

    def create_pod(self, rank, generation=1, hold=False):
        environment = {"FOLDER": self.folder, "EXEC": EXEC, "RANK": rank, "PET_RDZV_ID": self.job,
                       "HOLDFAST_AGENT_SOCKET": self.folder / "agent.sock", **({"HOLDFAST_HOLD": 1} if hold else {})}
        (self.folder / f"go-{rank}").unlink(missing_ok=True)
        made = self.cluster.call("POST", PODS, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{self.job}-worker-{rank}",
                         "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": self.job,
                                              "uid": self.uid, "controller": True}],
                         "labels": {"training.kubeflow.org/replica-type": "worker",
                                    "training.kubeflow.org/replica-index": str(rank)},
                         "annotations": {"holdfast.dev/generation": str(generation), "holdfast.dev/attempt": "0"}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [
                {"name": "pytorch", "image": "none", "command": ["/bin/sh", str(self.folder / "pod.sh")],
                 "env": [{"name": key, "value": str(value)} for key, value in environment.items()]}]}})
        uid = made["metadata"]["uid"]
        # The shell, and perhaps its sleep; the shell is older.
        pid = until(lambda: find_processes(HOLDFAST_POD_UID=uid, RANK=rank), "the shell of the pod")[0]
        (self.folder / f"proc/{pid}").mkdir(exist_ok=True)
        (self.folder / f"proc/{pid}/cgroup").write_text(f"0::/kubepods/besteffort/pod{uid}/c\n", encoding="ascii")
        self.execs[rank] = pid
        (self.folder / f"go-{rank}").touch()

    def write(self, generation, hold="", base=None):
        """Write the ledger, where a CRD without a place for it keeps it."""
        ledger = {"generation": generation, "replicas": {"Worker": {"hold": hold}}}
        if base:
            ledger["inPlaceBase"] = base
        self.cluster.call("PATCH", f"{JOBS}/{self.job}", {"metadata": {"annotations": {
            "holdfast.dev/ledger": json.dumps(ledger)}}}, "application/merge-patch+json")

    # --- what is seen

    def told(self):
        """The published processes of the job, by rank."""
        health = self.cluster.find(f"{HEALTH}/{self.node}") or {}
        return {int(one["pod"][-1]): one for one in health.get("status", {}).get("processes") or []
                if one["pod"].startswith(self.job + "-worker")}

    def phases(self):
        return {rank: (one["phase"], one["generation"]) for rank, one in self.told().items()}

    def starts(self, rank):
        """(generation, attempt) of each start."""
        path = self.folder / f"starts-{rank}"
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        return [tuple(int(word) for word in line.split()) for line in lines]

    def running(self, rank, generation):
        """Processes of that generation, with all below them."""
        return find_processes(HOLDFAST_POD_UID=self.pod(rank)["metadata"]["uid"], HOLDFAST_GENERATION=generation)

    def fail(self, rank):
        (self.folder / f"fail-{rank}").touch()

    def pod(self, rank):
        return self.cluster.find(f"{PODS}/{self.job}-worker-{rank}")

    def restart_count(self, rank):
        return self.pod(rank)["status"]["containerStatuses"][0]["restartCount"]

    def until_started(self, rank, number):
        return until(lambda: len(self.starts(rank)) == number and self.starts(rank)[-1], f"start {number} of rank {rank}")

    def until_phases(self, wanted):
        until(lambda: self.phases() == wanted, f"{wanted}, found {self.phases()}")

    def restart(self, generation):
        """Order the generation, and check that nothing of the one before runs once Down is published."""
        self.write(generation, hold="0-1", base=1)
        self.until_phases({0: ("Down", generation), 1: ("Down", generation)})
        for rank in range(2):
            self.assertEqual(self.running(rank, generation - 1), [])
        numbers = [len(self.starts(rank)) for rank in range(2)]
        PAUSE.wait(0.5)
        self.assertEqual([len(self.starts(rank)) for rank in range(2)], numbers)
        self.write(generation, base=1)
        return [self.until_started(rank, numbers[rank] + 1) for rank in range(2)]

    # --- the tests

    def test_gang(self):
        self.create()
        before = [self.until_started(rank, 1) for rank in range(2)]
        self.assertEqual(before, [(1, 0), (1, 0)])
        self.assertEqual([len(self.running(rank, 1)) >= 2 for rank in range(2)], [True, True])
        since = time.monotonic()
        self.fail(0)
        until(lambda: self.phases().get(0) == ("Ended", 1), "the termination")
        report = self.told()[0]
        self.assertEqual((report["code"], report["ordinal"], report["job"]), (7, 1, self.uid))
        self.assertEqual(report["message"], "exit code 7 rank 0 failed")
        after = self.restart(2)
        print(f"termination to all started: {time.monotonic() - since - 0.5:.2f} s")
        self.assertEqual(after, [(2, 0), (2, 0)])
        # A second and a third time, without a failure: a person's restart.
        after = self.restart(3)
        after = self.restart(4)
        self.assertEqual([start[0] for start in after], [4, 4])
        self.assertEqual([self.restart_count(rank) for rank in range(2)], [0, 0])
        self.assertEqual([self.pod(rank)["status"]["phase"] for rank in range(2)], ["Running", "Running"])

    def test_agent_killed(self):
        self.create()
        for rank in range(2):
            self.until_started(rank, 1)
        # The order comes while no agent runs; then the agent dies at the barrier, and with the go on its way.
        self.kill_agent()
        self.write(2, hold="0-1", base=1)
        PAUSE.wait(0.5)
        self.assertTrue(all(self.running(rank, 1) for rank in range(2)))
        self.start_agent()
        self.until_phases({0: ("Down", 2), 1: ("Down", 2)})
        self.assertFalse(any(self.running(rank, 1) for rank in range(2)))
        self.kill_agent()
        self.write(2, base=1)
        PAUSE.wait(1)
        self.assertEqual([len(self.starts(rank)) for rank in range(2)], [1, 1])
        self.start_agent()
        self.assertEqual([self.until_started(rank, 2)[0] for rank in range(2)], [2, 2])
        # A termination while no agent runs takes the path of before: the container ends.
        self.kill_agent()
        self.fail(1)
        until(lambda: self.pod(1)["status"]["phase"] == "Failed", "the end of the pod")
        self.assertEqual(self.restart_count(0), 0)

    def test_exec_killed(self):
        self.create()
        for rank in range(2):
            self.until_started(rank, 1)
        until(lambda: len(self.phases()) == 2, "both ranks")
        os.kill(self.execs[1], signal.SIGKILL)
        until(lambda: self.pod(1)["status"]["phase"] == "Failed", "the end of the pod")
        # CMD does not outlive its exec.
        until(lambda: not self.running(1, 1), "the end of CMD")
        self.write(2, hold="0-1", base=1)
        until(lambda: self.phases().get(0) == ("Down", 2), "rank 0 down")
        # The rank whose exec is gone comes back with a new pod, which waits as well.
        self.cluster.call("DELETE", f"{PODS}/{self.job}-worker-1", {"gracePeriodSeconds": 0})
        until(lambda: self.pod(1) is None, "the end of the old pod")
        self.create_pod(1, generation=2, hold=True)
        self.until_phases({0: ("Down", 2), 1: ("Waiting", 2)})
        PAUSE.wait(0.5)
        self.assertEqual([len(self.starts(rank)) for rank in range(2)], [1, 1])
        self.write(2, base=1)
        self.assertEqual([self.until_started(rank, 2)[0] for rank in range(2)], [2, 2])

    def test_order_lost(self):
        self.wait_seconds = 2
        self.create()
        self.until_started(0, 1)
        until(lambda: 0 in self.phases(), "rank 0")
        since = time.monotonic()
        self.fail(0)
        until(lambda: self.phases().get(0) == ("Ended", 1), "the termination")
        until(lambda: self.pod(0)["status"]["phase"] == "Failed", "the end of the pod")
        self.assertGreater(time.monotonic() - since, 2)
        ended = self.pod(0)["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(ended["exitCode"], 7)
        self.assertEqual((self.folder / "termination-0").read_text(encoding="utf-8"), "exit code 7\nrank 0 failed\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
