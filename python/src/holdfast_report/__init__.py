# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Report the steps of a training process to Holdfast.

    from holdfast_report import report

    for step in range(1, steps + 1):
        train_one_step()
        report(step, total=steps)

`holdfast run` then shows the step, the rate and the loss of each rank, and Holdfast finds ranks that hang.

Before a planned end Holdfast asks the ranks to save, if the job allows time for it:

    from holdfast_report import saved, should_save

        if should_save():
            save_checkpoint(step)
            saved(step)

This file needs the standard library alone. Copied into an image as holdfast_report.py, it works without the
package. The package adds callbacks for Hugging Face Trainer, Lightning and optimizers of PyTorch.

report() sends one datagram to a Unix socket, which takes some tens of microseconds. It never blocks and never
raises: if no socket is there, or the socket is full, the report is lost and training goes on.
"""

from __future__ import annotations

import os
import re
import socket
import time
from typing import Any, Callable, Optional, SupportsFloat, SupportsInt, Union

__all__ = ["report", "saved", "should_save"]

_RANKS_MAX = 20000
_NUMBER_MAX = 10**18
_MICROSECONDS_MAX = 10**15
_GROUP_CHARACTERS_MAX = 32
_REQUEST = b"holdfast/1 save=1"
_REQUESTS_AT_ONCE = 16
# How often should_save() tells `holdfast exec` that this process saves: a report may be lost.
_TELL_EVERY_SECONDS = 5.0


def _find_address(path: str) -> str:
    """Return the address of a path. "@" in front stands for the NUL with which the name of an abstract socket begins."""
    return "\0" + path[1:] if path.startswith("@") else path


# The socket of the node's agent, or of `holdfast run`.
_agent = _find_address(os.environ.get("HOLDFAST_AGENT_SOCKET", "/run/holdfast/agent.sock"))
# The socket of the `holdfast exec` around this process, if there is one; else the agent's.
_path = _find_address(os.environ.get("HOLDFAST_REPORT_SOCKET", "")) or _agent
_socket: socket.socket
_save_asked = False
_tell_at = 0.0


def _open_socket() -> None:
    """Open the socket of this process: a request to save reaches a process only through a socket of its own."""
    global _socket, _save_asked, _tell_at
    if "_socket" in globals():
        _socket.close()  # of the parent process
    _socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    _socket.setblocking(False)
    _save_asked, _tell_at = False, 0.0
    try:
        _socket.bind("")  # the kernel chooses an abstract name
    except Exception:
        pass  # without a name the process can report, and is not asked to save


_open_socket()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_socket)


def _read_environment(*names: str) -> Optional[str]:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _format_number(value: Any, limit: int) -> int:
    number = int(value)
    if not 0 <= number < limit:
        raise ValueError(value)
    return number


def _format_group(value: Any) -> str:
    text = re.sub(r"[^A-Za-z0-9._-]", "-", str(value))[:_GROUP_CHARACTERS_MAX]
    if not text:
        raise ValueError(value)
    return text


def _format_pair(key: str, value: Any, form: Callable[[Any], object]) -> str:
    """Return " key=value", or "" if the value is None or cannot be formatted."""
    try:
        return "" if value is None else f" {key}={form(value)}"
    except Exception:  # a wrong value must not cost the rest of the report
        return ""


def _find_rank(rank: Optional[SupportsInt] = None) -> Any:
    return _read_environment("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if rank is None else rank


def should_save() -> bool:
    """Whether this rank should save now, because its process will end soon. Call it once in each step.

    True from the request on until saved() is called. A call takes a few microseconds. It never blocks and never
    raises. Ranks may see the request in different steps: if all ranks save together, agree first, for example
    with an all-reduce of should_save(). Without `holdfast exec` around the process the result is always False.
    """
    global _save_asked, _tell_at
    try:
        if not os.environ.get("HOLDFAST_REPORT_SOCKET"):
            return False
        now = time.monotonic()
        if now >= _tell_at:
            _tell_at = now + _TELL_EVERY_SECONDS
            rank = _format_pair("rank", _find_rank(), lambda v: _format_number(v, _RANKS_MAX))
            _socket.sendto(f"holdfast/1 can_save=1{rank}".encode(), _path)
        for _ in range(_REQUESTS_AT_ONCE):
            text, sender = _socket.recvfrom(512)
            # Only the `holdfast exec` around this process may ask.
            if text == _REQUEST and (sender.decode() if isinstance(sender, bytes) else sender) == _path:
                _save_asked = True
    except Exception:
        pass  # there is no request
    return _save_asked


def _send_patiently(text: bytes) -> None:
    """Send a report, and try again for a fifth of a second if the socket is full: a planned stop may wait for it."""
    for _ in range(20):
        try:
            _socket.sendto(text, _path)
            return
        except BlockingIOError:
            time.sleep(0.01)


def saved(step: SupportsInt, *, rank: Optional[SupportsInt] = None) -> None:
    """Report that this rank has saved its state as of a step: the answer to should_save(), or a regular checkpoint."""
    global _save_asked
    _save_asked = False
    pairs = (
        _format_pair("saved", step, lambda v: _format_number(v, _NUMBER_MAX)),
        _format_pair("rank", _find_rank(rank), lambda v: _format_number(v, _RANKS_MAX)),
    )
    try:
        _send_patiently(("holdfast/1" + "".join(pairs)).encode())
    except Exception:
        pass  # the report is lost; the program must go on


def report(step: SupportsInt, own_ms: Optional[float] = None, wait_ms: Optional[float] = None, *,
           total: Optional[SupportsInt] = None, loss: Optional[SupportsFloat] = None,
           rank: Optional[SupportsInt] = None, group: Optional[str] = None, phase: Optional[str] = None,
           attempt: Union[SupportsInt, str, None] = None) -> None:
    """Report that a step is done. A value that cannot be formatted is left out; the others are sent.

    step     the number of the last step that is done; the first is 1
    total    how many steps there will be
    loss     a number in the memory of the host. If you give a tensor on a GPU, report() waits until the GPU
             has computed it; if the GPU hangs, report() never returns
    own_ms   how long this rank worked on the step before it waited for other ranks, in milliseconds.
             Holdfast finds slow ranks by this value. Leave it out if you cannot measure it without the wait
    wait_ms  how long this rank then waited for other ranks, in milliseconds
    phase    "training" (the default) or "other". Report the last step again with "other" before a checkpoint,
             an evaluation or a compilation, so that Holdfast allows more time for it
    rank     the rank in the whole job; the default is RANK, OMPI_COMM_WORLD_RANK or PMI_RANK of the
             environment. Holdfast needs it if a pod has several training processes
    group    a name; own_ms is compared only between ranks whose group has the same name
    attempt  a number that grows with each start of the process; the default is TORCHELASTIC_RESTART_COUNT
    """
    found_attempt = _read_environment("TORCHELASTIC_RESTART_COUNT") if attempt is None else attempt
    pairs = (
        _format_pair("step", step, lambda v: _format_number(v, _NUMBER_MAX)),
        _format_pair("total", total, lambda v: _format_number(v, _NUMBER_MAX)),
        _format_pair("rank", _find_rank(rank), lambda v: _format_number(v, _RANKS_MAX)),
        _format_pair("group", group, _format_group),
        _format_pair("phase", phase, lambda v: "training" if v == "training" else "other"),
        _format_pair("loss", loss, lambda v: f"{float(v):.6g}"),
        _format_pair("own_us", own_ms, lambda v: _format_number(1000 * v, _MICROSECONDS_MAX)),
        _format_pair("wait_us", wait_ms, lambda v: _format_number(1000 * v, _MICROSECONDS_MAX)),
        _format_pair("attempt", found_attempt, lambda v: _format_number(v, _NUMBER_MAX)),
    )
    try:
        text = ("holdfast/1" + "".join(pairs)).encode()
        try:
            _socket.sendto(text, _path)
        except (ConnectionRefusedError, FileNotFoundError):
            # mpirun and srun copy HOLDFAST_REPORT_SOCKET to other hosts, where it names no socket.
            _socket.sendto(text, _agent)
    except Exception:
        pass  # the report is lost; training must go on
