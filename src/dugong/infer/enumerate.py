"""The enumeration engine: every label pattern of a short sequence, for arbitrary joint priors and full tables.

In: votes, flat factors and a prior (a `Joint` table or a label chain). Out: the same answers as the chain engine.
Sequences of equal shape share their patterns; equal rows of votes are worked out once. A pattern is one value of
all labels that the prior leaves free: P(pattern | votes) is a table (vote rows x patterns), and every marginal is
one matrix product with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer.blocks import Sums, report_impossible
from dugong.infer.factors import FlatFactor
from dugong.infer.patterns import LabelPatterns, channel_codes, find_container, list_patterns, one_hot
from dugong.law import Posterior
from dugong.law.parameters import FullTable
from dugong.priors.chain import LabelChain
from dugong.priors.joint import Joint
from dugong.tasks import Element, Layout, Resolution
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes

# Cells of one table (vote rows x patterns): 16 MB of float64.
_BLOCK = 1 << 21


class LabelQuestion(NamedTuple):
    """What is known about the labels: votes with their factors, the prior, and potentials of the elements."""

    votes: Votes
    factors: tuple[FlatFactor, ...]
    law: Joint | LabelChain
    potentials: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """Sequences that have the same tasks, their patterns, and the posterior over these.

    Attributes
    ----------
    sequences : (n,) which ones
    patterns : LabelPatterns
    sites : one per factor and task: (factor, codes of the patterns, table rows of the distinct vote rows)
    inverse : (n,) distinct vote row of every sequence
    posterior : (n_rows, n_patterns)
    log_likelihood : (n_rows,)
    """

    sequences: IntArray
    patterns: LabelPatterns
    sites: list[tuple[int, IntArray, IntArray]]
    inverse: IntArray
    posterior: FloatArray
    log_likelihood: FloatArray


def shapes(asked: LabelQuestion, resolutions: tuple[Resolution, ...]) -> Iterator[Shape]:
    """Group the sequences by shape and work each group out; empty sequences are left out."""
    votes = asked.votes
    needed = tuple(dict.fromkeys([Element(), *resolutions, *_used(asked.factors)]))
    layouts = {resolution: votes.layout(resolution) for resolution in needed}
    for sequences in _same_shape(votes, layouts):
        patterns = list_patterns(votes, asked.law, layouts, int(sequences[0]))
        # Fewer vote rows at a time where there are many patterns: the table of both must stay small.
        step = max(1, _BLOCK // len(patterns.log_prior))
        for begin in range(0, len(sequences), step):
            yield _checked(votes, _solve(asked, layouts, sequences[begin : begin + step], patterns))


def _used(factors: tuple[FlatFactor, ...]) -> list[Resolution]:
    parents = [flat.channel.parent for flat in factors if flat.channel.parent is not None]
    return [*(flat.channel.resolution for flat in factors), *parents]


def _same_shape(votes: Votes, layouts: dict[Resolution, Layout]) -> Iterator[IntArray]:
    """Sequences of equal length whose given spans are equal as well."""
    groups: dict[tuple[int, ...], list[int]] = {}
    spans = [(layout, *layout.bounds()) for layout in layouts.values() if layout.spans is not None]
    for sequence, length in enumerate(votes.lengths.tolist()):
        key = [length]
        for layout, starts, stops in spans:
            rows = layout.rows(sequence)
            key += [-1, *starts[rows].tolist(), *stops[rows].tolist()]
        if length > 0:
            groups.setdefault(tuple(key), []).append(sequence)
    return (np.array(members, dtype=np.int64) for members in groups.values())


# --- votes ---------------------------------------------------------------------------------------------------------
def _solve(
    asked: LabelQuestion, layouts: dict[Resolution, Layout], sequences: IntArray, patterns: LabelPatterns
) -> Shape:
    votes, factors, _, potentials = asked
    # Sequences with potentials of their own are worked out one by one.
    sites, rows = [], [np.arange(len(sequences)) * (potentials is not None)]
    for place, flat in enumerate(factors):
        for task in _tasks(votes, flat, layouts, int(sequences[0])):
            sites.append((place, _codes(flat, patterns, layouts, int(sequences[0]), task)))
            rows.append(_rows(votes, flat, layouts, sequences, task))
    # Short sequences repeat themselves: equal rows of votes have equal posteriors.
    unique, inverse = np.unique(np.stack(rows, axis=1), axis=0, return_inverse=True)
    log_joint = np.tile(patterns.log_prior, (len(unique), 1))
    with np.errstate(divide="ignore"):
        logs = [np.log(flat.table.reshape(-1, flat.table.shape[-1])) for flat in factors]
    # Votes that look at the same labels are added up first: one look-up over all patterns per task, not per vote.
    by_labels: dict[tuple[bytes, int], tuple[IntArray, FloatArray]] = {}
    for (place, codes), site_rows in zip(sites, unique[:, 1:].T, strict=True):
        own = logs[place][site_rows]
        key = (codes.tobytes(), own.shape[1])
        before = by_labels.get(key)
        by_labels[key] = (codes, own if before is None else before[1] + own)
    for codes, summed in by_labels.values():
        log_joint += summed[:, codes]
    if potentials is not None:
        own = potentials[layouts[Element()].offsets[sequences][:, None] + np.arange(votes.lengths[sequences[0]])]
        for task, labels in enumerate(patterns.labels[Element()].T):
            log_joint += own[:, task][:, labels]
    top = log_joint.max(axis=1)
    # A row of minus infinities is an impossible sequence; it is reported later, by name.
    safe = np.where(np.isfinite(top), top, 0.0)
    # In place, because this is the largest array there is.
    weights = np.exp(log_joint - safe[:, None], out=log_joint)
    totals = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_likelihood = safe + np.log(totals)
        weights /= totals[:, None]
    return Shape(
        sequences=sequences,
        patterns=patterns,
        sites=[(place, codes, unique[:, 1 + i]) for i, (place, codes) in enumerate(sites)],
        inverse=inverse.reshape(-1),
        posterior=weights,
        log_likelihood=log_likelihood,
    )


def _tasks(votes: Votes, flat: FlatFactor, layouts: dict[Resolution, Layout], sequence: int) -> range:
    rows = layouts[flat.channel.resolution].rows(sequence)
    n_tasks = rows.stop - rows.start
    if not isinstance(flat.factor, FullTable):
        return range(n_tasks)
    # A table over patterns of four tasks says nothing about five.
    if n_tasks != flat.factor.n_tasks:
        raise TaskError(
            f"the full table of {flat.factor.source!r} is for sequences with {flat.factor.n_tasks} tasks; found "
            f'{n_tasks} in sequence {votes.sequence_ids[sequence]!r}.\n  Use sharing="tied" for ragged sequences.'
        )
    return range(1)


def _codes(
    flat: FlatFactor, patterns: LabelPatterns, layouts: dict[Resolution, Layout], sequence: int, task: int
) -> IntArray:
    """What the factor needs to know about every pattern, at one task."""
    if isinstance(flat.factor, FullTable):
        weights = flat.factor.n_classes ** np.arange(flat.factor.n_tasks - 1, -1, -1)
        return np.asarray(patterns.labels[flat.channel.resolution] @ weights)
    return channel_codes(flat.channel, flat.factor.n_classes, patterns, layouts, sequence, task)


def _rows(
    votes: Votes, flat: FlatFactor, layouts: dict[Resolution, Layout], sequences: IntArray, task: int
) -> IntArray:
    """Row of the factor's table that the votes of every sequence point at, for one task."""
    rows = np.full(len(sequences), min(task, len(flat.table) - 1), dtype=np.int64)
    for place, reading in enumerate(flat.readings):
        index, where = task - reading.lag, flat.channel.resolution
        if isinstance(flat.factor, FullTable):
            index = place
        if reading.container is not None:
            index = find_container(layouts, where, reading.container, int(sequences[0]), task)
            where = reading.container
        rows *= reading.size
        # The last place of every axis is that of votes that were not asked.
        if index < 0 or reading.column < 0:
            rows += reading.size - 1
        else:
            given = votes.columns[reading.column][layouts[where].offsets[sequences] + index]
            rows += reading.places[given.view(np.uint8)]
    return rows


