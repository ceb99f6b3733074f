#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The script in examples/pytorch-ddp.yaml, killed at each of its phases.

The ranks of the script run here as processes, without a plane.  The test kills a first run at one point of the
script.  A second run goes on from the files of the first, and must end with the same last line as an undisturbed
run.  Needs /usr/bin/python3 with PyTorch (exit code 77 without).
"""

import os
import socket
import subprocess
import sys
import tempfile

PYTHON = "/usr/bin/python3"
WORLD = 2

# The code ends its rank at the n-th call of a function, before or after the call.
KILLER = """
import os, sys, torch, torch.distributed
def die(module, name, at, after):
    real, calls = getattr(module, name), []
    def wrapped(*args, **kwargs):
        calls.append(1)
        if len(calls) == at and not after:
            os._exit(9)
        result = real(*args, **kwargs)
        if len(calls) == at:
            os._exit(9)
        return result
    setattr(module, name, wrapped)
die(%s)
exec(sys.argv[1])
"""

# A phase of the script, the rank that dies there, the call at which it dies, and the step where the next run begins.
PHASES = [
    ("before anything was saved", 0, "torch, 'save', 1, False", 0),
    ("between writing and renaming the first checkpoint", 0, "os, 'replace', 1, False", 0),
    ("after the first checkpoint", 0, "os, 'replace', 1, True", 25),
    ("a worker, on the way", 1, "torch.distributed, 'all_reduce', 2, False", 25),
    ("before the last checkpoint is there", 0, "os, 'replace', 3, False", 50),
    ("a worker, after the last step", 1, "torch.distributed, 'all_reduce', 3, True", None),
    ("after the last checkpoint", 0, "os, 'replace', 3, True", 60),
    ("at the end, before the process group is destroyed", 0,
     "torch.distributed, 'destroy_process_group', 1, False", 60),
    ("when the checkpoint was removed", 0, "os, 'unlink', 1, True", 0),
]


def script_of(path):
    """Return the block of text behind `args: - |`: all lines that are indented more than the key."""
    lines = open(path, encoding="utf-8").read().split("\n")
    begin = next(i for i, line in enumerate(lines) if line.strip() == "- |") + 1
    depth = len(lines[begin]) - len(lines[begin].lstrip())
    text = []
    for line in lines[begin:]:
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            break
        text.append(line[depth:])
    return "\n".join(text)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run(script, folder, killed=None, where=None):
    """Run all ranks to their end; return the output of rank 0 and the exit codes."""
    ranks = []
    port = free_port()
    for rank in range(WORLD):
        env = dict(os.environ, CHECKPOINTS=folder, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                   RANK=str(rank), WORLD_SIZE=str(WORLD), STEPS="60", STEP_SECONDS="0")
        argv = [PYTHON, "-u", "-c", script]
        if rank == killed:
            argv = [PYTHON, "-u", "-c", KILLER % where, script]
        ranks.append(subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT))
    if killed is not None:
        ranks[killed].communicate(timeout=120)
        for process in ranks:  # as restartScope: Job does
            process.kill()
    outputs = [process.communicate(timeout=120)[0] if not process.stdout.closed else ""
               for process in ranks]
    return outputs[0], [process.returncode for process in ranks]


def last_line(output):
    return next((line for line in output.split("\n") if line.startswith("done:")), output)


def check_phase(script, expected, phase):
    what, who, where, begins = phase
    with tempfile.TemporaryDirectory() as folder:
        _, codes = run(script, folder, who, where)
        if codes[who] != 9:
            return f"{what}: rank {who} was not there (code {codes[who]})"
        output, codes = run(script, folder)
        if codes != [0] * WORLD or last_line(output) != expected:
            return f"{what}: codes {codes}, wanted {expected!r}, got {output!r}"
        if begins is not None and (f"resumed at step {begins}\n" in output) != (begins > 0):
            return f"{what}: wanted to begin at {begins}, got {output!r}"
        if os.listdir(os.path.join(folder, "pytorch-ddp")) not in ([], ["latest.pt.new"]):
            return f"{what}: the checkpoint stays"
    return None


def check_strange_folder(script):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "pytorch-ddp"))
        os.chmod(os.path.join(folder, "pytorch-ddp"), 0o777)
        output, codes = run(script, folder, 0, "os, 'unlink', 99, False")
        if codes[0] != 1:
            return f"a folder that any user may write was accepted: {codes}, {output!r}"
    return None


def main():
    if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("no PyTorch")
        return 77
    script = script_of(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        output, codes = run(script, folder)
    expected = last_line(output)
    failures = [] if codes == [0] * WORLD else [f"undisturbed: codes {codes}, {output}"]
    failures += [check_phase(script, expected, phase) for phase in PHASES]
    failures.append(check_strange_folder(script))
    failures = [failure for failure in failures if failure]
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print(f"{len(PHASES) + 2} checks, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
