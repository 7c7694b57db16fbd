"""What a training is given, what it tells while it runs, and what it returns: the trained network."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch import device as Device  # noqa: N812

from dugong.endmodels.batches import Examples
from dugong.endmodels.costs import ClassWeights, Costs, Loss
from dugong.exceptions import EndModelError
from dugong.paths import write_atomically
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
    number : from 1
    loss : mean training loss while the weights were moving
    dev_loss, dev_f1 : on the dev set, after the epoch; None without one
    improved : whether no earlier epoch was as good on the dev set
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
    model : a trained copy of the network that was given, with the weights of the best epoch
    best_epoch : the epoch whose weights were kept: the best on the dev set, else the last
    stopped : "epochs" if all were run, "patience" if the dev set had stopped improving
    n_examples, n_left_out : examples that were learned from, and those without a label or weight
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
    epoch : the one that was finished last
    done, total : epochs
    best_epoch : the best so far
    seconds : since the start, or since the run was resumed
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


# --- Files of weights -------------------------------------------------------------------------------------------------
# Pretrained networks, what was trained here, and trainings from which a run goes on exactly. All randomness of an epoch
# follows from the seed and the epoch's number, so the state is weights, optimizer and history; a run that is killed and
# resumed ends with the same weights as one that is not. The file holds tensors and plain data only, never code, and is
# read with ``weights_only=True``. It is replaced in one step, so a run killed while writing leaves the previous state.
# The networks of this library name their weights as widely used files do, so ImageNet weights of ResNet-18 and
# ResNet-50 and Kinetics weights of the 3-D ResNet-18 load as they are.
CHECKPOINT = "dugong-checkpoint"  # the marker of our files, under the key "format"

VERSION = 1


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


def write_checkpoint(path: str | PathLike[str], state: Mapping[str, Any]) -> None:
    """Replace the file by the state of a training: its identity, model, optimizer, best weights and history."""
    plain = {"format": CHECKPOINT, "version": VERSION, **state, "history": [asdict(one) for one in state["history"]]}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda handle: torch.save(plain, handle))


def read_checkpoint(
    path: str | PathLike[str], identity: Mapping[str, str | int | float], device: torch.device
) -> dict[str, Any]:
    """Read a state, as it was given to `write_checkpoint`, and make sure that it is one of the same run."""
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
    return {**content, "history": [Epoch(**epoch) for epoch in content["history"]]}


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


WRAPPERS = ("state_dict", "model_state_dict")
"""Keys under which training scripts keep the weights, beside other things."""

PARALLEL = "module."
"""What `torch.nn.DataParallel` puts before every name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWeights:
    """What a file gave to a network.

    Attributes
    ----------
    missing : in the network and not in the file
    unexpected : in the file and not in the network
    mismatched : in both, with different shapes
    """

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[str, ...]


def load_weights(model: nn.Module, path: str | PathLike[str], *, strict: bool = True) -> LoadedWeights:
    """Put the weights of a file into a network.

    Parameters
    ----------
    model : torch.nn.Module
        Its weights are replaced in place, all or (if there is an error) none.
    path : str or path
        A state dict saved by ``torch.save``, alone or under "state_dict", with or without the prefix "module.";
        or a checkpoint of `train`, of which the best epoch is taken.
    strict : bool
        If False, take what fits by name and shape and leave the rest of the network as it is: a pretrained
        network with a new last layer.

    Returns
    -------
    LoadedWeights
        The names that were loaded, and those that were not.
    """
    found, own = _read_state(path), model.state_dict()
    result = LoadedWeights(
        loaded=tuple(name for name in own if name in found and found[name].shape == own[name].shape),
        missing=tuple(name for name in own if name not in found),
        unexpected=tuple(name for name in found if name not in own),
        mismatched=tuple(name for name in own if name in found and found[name].shape != own[name].shape),
    )
    if not result.loaded or (strict and len(result.loaded) < max(len(own), len(found))):
        raise EndModelError(_explain(path, result, found, own))
    model.load_state_dict({name: found[name] for name in result.loaded}, strict=False)
    return result


def save_weights(weights: nn.Module | Mapping[str, Tensor], path: str | PathLike[str]) -> None:
    """Write the weights of a network (or of `Training.weights`) to a file that `load_weights` reads."""
    state = weights.state_dict() if isinstance(weights, nn.Module) else weights
    torch.save({name: tensor.detach().cpu() for name, tensor in state.items()}, path)


def _read_state(path: str | PathLike[str]) -> dict[str, Tensor]:
    content: Any = read_file(path)
    if isinstance(content, Mapping) and content.get("format") == CHECKPOINT:
        content = content["model"] if content["best"] is None else content["best"]
    for key in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content or not all(isinstance(x, Tensor) for x in content.values()):
        raise EndModelError(f"{path} must hold weights by name (a state_dict); found {_what(content)}.")
    if all(str(name).startswith(PARALLEL) for name in content):
        return {str(name).removeprefix(PARALLEL): tensor for name, tensor in content.items()}
    return {str(name): tensor for name, tensor in content.items()}


def _what(content: Any) -> str:
    if isinstance(content, Mapping):
        return f"a mapping with {_some(map(str, content))}" if content else "nothing"
    return type(content).__name__


def _explain(
    path: str | PathLike[str], result: LoadedWeights, found: Mapping[str, Tensor], own: Mapping[str, Tensor]
) -> str:
    lines = [f"the weights in {path} do not fit the network: {len(result.loaded)} of its {len(own)} tensors do."]
    shapes = [
        f"{name} (file {tuple(found[name].shape)}, network {tuple(own[name].shape)})" for name in result.mismatched
    ]
    wrong = {"Not in the file": result.missing, "Not in the network": result.unexpected, "Other shapes": shapes}
    lines += [f"  {words} ({len(names)}): {_some(names)}." for words, names in wrong.items() if names]
    if result.loaded:
        lines.append("  To load what fits and leave the rest, pass strict=False.")
    return "\n".join(lines)


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:8]) + (f" and {len(every) - 8} more" if len(every) > 8 else "")