# --- answers -------------------------------------------------------------------------------------------------------
def add_counts(
    shape: Shape, multiplicity: FloatArray, factors: tuple[FlatFactor, ...], counts: list[FloatArray], n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Add expected counts by table cell; returns those of initial labels and of pairs, summed over the sequences.

    `multiplicity` (n_rows): how many sequences have each distinct row of votes.
    """
    weighted = shape.posterior * multiplicity[:, None]
    for place, codes, rows in shape.sites:
        mass = weighted @ one_hot(codes, factors[place].table.shape[-1])
        np.add.at(counts[place].reshape(-1, factors[place].table.shape[-1]), rows, mass)
    law = weighted.sum(axis=0)
    elements = shape.patterns.labels[Element()].T
    initial = law @ one_hot(elements[0], n_classes)
    pairs = np.zeros((n_classes, n_classes))
    for before, after in pairwise(elements):
        np.add.at(pairs, (before, after), law)
    return initial, pairs


def _checked(votes: Votes, shape: Shape) -> Shape:
    impossible = ~np.isfinite(shape.log_likelihood[shape.inverse])
    if impossible.any():
        report_impossible(votes, int(shape.sequences[np.argmax(impossible)]))
    return shape


def posterior(asked: LabelQuestion, wanted: tuple[Resolution, ...]) -> Posterior:
    """Marginals of the wanted resolutions, and log-likelihoods."""
    votes = asked.votes
    layouts = {resolution: votes.layout(resolution) for resolution in wanted}
    marginals = {
        resolution: np.empty((layout.n_tasks, votes.n_classes if isinstance(resolution, Element) else 2))
        for resolution, layout in layouts.items()
    }
    likelihood = np.zeros(votes.n_sequences)
    for shape in shapes(asked, wanted):
        likelihood[shape.sequences] = shape.log_likelihood[shape.inverse]
        for resolution, layout in layouts.items():
            found = marginals[resolution]
            for task, labels in enumerate(shape.patterns.labels[resolution].T):
                law = shape.posterior @ one_hot(labels, found.shape[1])
                found[layout.offsets[shape.sequences] + task] = law[shape.inverse]
    return Posterior(probabilities=marginals, log_likelihood=likelihood)


def draw(asked: LabelQuestion, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
    """Class indices of drawn labels; without a generator, of the most likely labels of the elements."""
    offsets = asked.votes.layout("element").offsets
    places = np.zeros((n_draws, asked.votes.n_elements), dtype=np.int8)
    for shape in shapes(asked, ()):
        # Labels of coarse tasks may differ where those of the elements do not: their chances add up.
        elements, which = np.unique(shape.patterns.labels[Element()], axis=0, return_inverse=True)
        merged = shape.posterior @ one_hot(which.reshape(-1), len(elements))
        rows = offsets[shape.sequences][:, None] + np.arange(elements.shape[1])
        for k in range(n_draws):
            if rng is None:
                chosen = merged.argmax(axis=1)[shape.inverse]
            else:
                levels = np.cumsum(merged, axis=1)[shape.inverse]
                drawn = (rng.random(len(levels)) * levels[:, -1])[:, None]
                # Rounding can leave the last level below one, and a draw above it.
                chosen = np.minimum((levels <= drawn).sum(axis=1), len(elements) - 1)
            places[k, rows] = elements[chosen]
    return places


def count(asked: LabelQuestion, owners: IntArray, n_groups: int) -> tuple[list[FloatArray], Sums]:
    """Expected counts by group of sequences: by cell of every factor's flat table, and of labels and pairs."""
    votes, factors = asked.votes, asked.factors
    cells = [np.zeros((n_groups, *flat.table.shape)) for flat in factors]
    sums = Sums.none(votes.n_classes, 0, n_groups)
    for shape in shapes(asked, ()):
        own = owners[shape.sequences]
        for group in np.unique(own).tolist():
            rows = shape.inverse[own == group]
            multiplicity = np.bincount(rows, minlength=len(shape.posterior)).astype(np.float64)
            initial, pairs = add_counts(shape, multiplicity, factors, [part[group] for part in cells], votes.n_classes)
            sums.initial[group] += initial
            sums.transitions[group] += pairs
            sums.log_likelihood[group] += shape.log_likelihood[rows].sum()
    return cells, sums
