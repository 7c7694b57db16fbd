"""What users know about sources before any vote: pseudo-votes behind a table, and a polarity that no step may undo.

In: expected votes of a source by label, and a `Belief` about it. Out: the same counts as if some of its votes had been
looked at by people. Every M-step of the house asks here, so a belief holds from the first table to the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.result import Note
from dugong.graph.design import table_names
from dugong.law.parameters import Conditional, Factor, FullTable, Temporal
from dugong.types import FloatArray
from dugong.votes import SourceInfo

# At the edge of what a belief allows a vote is all but no evidence: better than chance still, by so much.
_HAIR = 1e-3
_NOTHING = 0.05  # slope (2 for a source that is always right) below which a source says next to nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed about a source before its votes are compared with others.

    With two classes precision and recall are those of its votes for the positive class (of its negative votes, if it
    gives no others); with more classes those of all its votes.

    Parameters
    ----------
    precision : float, optional
        P(the label is what the source says | it says so).
    recall : float, optional
        P(the source says so | the label).
    weight : float
        How many votes of the source would have to be checked by hand to know as much.
    better_than_chance : bool
        Whether it is certain that its votes speak for what they say. Where the votes contradict that, the source says
        next to nothing, and a note says so.
    """

    precision: float | None = None
    recall: float | None = None
    weight: float = 20.0
    better_than_chance: bool = False

    def __post_init__(self) -> None:
        for name in ("precision", "recall"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise GraphError(f"the {name} of a belief must be between 0 and 1, both excluded; found {value!r}.")
        if not self.weight > 0:
            raise GraphError(f"the weight of a belief is a number of votes above 0; found {self.weight!r}.")
        if self.precision is None and self.recall is None and not self.better_than_chance:
            raise GraphError("a belief must say something: give precision=, recall= or better_than_chance=True.")

    @property
    def upright(self) -> bool:
        """Whether the source is believed to be right rather than wrong: what chooses between two mirror images."""
        return self.better_than_chance or (self.precision or 0.0) > 0.5

    def held(self, counts: FloatArray) -> FloatArray:
        """Expected votes by label (K, C), classes first among the columns, as they are with this belief."""
        if self.precision is not None or self.recall is not None:
            counts = counts + self._pseudo_votes(counts)
        return upright(counts) if self.better_than_chance else counts

    def _pseudo_votes(self, counts: FloatArray) -> FloatArray:
        """Checked votes that say what is believed, with the class balance and the vote rates of the counts."""
        n_classes, labels, votes = len(counts), counts.sum(axis=1), counts.sum(axis=0)
        about = [place for place in range(n_classes) if votes[place] > 0]
        if n_classes == 2:
            about = about[-1:]
        if not about or not labels.all():
            return np.zeros_like(counts)
        table = np.zeros_like(counts)
        for own in about:
            hits = self.precision * votes[own] if self.recall is None else self.recall * labels[own]
            hits = min(hits, labels[own])
            wrong = votes[own] - hits if self.precision is None else hits * (1 - self.precision) / self.precision
            others = np.where(np.arange(n_classes) == own, 0.0, labels)
            table[:, own] = np.minimum(max(wrong, 0.0) * others / others.sum(), labels)
            table[own, own] = hits
        # Nothing is believed about the other votes: they keep their shares of what is left.
        rest = np.where(np.isin(np.arange(counts.shape[1]), about), 0.0, counts)
        share = np.divide(rest, rest.sum(axis=1, keepdims=True), out=np.zeros_like(rest), where=rest > 0)
        table += share * np.maximum(labels - table.sum(axis=1), 0.0)[:, np.newaxis]
        return np.asarray(self.weight / votes[about].sum() * table)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaning:
    """A table that another one leans on: that of all groups together, behind the table of one group.

    Attributes
    ----------
    table : (K, C) P(vote | label)
    weights : (K,) what each of its rows counts, in votes
    belief : what is believed about the source besides
    """

    table: FloatArray
    weights: FloatArray
    belief: Belief | None = None

    @property
    def better_than_chance(self) -> bool:
        """As the belief says."""
        return self.belief is not None and self.belief.better_than_chance

    @property
    def upright(self) -> bool:
        """As the belief says."""
        return self.belief is not None and self.belief.upright

    def held(self, counts: FloatArray) -> FloatArray:
        """Expected votes by label (K, C), with those of the other table."""
        table, silent = self.table, len(self.table)
        if not counts[:, silent].any():  # what is said, where something is
            table = np.where(np.arange(table.shape[1]) == silent, 0.0, table)
            table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
        counts = counts + self.weights[:, np.newaxis] * table
        return counts if self.belief is None else self.belief.held(counts)


AnyBelief = Belief | Leaning
UPRIGHT = Belief(better_than_chance=True)


def slope(table: FloatArray) -> float:
    """How far votes speak for what they say: P(c | c) - P(c | another class), summed over classes."""
    own, n_classes = np.trace(table[:, : len(table)]), len(table)
    return float(own - (table[:, :n_classes].sum() - own) / (n_classes - 1))


def upright(counts: FloatArray) -> FloatArray:
    """Counts (K, C) as they are, or with one law for all labels, but for a hair, where they speak against the votes."""
    n_classes, labels = len(counts), counts.sum(axis=1, keepdims=True)
    if not labels.all() or slope(counts / labels) >= 0:
        return counts
    # The nearest table on the right side: the likelihood falls all the way from the edge inward.
    table = np.tile(counts.sum(axis=0) / labels.sum(), (n_classes, 1))
    table[:, :n_classes] *= 1 + _HAIR * np.eye(n_classes)
    return np.asarray(labels * table / table.sum(axis=1, keepdims=True))


def resolve_beliefs(
    beliefs: Mapping[str, AnyBelief], sources: Iterable[SourceInfo], signs: str, known: Iterable[str]
) -> dict[str, AnyBelief]:
    """The belief about every source that there is one about; `signs="positive"` is one about each of them.

    A belief about a source is one about those that share its table; what is known needs none.
    """
    sources = tuple(sources)
    strange = sorted(set(beliefs) - {info.name for info in sources})
    if strange:
        names = ", ".join(repr(info.name) for info in sources)
        raise GraphError(f"beliefs must be about sources; {strange[0]!r} is none. Known are {names}.")
    both = sorted(set(beliefs) & set(known))
    if both:
        raise GraphError(f"the table of {both[0]!r} is given in accuracies=; a belief about it would say it twice.")
    tables = table_names(sources)
    shared = {table: beliefs[name] for name, table in tables.items() if name in beliefs}
    found = {name: shared.get(table) for name, table in tables.items() if name not in set(known)}
    if signs == "positive":
        found = {
            name: one if isinstance(one, Leaning) else replace(one or UPRIGHT, better_than_chance=True)
            for name, one in found.items()
        }
    return {name: one for name, one in found.items() if one is not None}


def contradictions(beliefs: Mapping[str, AnyBelief], tables: Mapping[str, FloatArray]) -> tuple[Note, ...]:
    """Notes about sources whose votes say that they are worse than chance, which a belief excludes."""
    held = {name: tables[name] for name, one in beliefs.items() if one.better_than_chance and name in tables}
    return tuple(
        Note(
            kind="belief",
            where=name,
            size=slope(table),
            text=f"the other sources contradict {name!r}, which is believed to be better than chance: its votes are "
            "kept from speaking against what they say, and count for next to nothing. Drop that belief "
            '(signs="group") to use them the other way round',
        )
        for name, table in held.items()
        if table.ndim == 2 and slope(table) < _NOTHING
    )


def hold(counts: Mapping[str, FloatArray], factor: Factor, belief: AnyBelief | None) -> Mapping[str, FloatArray]:
    """Expected counts of a factor with a belief: votes by label change, what they tell about other votes stays."""
    if belief is None:
        return counts
    if isinstance(factor, FullTable):
        raise GraphError(f'a belief is about P(vote | label), which {factor.source!r} has none of with sharing="full".')
    if isinstance(factor, Conditional | Temporal) and factor.by_position:
        held = [_raked(dict(zip(counts, one, strict=True)), belief) for one in zip(*counts.values(), strict=True)]
        return {name: np.stack([one[name] for one in held]) for name in counts}
    return _raked(counts, belief)


def _raked(counts: Mapping[str, FloatArray], belief: AnyBelief) -> dict[str, FloatArray]:
    """Tables scaled cell by cell so that their sums over everything but label and vote are as the belief has them."""
    votes = votes_by_label(counts)
    held = belief.held(votes)
    # A cell without a vote keeps none, but for a table that is these sums itself.
    ratio = np.divide(held, votes, out=np.ones_like(votes), where=votes > 0)
    if set(counts) == {"table"} and counts["table"].ndim == 2:
        return {"table": held}
    return {name: table * ratio.reshape(_axes(name, table, ratio)) for name, table in counts.items()}


def votes_by_label(counts: Mapping[str, FloatArray]) -> FloatArray:
    """Expected votes of one source by its own label, (K, C), from the counts of its factor."""
    found = []
    for name, table in counts.items():
        own = int(name == "step")  # in a step the label before stands in front of the label
        found.append(table.sum(axis=tuple(axis for axis in range(table.ndim - 1) if axis != own)))
    return np.asarray(sum(found))


def _axes(name: str, table: FloatArray, ratio: FloatArray) -> tuple[int, ...]:
    lead = int(name == "step")
    return (1,) * lead + (ratio.shape[0],) + (1,) * (table.ndim - lead - 2) + (ratio.shape[1],)
