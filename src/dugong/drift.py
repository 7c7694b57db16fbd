"""Has the stream changed? New votes beside those that a model was fitted on, in the model's own terms.

In: a law, its tables, sums over votes that it was fitted on, and new votes. Out: a `Drift`: what changed by more than
chance, by source: how often it votes, how it agrees with the labels that the others imply, how surprising its votes
are; and for all together: the balance of the labels and the likelihood. Both sides go through the same functions, so a
model that fits badly raises no alarm as long as it fits the new votes equally badly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from dugong.codec import to_plain
from dugong.exceptions import VoteError
from dugong.infer import answers
from dugong.law import Law
from dugong.sums import assign_groups
from dugong.tasks import Element, Resolution
from dugong.types import ABSTAIN, MISSING, AnyArray, FloatArray, IntArray
from dugong.votes import SourceInfo, Votes, class_indices

# Sequences are the units of chance; with fewer than this many, stretches of them are.
FEW_UNITS = 20
# Elements that stand for what a model was fitted on: enough to see changes of a few per cent.
REFERENCE = 50_000
_WORDS = {
    "coverage": "votes on {now:.1%} of its tasks, {before:.1%} before",
    "agreement": "agrees with the labels that the others imply on {now:.1%} of its votes, {before:.1%} before",
    "surprise": "is more or less predictable than it was: {now:.3f} nats per task, {before:.3f} before",
    "balance": "{now:.1%} of the elements are labelled {where}, {before:.1%} before",
    "likelihood": "votes have a log-likelihood of {now:.3f} per element, {before:.3f} before",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioSums:
    """Sums over units (sequences) that give a ratio x / n and its standard error; they add over shards.

    Only units with anything in them are counted; `xx`, `xn` and `nn` are sums of products.
    """

    units: int
    x: float
    n: float
    xx: float
    xn: float
    nn: float

    @classmethod
    def of(cls, numerator: FloatArray, denominator: FloatArray) -> RatioSums:
        """Sums over units, from one number of each per unit."""
        kept = denominator > 0
        x, n = numerator[kept], denominator[kept]
        sums = (x.sum(), n.sum(), x @ x, x @ n, n @ n)
        return cls(units=int(kept.sum()), **dict(zip(("x", "n", "xx", "xn", "nn"), map(float, sums), strict=True)))

    @property
    def ratio(self) -> float:
        """The mean per task."""
        return self.x / self.n if self.n else 0.0

    @property
    def variance(self) -> float:
        """Of the ratio, by the spread between units."""
        if self.units < 2:
            return 0.0
        spread = self.xx - 2 * self.ratio * self.xn + self.ratio**2 * self.nn
        return max(spread, 0.0) / self.n**2 * self.units / (self.units - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFeature:
    """One thing that is watched: what it is, of which source (or class), and its sums."""

    what: str
    where: str
    sums: RatioSums


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that was compared.

    Attributes
    ----------
    what : "coverage", "agreement", "surprise", "balance" or "likelihood"
    where : name of the source, or of the class
    before, now : its mean
    chance : probability of such a difference or a larger one if nothing changed, corrected for looking at all of them
    alarm : whether that is too small to be chance
    """

    what: str
    where: str
    before: float
    now: float
    chance: float
    alarm: bool

    def __str__(self) -> str:
        words = _WORDS[self.what].format(now=self.now, before=self.before, where=self.where)
        return words if self.what in ("balance", "likelihood") else f"{self.where} {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What new votes look like beside those of the fit: the most certain changes first.

    At least one of them is a false alarm with a probability of at most `level`.
    """

    changes: tuple[Change, ...]
    n_sequences: int
    n_elements: int
    level: float

    @property
    def alarms(self) -> tuple[Change, ...]:
        """What changed by more than chance."""
        return tuple(one for one in self.changes if one.alarm)

    def __bool__(self) -> bool:
        return bool(self.alarms)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"alarm": bool(self), **to_plain(self)}

    def __str__(self) -> str:
        seen = f"{self.n_sequences:,} sequences ({self.n_elements:,} elements)"
        if not self.alarms:
            return f"Nothing changed by more than chance in {seen}; {len(self.changes)} things were compared."
        lines = [f"- {one} (chance {one.chance:.2g})" for one in self.alarms]
        head = f"{len(lines)} of {len(self.changes)} things changed in {seen}:"
        return "\n".join([head, *lines, "Look at these sources, and fit again on votes like the new ones."])


def some_of(votes: Votes) -> Votes:
    """Sequences that stand for all: spread evenly over the votes, about `REFERENCE` elements."""
    if votes.n_elements <= REFERENCE:
        return votes
    share = REFERENCE / votes.n_elements
    chosen = np.unique(np.linspace(0, votes.n_sequences - 1, max(1, round(share * votes.n_sequences))).astype(np.int64))
    return votes if len(chosen) == votes.n_sequences else votes[chosen]


def watch(law: Law, tables: Mapping[str, FloatArray], votes: Votes) -> tuple[DriftFeature, ...]:
    """The sums of everything that is watched, over some votes."""
    votes = law.read(votes)
    resolutions = tuple(dict.fromkeys([Element(), *(source.resolution for source in votes.sources)]))
    labels = answers.posterior(law, votes, resolutions)
    owners, n_units = _units(votes)
    found: list[DriftFeature] = []
    for source in votes.sources:
        parts = _of_source(votes, source, tables.get(source.name), labels[source.resolution])
        own = owners(source.resolution)
        found += [_feature(what, source.name, values, own, n_units) for what, *values in parts]
    ones, own = np.ones(votes.n_elements), owners(Element())
    names = votes.class_names or [f"{value:+d}" if votes.n_classes == 2 else str(value) for value in votes.classes]
    for place, name in list(enumerate(names))[1:]:
        found.append(_feature("balance", str(name), [labels[Element()][:, place], ones], own, n_units))
    likelihood = answers.log_likelihood(law.exact, votes)
    if len(likelihood) >= FEW_UNITS:
        sums = RatioSums.of(likelihood, votes.lengths.astype(np.float64))
        found.append(DriftFeature(what="likelihood", where="", sums=sums))
    return tuple(found)


def compare(before: tuple[DriftFeature, ...], now: tuple[DriftFeature, ...], votes: Votes, level: float) -> Drift:
    """What differs by more than chance: t-tests of ratios, with Holm's correction for their number."""
    if not 0 < level < 1:
        raise VoteError(f"level= must be a probability between 0 and 1; found {level!r}.")
    known = {(one.what, one.where): one.sums for one in before}
    pairs = [(one, known[one.what, one.where]) for one in now if (one.what, one.where) in known]
    chances = np.array([_chance(old, one.sums) for one, old in pairs])
    corrected = _holm(chances)
    changes = [
        Change(
            what=one.what, where=one.where, before=old.ratio, now=one.sums.ratio, chance=float(p), alarm=bool(p < level)
        )
        for (one, old), p in zip(pairs, corrected, strict=True)
    ]
    changes.sort(key=lambda one: one.chance)
    return Drift(changes=tuple(changes), n_sequences=votes.n_sequences, n_elements=votes.n_elements, level=level)


