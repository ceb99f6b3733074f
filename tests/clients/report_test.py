#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""report_test.py FOLDER: what report() of the holdfast_report in FOLDER sends, and that nothing makes it raise.

FOLDER is python/ (the single file that images copy) or python/src/ (the package).
"""

import math
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import unittest

FOLDER = tempfile.TemporaryDirectory()
PATH = os.path.join(FOLDER.name, "agent.sock")
if __name__ == "__main__":  # a spawned process has them already
    os.environ["HOLDFAST_AGENT_SOCKET"] = PATH
    for name in ("HOLDFAST_REPORT_SOCKET", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "TORCHELASTIC_RESTART_COUNT"):
        os.environ.pop(name, None)
FROM = os.path.abspath(sys.argv[1])
sys.path.insert(0, FROM)
import holdfast_report  # noqa: E402
from holdfast_report import report  # noqa: E402


class Hostile:
    """A value for which every operation raises an exception."""

    def fail(self, *args):
        raise RuntimeError("no")

    __str__ = __int__ = __float__ = __bool__ = __eq__ = __mul__ = __rmul__ = __lt__ = __index__ = fail


def spawned(rank):
    # As torch.multiprocessing.spawn does: the module is imported before the rank is known.
    os.environ["RANK"] = str(rank)
    report(7)


def socket_name():
    return holdfast_report._socket.getsockname()


class Report(unittest.TestCase):
    def setUp(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(PATH)
        self.socket.settimeout(20)

    def tearDown(self):
        self.socket.close()
        os.unlink(PATH)
        for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "TORCHELASTIC_RESTART_COUNT"):
            os.environ.pop(name, None)

    def said(self, *args, **kw):
        report(*args, **kw)
        return self.socket.recv(1024).decode()

    def test_all_of_it(self):
        self.assertEqual(
            self.said(5, 31.5, 1.25, total=100, loss=1 / 3, rank=3, group="tp-0", phase="other", attempt=2),
            "holdfast/1 step=5 total=100 rank=3 group=tp-0 phase=other loss=0.333333 own_us=31500 wait_us=1250"
            " attempt=2")

    def test_what_has_no_sense_is_left_out_alone(self):
        for bad in ({"total": math.inf}, {"total": -1}, {"own_ms": math.nan}, {"own_ms": -0.01}, {"own_ms": "fast"},
                    {"wait_ms": math.inf}, {"loss": "n/a"}, {"loss": [1]}, {"rank": "x"}, {"rank": -1},
                    {"rank": 20000}, {"group": ""}, {"attempt": "first"}, {"total": 10**18}, {"own_ms": 1e300},
                    {"total": Hostile()}, {"own_ms": Hostile()}, {"loss": Hostile()}, {"rank": Hostile()},
                    {"group": Hostile()}, {"phase": Hostile()}, {"attempt": Hostile()}):
            self.assertEqual(self.said(5, **bad), "holdfast/1 step=5", bad)
        for step in (math.nan, math.inf, "x", None, -1, Hostile()):
            self.assertEqual(self.said(step, rank=1), "holdfast/1 rank=1")

    def test_words_become_what_the_agent_takes(self):
        self.assertEqual(self.said(5, group="tp:0"), "holdfast/1 step=5 group=tp-0")
        self.assertEqual(self.said(5, group="\udcff" + 40 * "a"), "holdfast/1 step=5 group=-" + 31 * "a")
        self.assertEqual(self.said(5, phase="validation"), "holdfast/1 step=5 phase=other")

    def test_the_rank_is_that_of_the_environment_now(self):
        self.assertEqual(self.said(5), "holdfast/1 step=5")
        os.environ["PMI_RANK"] = "4"
        self.assertEqual(self.said(5), "holdfast/1 step=5 rank=4")
        os.environ["OMPI_COMM_WORLD_RANK"] = "3"
        self.assertEqual(self.said(5), "holdfast/1 step=5 rank=3")
        os.environ["RANK"] = ""
        self.assertEqual(self.said(5), "holdfast/1 step=5 rank=3")
        os.environ["RANK"] = "2"
        self.assertEqual(self.said(5), "holdfast/1 step=5 rank=2")
        self.assertEqual(self.said(5, rank=0), "holdfast/1 step=5 rank=0")
        os.environ["TORCHELASTIC_RESTART_COUNT"] = "3"
        self.assertEqual(self.said(5), "holdfast/1 step=5 rank=2 attempt=3")

    def test_each_spawned_process_has_its_own(self):
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=spawned, args=(rank,)) for rank in range(3)]
        for process in processes:
            process.start()
        said = sorted(self.socket.recv(1024).decode() for _ in processes)
        for process in processes:
            process.join()
        self.assertEqual(said, [f"holdfast/1 step=7 rank={rank}" for rank in range(3)])

    def said_by_another(self, report_socket, times=1):
        # A program with both sockets in its environment.
        code = f"from holdfast_report import report\nfor _ in range({times}): report(5)"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=FROM,
                       env={"HOLDFAST_REPORT_SOCKET": report_socket, "HOLDFAST_AGENT_SOCKET": PATH})

    def test_where_nobody_is_around_the_process_the_agent_hears_it(self):
        # mpirun -x, srun and others give a launcher's environment to ranks on other hosts.
        for nobody in ("@holdfast-nobody", "/nowhere/report.sock", ""):
            self.said_by_another(nobody)
            self.assertEqual(self.socket.recv(1024).decode(), "holdfast/1 step=5")

    def test_who_is_around_the_process_hears_it_alone(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as around:
            around.bind("")  # any that is free
            self.said_by_another("@" + around.getsockname()[1:].decode(), 1000)  # it has no room for all of them
            self.assertEqual(around.recv(1024).decode(), "holdfast/1 step=5")
            self.socket.setblocking(False)
            self.assertRaises(BlockingIOError, self.socket.recv, 1024)

    def test_nobody_who_listens_does_no_harm(self):
        before = holdfast_report._path, holdfast_report._agent
        for path in ("/nowhere/agent.sock", 200 * "a", "\0nobody", Hostile()):
            holdfast_report._path = holdfast_report._agent = path
            report(5)
        holdfast_report._path, holdfast_report._agent = before
        for _ in range(1000):  # nobody reads
            report(5)

    def test_a_request_to_save_is_seen_until_it_is_answered(self):
        self.assertFalse(holdfast_report.should_save())  # there is no `holdfast exec` around
        before = holdfast_report._path
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as around, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            around.bind("")
            around.settimeout(20)
            stranger.bind("")
            holdfast_report._path = around.getsockname().decode()
            os.environ["HOLDFAST_REPORT_SOCKET"] = "@" + around.getsockname()[1:].decode()
            os.environ["RANK"] = "3"
            holdfast_report._tell_at = 0.0
            try:
                self.assertFalse(holdfast_report.should_save())
                text, rank = around.recvfrom(1024)
                self.assertEqual(text, b"holdfast/1 can_save=1 rank=3")
                self.assertFalse(holdfast_report.should_save())  # it says so every five seconds
                for words in (b"holdfast/1 save=0", b"", b"holdfast/1 save=1 more=1", 512 * b"x"):
                    around.sendto(words, rank)
                stranger.sendto(b"holdfast/1 save=1", rank)
                self.assertFalse(holdfast_report.should_save())
                around.sendto(b"holdfast/1 save=1", rank)
                self.assertTrue(holdfast_report.should_save())
                self.assertTrue(holdfast_report.should_save())
                holdfast_report.saved(41)
                self.assertEqual(around.recv(1024), b"holdfast/1 saved=41 rank=3")
                self.assertFalse(holdfast_report.should_save())
                holdfast_report.saved(Hostile(), rank=Hostile())
                self.assertEqual(around.recv(1024), b"holdfast/1")
            finally:
                holdfast_report._path = before
                del os.environ["HOLDFAST_REPORT_SOCKET"]

    def test_a_forked_process_has_a_socket_of_its_own(self):
        name = holdfast_report._socket.getsockname()
        child = multiprocessing.get_context("fork").Pool(1)
        try:
            self.assertNotEqual(child.apply(socket_name), name)
        finally:
            child.terminate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
