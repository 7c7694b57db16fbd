"""The paper's prior: a table over short label patterns, continued to any length.

The first L labels of a sequence follow the table exactly; a shorter sequence gets the marginal of its first labels.
Beyond L, the next label follows P(next | last L - 1 labels) of the table, so no sequence is cut into pieces of L. A
context that begins no possible pattern is shortened from its far end until some pattern holds it with a label after it;
with nothing left the next label follows the share of each class in the table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from dugong.contract import typed
from dugong.exceptions import PriorError
from dugong.priors.base import Prior
from dugong.priors.chain import MOST_STATES, LabelChain, class_index, distribution, explore
from dugong.priors.markov import Markov
from dugong.texts import counted
from dugong.types import ClassCount, FloatArray, Int8Array, IntArray, class_values

Pattern = tuple[int, ...]


@dataclass(frozen=True, slots=True, init=False)
class Patterns(Prior):
    """A table over label patterns of one length; patterns that are not named are impossible.

    Parameters
    ----------
    table : mapping of pattern to probability, or array
        Patterns are tuples of class values (-1/+1, or 1..K). An array has one axis per element, in class order.
    n_classes : int, optional
        By default two if all labels are -1 or +1, else the largest class; an array says it itself.

    Examples
    --------
    >>> prior = Patterns({(-1, -1): 0.7, (-1, 1): 0.1, (1, 1): 0.2})
    >>> prior.probability((-1,))
    0.8
    """

    patterns: tuple[Pattern, ...]
    probabilities: tuple[float, ...]
    n_classes: int
    kind: ClassVar[str] = "patterns"

    @typed(PriorError)
    def __init__(self, table: Mapping[Pattern, float] | FloatArray, *, n_classes: ClassCount | None = None) -> None:
        if not isinstance(table, Mapping):
            table, n_classes = _from_array(np.asarray(table, dtype=np.float64), n_classes)
        _check_patterns(table)
        if n_classes is None:
            labels = {int(label) for pattern in table for label in pattern}
            n_classes = 2 if labels <= {-1, 1} else max(*labels, 2)
        for pattern in table:
            for label in pattern:
                class_index(label, n_classes, "a pattern")
        distribution(np.array([float(p) for p in table.values()]), "the table of patterns")
        kept = sorted((tuple(map(int, pattern)), float(p)) for pattern, p in table.items() if p > 0)
        law = distribution(np.array([p for _, p in kept]), "the table of patterns")
        object.__setattr__(self, "patterns", tuple(pattern for pattern, _ in kept))
        object.__setattr__(self, "probabilities", tuple(law.tolist()))
        object.__setattr__(self, "n_classes", int(n_classes))

    @property
    def length(self) -> int:
        """Labels in a pattern."""
        return len(self.patterns[0])

    def chain(self) -> LabelChain:
        """The table as a chain of order L - 1; its states are the label tuples of up to L - 1 elements."""
        return _chain(self)

    def table(self) -> FloatArray:
        """The table as an array with one axis per element, in class order."""
        values = class_values(self.n_classes)
        table = np.zeros((self.n_classes,) * self.length)
        for pattern, probability in zip(self.patterns, self.probabilities, strict=True):
            table[tuple(values.index(label) for label in pattern)] = probability
        return table

    @classmethod
    def rebuild(cls, *, patterns: tuple[Pattern, ...], probabilities: tuple[float, ...], n_classes: int) -> Patterns:
        """The prior of its fields."""
        if len(patterns) != len(probabilities):
            raise PriorError(f"each of the {len(patterns)} patterns needs a probability; found {len(probabilities)}.")
        return cls(dict(zip(patterns, probabilities, strict=True)), n_classes=n_classes)

    def __repr__(self) -> str:
        possible = f"{len(self.patterns)} of {self.n_classes**self.length} possible"
        return f"Patterns(length={self.length}, n_classes={self.n_classes}, {possible})"

    def __str__(self) -> str:
        order = np.argsort(-np.array(self.probabilities), kind="stable")
        shown = [", ".join(f"{label:>2d}" for label in self.patterns[i]) for i in order[:12]]
        rows = [f"  ({one})  {self.probabilities[i]:.4g}" for one, i in zip(shown, order, strict=False)]
        more = [f"  ... and {len(order) - 12} more"] if len(order) > 12 else []
        return "\n".join([repr(self), *rows, *more])


def _from_array(table: FloatArray, n_classes: int | None) -> tuple[dict[Pattern, float], int]:
    if table.ndim == 0 or len(set(table.shape)) != 1 or table.shape[0] < 2:
        raise PriorError(
            f"a table of patterns needs one axis per element, each with one place per class; found shape {table.shape}."
        )
    if n_classes not in (None, table.shape[0]):
        raise PriorError(f"the table has {table.shape[0]} classes; found n_classes={n_classes}.")
    values = class_values(table.shape[0])
    cells = {tuple(values[c] for c in place): float(p) for place, p in np.ndenumerate(table)}
    return cells, table.shape[0]


def _check_patterns(table: Mapping[Pattern, float]) -> None:
    if not table:
        raise PriorError("a table of patterns needs at least one pattern; found none.")
    lengths = sorted({len(pattern) for pattern in table})
    if len(lengths) > 1 or lengths[0] == 0:
        raise PriorError(
            f"all patterns must have the same length, at least one; found lengths {', '.join(map(str, lengths))}."
        )


@lru_cache(maxsize=32)
def _chain(prior: Patterns) -> LabelChain:
    following = _continuation(prior)
    # The next label depends on the last L - 1, so that these are the state.
    order = max(prior.length - 1, 1)

    def step(context: Pattern) -> Iterator[tuple[Pattern, float]]:
        law = following(context)
        return (((*context, label)[-order:], float(law[label])) for label in np.flatnonzero(law).tolist())

    found = explore(dict(step(())), step)
    if found is None:
        raise PriorError(
            f"patterns of {counted(prior.length, 'element')} need more than {MOST_STATES} states.\n"
            "  Use prior.shorter(length) or a Markov prior."
        )
    states, initial, transition = found
    labels = np.array([state[-1] for state in states])
    return LabelChain(initial=initial, transition=transition, labels=labels, n_classes=prior.n_classes)


def _continuation(prior: Patterns) -> Callable[[Pattern], FloatArray]:
    """P(next label | context) of a table of patterns."""
    values = class_values(prior.n_classes)
    beginning, anywhere = (defaultdict[Pattern, FloatArray](lambda: np.zeros(prior.n_classes)) for _ in range(2))
    for pattern, probability in zip(prior.patterns, prior.probabilities, strict=True):
        row = tuple(values.index(label) for label in pattern)
        for stop in range(prior.length):
            beginning[row[:stop]][row[stop]] += probability
            for start in range(stop + 1):
                anywhere[row[start:stop]][row[stop]] += probability

    def following(context: Pattern) -> FloatArray:
        context = context[max(len(context) - prior.length + 1, 0) :]
        laws = beginning if context in beginning else anywhere
        # Forgetting the oldest label first keeps what is most alike.
        while context not in laws:
            context = context[1:]
        return np.asarray(laws[context] / laws[context].sum())

    return following


# --- priors from labelled sequences: count, smooth, normalise --------------------------------------------------------
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
        Added to every count: by default 1 for "markov" (so that nothing is impossible because it was not seen in a few
        sequences) and 0 for "patterns". With "patterns" it is added to the patterns that stay possible.
    """
    rows = [_as_labels(row) for row in gold_sequences]
    classes = _classes(rows, n_classes)
    # Class index of every label, -1 where it is not known.
    places = [np.where(row == 0, -1, (row + 1) // 2) if classes == 2 else row - 1 for row in rows]
    if kind == "markov":
        return _markov(places, classes, 1.0 if smoothing is None else smoothing)
    return _patterns(places, classes, length, min_count, 0.0 if smoothing is None else smoothing)


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
    totals = moves.sum(axis=1, keepdims=True)
    # A class that nothing followed keeps itself.
    transition = np.where(totals > 0, moves / np.where(totals > 0, totals, 1), np.eye(n_classes))
    return Markov(initial=first / first.sum(), transition=transition)


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
