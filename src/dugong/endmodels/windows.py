"""Elements with their neighbours: ragged data in, padded arrays and masks out.

In: the elements of one sequence, or of many one after another with their lengths (the order of
`LabelModel.predict_proba`). Out: `Padded`, zeros where there is no data and a mask that says so. A window never
reaches into another sequence. The paper's Gait task reads three past elements and one future one, the defaults
of `context_windows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.exceptions import EndModelError
from dugong.types import AnyArray, BoolArray, IntArray, read_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Padded:
    """Rows of different length, filled up with zeros.

    Attributes
    ----------
    values : array, shape (n, steps, ...)
    mask : array of bool, shape (n, steps)
        True where `values` holds data. Every row has some.
    """

    values: AnyArray
    mask: BoolArray

    def __post_init__(self) -> None:
        if self.mask.dtype != np.bool_ or self.mask.shape != self.values.shape[:2]:
            raise EndModelError(
                f"the mask must be boolean, one entry per step {self.values.shape[:2]}; "
                f"found {self.mask.dtype} of shape {self.mask.shape}."
            )
        empty = np.flatnonzero(~self.mask.any(axis=1))
        if len(empty):
            raise EndModelError(
                f"every row needs at least one step; {len(empty):,} have none, the first is row {empty[0]}.\n"
                "  Leave them out, of the labels as well."
            )
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "mask", read_only(self.mask))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: ArrayLike | slice) -> Padded:
        """Some of the rows, in the order given."""
        chosen = rows if isinstance(rows, slice) else np.asarray(rows)
        return Padded(values=self.values[chosen], mask=self.mask[chosen])


def context_windows(
    elements: AnyArray | Sequence[AnyArray],
    *,
    lengths: ArrayLike | None = None,
    before: int = 3,
    after: int = 1,
    max_length: int | None = None,
    mark: bool = False,
) -> Padded:
    """Give every element its past and its future.

    Parameters
    ----------
    elements : array, shape (n, ...), or list of arrays, shape (steps_i, ...)
        An array holds one step per element: row k of a window is the element at distance k - before, and
        neighbours beyond the ends of the sequence are masked. A list holds elements that take some time each, as
        gait cycles do: a window is the concatenation of those that exist.
    lengths : array of int, optional
        Elements per sequence. Default: all belong to one sequence.
    before, after : int
        Elements of context on each side.
    max_length : int, optional
        Most steps of a window; only for a list. Longer windows keep the steps nearest to the middle of their own
        element. (The paper truncates as well, and does not say at which end.)
    mark : bool
        Add a feature that is 1 on the steps of the element itself. Needs steps that are vectors.

    Returns
    -------
    Padded
        One row per element, in the order given.

    Examples
    --------
    >>> windows = context_windows(np.array([[1.0], [2.0], [3.0]]), before=1, after=1)
    >>> windows.values[..., 0].tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 0.0]]
    >>> windows.mask[0].tolist()
    [False, True, True]
    """
    if before < 0 or after < 0:
        raise EndModelError(f"before and after must be 0 or more; found {before} and {after}.")
    if isinstance(elements, np.ndarray):
        if max_length is not None:
            raise EndModelError(
                "max_length is for a list of elements; an array has one step each, so give less context."
            )
        return _windows_of_steps(elements, lengths, before, after, mark=mark)
    return _windows_of_pieces(elements, lengths, before, after, max_length=max_length, mark=mark)


def pad_sequences(sequences: Sequence[AnyArray], *, max_length: int | None = None) -> Padded:
    """Put sequences of different length into one array, zeros at the end.

    Parameters
    ----------
    sequences : list of arrays, shape (steps_i, ...)
    max_length : int, optional
        Longer sequences lose their end.
    """
    _check_max_length(max_length)
    pieces = [_float32(np.asarray(piece))[:max_length] for piece in sequences]
    _check_pieces(pieces, least_axes=1)
    return _fill(pieces)


def _windows_of_steps(elements: AnyArray, lengths: ArrayLike | None, before: int, after: int, *, mark: bool) -> Padded:
    if elements.ndim < 1 or elements.dtype.kind not in "fiub":
        raise EndModelError(f"elements must be numbers, one row each; found {elements.dtype}, shape {elements.shape}.")
    first, last = _bounds(len(elements), lengths)
    place = np.arange(len(elements))[:, None] + np.arange(-before, after + 1)
    mask = (place >= first[:, None]) & (place < last[:, None])
    steps = _float32(elements if elements.ndim > 1 else elements[:, None])
    values = steps[np.where(mask, place, 0)] if len(steps) else np.zeros((0, before + 1 + after, *steps.shape[1:]))
    values[~mask] = 0
    own = np.zeros(mask.shape, dtype=np.float32)
    own[:, before] = 1.0
    return Padded(values=_marked(values, own) if mark else values, mask=mask)


def _windows_of_pieces(
    elements: Sequence[AnyArray],
    lengths: ArrayLike | None,
    before: int,
    after: int,
    *,
    max_length: int | None,
    mark: bool,
) -> Padded:
    _check_max_length(max_length)
    pieces = [_float32(np.asarray(piece)) for piece in elements]
    _check_pieces(pieces, least_axes=2)
    plain = [_marked(piece, np.zeros(len(piece), dtype=np.float32)) for piece in pieces] if mark else pieces
    owned = [_marked(piece, np.ones(len(piece), dtype=np.float32)) for piece in pieces] if mark else pieces
    first, last = _bounds(len(pieces), lengths)
    windows = []
    for place in range(len(pieces)):
        start, stop = max(place - before, first[place]), min(place + after + 1, last[place])
        past, future = plain[start:place], plain[place + 1 : stop]
        window = np.concatenate([*past, owned[place], *future])
        middle = sum(map(len, past)) + len(owned[place]) // 2
        windows.append(_nearest(window, middle, max_length))
    return _fill(windows)


def _nearest(window: AnyArray, middle: int, max_length: int | None) -> AnyArray:
    """Cut a window to the steps around its middle."""
    if max_length is None or len(window) <= max_length:
        return window
    start = min(max(middle - max_length // 2, 0), len(window) - max_length)
    return window[start : start + max_length]


def _fill(pieces: list[AnyArray]) -> Padded:
    sizes = np.array([len(piece) for piece in pieces], dtype=np.int64)
    mask = np.arange(sizes.max()) < sizes[:, None]
    values = np.zeros((*mask.shape, *pieces[0].shape[1:]), dtype=np.result_type(*{piece.dtype for piece in pieces}))
    for row, piece in zip(values, pieces, strict=True):
        row[: len(piece)] = piece
    return Padded(values=values, mask=mask)


def _marked(values: AnyArray, own: AnyArray) -> AnyArray:
    """Append the marker to the last axis."""
    if values.ndim != own.ndim + 1 or values.dtype.kind != "f":
        raise EndModelError(
            "mark=True adds a feature to steps that are vectors of floats; "
            f"found steps of shape {values.shape[own.ndim :]} and {values.dtype}."
        )
    return np.concatenate([values, own[..., None]], axis=-1)


def _bounds(n_elements: int, lengths: ArrayLike | None) -> tuple[IntArray, IntArray]:
    """For every element, where its sequence begins and ends."""
    sizes = np.asarray([n_elements] if lengths is None else lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 0) or sizes.sum() != n_elements:
        raise EndModelError(
            f"lengths must be the numbers of elements per sequence and add up to {n_elements:,}; "
            f"found {sizes.dtype} of shape {sizes.shape} with sum {sizes.sum()}."
        )
    ends = np.cumsum(sizes.astype(np.int64))
    return np.repeat(ends - sizes, sizes), np.repeat(ends, sizes)


def _check_pieces(pieces: list[AnyArray], *, least_axes: int) -> None:
    if not pieces:
        raise EndModelError("there must be at least one row; the list is empty.")
    shape: tuple[Any, ...] | None = pieces[0].shape[1:] if pieces[0].ndim else None
    for row, piece in enumerate(pieces):
        if piece.ndim < least_axes or piece.dtype.kind not in "fiub":
            raise EndModelError(
                f"item {row} must be an array of numbers, steps first, with at least {least_axes} axes; "
                f"found {piece.dtype} of shape {piece.shape}.\n"
                "  If every element is one step, give one array of shape (n, features)."
            )
        if piece.shape[1:] != shape:
            raise EndModelError(f"all steps must have one shape: item 0 has {shape}, item {row} {piece.shape[1:]}.")


def _check_max_length(max_length: int | None) -> None:
    if max_length is not None and max_length < 1:
        raise EndModelError(f"max_length must be at least 1; found {max_length}.")


def _float32(values: AnyArray) -> AnyArray:
    """Floats become float32, what networks compute with; other numbers stay."""
    return values.astype(np.float32) if values.dtype.kind == "f" else values
