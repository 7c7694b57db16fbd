"""Data for networks: anything indexable in, batches of tensors out.

Arrays are read batch by batch, so a memory-mapped file stays on disk. Floats of numpy arrays become float32,
integers int64 (uint8, as of images, stays); tensors are taken as they are. A batch is a tuple: the arguments of
the network's `forward`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.costs import Costs, KnownLabels, make_costs, read_labels
from dugong.endmodels.windows import Padded
from dugong.exceptions import EndModelError
from dugong.metrics.elements import f_scores
from dugong.types import AnyArray, FloatArray, IntArray

Batch = tuple[Tensor, ...]


def as_examples(data: Any) -> Examples:
    """Find out how to read `data`: an array, a tensor, `Padded`, a tuple of arrays, or an indexable dataset.

    A tuple holds one array per argument of the network, `Padded` values and mask. Of a dataset, item i is example i: an
    array, or a tuple of arrays. A list is a dataset.
    """
    if isinstance(data, Padded):
        return ArrayExamples((data.values, data.mask))
    if isinstance(data, np.ndarray | Tensor | tuple):
        return ArrayExamples(data if isinstance(data, tuple) else (data,))
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, Mapping | str | bytes):
        return DatasetExamples(data)
    raise EndModelError(
        f"data must be an array, a tensor, a tuple of them, or a dataset with len() and integer indexing; "
        f"found {type(data).__name__}."
    )


def batch_rows(rows: IntArray, batch_size: int) -> Iterator[IntArray]:
    """Cut rows into batches; a last batch of a single row joins the one before it.

    Batch normalisation cannot learn from a single example.
    """
    starts = list(range(0, len(rows), batch_size))
    if len(starts) > 1 and len(rows) - starts[-1] == 1:
        starts.pop()
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        yield rows[start:stop]


class ArrayExamples:
    """Arrays and tensors in memory (or mapped into it), one per argument of the network."""

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        for array in arrays:
            if not isinstance(array, np.ndarray | Tensor):
                raise EndModelError(f"a tuple of data must hold arrays or tensors; found {type(array).__name__}.")
            if array.ndim == 0:
                raise EndModelError("data must have one row per example; found a single number.")
            if isinstance(array, np.ndarray):
                _network_dtype(array)
        sizes = [len(array) for array in arrays]
        if not sizes or len(set(sizes)) > 1:
            raise EndModelError(f"the arrays of a tuple must have as many rows as each other; found {sizes}.")
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays[0])

    def batch(self, rows: IntArray) -> Batch:
        """The given examples as arguments of a network."""
        return tuple(_rows_of(array, rows) for array in self._arrays)

    def digest(self) -> str:
        """A text that changes when the examples do."""
        parts = hashlib.sha256()
        for array in self._arrays:
            plain = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
            parts.update(f"{plain.dtype}{plain.shape}".encode())
            for start in range(0, len(plain), 1024):
                parts.update(np.ascontiguousarray(plain[start : start + 1024]).tobytes())
        return parts.hexdigest()


class DatasetExamples:
    """Any object with len() and integer indexing."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, rows: IntArray) -> Batch:
        """The given examples as arguments of a network."""
        examples = [self._items[int(row)] for row in rows]
        columns = [one if isinstance(one, tuple) else (one,) for one in examples]
        if len({len(column) for column in columns}) > 1:
            raise EndModelError("all examples of a dataset must have as many parts as each other.")
        return tuple(_stack([column[part] for column in columns], rows) for part in range(len(columns[0])))

    def digest(self) -> str:
        """A dataset may compute its items, so only their number is known."""
        return f"{len(self)} items"


Examples = ArrayExamples | DatasetExamples


def _rows_of(array: AnyArray | Tensor, rows: IntArray) -> Tensor:
    if isinstance(array, Tensor):
        return array.detach()[torch.as_tensor(rows, device=array.device)]
    return torch.from_numpy(np.ascontiguousarray(array[rows], dtype=_network_dtype(array)))


def _stack(parts: list[Any], rows: IntArray) -> Tensor:
    tensors = [part.detach() if isinstance(part, Tensor) else _tensor(part) for part in parts]
    for row, tensor in zip(rows, tensors, strict=True):
        if tensor.shape != tensors[0].shape:
            raise EndModelError(
                f"examples must have one shape; example {rows[0]} has {tuple(tensors[0].shape)}, "
                f"example {row} {tuple(tensor.shape)}.\n"
                "  Make them equal with pad_sequences(...) or context_windows(...)."
            )
    return torch.stack(tensors)


def _tensor(part: Any) -> Tensor:
    array = np.asarray(part)
    return torch.from_numpy(np.array(array, dtype=_network_dtype(array)))


def _network_dtype(array: AnyArray) -> Any:
    kind = array.dtype.kind
    if kind == "f":
        return np.float32
    if kind == "b" or array.dtype == np.uint8:
        return array.dtype
    if kind in "iu":
        return np.int64
    raise EndModelError(
        f"data must hold numbers; found {array.dtype}.\n"
        "  Rows of different length become one array with pad_sequences(...) or context_windows(...)."
    )


