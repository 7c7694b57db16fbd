"""How far a training is: the values that callbacks get, after every epoch and after its checkpoint is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dugong.endmodels.result import Epoch
from dugong.progress import Shown
from dugong.progress import progress_callback as callback_for

__all__ = ["ProgressCallback", "TrainingProgress", "progress_callback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """What is done so far.

    Attributes
    ----------
    epoch : Epoch
        The one that was finished last.
    done, total : int
        Epochs.
    best_epoch : int
        The best so far.
    seed : int
    seconds : float
        Since the start, or since the run was resumed.
    """

    epoch: Epoch
    done: int
    total: int
    best_epoch: int
    seed: int
    seconds: float


ProgressCallback = Callable[[TrainingProgress], None]


def progress_callback(progress: bool | ProgressCallback) -> AbstractContextManager[ProgressCallback]:  # noqa: FBT001
    """The function to call after every epoch: the given one, a bar, or one that does nothing."""
    return callback_for(progress, "Training", "epochs", _show)


def _show(now: TrainingProgress) -> Shown:
    dev = "" if now.epoch.dev_f1 is None else f"  dev F1 {now.epoch.dev_f1:.4f}, best in epoch {now.best_epoch}"
    return Shown(done=now.done, total=now.total, words=f"loss {now.epoch.loss:.4f}{dev}")
