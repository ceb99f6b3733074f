# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Report the steps of a Hugging Face Trainer to Holdfast.

    from holdfast_report.transformers import HoldfastCallback

    trainer = Trainer(model=model, args=arguments, callbacks=[HoldfastCallback()], ...)

Each rank reports every optimizer step, with max_steps as the total. The loss is the one that the Trainer logs,
so it changes every logging_steps steps. Evaluation and checkpoints are reported as phase "other".
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from . import report

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("holdfast_report.transformers needs Hugging Face Transformers with PyTorch: "
                      f"pip install 'transformers[torch]' ({error})") from error

__all__ = ["HoldfastCallback"]


class HoldfastCallback(TrainerCallback):
    """Reports each optimizer step of a Trainer.

    The Trainer's own callback runs before this one and sets control.should_evaluate and control.should_save.
    The Trainer clears each flag before it calls on_evaluate or on_save. So the flags tell whether an evaluation or
    a checkpoint comes next.
    """

    def __init__(self) -> None:
        self._loss: Optional[float] = None
        self._is_training = False

    def _report(self, args: Any, state: Any, control: Any) -> None:
        if not self._is_training or state.global_step < 1:
            return
        is_other = control.should_evaluate or control.should_save
        report(state.global_step, total=state.max_steps, loss=self._loss,
               rank=args.process_index if args.world_size > 1 else None,
               phase="other" if is_other else None)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._loss = None
        self._is_training = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # The agent takes 60 reports a second from a process, so it may have dropped the last one.
        self._report(args, state, control)
        self._is_training = False

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if control.should_evaluate or control.should_save:
            self._report(args, state, control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None,
               **kwargs: Any) -> None:
        if logs and "loss" in logs:
            self._loss = logs["loss"]
            self._report(args, state, control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report(args, state, control)
