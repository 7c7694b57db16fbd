"""Apply an end model: data in, probabilities out.

A network returns logits, one column per class on the last axis. A single column (or none) is taken as the
log-odds of the second of two classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.batches import Batch, Examples, as_examples
from dugong.exceptions import EndModelError
from dugong.types import FloatArray

__all__ = ["device_of", "evaluating", "log_table", "logits_of", "predict"]


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
