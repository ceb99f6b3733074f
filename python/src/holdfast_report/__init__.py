# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Report the steps of a training process to Holdfast.

    from holdfast_report import report

    for step in range(1, steps + 1):
        train_one_step()
        report(step, total=steps)

`holdfast run` then shows the step, the rate and the loss of each rank, and Holdfast finds ranks that hang.

This file needs the standard library alone. Copied into an image as holdfast_report.py, it works without the
package. The package adds callbacks for Hugging Face Trainer, Lightning and optimizers of PyTorch.

report() sends one datagram to a Unix socket, which takes some tens of microseconds. It never blocks and never
raises: if no socket is there, or the socket is full, the report is lost and training goes on.
"""

from __future__ import annotations

import os
import re
import socket
from typing import Any, Callable, Optional, SupportsFloat, SupportsInt, Union

__all__ = ["report"]

_RANKS_MAX = 20000
_NUMBER_MAX = 10**18
_MICROSECONDS_MAX = 10**15
_GROUP_CHARACTERS_MAX = 32


def _find_address(path: str) -> str:
    """An abstract socket is written with "@" in the environment, and starts with a NUL in the kernel."""
    return "\0" + path[1:] if path.startswith("@") else path


# The socket of the node's agent, or of `holdfast run`.
_agent = _find_address(os.environ.get("HOLDFAST_AGENT_SOCKET", "/run/holdfast/agent.sock"))
# The socket of the `holdfast exec` that started this process, if one did.
_path = _find_address(os.environ.get("HOLDFAST_REPORT_SOCKET", "")) or _agent
_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
_socket.setblocking(False)


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
    if rank is None:
        found_rank: Any = _read_environment("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    else:
        found_rank = rank
    found_attempt = _read_environment("TORCHELASTIC_RESTART_COUNT") if attempt is None else attempt
    pairs = (
        _format_pair("step", step, lambda v: _format_number(v, _NUMBER_MAX)),
        _format_pair("total", total, lambda v: _format_number(v, _NUMBER_MAX)),
        _format_pair("rank", found_rank, lambda v: _format_number(v, _RANKS_MAX)),
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
