# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""A training of two ranks for ./dev bench local: train_local.py FOLDER STEPS SPAN [KILL_AT].

Each step takes SPAN seconds and reduces a megabyte of gradients.  Rank 0 saves the step, and a restarted
rank goes on from there.  At step KILL_AT rank 1 kills itself, once.  FOLDER gets a line of each rank
for its start, before any import of PyTorch, and one for its first step: the time, and the step."""

import os
import select
import signal
import sys
import time

folder, steps, span = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
kill_at = int(sys.argv[4]) if len(sys.argv) > 4 else 0


def note(name, text):
    with open(f"{folder}/{name}", "a", encoding="utf-8") as file:
        file.write(text + "\n")


note(f"start-{os.environ['RANK']}", str(time.time()))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
try:
    from holdfast_report import report
except ImportError:
    def report(*_args, **_more):
        pass


def saved_step():
    try:
        with open(f"{folder}/saved", encoding="utf-8") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


dist.init_process_group("gloo")
rank = dist.get_rank()
gradients = torch.ones(1 << 18)
first = saved_step() + 1
for step in range(first, steps + 1):
    end = time.monotonic() + span
    gradients.mul_(0.5)
    dist.all_reduce(gradients)
    if step == first:
        note(f"first-{rank}", f"{time.time()} {step}")
    if rank == 0:
        with open(f"{folder}/saved.new", "w", encoding="utf-8") as file:
            file.write(str(step))
        os.replace(f"{folder}/saved.new", f"{folder}/saved")
    report(step, total=steps)
    if step == kill_at and rank == 1 and not os.path.exists(f"{folder}/killed"):
        note("killed", str(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    select.select([], [], [], max(0.0, end - time.monotonic()))
dist.destroy_process_group()
