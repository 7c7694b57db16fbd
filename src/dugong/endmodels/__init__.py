"""End models: networks and classifiers that learn from probabilistic labels.

The last stage of the pipeline. In: raw data and the probabilities of a label model. Out: a model that needs no
votes. The networks and the trainer need the extra `torch`, which is imported when one of their names is first
used; windows of context and scikit-learn classifiers work without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dugong.exceptions import EndModelError, MissingExtraError

if TYPE_CHECKING:
    from dugong.endmodels import networks
    from dugong.endmodels.batches import predict
    from dugong.endmodels.checkpoints import (
        Epoch,
        LoadedWeights,
        Training,
        TrainingProgress,
        load_weights,
        save_weights,
    )
    from dugong.endmodels.costs import train_sklearn
    from dugong.endmodels.networks import (
        FrameSequenceNet,
        WindowLSTM,
        cnn_lstm,
        densenet40,
        resnet3d18,
        resnet18,
        resnet50,
    )
    from dugong.endmodels.seeds import SeedScore, SeedSummary, train_seeds
    from dugong.endmodels.trainer import train
    from dugong.endmodels.windows import Padded, context_windows, pad_sequences

_HOMES = ("windows", "costs", "batches", "checkpoints", "networks", "seeds", "trainer")  # first those without torch

__all__ = [
    "EndModelError",
    "Epoch",
    "FrameSequenceNet",
    "LoadedWeights",
    "Padded",
    "SeedScore",
    "SeedSummary",
    "Training",
    "TrainingProgress",
    "WindowLSTM",
    "cnn_lstm",
    "context_windows",
    "densenet40",
    "load_weights",
    "networks",
    "pad_sequences",
    "predict",
    "resnet3d18",
    "resnet18",
    "resnet50",
    "save_weights",
    "train",
    "train_seeds",
    "train_sklearn",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'dugong.endmodels' has no attribute {name!r}")
    try:
        if name == "networks":
            return import_module("dugong.endmodels.networks")
        homes = (import_module(f"dugong.endmodels.{home}") for home in _HOMES)
        return next(getattr(home, name) for home in homes if hasattr(home, name))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "torch":
            raise
        raise MissingExtraError("torch", "torch", f"dugong.endmodels.{name}") from error


def __dir__() -> list[str]:
    return list(__all__)
