"""Apply an end model: data in, probabilities out; and the dev set, which says whether an epoch is better than before.

A network returns logits, one column per class on the last axis. A single column (or none) is taken as the
log-odds of the second of two classes.

The loss on the dev set is the soft one with the class weights of the training. F1 is of the second class when there are
two, and the mean over the classes that occur in gold or predictions (0/0 counts as 0) when there are more. Of equal F1
the lower loss is better: where nothing is found yet, F1 stays 0 while the network already learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.batches import Batch, Examples, as_examples
from dugong.endmodels.costs import Costs, KnownLabels, make_costs, read_labels
from dugong.exceptions import EndModelError
from dugong.metrics.elements import f_scores
from dugong.types import FloatArray, IntArray


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
