# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Report the steps of a PyTorch optimizer to Holdfast, without a change in the training loop.

    from holdfast_report.torch import watch

    optimizer = torch.optim.AdamW(model.parameters())
    watch(optimizer, total=steps)

Each call of optimizer.step() is one step. watch() also takes the optimizer of Accelerate.
"""

from __future__ import annotations

import contextlib
import functools
import time
import types
from typing import Any, Callable, Iterator, List, Optional

from . import report

try:
    import torch
    import torch.distributed
except ImportError as error:
    raise ImportError(f"holdfast_report.torch needs PyTorch: pip install torch ({error})") from error

__all__ = ["Watch", "watch"]


def _find_rank() -> Optional[int]:
    """Return the rank in torch.distributed; None without a process group: report() then reads the environment."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return None


def _find_real_optimizer(optimizer: Any) -> Any:
    """Return the optimizer inside Accelerate's, whose step() does nothing while gradients are accumulated."""
    inner = getattr(optimizer, "optimizer", None)
    kind = torch.optim.Optimizer
    return inner if isinstance(optimizer, kind) and isinstance(inner, kind) else optimizer


class Watch:
    """Reports the steps of one optimizer; watch() makes it.

    loss    set it to a number in the memory of the host: the next reports contain it
    step    the number of steps that are done
    """

    def __init__(self, total: Optional[int], done: int) -> None:
        self.loss: Optional[float] = None
        self.step = done
        self._total = total
        self._own_ms: Optional[float] = None
        self._wait_ms: Optional[float] = None
        # Times of time.monotonic(); None if this step has no such time yet, or the time would include other work.
        self._gradients_ready: Optional[float] = None
        self._previous_begin: Optional[float] = None
        self._undo: List[Callable[[], None]] = []

    def _report(self, phase: Optional[str] = None) -> None:
        if self.step > 0:
            report(self.step, self._own_ms, self._wait_ms, total=self._total, loss=self.loss, rank=_find_rank(),
                   phase=phase)

    def _on_gradients(self, gradients: Any) -> None:
        self._gradients_ready = time.monotonic()

    def _before_step(self, *args: Any) -> None:
        """Measure own and wait time. DistributedDataParallel has waited for other ranks before optimizer.step() begins."""
        begin, ready, previous = time.monotonic(), self._gradients_ready, self._previous_begin
        self._own_ms = self._wait_ms = None
        if ready is not None and previous is not None:
            self._own_ms = 1000 * (ready - previous)
            self._wait_ms = 1000 * (begin - ready)
        self._previous_begin = begin

    def _after_step(self, *args: Any) -> None:
        self.step += 1
        self._gradients_ready = None
        self._report()

    @contextlib.contextmanager
    def other(self) -> Iterator[None]:
        """Report phase "other" inside a with block: for a checkpoint, an evaluation or a compilation."""
        self._own_ms = self._wait_ms = None
        self._report("other")
        try:
            yield
        finally:
            self._previous_begin = None  # the next step's own time would contain the block
            self._report()

    def remove(self) -> None:
        """Stop the reports: remove the hooks from the optimizer and from the model."""
        while self._undo:
            self._undo.pop()()

    def _hook_step(self, optimizer: Any) -> None:
        if hasattr(optimizer, "register_step_post_hook"):
            self._undo.append(optimizer.register_step_pre_hook(self._before_step).remove)
            self._undo.append(optimizer.register_step_post_hook(self._after_step).remove)
            return
        # PyTorch 1 has no such hooks. Its schedulers wrap step() too, and need a bound method for it.
        step = optimizer.step

        @functools.wraps(step)
        def step_and_report(bound: Any, *args: Any, **kwargs: Any) -> Any:
            self._before_step()
            result = step(*args, **kwargs)
            self._after_step()
            return result

        optimizer.step = types.MethodType(step_and_report, optimizer)
        self._undo.append(lambda: setattr(optimizer, "step", step))

    def _hook_gradients(self, model: Any) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        # The host runs ahead of a GPU, so a clock on the host cannot measure the work of the GPU.
        if all(p.device.type == "cpu" for p in parameters) and hasattr(torch.autograd.graph,
                                                                      "register_multi_grad_hook"):
            handle = torch.autograd.graph.register_multi_grad_hook(parameters, self._on_gradients)
            self._undo.append(handle.remove)


def watch(optimizer: Any, total: Optional[int] = None, *, done: int = 0, model: Any = None) -> Watch:
    """Report each step of the optimizer from now on.

    total  how many steps there will be
    done   how many steps are done already: the number in the checkpoint that the program goes on from
    model  if given, a step is reported with own_ms (from the begin of the last optimizer.step() until the
           gradients of this rank are there) and wait_ms (from then until optimizer.step() begins), by which
           Holdfast finds slow ranks. This needs PyTorch 2 and parameters on the CPU; on a GPU the two values
           are left out. If you accumulate gradients, use no_sync(): the wait of a backward() counts as own
           time unless it is the last one before optimizer.step()

    Steps in which a gradient scaler finds infinite gradients do not count: the scaler skips optimizer.step().
    """
    made = Watch(total, done)
    made._hook_step(_find_real_optimizer(optimizer))
    if model is not None:
        made._hook_gradients(model)
    return made
