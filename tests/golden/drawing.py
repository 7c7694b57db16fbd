"""Votes for the golden values: drawn with numpy alone, so that no change of the library can change them.

Labels follow a chain; a source votes by a table P(vote | label), copies another source, or repeats its own last vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dugong as dg

Table = Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Voter:
    """A source: P(vote | label) with abstain as the last column, and how it depends on others or on itself."""

    table: Table
    resolution: Any = None  # elements
    copies: str | None = None
    share: float = 0.0  # how often it copies, or says again what it said before
    of: int | None = None  # the class that a coarse source looks for, counted from 0


def accurate(right_on_plus: float, right_on_minus: float, silent_on_plus: float, silent_on_minus: float) -> Table:
    """A source with two classes; how often it is right is among its votes."""
    return (
        ((1 - silent_on_minus) * right_on_minus, (1 - silent_on_minus) * (1 - right_on_minus), silent_on_minus),
        ((1 - silent_on_plus) * (1 - right_on_plus), (1 - silent_on_plus) * right_on_plus, silent_on_plus),
    )


def confusion(n_classes: int, right: float, silent: float) -> Table:
    """A source with K classes whose errors are even."""
    wrong = (1 - right) / (n_classes - 1)
    return [
        [*((1 - silent) * (right if vote == label else wrong) for vote in range(n_classes)), silent]
        for label in range(n_classes)
    ]


def draw(
    voters: dict[str, Voter], lengths: Sequence[int], initial: Sequence[float], transition: Table, seed: int
) -> tuple[dg.Votes, np.ndarray]:
    """Votes, and the labels of the elements in the library's coding."""
    rng = np.random.default_rng(seed)
    n_classes = len(initial)
    labels = _labels(np.asarray(lengths), np.asarray(initial), np.asarray(transition), rng)
    columns: dict[str, np.ndarray] = {}
    for name, voter in voters.items():
        columns[name] = _vote(voter, labels, np.asarray(lengths), columns, rng)
    values = {name: _coded(codes, voters[name], n_classes) for name, codes in columns.items()}
    votes = dg.Votes.from_tasks(
        values,
        lengths,
        resolutions={name: one.resolution for name, one in voters.items() if one.resolution is not None},
        n_classes=n_classes,
        classes=None if n_classes == 2 else "abcdefgh"[:n_classes],
    )
    return votes, 2 * labels - 1 if n_classes == 2 else labels + 1


def _pick(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column per row, by its probability."""
    edges = np.cumsum(probabilities, axis=1)[:, :-1]
    return (rng.random(len(probabilities))[:, None] >= edges).sum(axis=1)


def _labels(lengths: np.ndarray, initial: np.ndarray, transition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    labels = []
    for length in lengths.tolist():
        before = initial
        for _ in range(length):
            labels.append(int(_pick(before[None], rng)[0]))
            before = transition[labels[-1]]
    return np.array(labels)


def _vote(
    voter: Voter, labels: np.ndarray, lengths: np.ndarray, earlier: dict[str, np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    tasks = labels if voter.resolution is None else _task_labels(voter, labels, lengths)
    codes = _pick(np.asarray(voter.table)[tasks], rng)
    again = rng.random(len(codes)) < voter.share
    if voter.copies is not None:
        return np.where(again, earlier[voter.copies], codes)
    if voter.share:
        again[np.cumsum(lengths) - lengths] = False  # nothing was said before the first element of a sequence
        for place in np.flatnonzero(again):
            codes[place] = codes[place - 1]
    return codes


def _task_labels(voter: Voter, labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """0 or 1 for every window, by the conventions of the public surface."""
    positive = labels == (1 if voter.of is None else voter.of)
    found = []
    begin = 0
    for length in lengths.tolist():
        size = getattr(voter.resolution, "size", length)
        stride = getattr(voter.resolution, "stride", None) or size
        n_windows = 1 if length <= size else -(-(length - size) // stride) + 1
        for window in range(n_windows):
            inside = positive[begin + window * stride : begin + min(window * stride + size, length)]
            linked = {"any": inside.any(), "all": inside.all(), "majority": 2 * inside.sum() > len(inside)}
            found.append(int(linked[voter.resolution.link]))
        begin += length
    return np.array(found)


def _coded(codes: np.ndarray, voter: Voter, n_classes: int) -> np.ndarray:
    classes = 2 if voter.resolution is not None else n_classes
    values = [-1, 1, 0] if classes == 2 else [*range(1, classes + 1), 0]
    return np.array(values, dtype=np.int8)[codes]
