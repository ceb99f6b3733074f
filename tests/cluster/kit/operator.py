# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The operator under test as a process: Holdfast's, or the Go operator to try the checks on."""

import os
import signal
import socket
import subprocess

from . import build, client, machine


class Operator:
    """`holdfast operator` against a cluster, with a kubeconfig of its own."""

    def __init__(self, cluster, program, name="operator", config=None, flags=(),
                 env=None):
        self.cluster, self.program, self.name = cluster, program, name
        self.config = config or cluster.path("kubeconfig.operator")
        self.flags = list(flags)
        self.env = {"MY_POD_NAMESPACE": "default", **(env or {})}
        self.child = None
        self.ports = free_ports(2)

    def start(self, ready_s=60):
        metrics, health = self.ports
        argv = [self.program, "operator", "--kubeconfig", self.config,
                "--metrics-bind-address", f"127.0.0.1:{metrics}",
                "--health-probe-bind-address", f"127.0.0.1:{health}", *self.flags]
        with open(self.log(), "ab") as log:
            self.child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.cluster.folder,
                start_new_session=True,
                env={**os.environ, **self.env, machine.MARK: self.cluster.folder,
                     "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
                     "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"})
        if ready_s:
            client.until(f"{self.name} is ready", self.ready, ready_s)
        return self

    def log(self):
        return self.cluster.path(self.name + ".log")

    def said(self):
        with open(self.log(), encoding="utf-8", errors="replace") as f:
            return f.read()

    def ready(self):
        if self.child.poll() is not None:
            lines = self.said().strip().splitlines() or ["nothing"]
            raise build.Broken(f"{self.name} ended with {self.child.returncode}: {lines[-1][:300]}")
        return self.cluster.healthy(self.ports[1])

    def readiness(self):
        """What /readyz says, ready or not."""
        try:
            return self.cluster.fetch(self.ports[1], "/readyz")
        except OSError as e:
            return e.read().decode() if hasattr(e, "read") else str(e)

    def metrics(self):
        """{'name{labels}': value} of /metrics."""
        text = self.cluster.fetch(self.ports[0], "/metrics")
        found = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                key, _, value = line.rpartition(" ")
                found[key] = float(value)
        return found

    def metric(self, name, **labels):
        """The sum over all series of this name with these labels."""
        total = 0.0
        for key, value in self.metrics().items():
            bare, _, rest = key.partition("{")
            if bare == name and all(f'{k}="{v}"' in rest for k, v in labels.items()):
                total += value
        return total

    def signal(self, number):
        os.kill(self.child.pid, number)

    def kill(self):
        """kill -9, and gone."""
        if self.child and self.child.poll() is None:
            self.child.kill()
        if self.child:
            self.child.wait()

    def stop(self, timeout_s=60):
        """SIGTERM: it ends by itself; returns its exit code."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.name} did not end within {timeout_s} s of SIGTERM") from None

    def rss_bytes(self):
        with open(f"/proc/{self.child.pid}/status", encoding="utf-8") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0


class Peer:
    """The Go operator behind the same words, so that a check can be tried on what it describes."""

    name = "peer"

    def __init__(self, cluster, flags=()):
        self.cluster = cluster
        self.flags = list(flags)

    def start(self, ready_s=120):
        del ready_s
        if "peer" in self.cluster.state["programs"]:
            self.cluster.peer_again(self.flags)
        else:
            self.cluster.add_peer(self.flags, crds=False)
        return self

    def kill(self):
        self.cluster.stop("peer")

    def stop(self, timeout_s=60):
        del timeout_s
        self.cluster.stop("peer")
        return 0


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    found = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return found
