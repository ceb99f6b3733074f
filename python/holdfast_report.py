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

Costs some tens of microseconds, never waits and never fails: without anybody who listens nothing
happens, and what is no number is left out.  own_ms, the time before this rank waits for the others,
is what stragglers are found by; leave it out where it cannot be told apart.  Several processes of a
pod are told apart by rank: say it where none of RANK, OMPI_COMM_WORLD_RANK and PMI_RANK does.

loss must be a number that is on the host already.  A tensor on a GPU is made one in here, which waits for all that the
GPU has to do, for ever where it hangs: leave loss out, or give what you have anyway (the .item() of the line you log).
"""
import os
import re
import socket

_agent = os.environ.get("HOLDFAST_AGENT_SOCKET", "/run/holdfast/agent.sock")
_path, _agent = ("\0" + path[1:] if path.startswith("@") else path for path in (
    os.environ.get("HOLDFAST_REPORT_SOCKET") or _agent, _agent))  # the first is that of holdfast exec, around this process
_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
_socket.setblocking(False)


def _env(*names):
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _below(limit, value):
    if not 0 <= int(value) < limit:
        raise ValueError(value)
    return int(value)


def _word(value):
    text = re.sub(r"[^A-Za-z0-9._-]", "-", str(value))[:32]
    if not text:
        raise ValueError(value)
    return text


def _pair(key, value, form):
    try:
        return "" if value is None else f" {key}={form(value)}"
    except Exception:  # one value that has no sense: the others count
        return ""


def report(step, own_ms=None, wait_ms=None, *, total=None, loss=None, rank=None, group=None,
           phase=None, attempt=None):
    """step: done, from 1. phase "other" for checkpoints and evaluation, which are not judged."""
    pairs = [("step", step, lambda v: _below(10**18, v)),
             ("total", total, lambda v: _below(10**18, v)),
             ("rank", _env("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if rank is None else rank,
              lambda v: _below(20000, v)),
             ("group", group, _word),
             ("phase", phase, lambda v: "training" if v == "training" else "other"),
             ("loss", loss, lambda v: f"{float(v):.6g}"),
             ("own_us", own_ms, lambda v: _below(10**15, 1000 * v)),
             ("wait_us", wait_ms, lambda v: _below(10**15, 1000 * v)),
             ("attempt", _env("TORCHELASTIC_RESTART_COUNT") if attempt is None else attempt,
              lambda v: _below(10**18, v))]
    try:
        said = ("holdfast/1" + "".join(_pair(*pair) for pair in pairs)).encode()
        try:
            _socket.sendto(said, _path)
        except (ConnectionRefusedError, FileNotFoundError):  # a launcher's environment, on another host than it
            _socket.sendto(said, _agent)
    except Exception:
        pass  # nobody listens, or has no room: training goes on
