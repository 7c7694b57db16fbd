"""From what a source returned to int8 codes, with nothing guessed.

In: Python values, or an array from a vectorised source. Out: codes as `dugong.types` describes them; of soft sources
rows of scores. Integers (and floats that are whole, as numpy's sign function gives them), None for abstain, and class
names are allowed; True, False and NaN are not, because they do not say which vote is meant.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from dugong.tasks import Element, Resolution
from dugong.types import MISSING, AnyArray, Int8Array, class_values
from dugong.votes.flat import ScoreArray, bad_rows, rows_of, votes_of

_BAD = 127


class WrongVote(Exception):  # noqa: N818 (a signal inside this folder; users see a SourceError)
    """A value that is no vote: the first of them, its place, and how many there are."""

    def __init__(self, value: Any, task: int, count: int) -> None:
        super().__init__(value, task, count)
        self.value = value
        self.task = task
        self.count = count


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCoding:
    """What the sources at one resolution may return.

    Attributes
    ----------
    codes : mapping of value to int8 code
    allowed : the same in words, for messages
    """

    codes: Mapping[Hashable, int]
    allowed: str

    @classmethod
    def of(cls, resolution: Resolution, n_classes: int, class_names: tuple[str, ...] | None) -> VoteCoding:
        """The coding of one resolution: classes for elements, yes and no for all that has a link."""
        common: dict[Hashable, int] = {None: 0, 0: 0, MISSING: MISSING}
        if n_classes > 2 and not isinstance(resolution, Element):
            return cls(codes=common | {-1: -1, 1: 1}, allowed="-1, 0, +1 or None (abstain)")
        classes = class_values(n_classes)
        words = "-1, 0, +1" if n_classes == 2 else f"0 (abstain), a class from 1 to {n_classes}"
        names = class_names or ()
        if names:
            words += ", a name of " + ", ".join(map(repr, names))
        named: dict[Hashable, int] = dict(zip((*classes, *names), (*classes, *classes), strict=False))
        return cls(codes=common | named, allowed=f"{words} or None (abstain)")

    def encode(self, values: list[Any]) -> Int8Array:
        """Code a list of returned values."""
        try:
            coded = np.fromiter(map(self.codes.get, values, repeat(_BAD)), dtype=np.int8, count=len(values))
        except TypeError:  # something unhashable, such as a list
            coded = np.array([_BAD], dtype=np.int8)
        if (coded == _BAD).any() or not {bool, np.bool_}.isdisjoint(map(type, values)):
            wrong = [place for place, value in enumerate(values) if not self._is_vote(value)]
            raise WrongVote(values[wrong[0]], wrong[0], len(wrong))
        return coded

    def encode_array(self, values: AnyArray) -> Int8Array:
        """Code a flat array."""
        if values.dtype.kind not in "iuf":
            return self.encode(values.tolist())
        with np.errstate(invalid="ignore"):
            coded = values.astype(np.int8)
        allowed = np.zeros(256, dtype=np.bool_)
        allowed[[code % 256 for code in self.codes.values()]] = True
        good = (coded == values) & allowed[coded.view(np.uint8)]
        if not good.all():
            first = int(np.argmin(good))
            raise WrongVote(values[first], first, int((~good).sum()))
        return coded

    def _is_vote(self, value: Any) -> bool:
        try:
            return not isinstance(value, bool | np.bool_) and value in self.codes
        except TypeError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCoding:
    """What soft sources at one resolution may return: probabilities of `n_classes` classes."""

    n_classes: int

    @property
    def allowed(self) -> str:
        """What may be returned, in words."""
        many = f"{self.n_classes} probabilities that sum to one"
        return f"P(positive), {many} or None (abstain)" if self.n_classes == 2 else f"{many} or None (abstain)"

    def encode(self, values: list[Any]) -> ScoreArray:
        """Rows of scores, (n, K), of a list of returned values."""
        rows = np.full((len(values), self.n_classes), np.nan, dtype=np.float32)
        wrong = [place for place, value in enumerate(values) if isinstance(value, bool | np.bool_)]
        for place, value in enumerate(values):
            try:
                if value is not None:
                    rows[place] = value if np.ndim(value) else rows_of(np.array([value]), self.n_classes)
            except (TypeError, ValueError):  # a word, or another number of classes
                wrong.append(place)
        wrong += np.flatnonzero(bad_rows(rows)).tolist()
        if wrong:
            raise WrongVote(values[min(wrong)], min(wrong), len(set(wrong)))
        return rows

    def encode_array(self, values: AnyArray) -> ScoreArray:
        """Rows of scores of an array, (n,) or (n, K)."""
        return self.encode(list(values))


def read_soft(found: AnyArray, coding: ScoreCoding) -> tuple[ScoreArray, Int8Array]:
    """Scores and votes of what a soft source gave; where it failed as a whole, that is a column of abstentions."""
    if found.ndim == 1:
        return np.full((len(found), coding.n_classes), np.nan, dtype=np.float32), found
    missing = found[:, 0] == MISSING
    rows = np.where(missing[:, np.newaxis], np.float32(np.nan), found)
    return rows, np.where(missing, np.int8(MISSING), votes_of(rows, class_values(coding.n_classes)))


def hint_for(value: Any, *, vectorized: bool) -> str:
    """What probably went wrong when a source returned this value."""
    if isinstance(value, bool | np.bool_):
        return f"{value} does not say whether the other side is a vote against or no vote: return +1, -1 or 0."
    if isinstance(value, float | np.floating) and np.isnan(value):
        return "NaN is no vote: return None (abstain) where the data are missing."
    if isinstance(value, str):
        return "Pass classes=[...] to apply if sources vote with class names."
    if not vectorized and hasattr(value, "__len__"):
        return "If it votes on a whole sequence at once, declare it with vectorized=True."
    return 'If there are more than two classes, say so: classes=[...], in a project.toml classes = ["a", "b", "c"].'


def short(value: Any) -> str:
    """A value in few characters, for messages; arrays by shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)
