#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""completion_test.py HOLDFAST: the completion scripts in real shells, as a person types, in a pseudo-terminal.

The test names a shell that is not installed, and skips it."""

import os
import pty
import re
import select
import shutil
import signal
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 30  # seconds for one answer; a sanitized program starts slowly
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07|\x1b\([A-Z0-9]|[\x00\x07\r]")


class Shell:
    def __init__(self, argv, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(shutil.which(argv[0]), argv, env)
        self.text = ""

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self, pattern):
        """Reads from the shell until the text since the last wait matches the pattern."""
        end = time.monotonic() + LIMIT
        while not re.search(pattern, CONTROL.sub("", self.text)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {pattern!r} in {CONTROL.sub('', self.text)!r}")
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        self.text = ""

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def try_shell(name, argv, env, setup):
    """Types each line and a tab, and waits for the line that the shell completes."""
    shell = Shell(argv, env)
    try:
        shell.send(setup + "\n")
        shell.send("echo rea''dy\n")
        shell.wait("ready")
        for typed, wanted in (
            ("holdfast compl\t", r"completion "),
            ("holdfast manif\t", r"manifests "),
            ("holdfast get --kubec\t", r"--kubeconfig "),
            ("holdfast get --output=js\t", r"--output=json"),
            ("holdfast why my-ru\t", r"my-run "),
            ("holdfast why @lat\t", r"@latest "),
            ("holdfast why nod\t", r"node/"),
            ("holdfast lint some-fi\t", r"some-file\.yaml"),
        ):
            shell.send(typed)
            shell.wait(wanted)
            shell.send("\x15")
            shell.send("echo ne''xt\n")
            shell.wait("next")
        print(f"{name}: completes verbs, flags, values, kept runs and files")
    finally:
        shell.close()


def keep_run(folder):
    """Makes a kept run, so that the shells have a name to complete."""
    with open(os.path.join(folder, "my-run.py"), "w") as file:
        file.write("print('hello')\n")
    if os.spawnvpe(os.P_WAIT, PROGRAM, [PROGRAM, "run", "--no-logs", "my-run.py"], os.environ) != 0:
        sys.exit("the run has failed")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("bin")
        os.symlink(PROGRAM, "bin/holdfast")
        open("some-file.yaml", "w").close()
        os.environ.update(HOLDFAST_DIR=folder + "/state", HOME=folder, TERM="xterm", LC_ALL="C.UTF-8",
                          PATH=folder + "/bin:" + os.environ["PATH"], XDG_CONFIG_HOME=folder, PS1="$ ",
                          XDG_DATA_HOME=folder)
        os.environ.pop("KUBECONFIG", None)
        keep_run(folder)
        shells = {
            "bash": (["bash", "--norc", "--noprofile", "-i"],
                     "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; "
                     "source <(holdfast completion bash)"),
            "zsh": (["zsh", "-f", "-i"],
                    "unsetopt zle_bracketed_paste prompt_sp; autoload -U compinit; compinit -u -D; "
                    "source <(holdfast completion zsh)"),
            "fish": (["fish", "--no-config", "--private"], "holdfast completion fish | source"),
        }
        for name, (argv, setup) in shells.items():
            if shutil.which(name) is None:
                print(f"{name}: is not installed, and was not tried")
                continue
            try_shell(name, argv, dict(os.environ), setup)


main()
