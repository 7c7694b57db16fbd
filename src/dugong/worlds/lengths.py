"""How long the sequences of a world are: a number, given lengths, or a law to draw them from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dugong.exceptions import TaskError
from dugong.tasks import SpanTable
from dugong.types import IntArray

LengthLaw = Callable[[int, np.random.Generator], IntArray]
Lengths = int | Sequence[int] | IntArray | LengthLaw


@dataclass(frozen=True, slots=True)
class Between:
    """Every length from `low` to `high` (included) equally likely."""

    low: int
    high: int

    def __call__(self, n_sequences: int, rng: np.random.Generator) -> IntArray:
        """Draw lengths."""
        return rng.integers(self.low, self.high + 1, size=n_sequences)


@dataclass(frozen=True, slots=True)
class Shots:
    """Cuts every sequence into consecutive spans, one cut before each element with probability 1 / `mean`."""

    mean: float
    name: str = "shot"

    def __call__(self, lengths: IntArray, rng: np.random.Generator) -> dict[str, SpanTable]:
        """Draw spans that cover all elements."""
        spans = []
        for length in lengths.tolist():
            cuts = [0, *(1 + np.flatnonzero(rng.random(max(length - 1, 0)) < 1 / self.mean)).tolist(), length]
            spans.append(list(pairwise(cuts)) if length else [])
        return {self.name: SpanTable.from_lists(spans)}


def draw_lengths(lengths: Lengths, n_sequences: int, rng: np.random.Generator) -> IntArray:
    """Length of every sequence."""
    if callable(lengths):
        drawn = np.asarray(lengths(n_sequences, rng), dtype=np.int64)
    elif isinstance(lengths, int | np.integer):
        drawn = np.full(n_sequences, int(lengths), dtype=np.int64)
    else:
        drawn = np.asarray(lengths, dtype=np.int64)
    if drawn.shape != (n_sequences,) or (drawn < 0).any():
        raise TaskError(
            f"a world needs one length of at least 0 for each of {n_sequences} sequences; found shape {drawn.shape}."
        )
    return drawn
