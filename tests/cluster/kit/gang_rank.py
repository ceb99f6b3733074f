# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""One rank of a gang that trains with torch over gloo, for part inplace. It runs in a pod, with its files in /data.

Input: RANK and WORLD_SIZE of the operator, HOLDFAST_GENERATION of holdfast exec. /data/plan-RANK-GENERATION has the
words "PHASE ACT": in this phase the rank performs the act (perform). The rank appends a line to /data/log at each phase
and after each step. Rank 0 writes the checkpoint that all ranks resume from.
"""

import os
import select
import signal
import sys
import threading
import time

sys.path.insert(0, "/python")
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
GENERATION = int(os.environ.get("HOLDFAST_GENERATION", "1"))
SAVE_EVERY, STEP_SECONDS = 20, 0.1
CHECKPOINT = "/data/checkpoint"
log = os.open("/data/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
told_to_stop = threading.Event()


def note(phase, step=0):
    os.write(log, f"{time.time():.4f} {RANK} {GENERATION} {phase} {step}\n".encode())


def read_plan():
    """The phase and the act that are planned for this process now."""
    try:
        with open(f"/data/plan-{RANK}-{GENERATION}", encoding="ascii") as f:
            phase, act = f.read().split()
    except FileNotFoundError:
        return None, None
    return phase, act


def perform(act):
    if act == "exit":
        os._exit(3)
    if act == "raise":
        raise RuntimeError("planned by the test")
    if act == "wait":  # until a signal ends the process
        while True:
            signal.pause()
    if act == "exit-soon":  # while the process waits for its peers
        threading.Timer(0.5, os._exit, [3]).start()


def reach(phase, step=0):
    note(phase, step)
    planned, act = read_plan()
    if phase == planned:
        perform(act)


def stop_late(error):
    """The planned act comes after SIGTERM, which the rank got while it was asked to stop."""
    print("lost its peers:", error, flush=True)
    told_to_stop.wait()
    reach("stopping")


def train():
    import torch
    import torch.distributed as dist
    from datetime import timedelta
    from holdfast_report import report, saved, should_save

    torch.set_num_threads(1)
    torch.manual_seed(42)
    os.environ.setdefault("USE_LIBUV", "0")  # Debian's torch has no libuv
    reach("imported")
    reach("rendezvous")
    impatient = read_plan() == ("rendezvous", "time-out")
    dist.init_process_group("gloo", timeout=timedelta(seconds=2 if impatient else 120))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = [None]
    if RANK == 0 and os.path.exists(CHECKPOINT):
        state = [torch.load(CHECKPOINT, weights_only=True)]
    dist.broadcast_object_list(state)
    step = 0
    if state[0]:
        step = state[0]["step"]
        model.load_state_dict(state[0]["model"])
    note("resumed", step)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    truth = torch.linspace(-1, 1, 16)

    def save(phase):
        reach(phase, step)
        if RANK == 0:
            torch.save({"step": step, "model": model.state_dict()}, CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
        note("saved", step)
        saved(step)  # exec may stop the process at once

    while True:
        x = torch.randn(16, 16)
        loss = torch.nn.functional.mse_loss(ddp(x).squeeze(1), torch.sin(x @ truth))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        note("step", step)  # before the report: the log has each step that a record can have
        report(step, loss=loss.item())
        asked = torch.tensor([1 if should_save() else 0])
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)  # all ranks save after the same step
        if asked.item() or step % SAVE_EVERY == 0:
            save("asked" if asked.item() else "saving")
        if read_plan()[0] == "training":
            reach("training", step)
        if read_plan()[0] == "stopping":
            signal.signal(signal.SIGTERM, lambda *_: told_to_stop.set())
        select.select([], [], [], STEP_SECONDS)  # a step takes a while


reach("start")
if os.environ.get("TEST_IDLE"):
    perform("wait")
try:
    train()
except Exception as lost:
    if read_plan()[0] != "stopping":
        raise
    stop_late(lost)