def _chance(old: RatioSums, new: RatioSums) -> float:
    """Two-sided probability of the difference of two ratios; 1 where there is nothing to compare."""
    units = min(old.units, new.units)
    if units < 2:
        return 1.0
    gap, error = abs(old.ratio - new.ratio), float(np.sqrt(old.variance + new.variance))
    if error == 0:
        return 1.0 if gap < 1e-12 else 0.0
    return float(2 * stdtr(units - 1, -gap / error))


def _holm(chances: FloatArray) -> FloatArray:
    """Probabilities after Holm's step-down correction: at most `level` false alarms among all, whatever depends."""
    order = np.argsort(chances, kind="stable")
    raised = chances[order] * np.arange(len(chances), 0, -1)
    corrected = np.empty_like(chances)
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected


# --- what is watched -------------------------------------------------------------------------------------------------
def _of_source(
    votes: Votes, source: SourceInfo, table: FloatArray | None, labels: FloatArray
) -> Iterator[tuple[str, AnyArray, AnyArray]]:
    """What is watched of a source: its name, and by task what is summed and what is counted."""
    column = votes.column(source.name)
    asked = column != MISSING
    spoke = asked & (column != ABSTAIN)
    yield "coverage", spoke, asked
    if table is None or table.ndim != 2 or votes.partial:
        return  # tables by position or pattern: what the others imply is not a product of single votes
    codes = class_indices(votes, column, labels.shape[1]).astype(np.int64)
    codes[codes < 0] = labels.shape[1]  # not asked: any column will do, it is counted nowhere
    likely = np.where(asked[:, None], table.T[codes], 1.0)
    others = labels / np.maximum(likely, 1e-12)
    others /= others.sum(axis=1, keepdims=True)
    agreed = np.where(spoke, np.take_along_axis(others, np.minimum(codes, labels.shape[1] - 1)[:, None], 1)[:, 0], 0.0)
    yield "agreement", agreed, spoke
    yield "surprise", np.where(asked, -np.log(np.maximum((others * likely).sum(axis=1), 1e-12)), 0.0), asked


def _feature(what: str, where: str, values: list[AnyArray], owners: IntArray, n_units: int) -> DriftFeature:
    weights = (np.asarray(one, dtype=np.float64) for one in values)
    sums = RatioSums.of(*(np.bincount(owners, one, n_units).astype(np.float64) for one in weights))
    return DriftFeature(what=what, where=where, sums=sums)


def _units(votes: Votes) -> tuple[Callable[[Resolution], IntArray], int]:
    """To which unit of chance tasks belong, and how many there are: sequences, or stretches where there are few."""
    if votes.n_sequences >= FEW_UNITS:
        return lambda one: votes.layout(one).owners(), votes.n_sequences
    grouping = assign_groups(votes)
    return lambda one: grouping.of_tasks(votes.layout(one)), grouping.n_groups
