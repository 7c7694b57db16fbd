"""From labels of elements to windows, and back.

In: soft labels (n, K) and the bounds of windows, spans or sequences. Out: what the elements say about every window,
one number each, so that a window counts once however many elements it has; and the labels of the elements after
somebody else has told how likely their window is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from dugong.tasks import Resolution
from dugong.types import MISSING, BoolArray, FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, positive_class
from dugong.votes.codes import MAX_CODE

_STEPS = 10
_TIE = 1e-9
_CERTAIN = 1e-6  # lifted labels stay this far from 0 and 1, so that their log-odds stay finite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """Pieces of the flat axis of all elements: first and one-past-last element of each; none is empty."""

    starts: IntArray
    stops: IntArray
    n_elements: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> IntArray:
        """Elements in each window."""
        return np.asarray(self.stops - self.starts)

    @property
    def overlap(self) -> float:
        """How many windows hold an element, on average over the elements that are held by one."""
        return float(self.sizes.sum()) / max(int(self.held().sum()), 1)

    def lift(self, positive: FloatArray, link: str) -> FloatArray:
        """Log-odds that each window is positive as the elements have it: of the largest, smallest or mean label."""
        inside = self.share(positive) if link == "majority" else self._reduce(positive, link)
        return np.asarray(logit(np.clip(inside, _CERTAIN, 1 - _CERTAIN)))

    def share(self, positive: FloatArray) -> FloatArray:
        """Mean label of each window."""
        return self._reduce(positive, "mean") / np.maximum(self.sizes, 1)

    def _reduce(self, values: FloatArray, link: str) -> FloatArray:
        if not len(self):
            return np.zeros(0)
        how = {"any": np.maximum, "all": np.minimum}.get(link, np.add)
        # Every other piece lies between windows and is dropped; the zero behind the end lets a window stop there.
        edges = np.stack([self.starts, self.stops], axis=1).ravel()
        return np.asarray(how.reduceat(np.append(values, 0.0), edges)[::2])

    def to_elements(self, values: FloatArray) -> FloatArray:
        """Mean over the windows that hold an element; 0 where none does."""
        count = self._count()
        return self._paint(values) / np.maximum(count, 1)

    def held(self) -> BoolArray:
        """Whether some window holds an element."""
        return np.asarray(self._count() > 0.5)

    def _count(self) -> FloatArray:
        return self._paint(np.ones(len(self)))

    def _paint(self, values: FloatArray) -> FloatArray:
        if (self.starts[1:] >= self.stops[:-1]).all():  # no sums of far-away windows where nothing overlaps
            out = np.zeros(self.n_elements)
            sizes = self.sizes
            places = np.arange(int(sizes.sum())) + np.repeat(self.starts - (np.cumsum(sizes) - sizes), sizes)
            out[places] = np.repeat(values, sizes)
            return out
        steps = np.bincount(self.starts, weights=values, minlength=self.n_elements + 1)
        steps -= np.bincount(self.stops, weights=values, minlength=self.n_elements + 1)
        return np.asarray(np.cumsum(steps[: self.n_elements]))


def windows_of(votes: Votes, resolution: Resolution) -> Windows:
    """The windows of a resolution."""
    starts, stops = votes.layout(resolution).flat_bounds()
    return Windows(starts=starts, stops=stops, n_elements=votes.n_elements)


def spread(votes: Votes, info: SourceInfo) -> Int8Array:
    """Votes on windows as votes on their elements, (n_elements,): what most windows that hold an element say."""
    column, windows = votes.column(info.name), windows_of(votes, info.resolution)
    said = (column == 1, column == -1, column != MISSING)
    yes, no, asked = (windows.to_elements(one.astype(np.float64)) for one in said)
    positive = positive_class(votes, info.resolution)
    out = np.where(yes > no + _TIE, positive, 0)
    out[no > yes + _TIE] = -1 if votes.n_classes == 2 else denial(votes, votes.classes.index(positive))
    out[asked < _TIE] = MISSING
    return out.astype(np.int8)


def denial(votes: Votes, place: int) -> int:
    """The code of a spread no to one of K > 2 classes: any other class; abstain where codes run out."""
    code = max([votes.n_classes, *votes.partial]) + 1 + place
    return code if code <= MAX_CODE else 0


def move_labels(
    labels: FloatArray,
    link: str,
    positive: int,
    before: FloatArray,
    after: FloatArray,
    composition: FloatArray | None = None,
) -> FloatArray:
    """Labels of elements whose window was positive with probability `before` and now is with `after`.

    Jeffrey's rule: what an element is *given* the label of its window stays. A positive window of link any holds at
    least one positive element and a negative one none, so a positive label is scaled by after / before; it never
    rises above its window. For majority the odds between an element and its window are those of `composition`.

    Parameters
    ----------
    labels : (n, K)
    before, after : (n,) P(window of the element is positive), strictly between 0 and 1
    composition : (2, K) class balance of negative and positive windows; for majority only
    """
    if link == "majority":
        assert composition is not None
        return _move_share(labels, before, after, composition)
    if link == "all":  # all are positive: not any of them is something else
        moved = 1 - _scale(1 - labels[:, positive], 1 - before, 1 - after)
    else:
        moved = _scale(labels[:, positive], before, after)
    rest = 1 - labels[:, positive]
    out = labels * ((1 - moved) / np.where(rest > 0, rest, 1.0))[:, np.newaxis]
    out[:, positive] = np.where(rest > 0, moved, labels[:, positive])
    return np.asarray(out)


def _scale(labels: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    # A label that is scaled up could become surer than its window, which no element of it is.
    scaled = labels * after / before
    return np.where(after > before, np.minimum(scaled, np.maximum(labels, after)), scaled)


def _move_share(labels: FloatArray, before: FloatArray, after: FloatArray, composition: FloatArray) -> FloatArray:
    """P(window | label of one element) has the log-odds c + h(label); c makes it agree with `before`."""
    lean = np.log(composition[1]) - np.log(composition[0])
    low, high = logit(before) - lean.max(), logit(before) - lean.min()
    middle = (low + high) / 2
    for _ in range(_STEPS):  # Newton's steps, halving the bracket where they leave it
        window = expit(middle[:, np.newaxis] + lean)
        gap = np.einsum("nk,nk->n", labels, window) - before
        low, high = np.where(gap < 0, middle, low), np.where(gap < 0, high, middle)
        step = middle - gap / np.maximum(np.einsum("nk,nk->n", labels * window, 1 - window), 1e-300)
        middle = np.where((step >= low) & (step <= high), step, (low + high) / 2)
    window = expit(middle[:, np.newaxis] + lean)
    up, down = after / before, (1 - after) / (1 - before)
    moved = labels * (window * up[:, np.newaxis] + (1 - window) * down[:, np.newaxis])
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))
