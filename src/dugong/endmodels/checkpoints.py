"""Checkpoints: the state of a training after an epoch, in a file from which it goes on exactly.

All randomness of an epoch follows from the seed and the epoch's number, so the state is weights, optimizer and
history; a run that is killed and resumed ends with the same weights as one that is not. The file holds tensors
and plain data only and is read with ``weights_only=True``. It is replaced in one step, so a run killed while
writing leaves the previous state.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dugong.endmodels.batches import Examples
from dugong.endmodels.costs import Costs
from dugong.endmodels.result import Epoch
from dugong.endmodels.settings import Settings
from dugong.exceptions import EndModelError

__all__ = ["CHECKPOINT", "Checkpoint", "read_checkpoint", "read_file", "run_identity", "write_checkpoint"]

CHECKPOINT = "dugong-checkpoint"


"""The marker of our files, under the key "format"."""

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """A training after some epochs.

    Attributes
    ----------
    identity : mapping
        What must be the same for a run to go on from here.
    model, optimizer : mappings
        Their states.
    best : mapping or None
        The weights of the best epoch; None when that is the last one.
    history : tuple of Epoch
    """

    identity: Mapping[str, str | int | float]
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    best: Mapping[str, Tensor] | None
    history: tuple[Epoch, ...]


def run_identity(
    settings: Settings, examples: Examples, costs: Costs, dev: tuple[Examples, Costs] | None
) -> dict[str, str | int | float]:
    """What makes a run this run. More epochs or patience continue it; anything else is another run."""
    return {
        "loss": settings.loss,
        "metric": settings.metric,
        "batch_size": int(settings.batch_size),
        "learning_rate": float(settings.learning_rate),
        "weight_decay": float(settings.weight_decay),
        "seed": int(settings.seed),
        "data": examples.digest(),
        "labels and weights": _digest(costs),
        "dev data": "none" if dev is None else dev[0].digest(),
        "dev labels": "none" if dev is None else _digest(dev[1]),
    }


def write_checkpoint(path: str | PathLike[str], state: Checkpoint) -> None:
    """Replace the file by the given state."""
    content = {
        "format": CHECKPOINT,
        "version": VERSION,
        "identity": dict(state.identity),
        "model": dict(state.model),
        "optimizer": dict(state.optimizer),
        "best": None if state.best is None else dict(state.best),
        "history": [asdict(epoch) for epoch in state.history],
    }
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        torch.save(content, draft)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def read_checkpoint(
    path: str | PathLike[str], identity: Mapping[str, str | int | float], device: torch.device
) -> Checkpoint:
    """Read a state and make sure that it is one of the same run."""
    content = read_file(path, device)
    if not isinstance(content, dict) or content.get("format") != CHECKPOINT:
        raise EndModelError(f"{path} is no checkpoint of a training; give another path, or remove the file.")
    if content["version"] != VERSION:
        raise EndModelError(f"{path} has checkpoint version {content['version']}; this library reads {VERSION}.")
    found = content["identity"]
    other = [name for name in identity if found.get(name) != identity[name]]
    if other:
        raise EndModelError(
            f"{path} holds another run: {', '.join(other)} differ.\n"
            "  Give another path, or remove the file to start anew."
        )
    history = tuple(Epoch(**epoch) for epoch in content["history"])
    return Checkpoint(
        identity=found,
        model=content["model"],
        optimizer=content["optimizer"],
        best=content["best"],
        history=history,
    )


def _digest(costs: Costs) -> str:
    return hashlib.sha256(f"{costs.table.shape}".encode() + costs.table.tobytes()).hexdigest()


def read_file(path: str | PathLike[str], device: torch.device | str = "cpu") -> Any:
    """Return the tensors and plain data of a file that ``torch.save`` wrote; refuse all else."""
    place = Path(path)
    if not place.is_file():
        raise EndModelError(f"there is no file {place}.")
    try:
        return torch.load(place, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        raise EndModelError(
            f"{place} holds more than tensors and plain data, or is no file of weights, and is not loaded.\n"
            "  If you trust it, save its state_dict() alone with torch.save and load that."
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise EndModelError(f"{place} is damaged or no file of weights: {error}") from error
