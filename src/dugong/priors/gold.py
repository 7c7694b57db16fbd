"""Priors from labelled sequences: count, smooth, normalise.

In: a few sequences with gold labels (class values; 0 where an element has none). Out: a `Markov` prior
from initial and transition counts, or a `Patterns` prior from all runs of `length` labels, where patterns
seen fewer than `min_count` times become impossible (the paper's rule: five times or fewer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from dugong.contract import typed
from dugong.exceptions import PriorError
from dugong.priors.markov import Markov
from dugong.priors.patterns import Patterns
from dugong.types import ClassCount, FloatArray, Int8Array, IntArray, class_values


@typed(PriorError)
def from_labels(
    gold_sequences: Iterable[Sequence[int] | Int8Array | IntArray],
    kind: Literal["markov", "patterns"] = "markov",
    *,
    n_classes: ClassCount | None = None,
    length: int = 5,
    min_count: int = 6,
    smoothing: float | None = None,
) -> Markov | Patterns:
    """Learn a prior from labelled sequences.

    Parameters
    ----------
    gold_sequences : iterable of label sequences
        Class values: -1/+1, or 1..K; 0 where the label is not known.
    kind : {"markov", "patterns"}
    n_classes : int, optional
        By default two if all labels are -1 or +1, else the largest class.
    length, min_count : int
        Of patterns: how many labels, and how often a pattern must be seen to stay possible.
    smoothing : float, optional
        Added to every count: by default 1 for "markov" (so that nothing is impossible because it was not
        seen in a few sequences) and 0 for "patterns". With "patterns" it is added to the patterns that
        stay possible.
    """
    rows = [_as_labels(row) for row in gold_sequences]
    classes = _classes(rows, n_classes)
    places = [_places(row, classes) for row in rows]
    if kind == "markov":
        return _markov(places, classes, 1.0 if smoothing is None else smoothing)
    if kind == "patterns":
        return _patterns(places, classes, length, min_count, 0.0 if smoothing is None else smoothing)
    raise PriorError(f"a prior from labels is of the kind 'markov' or 'patterns'; found {kind!r}.")


def _as_labels(row: Sequence[int] | Int8Array | IntArray) -> IntArray:
    labels = np.asarray(row)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise PriorError(
            "gold labels must be one flat sequence of whole class values per sequence; "
            f"found {labels.dtype} of shape {labels.shape}."
        )
    return labels.astype(np.int64)


def _classes(rows: list[IntArray], n_classes: int | None) -> int:
    seen = np.unique(np.concatenate([*rows, np.zeros(0, dtype=np.int64)]))
    seen = seen[seen != 0]
    if len(seen) == 0:
        raise PriorError("a prior from labels needs at least one labelled element; found none.")
    binary = set(seen.tolist()) <= {-1, 1}
    classes = n_classes or (2 if binary else int(seen.max()))
    outside = sorted(set(seen.tolist()) - set(class_values(classes)))
    if outside:
        coding = "-1 or +1" if classes == 2 else f"a class from 1 to {classes}"
        raise PriorError(f"gold labels must be {coding}, or 0 where there is none; found {outside[0]}.")
    return classes


def _places(row: IntArray, n_classes: int) -> IntArray:
    """Class index of every label, -1 where it is not known."""
    if n_classes == 2:
        return np.where(row == 0, -1, (row + 1) // 2)
    return row - 1


def _markov(rows: list[IntArray], n_classes: int, smoothing: float) -> Markov:
    first = np.full(n_classes, float(smoothing))
    moves = np.full((n_classes, n_classes), float(smoothing))
    for row in rows:
        if len(row) and row[0] >= 0:
            first[row[0]] += 1
        known = (row[:-1] >= 0) & (row[1:] >= 0)
        np.add.at(moves, (row[:-1][known], row[1:][known]), 1)
    if first.sum() == 0:
        raise PriorError("the first element of at least one sequence must be labelled; found none.\n  Use smoothing.")
    return Markov(initial=first / first.sum(), transition=_rows(moves))


def _rows(moves: FloatArray) -> FloatArray:
    """Normalise; a class that nothing followed keeps itself."""
    totals = moves.sum(axis=1, keepdims=True)
    return np.where(totals > 0, moves / np.where(totals > 0, totals, 1), np.eye(len(moves)))


def _patterns(rows: list[IntArray], n_classes: int, length: int, min_count: int, smoothing: float) -> Patterns:
    if length < 1:
        raise PriorError(f"patterns hold at least one label; found length={length}.")
    values = class_values(n_classes)
    counts: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        if len(row) >= length:
            runs = np.lib.stride_tricks.sliding_window_view(row, length)
            counts.update(map(tuple, runs[(runs >= 0).all(axis=1)].tolist()))
    kept = {pattern: count + smoothing for pattern, count in counts.items() if count >= min_count}
    if not kept:
        most = max(counts.values(), default=0)
        raise PriorError(
            f"no pattern of {length} labels was seen at least {min_count} times; the most frequent one was "
            f"seen {most} times.\n  Use a smaller min_count, shorter patterns, or kind='markov'."
        )
    total = sum(kept.values())
    table = {tuple(values[c] for c in pattern): count / total for pattern, count in kept.items()}
    return Patterns(table, n_classes=n_classes)
