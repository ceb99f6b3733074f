#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""in_place_test.py HOLDFAST EXEC: restarts in place with the real programs.

`holdfast up` operates the job and runs its pods with `holdfast exec`, `holdfast agent` watches the node. The last test is
`holdfast run`, which has an agent of its own.
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
PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
PATIENCE = 90.0
PAUSE = threading.Event()
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
PODS = "/api/v1/namespaces/default/pods"
HEALTH = "/apis/holdfast.dev/v1alpha1/devicehealths"

# The test writes the process's control group, as a kubelet would give it, into a folder. `exec` keeps the shell's pid.
POD = """
until [ -e "$FOLDER/go-$HOLDFAST_POD_UID" ]; do sleep 0.05; done
exec "$EXEC" $EXEC_FLAGS --termination-log "$FOLDER/termination-$RANK" -- sh "$FOLDER/train.sh"
"""
# Each start of the program writes a line; a child of it shows that the whole tree ends. If the file "fail" of a rank exists,
# the rank ends with code 7; with the file "slow" it takes two seconds to end by SIGTERM.  By SIGUSR1 it saves, which takes a second, and ends.
# A rank that reports is at step 90, and saves it.
TRAIN = """
sleep 1000 &
trap '[ -e "$FOLDER/slow-$RANK" ] && sleep 2; exit 1' TERM
report() { [ -z "$REPORTS" ] || python3 -c "import holdfast_report; holdfast_report.$1(90)"; }
trap 'sleep 1; touch "$FOLDER/saved-$RANK"; report saved; exit 1' USR1
echo "$HOLDFAST_GENERATION $HOLDFAST_POD_UID" >>"$FOLDER/starts-$RANK"
report report
while [ ! -e "$FOLDER/fail-$RANK" ]; do sleep 0.05; done
rm "$FOLDER/fail-$RANK"
echo "rank $RANK failed" >&2
exit 7
"""
# For `holdfast run`: rank 1 is killed in its first start, when the operator knows that it runs under exec.
KILLED = """
echo "start $HOLDFAST_GENERATION"
[ "$RANK$HOLDFAST_GENERATION" = 11 ] && sleep 6 && kill -9 $$
[ "$HOLDFAST_GENERATION" = 2 ] || exec sleep 1000
"""


def find_processes(**environment):
    """Return the processes of this machine that started with these variables: pids inside a pod are of its PID namespace."""
    wanted = {f"{key}={value}".encode() for key, value in environment.items()}
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= set((path / "environ").read_bytes().split(b"\0")):
                found.append(int(path.name))
        except OSError:
            continue
    return sorted(found)


