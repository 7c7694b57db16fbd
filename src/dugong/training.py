"""Probabilistic labels as data that end models learn from: PyTorch, scikit-learn, Hugging Face datasets.

In: the probabilities of the elements of every sequence, and raw inputs by sequence id. Out: what the library on the
other side expects. Inputs are matched to labels by id and by length; nothing is padded or cut in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import LabelError, import_extra
from dugong.types import AnyArray, FloatArray

Pieces = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledWindows:
    """Inputs, soft labels and masks, window by window: a map-style dataset for ``torch.utils.data.DataLoader``.

    ``dataset[i]`` is (input, labels, mask): tensors of shapes (size, ...), (size, n_classes) and (size,); the mask is
    False where a window reaches beyond the end of its sequence. Without `size`, an item is a whole sequence.
    """

    inputs: Mapping[str, AnyArray]
    labels: Pieces
    places: tuple[tuple[str, int, int], ...]
    size: int | None

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        torch = import_extra("torch", "torch", "data sets of PyTorch")
        name, start, stop = self.places[index]
        size = self.size or stop - start
        values, law = np.asarray(self.inputs[name][start:stop]), self.labels[name][start:stop]
        rest = size - (stop - start)
        if rest:
            values = np.concatenate([values, np.zeros((rest, *values.shape[1:]), dtype=values.dtype)])
            law = np.concatenate([law, np.zeros((rest, law.shape[1]))])
        mask = np.arange(size) < stop - start
        return torch.as_tensor(values), torch.as_tensor(law, dtype=torch.float32), torch.as_tensor(mask)


def torch_windows(labels: Pieces, inputs: Mapping[Any, Any], size: int | None, stride: int | None) -> LabelledWindows:
    """A dataset of windows of `size` elements, `stride` apart, or of whole sequences."""
    import_extra("torch", "torch", "data sets of PyTorch")
    if size is not None and (size < 1 or (stride or size) < 1):
        raise LabelError(f"windows= and stride= must be at least 1 element; found {size!r} and {stride!r}.")
    matched = {name: np.asarray(values) for name, values in match(labels, inputs)}
    places = [
        (name, start, min(start + (size or len(law)), len(law)))
        for name, law in labels.items()
        for start in (range(0, len(law), stride or size) if size else [0])
        if len(law)
    ]
    return LabelledWindows(inputs=matched, labels=labels, places=tuple(places), size=size)


def weighted_rows(labels: Pieces, inputs: Mapping[Any, Any], names: list[Any]) -> tuple[AnyArray, AnyArray, FloatArray]:
    """Rows for scikit-learn: every element once per class, weighted by the probability of that class.

    This is the noise-aware loss: the expected loss under the probabilities. Weights below a thousandth are left out.
    """
    rows = np.concatenate([np.asarray(values) for _, values in match(labels, inputs)])
    law = np.concatenate(list(labels.values()))
    place, kind = np.nonzero(law > 1e-3)
    return rows[place], np.asarray(names)[kind], law[place, kind]


def match(labels: Pieces, inputs: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Inputs in the order of the labels; ids may be numbers on one side and words on the other."""
    known = {str(name): name for name in inputs}
    for name, law in labels.items():
        if name not in known:
            some = ", ".join(map(repr, list(known)[:5]))
            raise LabelError(f"inputs must hold every sequence that has labels; {name!r} is missing, there are {some}.")
        values = inputs[known[name]]
        if len(values) != len(law):
            raise LabelError(
                f"inputs must have a row per element; sequence {name!r} has {len(law)} elements and {len(values)} rows."
            )
        yield name, values
