#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""top_test.py HOLDFAST: holdfast top on a pseudo-terminal, as a person uses it: rows, keys, a lost server, the end."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
import plane

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 60  # seconds for one screen; a sanitized program starts slowly
ROWS, COLUMNS = 10, 80
SLEEPER = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "alpha"}, "spec": {
    "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [
        {"name": "pytorch", "image": "none", "command": ["sleep", "1000"]}]}}}}}}
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"


class Screen:
    """A terminal of ROWS lines: only the sequences that top uses."""

    def __init__(self, *words, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, *words], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.lines, self.raw, self.row = [""] * ROWS, "", 0

    def feed(self, text):
        self.raw += text
        for part in re.split(r"(\x1b\[[0-9;?]*[a-zA-Z]|\r\n)", text):
            if part == "\x1b[H":
                self.row, self.lines[0] = 0, ""
            elif part == "\x1b[2J":
                self.lines = [""] * ROWS
            elif part == "\r\n":
                self.row = min(self.row + 1, ROWS - 1)
                self.lines[self.row] = ""
            elif not part.startswith("\x1b"):
                self.lines[self.row] += part

    def wait(self, pattern):
        """Reads until the screen matches."""
        end = time.monotonic() + LIMIT
        while not re.search(pattern, "\n".join(self.lines), re.M):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {pattern!r} in {self.lines}")
            try:
                self.feed(os.read(self.fd, 65536).decode(errors="replace"))
            except OSError:  # the program has ended
                raise AssertionError(f"ended without {pattern!r}: {self.lines}") from None
        assert all(len(line) <= COLUMNS for line in self.lines), self.lines

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, wanted):
        """Reads to the end, and checks the exit code and that the terminal is as before."""
        while True:
            try:
                read = os.read(self.fd, 65536)
            except OSError:
                break
            if not read:
                break
            self.raw += read.decode(errors="replace")
        status = os.waitpid(self.pid, 0)[1]
        assert os.waitstatus_to_exitcode(status) == wanted, (os.waitstatus_to_exitcode(status), self.raw[-300:])
        assert self.raw.rstrip().endswith("\x1b[?25h\x1b[?1049l"), self.raw[-80:]
        os.close(self.fd)


def start(folder, port=0):
    """Starts a plane; returns its port."""
    said = subprocess.run([PROGRAM, "up", "-d", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder)], check=True,
                          capture_output=True, text=True, timeout=120).stdout
    return re.search(r"127\.0\.0\.1:(\d+)", said)[1]


def once(env, *words):
    run = subprocess.run([PROGRAM, "top", *words], env=env, capture_output=True, text=True, timeout=60,
                         stdin=subprocess.DEVNULL)
    return run.returncode, run.stdout, run.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="hf-top-") as base:
        folder = pathlib.Path(base) / "plane"
        env = {**os.environ, "TERM": "xterm", "KUBECONFIG": str(folder / "kubeconfig"), "LC_ALL": "C.UTF-8"}
        port = start(folder)
        try:
            assert once(env) == (0, "", "No jobs found\n"), once(env)
            screen = Screen("top", env=env)
            screen.wait(r"^0 jobs  by state")
            # A new job appears by itself.
            plane.call(folder, JOBS, SLEEPER)
            screen.wait(r"^1 job: 1 Running  by state(.*\n)*alpha +PyTorchJob +Running +2/2")
            screen.press("\r")
            screen.wait(r"^default/alpha  Running(.*\n)+worker-0 .*\nworker-1 ")
            screen.press("\x1b[B\x1b")
            screen.wait(r"^1 job: ")
            screen.press("s")
            screen.wait(r"by name")
            # Rows stay while the server is away, and follow when it is back.
            os.kill(int((folder / "up.pid").read_text()), signal.SIGKILL)
            screen.wait(r"^alpha (.*\n)+the server is not reached")
            start(folder, port)
            screen.wait(r"^alpha (.*\n)+q quit")
            screen.press("q")
            screen.end(0)
            code, out, _ = once(env, "alpha", "--no-headers")
            assert code == 0 and re.match(r"worker-0 +\w+ .*\nworker-1 ", out), out
            code, out, _ = once(env, "-A", "-o", "json")
            assert code == 0 and '"name": "alpha"' in out, out
            screen = Screen("top", "alpha", env=env)
            screen.wait(r"^default/alpha ")
            os.kill(screen.pid, signal.SIGTERM)
            screen.end(130)
            assert once(env, "--sort-by", "size")[0] == 2
            assert once(env, "nosuch")[0] == 1
        finally:
            subprocess.run([PROGRAM, "down", "--data-dir", str(folder), "--timeout", "30s"], capture_output=True,
                           check=False)
        assert once(env)[0] == 3


main()
