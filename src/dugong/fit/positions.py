"""Tables by position (sharing="task") where closed forms have none: what is learned, sources that repeat themselves.

In: a law with one table for all positions, and passes over the votes. Out: the law with tables by position, after exact
E/M steps. How far the table of a position leans on the one of all is decided by the data, as for groups: rows of all
positions are taken as draws around their mean, and where positions are alike each of them has the mean.

Nobody has to say that positions differ where it is plain: `explained` compares such a law with what the defaults
answer; with a model that is trusted only where agreement is `uneven`. What differs by position looks like errors that
are shared, but only if it is positions does every source become more predictable from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from dugong.fit.em import EM, EMResult, Ties, expectation_maximisation, normalised
from dugong.fit.groups import concentrations
from dugong.fit.passes import Passes
from dugong.infer.answers import posterior
from dugong.law import ExpectedCounts, Law
from dugong.law.parameters import Conditional, Factor, Temporal
from dugong.tasks import Element
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes, class_indices

_TABLES = ("table", "marginal", "first", "step")
_ROUNDS = 5  # for the table of a source that was left out
_LEAN = 10.0  # votes' worth of the table of all positions in it
CLEAR = 2.0  # standard errors
FEWEST = 4  # sources on elements: some labels explain any three
BY_CHANCE = 1e-3  # probability that positions which are alike are looked at more closely
FEWEST_SEQUENCES = 500  # fewer do not tell what differs by position from chance, source by source


def untie(data: Passes, law: Law, n_positions: Mapping[str, int], settings: EM, ties: Ties) -> EMResult:
    """E/M steps with tables by position for the sources that are named, until the likelihood gains next to nothing."""
    start = _changed(law, {one.source: _tiled(one, n_positions[one.source]) for one in _named(law, n_positions)})

    def lean(law: Law, counts: ExpectedCounts) -> Law:
        pooled = ties.pool(counts, law.parameters).factors
        own = {one.source: _leaning(one, pooled[one.source]) for one in _named(law, n_positions)}
        return _changed(law, {name: one for name, one in own.items() if name not in ties.known})

    return expectation_maximisation(data, start, settings, ties=ties, then=lean)


def _named(law: Law, names: Mapping[str, int]) -> list[Conditional | Temporal]:
    """The factors of some sources that can have tables by position: not those that follow another resolution."""
    found = (one for one in law.parameters.factors if one.source in names)
    return [one for one in found if isinstance(one, Conditional | Temporal)]


def _changed(law: Law, factors: Mapping[str, Factor]) -> Law:
    every = tuple(factors.get(one.source, one) for one in law.parameters.factors)
    return replace(law, parameters=replace(law.parameters, factors=every))


def _tiled(factor: Conditional | Temporal, n_positions: int) -> Conditional | Temporal:
    tables = {name: getattr(factor, name, None) for name in _TABLES}
    wide: dict[str, Any] = {
        name: np.broadcast_to(one, (n_positions, *one.shape)) for name, one in tables.items() if one is not None
    }
    return replace(factor, by_position=True, **wide)


def _leaning(factor: Conditional | Temporal, counts: Mapping[str, FloatArray]) -> Conditional | Temporal:
    """The factor with tables of expected votes by position, leaning on their mean as far as positions are alike."""
    found: dict[str, Any] = {}
    for name, seen in counts.items():
        if getattr(factor, name, None) is not None:
            axis = 1 + (name == "step")  # of the vote's own label
            votes, old = (np.moveaxis(one, axis, 1) for one in (seen, np.asarray(getattr(factor, name))))
            mean = normalised(votes.sum(axis=0), old.mean(axis=0))
            weights = concentrations(votes, mean).reshape(-1, *(1,) * (mean.ndim - 1))
            found[name] = np.moveaxis(normalised(votes + weights * mean, old), 1, axis)
    return replace(factor, **found)


# --- whether it is positions ------------------------------------------------------------------------------------------
def uneven(votes: Votes) -> bool:
    """Whether two sources on elements agree more often at some positions than at others, beyond chance.

    A look at votes of equal length that costs next to nothing, before a law with tables by position is fitted. Labels
    that last make agreement alike at neighbouring positions, so that chance is granted rather too much.
    """
    names = [info.name for info in votes.sources if isinstance(info.resolution, Element)]
    codes = np.stack([class_indices(votes, votes.column(name), votes.n_classes) for name in names])
    codes = codes.reshape(len(names), votes.n_sequences, -1).transpose(2, 0, 1)
    both, same = np.zeros((2, len(codes), len(names), len(names)))
    for place in range(votes.n_classes):
        said = (codes == place).astype(np.float32)  # counts below 2 ** 24 are exact
        same += said @ said.swapaxes(1, 2)
    named = ((codes >= 0) & (codes < votes.n_classes)).astype(np.float32)
    both += named @ named.swapaxes(1, 2)
    share = same.sum(axis=0) / np.maximum(both.sum(axis=0), 1)
    squares = ((same - both * share) ** 2 / np.maximum(both * share * (1 - share), 1e-9)).sum(axis=0)
    pairs = np.tril_indices(len(names), -1)
    return bool(chdtrc(len(codes) - 1, squares[pairs].max()) < BY_CHANCE / len(pairs[0]))


def explained(votes: Votes, law: Law, cautious: Law, n_threads: int | None = None) -> float:
    """Standard errors by which the law predicts the source better for which this is least, each left out in turn.

    Both predict through a table by position of the source itself, so that what counts is how right labels are. The
    errors are over sequences.
    """
    owners, least = np.repeat(np.arange(votes.n_sequences), votes.lengths), np.inf
    for info in votes.sources:
        if isinstance(info.resolution, Element) and least >= CLEAR:  # one that is not clear decides
            rest = votes.select(sources=[name for name in votes.source_names if name != info.name])
            asked = [posterior(one, rest, n_threads=n_threads)[Element()] for one in (law, cautious)]
            voted, (new, old) = _scores(votes, info.name, asked)
            sums = np.bincount(owners[voted], new - old)
            least = min(least, sums.sum() / max(float(np.sqrt((sums - sums.mean()) @ (sums - sums.mean()))), 1e-300))
    return float(least)


def _scores(votes: Votes, name: str, labels: list[FloatArray]) -> tuple[IntArray, list[FloatArray]]:
    """Where a source names a class, and log P(that vote) by several labels, each through its best table."""
    codes, places = class_indices(votes, votes.column(name), votes.n_classes), votes.layout(Element()).positions()
    voted = np.flatnonzero((codes >= 0) & (codes < votes.n_classes))
    codes, places = codes[voted], places[voted]
    cells = places * votes.n_classes + codes
    shape, found = (int(places.max(initial=0)) + 1, votes.n_classes, votes.n_classes), []
    for one in labels:
        weights = own = one[voted]
        for _ in range(_ROUNDS):
            counts = np.stack([np.bincount(cells, w, shape[0] * shape[2]) for w in weights.T]).reshape(-1, *shape[::2])
            table = counts + _LEAN * normalised(counts.sum(axis=1, keepdims=True), np.full((1, 1, 1), 1 / shape[1]))
            chances = (table / table.sum(axis=2, keepdims=True))[:, places, codes].T
            joint = own * chances
            weights = joint / (joint.sum(axis=1, keepdims=True) + 1e-300)
        found.append(np.log(joint.sum(axis=1) + 1e-300))
    return voted, found
