"""The settings of one training, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from torch import device as Device  # noqa: N812

from dugong.endmodels.costs import ClassWeights, Loss
from dugong.endmodels.predicting import Metric, check_metric
from dugong.exceptions import EndModelError

__all__ = ["Settings", "TrainOptions"]


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
        check_metric(self.metric)
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
