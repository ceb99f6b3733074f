# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""Report the steps of a Lightning Trainer to Holdfast, for programs that import `pytorch_lightning`.

    from holdfast_report.pytorch_lightning import HoldfastCallback

    trainer = Trainer(callbacks=[HoldfastCallback()], ...)

Each rank reports every optimizer step. The loss is what training_step returns: of every step if it is in the
memory of the host, else of the steps that a logger reads as well (log_every_n_steps). Validation and checkpoints
are reported as phase "other". For programs that import `lightning`, see holdfast_report.lightning.
"""

from __future__ import annotations

from ._lightning import Hooks

try:
    from pytorch_lightning import Callback
except ImportError as error:
    raise ImportError(f"holdfast_report.pytorch_lightning needs the package pytorch_lightning: pip install pytorch-lightning ({error}). "
                      "Programs that import lightning use holdfast_report.lightning") from error

__all__ = ["HoldfastCallback"]


class HoldfastCallback(Hooks, Callback):
    """Reports each optimizer step of a Trainer."""