# --- applying a network, and the dev set ------------------------------------------------------------------------------
# A network returns logits, one column per class on the last axis; a single column (or none) is taken as the log-odds of
# the second of two classes. The loss on the dev set is the soft one with the class weights of the training. F1 is of
# the second class when there are two, and the mean over the classes that occur in gold or predictions (0/0 counts as 0)
# when there are more. Of equal F1 the lower loss is better: where nothing is found yet, F1 stays 0 while the network
# learns.
def predict(model: nn.Module, data: Any, *, batch_size: int = 256) -> FloatArray:
    """Return the probabilities of the classes, in the order of the data.

    Parameters
    ----------
    model : torch.nn.Module
        It runs where its parameters are and is left as it was.
    data : array, tensor, Padded, tuple of arrays, or indexable dataset
        As for `train`.
    batch_size : int

    Returns
    -------
    array, shape (n, ..., K)
        Columns as in the labels that it was trained on: -1, +1 or 1..K.
    """
    if batch_size < 1:
        raise EndModelError(f"batch_size must be at least 1; found {batch_size}.")
    return np.exp(log_table(model, as_examples(data), batch_size))


def log_table(model: nn.Module, examples: Examples, batch_size: int) -> FloatArray:
    """Return log-probabilities of all examples, without dropout and without changing the model."""
    if not len(examples):
        raise EndModelError("there must be at least one example; found none.")
    device, parts = device_of(model), []
    with evaluating(model), torch.no_grad():
        for start in range(0, len(examples), batch_size):
            rows = np.arange(start, min(start + batch_size, len(examples)))
            found = logits_of(model, examples.batch(rows), device).cpu().double()
            parts.append(functional.log_softmax(found, dim=-1).numpy())
    return np.concatenate(parts)


def logits_of(model: nn.Module, inputs: Batch, device: torch.device) -> Tensor:
    """Run the network; logits of shape (n, ..., K)."""
    logits = model(*(part.to(device) for part in inputs))
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or not logits.ndim:
        found = f"{logits.dtype}" if isinstance(logits, Tensor) else type(logits).__name__
        raise EndModelError(f"the network must return one tensor of logits; found {found}.")
    if len(logits) != len(inputs[0]):
        raise EndModelError(
            f"the network must return one row per example, {len(inputs[0])} here; found shape {tuple(logits.shape)}."
        )
    if logits.ndim == 1:
        logits = logits[:, None]
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    return logits


def device_of(model: nn.Module) -> torch.device:
    """Where the model computes: the device of its first parameter or buffer."""
    for tensor in chain(model.parameters(), model.buffers()):
        return tensor.device
    return torch.device("cpu")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and batch statistics off, and every module back to what it was."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DevSet:
    """Examples with labels, on which epochs are compared."""

    examples: Examples
    labels: KnownLabels
    costs: Costs

    def score(self, model: nn.Module, batch_size: int) -> tuple[float, float]:
        """Loss and F1 of the network as it is."""
        logs = log_table(model, self.examples, batch_size)
        if logs.shape != self.costs.table.shape:
            raise EndModelError(
                f"the network says {logs.shape} about the dev set, whose labels are {self.costs.table.shape}."
            )
        rows = self.costs.rows
        loss = -np.sum(self.costs.table[rows] * logs[rows]) / self.costs.table[rows][..., 0].size
        known = self.labels.known
        gold, chosen = self.labels.probabilities[known].argmax(axis=-1), logs[known].argmax(axis=-1)
        return float(loss), macro_f1(chosen, gold, logs.shape[-1])


def read_dev(
    dev: tuple[Any, Any] | None, *, n_classes: int, classes: Sequence[int] | None, class_weights: FloatArray
) -> DevSet | None:
    """Check the pair of data and labels."""
    if dev is None:
        return None
    if not isinstance(dev, tuple) or len(dev) != 2:
        raise EndModelError(f"dev must be a pair (data, labels); found {type(dev).__name__}.")
    examples, labels = as_examples(dev[0]), read_labels(dev[1], n_classes=n_classes, classes=classes)
    if len(examples) != len(labels.known):
        raise EndModelError(f"dev must have one label per example; found {len(examples)} and {len(labels.known)}.")
    return DevSet(examples=examples, labels=labels, costs=make_costs(labels, class_weights=class_weights))


def macro_f1(chosen: IntArray, gold: IntArray, n_classes: int) -> float:
    """F1 of columns against columns."""
    hits = np.bincount(gold[gold == chosen], minlength=n_classes).astype(np.float64)
    labelled, true = (np.bincount(one, minlength=n_classes).astype(np.float64) for one in (chosen, gold))
    by_class = np.nan_to_num(f_scores(hits, labelled, true)[2])
    return float(by_class[1] if n_classes == 2 else by_class[(labelled + true) > 0].mean())
