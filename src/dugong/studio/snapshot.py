"""What the last run left, ready to be looked at: votes, model, labels, and what makes a sequence interesting.

In: the files of a run. Out: a `Snapshot`, from which the pages take numbers. All of it is what `dugong run` wrote; only
corrections that were made since are newer, and they are shown as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dugong.cli.gold import left_to_compare
from dugong.cli.job import InOneFile
from dugong.cli.project import Project
from dugong.infer.potentials import sum_by_sequence
from dugong.model import LabelModel
from dugong.report.material import Interest, Material, gather, label_names, measure
from dugong.report.track import VoterInfo, codes_of, make_voters
from dugong.review import entropy
from dugong.tasks import Element, Resolution
from dugong.types import ABSTAIN, MISSING, AnyArray, BoolArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes, class_indices
from dugong.votes.codes import positive_class
from dugong.votes.overlaps import paint


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """One fit and all that follows from it.

    Attributes
    ----------
    number : counts the fits of this studio
    outcome : what the run said: findings, changes, comparison, seconds
    before : labels of all elements in the fit before, by sequence id; empty without one
    accuracies_before : of the sources in the fit before
    """

    number: int
    project: Project
    votes: Votes
    model: LabelModel
    material: Material
    known: Int8Array | None
    trained: Int8Array | None
    outcome: Mapping[str, Any]
    before: Mapping[str, IntArray]
    votes_before: Votes | None
    accuracies_before: Mapping[str, float]

    # --- shapes ----------------------------------------------------------------------------------------------------
    @cached_property
    def ids(self) -> list[str]:
        """Ids of the sequences as text."""
        return [str(one) for one in self.votes.sequence_ids.tolist()]

    @cached_property
    def places(self) -> dict[str, int]:
        """Places of the sequences by id."""
        return {one: place for place, one in enumerate(self.ids)}

    @property
    def lanes(self) -> list[Resolution]:
        """Resolutions, elements first."""
        return list(self.material.probabilities)

    @cached_property
    def voters(self) -> tuple[VoterInfo, ...]:
        """Sources as explanations read them."""
        return make_voters(self.material)

    @cached_property
    def codes(self) -> list[Int8Array]:
        """Votes of every source as places in its list of codes."""
        return codes_of(self.votes, self.voters)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes of elements."""
        return label_names(self.votes, Element())

    def elements(self, place: int) -> slice:
        """Where the elements of a sequence stand in flat arrays."""
        return self.votes.layout("element").rows(place)

    # --- what makes a sequence interesting ---------------------------------------------------------------------------
    @cached_property
    def interest(self) -> Interest:
        """The report's own numbers."""
        return measure(self.material)

    @cached_property
    def conflict(self) -> FloatArray:
        """Share of elements of every sequence on which sources contradict each other."""
        return self._share(conflicts(self.votes))

    @cached_property
    def worth(self) -> FloatArray:
        """Bits that are left in the labels of every sequence."""
        return entropy(self.votes, self.material.elements)

    @property
    def figures(self) -> dict[str, FloatArray]:
        """All of these numbers by name."""
        names = ("uncertainty", "disagreement", "difference", "wrong")
        found = {name: getattr(self.interest, name) for name in names}
        return found | {"conflict": self.conflict, "change": self.change, "review": self.worth}

    @cached_property
    def changed(self) -> BoolArray:
        """Elements whose label is another one than in the fit before."""
        found = np.zeros(self.votes.n_elements, dtype=np.bool_)
        for place, name in enumerate(self.ids):
            rows, old = self.elements(place), self.before.get(name)
            if old is not None and len(old) == rows.stop - rows.start:
                found[rows] = old != self.material.chosen[rows]
        return found

    @cached_property
    def change(self) -> FloatArray:
        """Share of changed labels by sequence; NaN without a fit before."""
        return self._share(self.changed) if self.before else np.full(self.votes.n_sequences, np.nan)

    @cached_property
    def shares(self) -> FloatArray:
        """Share of every class in the labels of every sequence, (n_sequences, K)."""
        return np.stack([self._share(self.material.chosen == place) for place in range(len(self.classes))], axis=1)

    def _share(self, hits: BoolArray) -> FloatArray:
        """Share of the elements of every sequence."""
        counts = sum_by_sequence(hits.astype(np.float64), self.votes.layout("element").offsets)
        return np.asarray(counts / np.maximum(self.votes.lengths, 1))

    @cached_property
    def n_known(self) -> IntArray:
        """Elements of every sequence with a known label."""
        known = np.zeros(self.votes.n_elements) if self.known is None else (self.known != 0).astype(np.float64)
        return sum_by_sequence(known, self.votes.layout("element").offsets).astype(np.int64)

    def by_sequence(self) -> dict[str, IntArray]:
        """Labels of all elements (places of classes) by sequence id: what the next fit is compared with."""
        return {name: self.material.chosen[self.elements(place)] for place, name in enumerate(self.ids)}


def load_snapshot(project: Project, number: int, outcome: Mapping[str, Any], last: Snapshot | None) -> Snapshot:
    """Read what a run has written."""
    opened = InOneFile(whole=Votes.read(project.output / "votes.parquet")).of_project(project)
    votes, train, model = opened.whole, opened.train, LabelModel.load(project.output / "model.json")
    known = None if project.gold is None else opened.known(project.gold).gold
    scored = None if known is None else left_to_compare(known, train, votes, lambda _: None)  # the run has told it
    material = gather(model, votes, scored, train)
    found = Snapshot(
        number=number,
        project=project,
        votes=votes,
        model=model,
        material=material,
        known=known,
        trained=train,
        outcome=outcome,
        before={} if last is None else last.by_sequence(),
        votes_before=None if last is None else last.votes,
        accuracies_before={} if last is None else last.model.summary().accuracies,
    )
    # The queue is what people open first: its numbers are worked out here, where nobody waits for them.
    _ = (found.figures, found.shares, found.codes)
    return found


def conflicts(votes: Votes) -> BoolArray:
    """Elements on which some source votes for a class, and another one against it or for another class.

    A coarse vote speaks about all its elements where it says "none of them".
    """
    n_classes = votes.n_classes
    said = np.zeros((votes.n_elements, n_classes), dtype=np.bool_)
    denied = np.zeros((votes.n_elements, n_classes), dtype=np.bool_)
    for source, column in zip(votes.sources, votes.columns, strict=True):
        if isinstance(source.resolution, Element):
            places = class_indices(votes, column, n_classes)
            for place in range(n_classes):
                said[:, place] |= places == place
        elif getattr(source.resolution, "link", None) == "any":
            of = votes.classes.index(positive_class(votes, source.resolution))
            starts, stops = votes.layout(source.resolution).flat_bounds()
            denied[:, of] |= paint(column == -1, starts, stops, votes.n_elements)
    return np.asarray((said.sum(axis=1) > 1) | (said & denied).any(axis=1))


def spoken(column: AnyArray) -> BoolArray:
    """Where a source votes for something."""
    return np.asarray((column != ABSTAIN) & (column != MISSING))
