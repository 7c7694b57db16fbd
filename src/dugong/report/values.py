"""What a report holds: one frozen plain value, made by `summarize`, read by every renderer.

Nothing in here knows about HTML, text or JSON; nothing in the renderers computes. A number that is not known is None
(NaN inside matrices), and the reason stands beside it in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.codec import to_plain
from dugong.report.track import Sequences
from dugong.summary import ClassAccuracy, Interval
from dugong.texts import counted
from dugong.types import FloatArray, IntArray


# --- what was labelled ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolutionRow:
    """One resolution: what its tasks are and how often they carry each label.

    Attributes
    ----------
    name, words : how it is called, and what it is
    labels : names of its labels
    shares : mean probability of each label over all tasks
    """

    name: str
    words: str
    n_tasks: int
    n_sources: int
    labels: tuple[str, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overview:
    """Counts, lengths and resolutions.

    Attributes
    ----------
    lengths : shortest, median, mean and longest sequence, in elements
    histogram_counts, histogram_edges : sequences by length
    n_silent : elements about which no source speaks
    n_known : elements whose gold label is known; None without gold
    clock : how elements relate to seconds, in words; None if that is not known
    """

    n_sequences: int
    n_elements: int
    n_sources: int
    n_votes: int
    lengths: tuple[float, float, float, float]
    histogram_counts: tuple[int, ...]
    histogram_edges: tuple[float, ...]
    classes: tuple[str, ...]
    resolutions: tuple[ResolutionRow, ...]
    n_silent: int
    n_known: int | None
    clock: str | None


# --- sources -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassRow(ClassAccuracy):
    """How a source treats the tasks of one label, with the estimated P(right | label, and the source votes)."""

    right_if_votes: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceRow:
    """One source: what it covers, whom it meets, how good it is.

    Attributes
    ----------
    accuracy, empirical : P(right | it votes), as estimated and as measured on gold
    weight : discount on its log-likelihood, 1 if it is taken at its word
    classes : one row per label; empty if its table is over whole patterns
    """

    name: str
    resolution: str
    n_tasks: int
    asked: float
    coverage: float
    overlaps: float
    conflicts: float
    accuracy: float | None
    empirical: float | None
    weight: float
    classes: tuple[ClassRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeRow:
    """A dependency between two sources, or of a source on its own earlier votes.

    Attributes
    ----------
    kind : "pair", "repeats itself" or "follows"
    strength : 0 is independence; what else it means stands in `Dependencies.measure`
    words : what depends on what
    """

    first: str
    second: str
    kind: str
    strength: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependencies:
    """What sources share beside the label.

    Attributes
    ----------
    edges : strongest first
    measure : what strength means here, a sentence
    learned : whether the dependencies came from the votes
    """

    edges: tuple[EdgeRow, ...]
    measure: str
    learned: bool


# --- prior, agreement, scores --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriorRow:
    """What is believed about labels before any vote.

    Attributes
    ----------
    words : the prior as it would be written in code
    learned : whether it came from the votes
    transition : (K, K) P(next label | label), None if the prior is a table over few tasks
    share : (K,) mean P(label) over a sequence of median length
    bouts : mean number of elements in a run of each label, None where a run never ends
    """

    words: str
    learned: bool
    classes: tuple[str, ...]
    share: tuple[float, ...]
    transition: FloatArray | None
    bouts: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreement:
    """How often sources at one resolution agree, and how much more often than the model expects.

    Attributes
    ----------
    names, resolutions : of the sources, in the order of rows and columns
    observed : (m, m) share of equal votes where both vote; NaN where they never meet
    excess : (m, m) observed minus expected under the model
    standardised : (m, m) residuals of the moment equations, in standard errors; NaN where there are none
    n_pairs : (m, m) votes behind each cell
    """

    names: tuple[str, ...]
    resolutions: tuple[str, ...]
    observed: FloatArray
    excess: FloatArray
    standardised: FloatArray
    n_pairs: FloatArray

    def meeting(self) -> list[tuple[int, int]]:
        """Places of two sources that vote on the same tasks, those with the largest residual first."""
        pairs = [(i, j) for i in range(len(self.names)) for j in range(i) if self.n_pairs[i, j]]
        return sorted(pairs, key=lambda pair: -abs(np.nan_to_num(self.excess[pair])))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """How sure the model is, and whether it is right to be.

    Attributes
    ----------
    of : what the probability is of
    edges, counts : histogram of that probability over all elements
    expected_accuracy : mean probability of the chosen class: the share of right labels that the model promises
    doubtful : share of elements whose chosen class has a probability below 0.75
    mean_probability, frequency, bin_counts : reliability curve on gold, NaN in an empty bin; None without
    ece : expected calibration error on gold
    """

    of: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    expected_accuracy: float
    doubtful: float
    mean_probability: FloatArray | None
    frequency: FloatArray | None
    bin_counts: IntArray | None
    ece: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventRow:
    """Runs of one class in the decoded labels, and in gold where it is known.

    Attributes
    ----------
    share : share of elements in such runs
    n_sequences : sequences with at least one
    mean, median, longest : lengths in elements; None without events
    gold_events, gold_mean : the same on gold
    known_events, known_mean : decoded labels on those elements that have gold
    """

    name: str
    n_events: int
    share: float
    n_sequences: int
    mean: float | None
    median: float | None
    longest: int | None
    gold_events: int | None
    gold_mean: float | None
    known_events: int | None
    known_mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventSummary:
    """Events by class, how they were decoded, and how well they match gold.

    Attributes
    ----------
    how : "the most likely labels of a whole sequence" or "the likelier class of every element"
    scores : event scores on gold by name: (majority vote, label model)
    seconds : seconds per element if all sequences share one rate
    """

    how: str
    rows: tuple[EventRow, ...]
    scores: Mapping[str, tuple[float | None, float | None]]
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreRow:
    """One score of both methods on gold, and the paired difference."""

    name: str
    majority: float | None
    model: float | None
    difference: float | None
    interval: Interval | None
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Versus:
    """The label model beside majority vote.

    Attributes
    ----------
    sentence : the plain result
    better : True, False, or None when it cannot be told
    differ : share of elements that the two label differently
    confusion : (K, K) elements by label of majority vote (rows) and of the model (columns)
    scores : on gold, empty without
    """

    sentence: str
    better: bool | None
    differ: float
    classes: tuple[str, ...]
    confusion: FloatArray
    scores: tuple[ScoreRow, ...]

    @property
    def tone(self) -> str:
        """Whether that is good to hear: a level of `Finding`."""
        return "fine" if self.better else "warning" if self.better is False else "note"


# --- words ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to know: how serious, about which source, what was seen, and what to do about it."""

    level: str = "note"
    where: str = ""
    text: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Provenance:
    """Where all this comes from: enough for a methods section, and to tell two reports apart.

    Attributes
    ----------
    made : date and time in UTC
    votes_hash, model_hash : SHA-256
    source_hashes : SHA-256 of the votes of each source
    versions, settings : by name
    methods : a paragraph for a methods section
    """

    made: str
    votes_hash: str
    model_hash: str
    gold_hash: str | None
    source_hashes: Mapping[str, str]
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    methods: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Report:
    """A fitted model, seen on some votes."""

    title: str
    overview: Overview
    sources: tuple[SourceRow, ...]
    dependencies: Dependencies
    prior: PriorRow
    agreement: Agreement
    scores: Scores
    events: EventSummary
    versus: Versus
    findings: tuple[Finding, ...]
    provenance: Provenance
    sequences: Sequences

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; None where a number is not known."""
        return dict(to_plain(self))

    def __repr__(self) -> str:
        # Short, because a notebook keeps it beside the page.
        seen = f"{counted(self.overview.n_sources, 'source')} on {counted(self.overview.n_sequences, 'sequence')}"
        return f"Report({self.title!r}: {seen}; a page in a notebook, to_dict() in numbers)"

    def _repr_html_(self) -> str:
        from dugong.report.notebook import report_html

        return report_html(self)
