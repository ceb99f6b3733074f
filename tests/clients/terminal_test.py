#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""terminal_test.py HOLDFAST: holdfast run on a pseudo-terminal that it shares with a shell: all output arrives, the
terminal is left as it was, and job control works."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 60  # seconds for one thing to appear; a sanitized program starts slowly
LINES = 3000


class Terminal:
    def __init__(self, env, *words, columns=100, rows=24, nonblocking=False):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if nonblocking:  # as another program on this terminal may have done
                fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)
            os.execvpe(words[0], words, env)
        self.resize(columns, rows)
        self.text = ""

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """Reads once. False: nothing came, or the program has closed the terminal."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self.fd, 4096)
        except OSError:
            return False
        self.text += part.decode(errors="replace")
        return bool(part)

    def wait(self, pattern):
        """Reads until the text after the last match has the pattern."""
        end = time.monotonic() + LIMIT
        while True:
            found = re.search(pattern, self.text, re.M)
            if found:
                self.text = self.text[found.end():]
                return found
            if time.monotonic() > end or not self.read(end - time.monotonic()):
                raise AssertionError(f"no {pattern!r} in {self.text[-2000:]!r}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """Reads to the end. Returns the text and the exit code."""
        while self.read(LIMIT):
            pass
        os.kill(self.pid, signal.SIGHUP)  # no effect on a program that has ended
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.text, code


def check_all_lines(text, code, rank):
    numbers = re.findall(rf"{rank} \| line (\d+)\r", text)
    assert numbers == [str(i) for i in range(LINES)], f"{rank}: {len(numbers)} of {LINES} lines"
    assert "is lost" not in text and code == 0, (code, text[-500:])


def a_burst_arrives(env):
    text, code = Terminal(env, PROGRAM, "run", "--nproc", "2", "burst.py").end()
    check_all_lines(text, code, "master-0")
    check_all_lines(text, code, "worker-0")


def a_burst_arrives_if_another_program_made_the_terminal_nonblocking(env):
    terminal = Terminal(env, PROGRAM, "run", "burst.py", nonblocking=True)
    check_all_lines(*terminal.end(), "master-0")


def the_next_program_can_read(env):
    shell = Terminal(env, "sh", "-c", f"'{PROGRAM}' run blank.py; echo next; read word; echo \"<$word>\"")
    shell.wait("next")
    shell.press("hello\n")
    shell.wait("<hello>")
    assert shell.end()[1] == 0


def a_job_in_the_background_runs(env):
    shell = Terminal(env, "bash", "--norc", "-i")
    shell.press(f"'{PROGRAM}' run ready.py & wait $!; echo code $?\n")
    shell.wait(r"master-0 \| ready")
    shell.wait(r"^code 0")
    shell.press("exit\n")
    shell.end()


def ctrl_z_leaves_the_terminal_to_the_shell(env, command, shown):
    shell = Terminal(env, *command)
    shell.press(f"'{PROGRAM}' run --no-logs wait.py\n")
    shell.wait("q stop")
    shell.press("\x1a")
    shell.wait("(?i)stopped")
    shell.press("stty -a | tr ' ' '\\n' | grep -E '^-?(echo|icanon);?$' | tr '\\n' ,; echo\n")
    shell.wait(shown)
    shell.press("fg\n")
    shell.wait("run --no-logs wait.py\r\n")
    for _ in range(4):  # keys of the first moment after fg are not part of this test
        shell.wait("q stop")
    shell.press("q")
    shell.wait("logs are kept")
    shell.wait(r"[$#] $")
    shell.press("exit\n")
    shell.end()


def a_narrower_terminal_has_one_block(env):
    terminal = Terminal(env, PROGRAM, "run", "--no-logs", "wait.py")
    terminal.wait("q stop")
    terminal.resize(40, 24)
    terminal.wait(" gen 1 ")
    terminal.wait(" gen 1 ")
    # tmux copies into its history what this sequence erases from the first row of the screen on.
    assert "A\x1b[J" not in terminal.text, terminal.text[-300:]
    terminal.press("q")
    assert terminal.end()[1] == 130


def main():
    with tempfile.TemporaryDirectory(prefix="hf-terminal-") as base:
        os.chdir(base)
        pathlib.Path("burst.py").write_text(f"for i in range({LINES}): print('line', i)\n")
        pathlib.Path("blank.py").write_text("print('a')\n")
        pathlib.Path("ready.py").write_text("print('ready')\n")
        pathlib.Path("wait.py").write_text("import time\ntime.sleep(600)\n")
        env = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "HOLDFAST_DIR": f"{base}/state", "PS1": "$ "}
        env.pop("NO_COLOR", None)
        a_burst_arrives(env)
        a_burst_arrives_if_another_program_made_the_terminal_nonblocking(env)
        the_next_program_can_read(env)
        a_job_in_the_background_runs(env)
        ctrl_z_leaves_the_terminal_to_the_shell(env, ["bash", "--norc", "-i"], "icanon,echo,")
        ctrl_z_leaves_the_terminal_to_the_shell(env, ["sh", "-i"], "icanon,echo,")
        a_narrower_terminal_has_one_block(env)
    print("ok")


main()