def variable(pid, name):
    """Return the value of the variable at the start of the process; None: the process has ended, or has no such variable."""
    try:
        items = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((item.split(b"=", 1)[1].decode() for item in items if item.startswith(name.encode() + b"=")), None)


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


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

    # --- the job

    def setUp(self):
        self.job = self.id().rsplit(".", 1)[1].replace("_", "-")[5:]
        self.done = threading.Event()
        self.seen = []
        self.helpers = [threading.Thread(target=work) for work in (self.place_pods, self.watch_generations)]
        for helper in self.helpers:
            helper.start()
        if not self.agent:
            self.start_agent()

    def tearDown(self):
        self.done.set()
        for helper in self.helpers:
            helper.join()
        self.cluster.call("DELETE", f"{JOBS}/{self.job}", {"propagationPolicy": "Foreground"})
        until(lambda: not any(self.pod(rank) for rank in range(2)), "the end of the pods")
        for path in self.folder.glob("*-[01]"):
            path.unlink()
        self.assertEqual(self.seen, [], "two generations ran at once")

    def place_pods(self):
        """Give the first process of each pod a control group, as a kubelet would."""
        while not self.done.wait(0.05):
            for rank in range(2):
                try:
                    uid = (self.pod(rank) or {}).get("metadata", {}).get("uid")
                except (OSError, ValueError):
                    continue
                if not uid or (self.folder / f"go-{uid}").exists():
                    continue
                for pid in find_processes(HOLDFAST_POD_UID=uid, EXEC=EXEC):
                    if "pod.sh" not in command_line(pid):
                        continue
                    (self.folder / f"proc/{pid}").mkdir(exist_ok=True)
                    (self.folder / f"proc/{pid}/cgroup").write_text(f"0::/kubepods/besteffort/pod{uid}/c\n",
                                                                    encoding="ascii")
                    (self.folder / f"go-{uid}").touch()

    def watch_generations(self):
        """Note each moment at which programs of two generations run."""
        while not self.done.wait(0.02):
            found = {}
            for pid in find_processes(HOLDFAST_JOB_OF_TEST=self.job):
                generation = variable(pid, "HOLDFAST_GENERATION")
                if generation:
                    found.setdefault(generation, []).append(pid)
            # The processes of both generations still run, so they ran at once.
            if len(found) > 1 and all(variable(pid, "HOLDFAST_GENERATION") for pids in found.values() for pid in pids):
                self.seen.append(found)

    def create(self, reports="", **recovery):
        saves = "--save-signal USR1" if "checkpoint" in recovery else ""
        environment = {"FOLDER": self.folder, "EXEC": EXEC, "EXEC_FLAGS": saves, "HOLDFAST_JOB_OF_TEST": self.job,
                       "PYTHONPATH": PYTHON, "REPORTS": reports, "HOLDFAST_AGENT_SOCKET": self.folder / "agent.sock"}
        replica = {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {
            "terminationGracePeriodSeconds": 5, "containers": [
                {"name": "pytorch", "image": "none", "command": ["/bin/sh", str(self.folder / "pod.sh")],
                 "env": [{"name": key, "value": str(value)} for key, value in environment.items()]}]}}}
        self.cluster.call("POST", JOBS, {
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": self.job, "namespace": "default"},
            "spec": {"runPolicy": {"recovery": {"restartScope": "Job", "backoff": {"initialSeconds": 1}, **recovery}},
                     "pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}})

    def begin(self, **recovery):
        """Create the job; returns the UIDs of the pods, once the operator has told the agents to wait for orders."""
        self.create(**recovery)
        starts = [self.until_started(rank, 1) for rank in range(2)]
        self.assertEqual([start[0] for start in starts], ["1", "1"])
        if recovery.get("inPlace") != "Never":
            until(lambda: self.ledger().get("inPlaceWaitSeconds") == 60, "the wait in the ledger")
            until(lambda: len(self.phases()) == 2, "both ranks in DeviceHealth")
        return [start[1] for start in starts]

    # --- what is seen

    def ledger(self):
        job = self.cluster.call("GET", f"{JOBS}/{self.job}")
        return job.get("status", {}).get("recovery") or {}

    def name(self, rank):
        return f"{self.job}-{'worker' if rank else 'master'}-0"

    def pod(self, rank):
        return self.cluster.find(f"{PODS}/{self.name(rank)}")

    def phases(self):
        """Return (phase, generation) of each rank's process in DeviceHealth."""
        health = self.cluster.find(f"{HEALTH}/{self.node}") or {}
        names = {self.name(rank): rank for rank in range(2)}
        return {names[one["pod"]]: (one["phase"], one["generation"])
                for one in health.get("status", {}).get("processes") or [] if one["pod"] in names}

    def starts(self, rank):
        """Return (generation, UID of the pod) of each start of the rank."""
        path = self.folder / f"starts-{rank}"
        return [tuple(line.split()) for line in path.read_text(encoding="ascii").splitlines()] if path.exists() else []

    def until_started(self, rank, number):
        return until(lambda: len(self.starts(rank)) >= number and self.starts(rank)[number - 1],
                     f"start {number} of rank {rank}")

    def end_program(self, rank):
        (self.folder / f"fail-{rank}").touch()

    def assert_restarted(self, number, uids):
        """Check that start `number` of both ranks is of this generation, in these pods."""
        self.assertEqual([self.until_started(rank, number) for rank in range(2)], [(str(number), uid) for uid in uids])

    def assert_in_place(self, restarts):
        """Check that the pods are those of the beginning, and that the record of the last restart says in place."""
        self.assertEqual([self.pod(rank)["status"]["containerStatuses"][0]["restartCount"] for rank in range(2)], [0, 0])
        self.assertEqual([self.pod(rank)["status"]["phase"] for rank in range(2)], ["Running", "Running"])
        self.assertIs(self.ledger()["last"]["inPlace"], True)
        self.assertEqual(self.ledger()["generation"], restarts + 1)

    # --- the tests

    def test_gang(self):
        uids = self.begin()
        for restart in range(1, 4):
            since = time.monotonic()
            self.end_program(restart % 2)
            self.assert_restarted(restart + 1, uids)
            print(f"restart {restart}: termination to all started: {time.monotonic() - since:.2f} s")
            self.assert_in_place(restart)
            until(lambda: self.ledger()["phase"] == "Running", "Running")
        self.assertEqual(self.ledger()["restarts"], {"application": 3})
        # inPlaceLimit: the fourth restart in a row re-creates the pods.
        self.end_program(0)
        last = [self.until_started(rank, 5) for rank in range(2)]
        self.assertEqual([start[0] for start in last], ["5", "5"])
        self.assertFalse({start[1] for start in last} & set(uids))

    def test_person(self):
        uids = self.begin()
        subprocess.run([HOLDFAST, "restart", self.job, "--kubeconfig", self.cluster.kubeconfig], check=True)
        self.assert_restarted(2, uids)
        self.assert_in_place(1)
        self.assertFalse(self.ledger().get("restarts"))

    def test_suspend(self):
        # The pods' own grace is 5 s.
        self.begin(checkpoint={"graceSeconds": 40})
        since = time.monotonic()
        self.cluster.call("PATCH", f"{JOBS}/{self.job}", {"spec": {"runPolicy": {"suspend": True}}},
                          "application/merge-patch+json")
        until(lambda: not any(self.pod(rank) for rank in range(2)), "the end of the pods")
        self.assertGreaterEqual(time.monotonic() - since, 1)
        self.assertLess(time.monotonic() - since, 30)
        self.assertTrue(all((self.folder / f"saved-{rank}").exists() for rank in range(2)), "a rank has not saved")

    def test_agent_killed(self):
        uids = self.begin()
        # The agent dies while it stops a rank; the next agent goes on.
        (self.folder / "slow-1").touch()
        self.end_program(0)
        until(lambda: self.ledger()["generation"] == 2, "the order")
        self.kill_agent()
        PAUSE.wait(0.5)
        self.assertEqual([len(self.starts(rank)) for rank in range(2)], [1, 1])
        self.start_agent()
        self.assert_restarted(2, uids)
        self.assert_in_place(1)
        # An agent publishes a start within minutes, but an agent that was started again within seconds.
        self.kill_agent()
        self.start_agent()
        until(lambda: self.phases() == {0: ("Running", 2), 1: ("Running", 2)}, "the reports of the start")
        # If no agent runs, a termination ends the container, as without restarts in place.
        self.kill_agent()
        self.end_program(1)
        until(lambda: (self.pod(1) or {"metadata": {"uid": uids[1]}})["metadata"]["uid"] != uids[1], "a new pod")
        self.start_agent()
        # If the new agent is late for the barrier, all pods are re-created as generation 4.
        generations = {self.until_started(rank, 3)[0] for rank in range(2)}
        self.assertIn(generations, ({"3"}, {"4"}))
        self.assertEqual(self.ledger()["restarts"], {"application": 2})

    def test_exec_killed(self):
        uids = self.begin()
        exec_pid = next(pid for pid in find_processes(HOLDFAST_POD_UID=uids[1], EXEC=EXEC)
                        if os.readlink(f"/proc/{pid}/exe") == EXEC)
        os.kill(exec_pid, signal.SIGKILL)
        # The rank whose exec was killed gets a new pod; the other rank keeps its pod and waits.
        self.assertEqual(self.until_started(0, 2), ("2", uids[0]))
        generation, uid = self.until_started(1, 2)
        self.assertEqual(generation, "2")
        self.assertNotEqual(uid, uids[1])
        self.assertIs(self.ledger()["last"]["inPlace"], True)

    def test_never(self):
        uids = self.begin(inPlace="Never")
        since = time.monotonic()
        self.end_program(0)
        last = [self.until_started(rank, 2) for rank in range(2)]
        self.assertLess(time.monotonic() - since, 50, "exec has waited for an order")
        self.assertFalse({start[1] for start in last} & set(uids))
        self.assertNotIn("inPlaceWaitSeconds", self.ledger())

    def test_never_saves(self):
        # New pods do not make the operator forget what the ranks have saved for it.
        self.begin(reports="yes", inPlace="Never", checkpoint={"graceSeconds": 40})
        until(lambda: len(self.phases()) == 2 and self.ledger().get("step") == 90, "the ranks' reports")
        since = time.monotonic()
        subprocess.run([HOLDFAST, "restart", self.job, "--kubeconfig", self.cluster.kubeconfig], check=True)
        last = [self.until_started(rank, 2) for rank in range(2)]
        self.assertLess(time.monotonic() - since, 30)
        self.assertEqual([start[0] for start in last], ["2", "2"])
        self.assertTrue(all((self.folder / f"saved-{rank}").exists() for rank in range(2)), "a rank has not saved")
        self.assertEqual(self.ledger()["last"].get("savedStep"), 90)


class Run(unittest.TestCase):
    """`holdfast run`, with the agent inside."""

    def test_run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "train.sh").write_text(KILLED, encoding="ascii")
            replica = {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [
                {"name": "pytorch", "image": "none", "command": [EXEC, "--", "sh", str(folder / "train.sh")]}]}}}
            (folder / "job.json").write_text(json.dumps({
                "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "kept"},
                "spec": {"runPolicy": {"recovery": {"restartScope": "Job"}},
                         "pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}}), encoding="ascii")
            environment = {**os.environ, "HOLDFAST_DIR": str(folder / "state")}
            environment.pop("KUBECONFIG", None)

            def holdfast(*arguments):
                done = subprocess.run([HOLDFAST, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                return done.stdout

            out = holdfast("run", "job.json")
            for rank in ("master-0", "worker-0"):
                self.assertRegex(out, rf"(?m)^{rank} *\| start 1$")
                self.assertRegex(out, rf"(?m)^{rank} *\| start 2$")
            self.assertIn("restarts=1", out)
            self.assertRegex(holdfast("why", "@latest"), "all ranks restart as generation 2, in their pods where they can")
            objects = json.loads(holdfast("describe", "@latest", "-o", "json"))["items"]
            pods = [one for one in objects if one["kind"] == "Pod"]
            self.assertEqual(len(pods), 2)
            for pod in pods:
                self.assertEqual(pod["metadata"]["annotations"]["holdfast.dev/generation"], "1")
                self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
