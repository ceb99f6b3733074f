# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Tell Holdfast how far training is.  One file, no dependencies, copy it into your image.

    from holdfast_report import report
    for step in range(1, steps + 1):
        begun = time.monotonic()
        ...forward and backward without the collective...
        worked = time.monotonic()
        ...the collective, which waits for the slowest rank...
        report(step, 1000 * (worked - begun), 1000 * (time.monotonic() - worked), total=steps)

Costs some ten microseconds, never waits and never fails: without anybody who listens nothing
happens.  own_ms, the time before this rank waits for the others, is what stragglers are found by;
leave it out where it cannot be told apart.
"""
import os
import socket

_path = (os.environ.get("HOLDFAST_REPORT_SOCKET") or  # holdfast exec, around this process
         os.environ.get("HOLDFAST_AGENT_SOCKET", "/run/holdfast/agent.sock"))
_path = "\0" + _path[1:] if _path.startswith("@") else _path
_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
_socket.setblocking(False)


def report(step, own_ms=None, wait_ms=None, *, total=None, loss=None, rank=os.environ.get("RANK"),
           group=None, phase=None):
    """step: done, from 1. phase "other" for checkpoints and evaluation, which are not judged."""
    said = {"step": int(step), "total": total and int(total), "rank": rank, "group": group,
            "phase": phase, "loss": None if loss is None else f"{float(loss):.6g}",
            "own_us": None if own_ms is None else int(1000 * own_ms),
            "wait_us": None if wait_ms is None else int(1000 * wait_ms)}
    text = "holdfast/1" + "".join(f" {k}={v}" for k, v in said.items() if v is not None)
    try:
        _socket.sendto(text.encode(), _path)
    except OSError:
        pass  # nobody listens, or has no room: training goes on
