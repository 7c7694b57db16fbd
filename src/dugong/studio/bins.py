"""What a screen needs of long arrays: bins of 1, 2, 4, ... values, worked out once, cut out when asked for.

In: an array over tasks or samples. Out: for a stretch and a number of pixels, the smallest, largest and mean value of
every bin, or the share of every code in it. Bins are aligned, so that stretches beside each other fit together.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from dugong.types import AnyArray, FloatArray

_KEPT_FROM = 16  # coarser steps are kept; finer ones are quick to work out where they are shown
Reduce = Callable[..., Any]


def packed(values: AnyArray, kind: str) -> dict[str, Any]:
    """An array as JSON: its type, its length, and its bytes in base64."""
    data = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return {"t": kind, "n": int(data.size), "b": base64.b64encode(data.tobytes()).decode("ascii")}


def step_for(n: float, px: int) -> int:
    """Values per bin, a power of 2, so that `n` values take at least half as many bins as there are pixels."""
    step = 1
    while n / step > px:
        step *= 2
    return step


class Levels:
    """An array in bins of growing size; `reduce` joins the values of a bin along the first axis."""

    def __init__(self, values: AnyArray, reduce: Reduce) -> None:
        self._values = values
        self._reduce = reduce

    def __len__(self) -> int:
        return len(self._values)

    def cut(self, first: int, last: int, step: int) -> AnyArray:
        """Bins of `step` values that cover the values `first` to `last`; `first` is a multiple of `step`."""
        if step < _KEPT_FROM:
            return self._joined(self._values[first:last], step)
        level = self._kept[(step // _KEPT_FROM).bit_length() - 1]
        return level[first // step : -(-last // step)]

    @cached_property
    def _kept(self) -> list[AnyArray]:
        levels = [self._joined(self._values, _KEPT_FROM)]
        while len(levels[-1]) > 1:
            levels.append(self._joined(levels[-1], 2))
        # A step may be larger than the whole array: the last level stands for all of these.
        return levels + [levels[-1]] * 40

    def _joined(self, values: AnyArray, step: int) -> AnyArray:
        if step == 1 or not len(values):
            return values
        starts = np.arange(0, len(values), step)
        return np.asarray(self._reduce(values, starts, axis=0))


def smallest(values: AnyArray) -> Levels:
    """The smallest value of every bin; missing ones are left out."""
    return Levels(values, np.fmin.reduceat if values.dtype.kind == "f" else np.minimum.reduceat)


def largest(values: AnyArray) -> Levels:
    """The largest value of every bin."""
    return Levels(values, np.fmax.reduceat if values.dtype.kind == "f" else np.maximum.reduceat)


class Curve:
    """Numbers with smallest, largest and mean value of every bin."""

    def __init__(self, values: FloatArray) -> None:
        self.low, self.high = smallest(values), largest(values)
        self._sum = Levels(values, np.add.reduceat)

    def mean(self, first: int, last: int, step: int) -> FloatArray:
        """Means of the bins."""
        total = self._sum.cut(first, last, step)
        counts = np.full(len(total), step)
        if len(total) and first + len(total) * step > len(self._sum):
            counts[-1] = max(1, len(self._sum) - (first + (len(total) - 1) * step))
        return np.asarray(total / counts)


class CodeCounts:
    """Small whole numbers from 0 on, counted in every bin."""

    def __init__(self, codes: AnyArray, n_codes: int) -> None:
        self.codes, self.n_codes = codes, n_codes
        self._counts: Levels | None = None

    def cut(self, first: int, last: int, step: int) -> AnyArray:
        """How often each code occurs in every bin, (n_bins, n_codes)."""
        if step < _KEPT_FROM:
            return Levels(self._one_hot(self.codes[first:last]), np.add.reduceat).cut(0, last - first, step)
        if self._counts is None:
            self._counts = Levels(self._by_sixteen(), np.add.reduceat)
        coarse = step // _KEPT_FROM
        return self._counts.cut(first // _KEPT_FROM, -(-last // _KEPT_FROM), coarse)

    def _one_hot(self, codes: AnyArray) -> AnyArray:
        return np.asarray(codes[:, None] == np.arange(self.n_codes), dtype=np.int32)

    def _by_sixteen(self) -> AnyArray:
        starts = np.arange(0, len(self.codes), _KEPT_FROM)
        columns = [
            np.add.reduceat((self.codes == code).astype(np.int32), starts) if len(starts) else np.zeros(0, np.int32)
            for code in range(self.n_codes)
        ]
        return np.stack(columns, axis=1)


def dominant(counts: AnyArray, weak: tuple[int, ...] = ()) -> AnyArray:
    """The most frequent code of every bin; codes in `weak` only where there is no other."""
    strong = counts.copy()
    strong[:, list(weak)] = 0
    chosen = np.where(strong.any(axis=1, keepdims=True), strong, counts)
    return np.asarray(chosen.argmax(axis=1))
