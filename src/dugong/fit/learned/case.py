"""What is known before anything is learned: the votes in a canonical order, and what the user gave.

In: votes, and a prior, known labels or known tables if there are any. Out: a `Case` that every later step reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.beliefs import AnyBelief
from dugong.fit.em import Ties, read_accuracy
from dugong.fit.learned.coarse import finest
from dugong.fit.learned.exact import Exact, run_exact
from dugong.fit.learned.families import Agreements, content_order, count_agreements, find_families
from dugong.fit.learned.folded import Folded, fold
from dugong.fit.learned.panel import Coding, Reader
from dugong.fit.learned.rounds import Setting
from dugong.fit.learned.sample import read_sample, thin
from dugong.fit.learned.settings import FEWEST_SOURCES, ROUNDS_EXACT, ROUNDS_LARGE
from dugong.fit.learned.views import Constraints, LabelLaw
from dugong.infer.engine import check_known
from dugong.law.parameters import Conditional, Factor, Parameters
from dugong.priors import Prior, pair_law
from dugong.tasks import Element
from dugong.tasks.bio import Possible, bio_steps
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes, implied_background


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """The votes in a canonical order, and what is known before anything is learned.

    Attributes
    ----------
    names : the sources in the given order
    votes : all votes, sources on elements first, in an order that follows from what they voted
    sources : the sources on elements, in that order; where there is none, those on the finest windows, spread
    element_names, spread : their names, and whether none of them votes on elements
    coarse : the sources whose votes are not read element by element, by name
    folded, elements : the votes on elements, or a part of them, and which elements these are (None: all)
    agreements, similar : how pairs of these sources agree, and (m, m) which are variants of one another
    prior : the given prior; None where it is to be learned
    setting : what rounds on elements need: these votes or a part of them, and what is not to be learned
    background : class index of elements about which nobody speaks, or None
    pinned : all known tables by source
    beliefs : what is believed about sources
    ties : these, and which sources share their tables
    evidence : known labels
    """

    names: tuple[str, ...]
    votes: Votes
    folded: Folded
    elements: IntArray | None
    agreements: Agreements
    similar: FloatArray
    sources: tuple[SourceInfo, ...]
    element_names: tuple[str, ...]
    spread: bool
    coarse: tuple[SourceInfo, ...]
    prior: Prior | None
    setting: Setting
    background: int | None
    pinned: Mapping[str, FloatArray]
    beliefs: Mapping[str, AnyBelief]
    ties: Ties
    evidence: Int8Array | None
    n_threads: int | None

    def exact_rounds(self, factors: list[Factor], start: Prior, n_searched: int) -> Exact:
        """Exact rounds over all votes, from first factors and the law of the labels that was given, or a first one.

        Where the search looked at fewer elements than there are, it has settled already: a few rounds do.
        """
        return run_exact(
            self.votes,
            Parameters(n_classes=self.votes.n_classes, factors=tuple(factors)),
            start,
            ROUNDS_EXACT if n_searched == self.votes.n_elements else ROUNDS_LARGE,
            learn_prior=self.prior is None,
            ties=self.ties,
            evidence=self.evidence,
            n_threads=self.n_threads,
        )

    def accuracies(self, exact: Exact) -> dict[str, FloatArray]:
        """P(vote | label) of every source, in the given order."""
        plain = {f.source for f in exact.parameters.factors if isinstance(f, Conditional) and not f.parents}
        ties = replace(self.ties, keys={name: key for name, key in self.ties.keys.items() if name in plain})
        held = ties.pool(exact.counts, exact.parameters)
        found = {factor.source: read_accuracy(factor, held) for factor in exact.parameters.factors} | dict(self.pinned)
        return {name: found[name] for name in self.names}


def prepare_case(
    votes: Votes,
    prior: Prior | None,
    evidence: Int8Array | None,
    pinned: Mapping[str, FloatArray],
    beliefs: Mapping[str, AnyBelief],
    n_threads: int | None,
) -> Case:
    """Check what was given, read a sample, and put the sources into an order that follows from their votes."""
    if evidence is not None:
        check_known(votes, evidence)
    on_elements = tuple(info for info in votes.sources if isinstance(info.resolution, Element))
    on_elements = on_elements or tuple(finest(votes.sources))
    spread = any(not isinstance(info.resolution, Element) for info in on_elements)
    coding = Coding.of(votes, spread=spread)
    for name, table in pinned.items():
        _check_pinned(votes.sources[votes.index(name)], np.shape(table), coding)
    coarse = sorted((info for info in votes.sources if info not in on_elements), key=lambda info: info.name)
    reader = Reader(votes, on_elements, coding, evidence)
    panel, elements = read_sample(reader)
    if beliefs:
        panel = replace(panel, beliefs=tuple(beliefs.get(info.name) for info in on_elements))
    folded = fold(panel)
    order = content_order(folded, tuple(info.name for info in on_elements))
    folded, sources = folded.columns(order), tuple(on_elements[place] for place in order)
    background, possible = implied_background(votes), None
    if prior is None and votes.class_names is not None:
        possible = bio_steps(votes.class_names)
    if possible is not None and reader.known is not None and not _allowed(possible, reader.known, reader.offsets):
        possible = None
    agreements = count_agreements(folded)
    fixed = Constraints(
        law=None if prior is None else _law_of(prior, votes),
        possible=possible,
        pinned=_pinned_tables(sources, pinned, coding) if pinned else None,
        # Two sources tie wherever they contradict each other: windows and sequences know more about that than a rule.
        settled=bool(coarse) and len(sources) < FEWEST_SOURCES,
    )
    shared = {info.name: info.shares for info in votes.sources if info.shares}
    return Case(
        names=votes.source_names,
        votes=votes.select(sources=[info.name for info in (*sources, *coarse)]),
        folded=folded,
        elements=elements,
        agreements=agreements,
        similar=find_families(agreements),
        sources=sources,
        element_names=tuple(info.name for info in sources),
        spread=spread,
        coarse=tuple(coarse),
        prior=prior,
        setting=Setting(folded=thin(folded), fixed=fixed),
        background=None if background is None else votes.classes.index(background),
        pinned={name: np.asarray(table, dtype=np.float64) for name, table in pinned.items()},
        beliefs=beliefs,
        ties=Ties(keys=shared, known=frozenset(pinned), beliefs=beliefs),
        evidence=evidence,
        n_threads=n_threads,
    )


def _check_pinned(info: SourceInfo, shape: tuple[int, ...], coding: Coding) -> None:
    wanted = (coding.n_classes, coding.n_columns) if isinstance(info.resolution, Element) else (2, 3)
    if shape != wanted:
        raise GraphError(
            f"the known table of {info.name!r} must be P(vote | label) with one row per class and one column per vote, "
            f"abstain after the classes, shape {wanted}; found {shape}."
        )


def _pinned_tables(
    sources: tuple[SourceInfo, ...], pinned: Mapping[str, FloatArray], coding: Coding
) -> FloatArray | None:
    """Known tables of sources on elements, NaN where there is none."""
    tables = np.full((len(sources), coding.n_classes, coding.n_columns), np.nan)
    for place, info in enumerate(sources):
        if info.name in pinned and isinstance(info.resolution, Element):
            tables[place] = pinned[info.name]
    return None if np.isnan(tables).all() else tables


def _law_of(prior: Prior, votes: Votes) -> LabelLaw:
    """A given prior as a law of neighbours: its class balance and its mean transitions over these sequences."""
    lengths, counts = np.unique(votes.lengths[votes.lengths > 0], return_counts=True)
    n_classes = votes.n_classes
    if not len(lengths):
        even = np.full(n_classes, 1 / n_classes)
        return LabelLaw(balance=even, initial=even, transition=np.tile(even, (n_classes, 1)))
    element = Element()
    balance = np.diag(pair_law(prior, "same", element, element, lengths, counts, lag=0)).copy()
    transition = np.tile(balance, (n_classes, 1))
    if lengths[-1] > 1:
        pairs = pair_law(prior, "same", element, element, lengths, counts, lag=1)
        rows = pairs.sum(axis=1, keepdims=True)
        transition = np.where(rows > 0, pairs / np.where(rows > 0, rows, 1.0), transition)
    return LabelLaw(balance=balance, initial=balance, transition=transition)


def _allowed(possible: Possible, known: Int8Array, offsets: IntArray) -> bool:
    """Whether known labels contain no step that is impossible."""
    starts = np.zeros(len(known), dtype=np.bool_)
    starts[offsets[:-1][np.diff(offsets) > 0]] = True
    both = (known[1:] >= 0) & (known[:-1] >= 0) & ~starts[1:]
    steps = possible.steps[known[:-1][both], known[1:][both]]
    return bool(steps.all() and possible.first[known[starts & (known >= 0)]].all())
