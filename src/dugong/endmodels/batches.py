"""Data for networks: anything indexable in, batches of tensors out.

Arrays are read batch by batch, so a memory-mapped file stays on disk. Floats of numpy arrays become float32,
integers int64 (uint8, as of images, stays); tensors are taken as they are. A batch is a tuple: the arguments of
the network's `forward`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from dugong.endmodels.windows import Padded
from dugong.exceptions import EndModelError
from dugong.types import AnyArray, IntArray

Batch = tuple[Tensor, ...]


class Examples(Protocol):
    """Examples that can be read by number."""

    def __len__(self) -> int: ...

    def batch(self, rows: IntArray) -> Batch:
        """Return the given examples as arguments of a network."""
        ...

    def digest(self) -> str:
        """Return a text that changes when the examples do, as far as that is known."""
        ...


def as_examples(data: Any) -> Examples:
    """Find out how to read `data`.

    Parameters
    ----------
    data : array, tensor, Padded, tuple of arrays, or indexable dataset
        A tuple holds one array per argument of the network, `Padded` values and mask. Of a dataset, item i is
        example i: an array, or a tuple of arrays. A list is a dataset.
    """
    if isinstance(data, Padded):
        return _Arrays((data.values, data.mask))
    if isinstance(data, np.ndarray | Tensor):
        return _Arrays((data,))
    if isinstance(data, tuple):
        return _Arrays(data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, Mapping | str | bytes):
        return _Dataset(data)
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


class _Arrays:
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
        return tuple(_rows_of(array, rows) for array in self._arrays)

    def digest(self) -> str:
        parts = hashlib.sha256()
        for array in self._arrays:
            plain = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
            parts.update(f"{plain.dtype}{plain.shape}".encode())
            for start in range(0, len(plain), 1024):
                parts.update(np.ascontiguousarray(plain[start : start + 1024]).tobytes())
        return parts.hexdigest()


class _Dataset:
    """Any object with len() and integer indexing."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, rows: IntArray) -> Batch:
        examples = [self._items[int(row)] for row in rows]
        columns = [one if isinstance(one, tuple) else (one,) for one in examples]
        if len({len(column) for column in columns}) > 1:
            raise EndModelError("all examples of a dataset must have as many parts as each other.")
        return tuple(_stack([column[part] for column in columns], rows) for part in range(len(columns[0])))

    def digest(self) -> str:
        """A dataset may compute its items, so only their number is known."""
        return f"{len(self)} items"


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
