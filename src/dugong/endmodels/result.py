"""What a training is given, what it tells while it runs, and what it returns: the trained network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch import device as Device  # noqa: N812

from dugong.endmodels.costs import ClassWeights, Loss
from dugong.exceptions import EndModelError
from dugong.progress import Shown
from dugong.progress import progress_callback as callback_for

Metric = Literal["f1", "loss"]


class TrainOptions(TypedDict, total=False):
    """The options of `train` that are the same for every seed."""

    loss: Loss
    class_weights: ClassWeights
    weights: ArrayLike | None
    classes: Sequence[int] | None
    dev: tuple[Any, Any] | None
    metric: Metric
    patience: int | None
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    device: str | Device | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The numbers that steer a training."""

    loss: Loss
    metric: Metric
    patience: int | None
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    seed: int
    checkpoint: str | PathLike[str] | None
    has_dev: bool

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise EndModelError(f"metric must be one of {', '.join(get_args(Metric))}; found {self.metric!r}.")
        for name, least in (("epochs", 1), ("batch_size", 1), ("seed", 0), ("patience", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < least):
                raise EndModelError(f"{name} must be a whole number, at least {least}; found {value!r}.")
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise EndModelError(f"learning_rate must be a positive number; found {self.learning_rate!r}.")
        if not (np.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise EndModelError(f"weight_decay must be a number, 0 or more; found {self.weight_decay!r}.")
        if self.patience is not None and not self.has_dev:
            raise EndModelError("patience=... stops early on a dev set; give dev=(data, labels) as well.")


Stopped = Literal["epochs", "patience"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One pass over the training data.

    Attributes
    ----------
    number : int
        From 1.
    loss : float
        Mean training loss while the weights were moving.
    dev_loss, dev_f1 : float or None
        On the dev set, after the epoch; None without one.
    improved : bool
        Whether no earlier epoch was as good on the dev set.
    """

    number: int
    loss: float
    dev_loss: float | None
    dev_f1: float | None
    improved: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Training:
    """A trained network.

    Attributes
    ----------
    model : torch.nn.Module
        A trained copy of the network that was given, with the weights of the best epoch.
    history : tuple of Epoch
    best_epoch : int
        The epoch whose weights were kept: the best on the dev set, else the last.
    stopped : str
        "epochs" if all were run, "patience" if the dev set had stopped improving.
    n_examples, n_left_out : int
        Examples that were learned from, and those without a label or weight.
    seed : int
    """

    model: nn.Module
    history: tuple[Epoch, ...]
    best_epoch: int
    stopped: Stopped
    n_examples: int
    n_left_out: int
    seed: int

    @property
    def best(self) -> Epoch:
        """The epoch whose weights were kept."""
        return self.history[self.best_epoch - 1]

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights of the best epoch by name, as `save_weights` writes them."""
        return MappingProxyType({name: tensor.detach() for name, tensor in self.model.state_dict().items()})

    def __str__(self) -> str:
        lines = ["epoch      loss  dev loss    dev F1"]
        for epoch in self.history:
            values = (epoch.loss, epoch.dev_loss, epoch.dev_f1)
            numbers = "  ".join("       -" if value is None else f"{value:8.4f}" for value in values)
            lines.append(f"{epoch.number:5}  {numbers}{'  *' if epoch.number == self.best_epoch else ''}")
        reason = "the dev set stopped improving" if self.stopped == "patience" else "all epochs were run"
        left_out = f", {self.n_left_out:,} left out" if self.n_left_out else ""
        lines.append(f"weights of epoch {self.best_epoch}; {reason}; {self.n_examples:,} examples{left_out}")
        return "\n".join(lines)

    __repr__ = __str__


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


def goodness(epoch: Epoch, metric: Metric) -> tuple[float, ...]:
    """What makes one epoch better than another; without a dev set, being later."""
    if epoch.dev_loss is None or epoch.dev_f1 is None:
        return (epoch.number,)
    return (epoch.dev_f1, -epoch.dev_loss) if metric == "f1" else (-epoch.dev_loss,)
