"""Who agrees with whom, and whether the model knows why.

In: votes and the tables of the model. Out: for every two sources at one resolution, the share of equal votes where
both vote, and how far that is from what the model expects: sum over labels of P(label) P(equal votes | label), from the
table of the pair where the model has one, else from the two sources as independent given the label. A pair that agrees
much more often than expected shares something beside the label.
"""

from __future__ import annotations

import numpy as np

from dugong.report.material import Material
from dugong.report.values import Agreement
from dugong.tasks import Element
from dugong.types import BoolArray, FloatArray, IntArray, read_only
from dugong.votes import Votes, class_indices

_N_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def make_agreement(material: Material) -> Agreement:
    """Observed agreement, excess over the model, and standardised residuals."""
    votes = material.votes
    n_sources = votes.n_sources
    equal, both = np.zeros((n_sources, n_sources)), np.zeros((n_sources, n_sources))
    for resolution in dict.fromkeys(source.resolution for source in votes.sources):
        members = [place for place, source in enumerate(votes.sources) if source.resolution == resolution]
        n_classes = votes.n_classes if isinstance(resolution, Element) else 2
        cells = np.ix_(members, members)
        equal[cells], both[cells] = count_equal(votes, np.array(members), n_classes)
    observed = np.divide(equal, both, out=np.full_like(equal, np.nan), where=both > 0)
    excess = observed - _expected(material)
    np.fill_diagonal(excess, np.nan)
    return Agreement(
        names=votes.source_names,
        resolutions=tuple(source.resolution.name for source in votes.sources),
        observed=read_only(observed),
        excess=read_only(excess),
        standardised=read_only(_standardised(material)),
        n_pairs=read_only(both),
    )


def count_equal(votes: Votes, members: IntArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Tasks with equal votes, and tasks on which both vote, for all pairs of sources at one resolution."""
    places = [class_indices(votes, votes.columns[place], n_classes) for place in members]
    equal = np.zeros((len(members),) * 2)
    for label in range(n_classes):
        equal += _common([one == label for one in places])
    return equal, _common([(one >= 0) & (one < n_classes) for one in places])


def _common(rows: list[BoolArray]) -> FloatArray:
    """Places at which two rows are both true, for all pairs: bits, counted by looking up bytes."""
    bits = np.stack([np.packbits(row) for row in rows])
    counts = np.zeros((len(rows), len(rows)))
    for place, row in enumerate(bits):
        counts[place, place:] = counts[place:, place] = _N_BITS[bits[place:] & row].sum(axis=1, dtype=np.int64)
    return counts


def _expected(material: Material) -> FloatArray:
    votes, model = material.votes, material.model
    expected = np.full((votes.n_sources, votes.n_sources), np.nan)
    for i, first in enumerate(votes.sources):
        balance = model.seen_.balance[first.name]
        for j, second in enumerate(votes.sources[:i]):
            if first.resolution == second.resolution:
                joint = _joint(material, first.name, second.name, len(balance))
                expected[i, j] = expected[j, i] = np.nan if joint is None else _equal_share(joint, balance)
    return expected


def _joint(material: Material, first: str, second: str, n_classes: int) -> FloatArray | None:
    """P(both votes | label), (K, C, C); None if a table is over whole patterns."""
    model = material.model
    try:
        table = model.correlations_[first, second]
    except KeyError:
        table = None
    if table is not None and table.ndim >= 3 and table.shape[-3] == n_classes:
        return np.asarray(table.reshape(-1, *table.shape[-3:]).mean(axis=0))
    tables = [_mean_table(model.accuracies_[name], n_classes) for name in (first, second)]
    if tables[0] is None or tables[1] is None:
        return None
    return np.asarray(tables[0][:, :, None] * tables[1][:, None, :])


def _mean_table(table: FloatArray, n_classes: int) -> FloatArray | None:
    mean = table.mean(axis=0) if table.ndim == 3 else table
    return mean if mean.shape[0] == n_classes else None


def _equal_share(joint: FloatArray, balance: FloatArray) -> float:
    classes = slice(0, len(balance))
    votes = joint[:, classes, classes]
    both = float(balance @ votes.sum(axis=(1, 2)))
    return float(balance @ np.einsum("kcc->k", votes)) / both if both > 0 else np.nan


def _standardised(material: Material) -> FloatArray:
    votes = material.votes
    found = np.full((votes.n_sources, votes.n_sources), np.nan)
    places = {name: place for place, name in enumerate(votes.source_names)}
    for (first, second), value in material.model.diagnostics_.residuals.items():
        if first in places and second in places:
            i, j = places[first], places[second]
            found[i, j] = found[j, i] = value
    return found
