#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""exec_orders_test.py EXEC…: runs `holdfast exec` around real processes, and stands in for the agent.

The test, as the agent, sends targets over a SOCK_SEQPACKET socket and reads the states that exec sends. Each test is one
way in which a rank restarts in place, or does not.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

EXEC = sys.argv.pop(1).split()
HELPER = str(pathlib.Path(__file__).resolve().parents[2] / "python")
# A rank that saves when exec asks it: saving takes SECONDS, and the rank answers unless MUTE is set.
RANK = """
import os, pathlib, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from holdfast_report import saved, should_save
folder, name = pathlib.Path(os.environ["OUT"]), sys.argv[2]
def note(text):
    with open(folder / "out", "a", encoding="ascii") as out:
        out.write(f"{name} {text}\\n")
def end(number, frame):
    note("told to end")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
asked = should_save()
note("up")
while True:
    if should_save():
        if not asked:
            note("saves")
        asked = True
        threading.Event().wait(float(os.environ.get("SECONDS", "0")))
        if "MUTE" not in os.environ:
            note("saved")
            saved(7)
            asked = False
    threading.Event().wait(0.02)
"""
# How long a step of a test may take on a loaded machine.
PATIENCE = 60.0
PAUSE = threading.Event()


class Agent:
    """Listens beside the socket for reports, as the agent does."""

    def __init__(self, folder):
        self.path = str(folder / "exec.sock")
        self.listener = None
        self.peer = None
        self.listen()

    def listen(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE)

    def accept(self):
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(PATIENCE)

    def target(self, generation, attempt=0, **more):
        pairs = {"generation": generation, "attempt": attempt, "wait": 60, **more}
        self.send("target " + " ".join(f"{key}={value}" for key, value in pairs.items()))

    def send(self, line):
        self.peer.send(line.encode())

    def state(self):
        line = self.peer.recv(4096).decode()
        if not line:
            raise EOFError
        word, _, words = line.partition(" words=")
        state = dict(pair.split("=") for pair in word.split(" ")[1:])
        state["words"] = words
        return state

    def until(self, phase, **wanted):
        """Read states until one has the phase, and check the rest of it."""
        while True:
            state = self.state()
            if state["phase"] == phase:
                break
        for key, value in wanted.items():
            assert state.get(key) == str(value), (key, value, state)
        return state

    def silent(self, seconds=0.3):
        self.peer.settimeout(seconds)
        try:
            line = self.peer.recv(4096)
        except (TimeoutError, socket.timeout):
            return True
        finally:
            self.peer.settimeout(PATIENCE)
        raise AssertionError(line)

    def close(self):
        if self.peer:
            self.peer.close()
        self.listener.close()


