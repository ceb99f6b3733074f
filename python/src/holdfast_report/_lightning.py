# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The hooks that report steps from Lightning, shared by the modules lightning and pytorch_lightning.

Each of the two packages accepts only callbacks of its own base class, so each has a module of its own here.
"""

from __future__ import annotations

from typing import Any, Optional

from . import report


def _is_on_host(value: Any) -> bool:
    device = getattr(value, "device", None)
    return device is None or device.type == "cpu"


def _read_loss(value: Any) -> Optional[float]:
    """Return the value as a number, or None if it is no single number."""
    try:
        return float(value)
    except Exception:
        return None


def _estimate_total(trainer: Any) -> Optional[float]:
    """Return how many steps there will be; None if Lightning cannot tell, infinity if nothing limits them."""
    try:
        return float(trainer.estimated_stepping_batches)
    except Exception:  # such as accumulate_grad_batches that differ between epochs
        return None


class Hooks:
    """Reports each optimizer step of a Lightning Trainer."""

    def __init__(self) -> None:
        self._step = 0
        self._total: Optional[float] = None
        self._loss: Optional[float] = None

    def _report(self, trainer: Any, phase: Optional[str] = None) -> None:
        if self._step > 0:
            report(self._step, total=self._total, loss=self._loss,
                   rank=trainer.global_rank if trainer.world_size > 1 else None, phase=phase)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step
        self._total = _estimate_total(trainer)
        self._loss = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self._step:
            return  # gradients are accumulated; the optimizer has not stepped
        self._step = trainer.global_step
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        # Reading a tensor on a GPU waits for the GPU. The loggers wait too, every log_every_n_steps steps.
        is_logged = bool(trainer.loggers) and self._step % trainer.log_every_n_steps == 0
        if _is_on_host(loss) or is_logged:
            self._loss = _read_loss(loss)
        self._report(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._report(trainer, phase="other")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._report(trainer)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        # Lightning has no hook after a checkpoint: the next step ends the phase.
        self._report(trainer, phase="other")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        # The agent takes 60 reports a second from a process, so it may have dropped the last one.
        self._report(trainer)