class Orders(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.log = self.folder / "termination"
        self.out = self.folder / "out"
        self.out.touch()
        self.agent = Agent(self.folder)
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.agent.close()
        self.temporary.cleanup()

    def run_exec(self, script, *flags, stderr=subprocess.DEVNULL, **environment):
        """Run the script under exec; its stdout is self.out."""
        with open(self.out, "ab") as out:
            process = subprocess.Popen(
                [*EXEC, "--termination-log", str(self.log), *flags, "--", "sh", "-c", script], stdout=out,
                stderr=stderr, env={**os.environ, "HOLDFAST_AGENT_SOCKET": str(self.folder / "agent.sock"),
                                                "OUT": str(self.folder), **environment})
        self.processes.append(process)
        return process

    def wait_for(self, question):
        end = time.monotonic() + PATIENCE
        while not question():
            self.assertLess(time.monotonic(), end)
            PAUSE.wait(0.02)

    def written_pid(self, name):
        """Waits until a script has written its process ID to a file, and returns it."""
        path = self.folder / name
        self.wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
        return int(path.read_text())

    def lines(self):
        return self.out.read_text().splitlines()

    def start(self, script, *flags, first="", generation=1, **environment):
        process = self.run_exec(script, *flags, **environment)
        self.agent.accept()
        self.agent.until("waiting")
        self.agent.send(f"target generation={generation} attempt=0 wait=60 grace=30 "
                        f"first_generation=1 first_attempt=0{first}")
        self.agent.until("running", generation=generation, attempt=0, ordinal=1)
        return process

    # --- stay and restart

    def test_restarts_after_a_failure(self):
        process = self.start('echo "$HOLDFAST_GENERATION/$HOLDFAST_ATTEMPT $PET_RDZV_ID $MASTER_ADDR"; '
                             'echo "bad luck" >&2; [ "$HOLDFAST_GENERATION" = 2 ] || exit 7',
                             PET_RDZV_ID="job", MASTER_ADDR="master-0")
        state = self.agent.until("ended", generation=1, attempt=0, ordinal=1, code=7)
        self.assertEqual(state["words"], "exit code 7 bad luck")
        self.assertTrue(self.agent.silent())
        self.assertIsNone(process.poll())
        self.agent.target(2, hold=1, rendezvous=2)
        self.agent.until("down", generation=2, attempt=0, ordinal=1)
        self.assertTrue(self.agent.silent())
        self.assertEqual(self.lines(), ["1/0 job master-0"])
        self.agent.target(2, rendezvous=2)
        self.agent.until("running", generation=2, attempt=0, ordinal=2)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.lines(), ["1/0 job master-0", "2/0 job-2 master-0"])
        # The termination message of the failed process must not be that of the container.
        self.assertFalse(self.log.exists() and self.log.read_text())

    def test_restarts_leave_nothing_open(self):
        read, write = os.pipe()  # exec opens a pipe once more, to write without waiting
        self.addCleanup(os.close, read)
        process = self.start('echo "$HOLDFAST_ATTEMPT" >&2; exec sleep 100', stderr=write)
        os.close(write)
        self.assertEqual(os.read(read, 100), b"0\n")

        def count():
            return len(os.listdir(f"/proc/{process.pid}/fd")), len(os.listdir(f"/proc/{process.pid}/task"))

        before = count()
        for attempt in range(1, 6):
            self.agent.target(1, attempt, grace=30)
            while self.agent.until("running")["ordinal"] != str(attempt + 1):
                continue
            self.assertEqual(os.read(read, 100), b"%d\n" % attempt)
        self.assertEqual(count(), before)

    def test_a_rank_restarts_alone(self):
        process = self.start('echo "$HOLDFAST_ATTEMPT $PET_RDZV_ID"; [ "$HOLDFAST_ATTEMPT" = 2 ] || exit 9', PET_RDZV_ID="x")
        for attempt in (1, 2):
            self.agent.until("ended", attempt=attempt - 1, code=9)
            self.agent.target(1, attempt)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.lines(), ["0 x", "1 x", "2 x"])

    def test_without_an_order_the_code_of_the_process_stands(self):
        process = self.start("echo first >&2; exit 7")
        self.agent.until("ended")
        self.agent.target(1, wait=1)
        self.assertEqual(process.wait(PATIENCE), 7)
        self.assertEqual(self.log.read_text(), "exit code 7\nfirst\n")

    def test_a_signal_of_the_process_is_told(self):
        process = self.start('kill -9 $$')
        self.agent.until("ended", code=137, signal=9)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 137)

    def test_sigterm_at_the_barrier_ends_with_the_code_of_the_process(self):
        process = self.start("echo first >&2; exit 7")
        self.agent.until("ended", code=7)
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 7)
        self.assertEqual(self.log.read_text(), "exit code 7\nfirst\n")

    def test_sigterm_at_the_barrier_after_an_ordered_stop(self):
        process = self.start("sleep 100")
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 143)

    def test_a_cause_is_told(self):
        self.start('echo "RuntimeError: CUDA error: uncorrectable ECC error encountered" >&2; exit 1')
        state = self.agent.until("ended", code=220, cause="device-fatal")
        self.assertRegex(state["words"], "^exit code 1, given as 220 .device-fatal.: .*ECC")

    def test_code_zero_ends_the_container(self):
        process = self.start("exit 0")
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_a_job_without_restarts_in_place_ends_at_once(self):
        process = self.run_exec("sleep 0.3; exit 3")
        self.agent.accept()
        self.agent.send("target")
        self.agent.until("running")
        self.assertEqual(process.wait(PATIENCE), 3)

    def fail_without_agent(self, wait):
        """The agent's socket goes, and then CMD ends with code 3."""
        os.mkfifo(self.folder / "fifo")
        process = self.start('read -r x <"$OUT/fifo"; exit 3')
        self.agent.target(1, wait=wait)
        self.agent.close()
        os.unlink(self.agent.path)
        with open(self.folder / "fifo", "w", encoding="ascii") as fifo:
            fifo.write("x\n")
        return process

    def test_an_agent_that_does_not_come_back(self):
        process = self.fail_without_agent(wait=1)
        self.assertEqual(process.wait(PATIENCE), 3)

    def test_an_agent_that_comes_back_after_the_failure(self):
        process = self.fail_without_agent(wait=60)
        PAUSE.wait(1)
        self.assertIsNone(process.poll())
        self.agent.listen()
        self.agent.accept()
        self.agent.until("ended", generation=1, ordinal=1, code=3)
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)
        self.agent.target(2)
        self.agent.until("running", generation=2, ordinal=2)

    def test_an_exec_below_another_one_takes_no_orders(self):
        self.start('$EXEC -- sh -c "echo up; exec sleep 100"', EXEC=" ".join(EXEC))
        self.wait_for(lambda: self.lines() == ["up"])
        self.agent.listener.settimeout(1.5)
        self.assertRaises((TimeoutError, socket.timeout), self.agent.listener.accept)
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)

    # --- stop

    def test_stops_all_descendants_before_down(self):
        # CMD ends by SIGTERM; a process of another session ignores the signal.
        process = self.start('setsid sh -c \'trap "" TERM; echo $$ >"$OUT/deaf"; while :; do sleep 1; done\' & '
                             'echo $$ >"$OUT/cmd"; wait')
        pids = [self.written_pid("deaf"), self.written_pid("cmd")]
        self.agent.target(2, hold=1, grace=30)
        self.agent.until("down", generation=2, ordinal=1)
        for pid in pids:
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)

    def test_the_grace_ends_with_sigkill(self):
        self.start('trap "echo asked" TERM; echo up; while :; do sleep 0.1; done')
        self.wait_for(lambda: self.lines() == ["up"])
        since = time.monotonic()
        self.agent.target(2, hold=1, grace=2)
        self.agent.until("down", generation=2)
        self.assertGreaterEqual(time.monotonic() - since, 2)
        self.assertEqual(self.lines(), ["up", "asked"])

    def test_a_process_that_ends_well_after_the_order_restarts(self):
        self.start('trap "exit 0" TERM; echo up; while :; do sleep 0.1; done')
        self.wait_for(lambda: self.lines() == ["up"])
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)
        self.agent.target(2)
        self.agent.until("running", generation=2, ordinal=2)

    def test_old_and_repeated_targets_change_nothing(self):
        process = self.start('echo up; while :; do sleep 0.1; done', generation=3)
        for _ in range(3):
            self.agent.target(3)
            self.agent.target(2, 9, hold=1)
        self.agent.send("target generation=")
        self.agent.send("target generation=4 attempt=0 attempt=0")
        self.agent.send("x" * 3000)
        self.assertTrue(self.agent.silent(0.5))
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 143)

    def test_the_barrier_has_an_end(self):
        process = self.start("sleep 60")
        self.agent.target(2, hold=1, wait=1)
        self.agent.until("down")
        self.assertEqual(process.wait(PATIENCE), 227)
        self.assertRegex(self.log.read_text(), "exit code 227: no go from the node's agent for 1 s")

    def test_a_barrier_that_is_repeated_stands(self):
        process = self.start("sleep 60")
        self.agent.target(2, hold=1, wait=2)
        self.agent.until("down")
        for _ in range(8):
            PAUSE.wait(0.5)
            self.agent.target(2, hold=1, wait=2)
        self.assertIsNone(process.poll())
        self.agent.target(2)
        self.agent.until("running", generation=2)

    # --- hold

    def test_hold_waits_for_the_go(self):
        process = self.run_exec('echo "$HOLDFAST_GENERATION ${HOLDFAST_HOLD-none}"', HOLDFAST_HOLD="1")
        self.agent.accept()
        self.agent.until("waiting")
        self.assertTrue(self.agent.silent(1.5))
        self.agent.target(2, hold=1, first_generation=2, first_attempt=0)
        self.agent.until("waiting", generation=2, attempt=0)
        self.assertTrue(self.agent.silent())
        self.assertEqual(self.lines(), [])
        self.agent.target(2, first_generation=2, first_attempt=0)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.lines(), ["2 none"])

    def test_hold_has_an_end(self):
        process = self.run_exec("echo up", HOLDFAST_HOLD="1")
        self.agent.accept()
        self.agent.target(2, hold=1, wait=1)
        self.assertEqual(process.wait(PATIENCE), 227)
        self.assertEqual(self.lines(), [])

    def test_a_signal_ends_a_rank_that_waits(self):
        process = self.run_exec("echo up", HOLDFAST_HOLD="1")
        self.agent.accept()
        self.agent.until("waiting")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 143)
        self.assertEqual(self.lines(), [])

    def test_an_agent_without_an_answer_delays_no_start(self):
        process = self.run_exec("echo up")
        self.agent.accept()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.lines(), ["up"])

    # --- the agent starts anew

    def test_the_whole_state_comes_again(self):
        process = self.start("exit 7")
        self.agent.until("ended")
        self.agent.close()
        self.agent.listen()
        self.agent.accept()
        self.agent.until("ended", generation=1, attempt=0, ordinal=1, code=7)
        self.agent.target(2, hold=1)
        self.agent.until("down", generation=2)
        self.agent.close()
        self.agent.listen()
        self.agent.accept()
        self.agent.until("down", generation=2, ordinal=1)
        self.agent.target(2)
        self.agent.until("running", generation=2, ordinal=2)
        self.agent.until("ended", generation=2, ordinal=2)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 7)

    # --- save

    def start_ranks(self, script, *flags, **environment):
        (self.folder / "rank.py").write_text(RANK, encoding="ascii")
        return self.start(script.replace("RANK", f'{sys.executable} "$OUT/rank.py" {HELPER}'), *flags, **environment)

    def wait_for_lines(self, *wanted):
        self.wait_for(lambda: set(wanted) <= set(self.lines()))

    def test_a_planned_stop_waits_for_the_save(self):
        self.start_ranks("exec RANK a", SECONDS="1")
        self.wait_for_lines("a up")
        since = time.monotonic()
        for _ in range(3):  # asked again and again, a rank saves once
            self.agent.target(2, hold=1, save=50, grace=30)
        state = self.agent.until("down", generation=2, saved=7)
        self.assertLess(time.monotonic() - since, 40)
        # The rank takes one second for its save.
        self.assertGreaterEqual(int(state["save_ms"]), 900)
        self.assertEqual(self.lines(), ["a up", "a saves", "a saved", "a told to end"])

    def test_a_save_that_is_never_answered_has_an_end(self):
        self.start_ranks("exec RANK a", MUTE="1")
        self.wait_for_lines("a up")
        since = time.monotonic()
        self.agent.target(2, hold=1, save=2, grace=30)
        self.assertNotIn("save_ms", self.agent.until("down", generation=2))
        self.assertGreaterEqual(time.monotonic() - since, 2)
        self.assertEqual(self.lines(), ["a up", "a saves", "a told to end"])

    def test_a_request_that_is_withdrawn_is_not_waited_for(self):
        self.start_ranks("exec RANK a", MUTE="1")
        self.wait_for_lines("a up")
        self.agent.target(2, hold=1, save=600, grace=30)
        self.wait_for_lines("a up", "a saves")
        self.agent.target(3, hold=1, grace=30)
        self.assertNotIn("save_ms", self.agent.until("down", generation=3))
        self.assertEqual(self.lines(), ["a up", "a saves", "a told to end"])

    def test_without_ranks_that_save_a_stop_does_not_wait(self):
        self.start('trap "exit 1" TERM; echo up; while :; do sleep 0.1; done')
        self.wait_for_lines("up")
        since = time.monotonic()
        self.agent.target(2, hold=1, save=50, grace=30)
        self.agent.until("down", generation=2)
        self.assertLess(time.monotonic() - since, 40)

    def test_ranks_below_two_execs_save(self):
        self.start_ranks("exec $EXEC -- RANK a", EXEC=" ".join(EXEC))
        self.wait_for_lines("a up")
        self.agent.target(2, hold=1, save=50, grace=30)
        self.agent.until("down", generation=2, saved=7)
        self.assertEqual(self.lines(), ["a up", "a saves", "a saved", "a told to end"])

    def test_the_socket_of_another_host_counts_for_nothing(self):
        # srun and mpirun copy the environment of an exec to other hosts.
        self.start_ranks("exec RANK a", HOLDFAST_REPORT_SOCKET="@none0")
        self.wait_for_lines("a up")
        self.agent.target(2, hold=1, save=50, grace=30)
        self.agent.until("down", generation=2, saved=7)

    def test_a_dead_rank_is_not_waited_for(self):
        # The second rank is killed while it saves; the first rank has saved.
        self.start_ranks('RANK a & SECONDS=100 RANK b & echo $! >"$OUT/b"; wait')
        self.wait_for_lines("a up", "b up")
        since = time.monotonic()
        self.agent.target(2, hold=1, save=80)
        self.wait_for_lines("a saved", "b saves")
        os.kill(self.written_pid("b"), signal.SIGKILL)
        self.agent.until("down", generation=2)
        self.assertLess(time.monotonic() - since, 60)

    def test_sigterm_waits_for_the_save(self):
        process = self.start_ranks("exec RANK a", "--save-grace", "50s", SECONDS="1")
        self.wait_for_lines("a up")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 1)
        self.assertEqual(self.lines(), ["a up", "a saves", "a saved", "a told to end"])

    def test_sigterm_continues_a_stopped_process(self):
        process = self.start('trap "echo told; exit 3" TERM; echo up; kill -STOP $$; while :; do sleep 0.1; done')
        self.wait_for_lines("up")
        PAUSE.wait(0.3)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 3)

    def test_a_second_sigterm_does_not_wait(self):
        process = self.start_ranks("exec RANK a", HOLDFAST_SAVE_SECONDS="50", MUTE="1")
        self.wait_for_lines("a up")
        process.terminate()
        self.wait_for_lines("a saves")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 1)
        self.assertEqual(self.lines(), ["a up", "a saves", "a told to end"])

    def test_without_a_save_time_sigterm_is_passed_on(self):
        process = self.start_ranks("exec RANK a")
        self.wait_for_lines("a up")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 1)
        self.assertEqual(self.lines(), ["a up", "a told to end"])

    def test_a_signal_asks_for_the_save(self):
        process = self.start('trap "echo saves; exit 0" USR1; trap "echo told" TERM; echo up; while :; do sleep 0.1; done',
                             "--save-signal", "USR1", "--save-grace", "50s")
        self.wait_for_lines("up")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(self.lines(), ["up", "saves"])

    # --- steps

    REPORTS = ("import threading; from holdfast_report import report, saved; pause = threading.Event(); report(1); "
               "pause.wait(1); report(41); saved(40); pause.wait(SECONDS)")

    def start_reports(self, seconds):
        return self.start(f"exec python3 -c \"{self.REPORTS.replace('SECONDS', str(seconds))}\"", PYTHONPATH=HELPER)

    def test_steps_and_saves_are_told_while_the_process_runs(self):
        self.start_reports(100)
        self.agent.until("running", step=1)
        self.agent.until("running", ordinal=1, step=41, saved=40)
        # A sign of life is sent every five seconds, and the state only if it has changed.
        self.assertTrue(self.agent.silent(7))

    def test_the_last_step_is_told_before_the_end(self):
        process = self.start_reports(0)
        self.agent.until("running", step=1)
        self.agent.until("running", ordinal=1, step=41, saved=40)
        self.assertRaises(EOFError, self.agent.state)
        self.assertEqual(process.wait(PATIENCE), 0)

    # --- fence

    def test_a_fence_wins_at_the_barrier(self):
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        contact = self.folder / "contact"

        def renew():
            now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
            new = self.folder / "contact.new"
            new.write_text(f"holdfast-contact/1 boot={boot} at_ms={now}\n", encoding="ascii")
            new.rename(contact)

        renew()
        process = self.start("exit 7", "--self-fence", "5s")
        self.agent.until("ended")
        renew()
        self.agent.target(2, hold=1)
        self.agent.until("down")
        self.assertEqual(process.wait(PATIENCE), 226)
        self.assertRegex(self.log.read_text(), "^exit code 226: no contact with the control plane")

    # --- cost

    @unittest.skipUnless(EXEC[-1].endswith("holdfast-exec"), "the program that needs the C library alone")
    def test_memory_and_processor(self):
        process = self.start("sleep 60")
        with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as rollup:
            text = rollup.read()
        if "asan" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8"):
            self.skipTest("a build with sanitizers")
        resident = int(next(line for line in text.splitlines() if line.startswith("Rss:")).split()[1])
        self.assertLess(resident, 2048, "KiB")

        def ticks():
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before, seconds = ticks(), 12
        PAUSE.wait(seconds)
        # 0.1 % of a core would be 1.2 ticks of 10 ms.
        self.assertLessEqual(ticks() - before, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
