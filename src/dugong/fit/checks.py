"""Does a given prior fit the votes? Class balance by third moments, stickiness by lagged ones (METHOD 3.6).

In: votes on elements with two classes, a prior, and which sources depend on which. Out: notes where the votes say
something else than the prior by far more than chance, with both numbers and the remedy. Neither number needs the prior:
the skewness of the label is the third centred moment of three independent votes over the product of their slopes, and
its correlation with the next label is that of two sources one element apart over that on the same element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dugong.fit.result import Note
from dugong.graph import SourceGraph
from dugong.priors import Prior
from dugong.sums import Grouping, Laws, Shapes
from dugong.tasks import Element
from dugong.tasks.layout import ranges
from dugong.types import MISSING, BoolArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes

_FEWEST_SOURCES, _MOST_SOURCES = 3, 8  # those with most votes: triples of more would tell little else
_MOST_ELEMENTS = 1 << 14
_FEWEST_GROUPS = 8
# Both must be exceeded: standard errors, so that a right prior is hardly ever doubted, and a size that matters.
_STANDARD_ERRORS = 4.0
_ODDS, _STAYING = 1.5, 0.1
_ROUNDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMoment:
    """A number about labels as the prior and the votes have it, with the standard error of the latter."""

    given: float
    found: float
    error: float


def check_prior(
    votes: Votes, grouping: Grouping, prior: Prior, graph: SourceGraph, accuracies: Mapping[str, FloatArray]
) -> tuple[Note, ...]:
    """Notes where the votes contradict a given prior; none where they cannot tell."""
    if votes.n_classes != 2:
        return ()
    moments = measure(votes, grouping, prior, graph, accuracies)
    if moments is None:
        return ()
    balance, staying = moments
    odds = [p / (1 - p) for p in np.clip((balance.given, balance.found), 1e-6, 1 - 1e-6)]
    # Whether chance cannot explain a difference; an infinite error explains any.
    far, late = (abs(one.found - one.given) > _STANDARD_ERRORS * one.error for one in moments)
    said = []
    if far and max(odds) > _ODDS * min(odds):
        said.append(f"{balance.found:.1%} +- {balance.error:.1%} positive, where the prior says {balance.given:.1%}")
    if late and abs(staying.found - staying.given) > _STAYING:
        said.append(
            f"a correlation of {staying.found:.2f} +- {staying.error:.2f} between a label and the next, where the "
            f"prior says {staying.given:.2f}"
        )
    if not said:
        return ()
    positive, memory = np.clip(balance.found, 0.01, 0.99), np.clip(staying.found, 0.0, 0.99)
    stay = f", or priors.Markov(positive={positive:.2g}, stay={positive + memory * (1 - positive):.2g})"
    text = (
        f"the votes contradict the prior: they say {' and '.join(said)}. Most likely the prior is of other data: try "
        f'prior="learn"{stay if np.isfinite(staying.error) else ""}. It may also be that sources depend on each other '
        'in ways that were not declared: dependencies="learn" looks for them'
    )
    return (Note(kind="contradiction", where="prior", text=text, size=abs(balance.found - balance.given)),)


def measure(
    votes: Votes, grouping: Grouping, prior: Prior, graph: SourceGraph, accuracies: Mapping[str, FloatArray]
) -> tuple[LabelMoment, LabelMoment] | None:
    """Share of positives, correlation of a label with the next; None with fewer than three independent sources."""
    places, cuts = _sample(votes, grouping)
    chosen = _independent(votes, graph, places)
    parts = graph.components()
    apart = np.array([[parts[one] != parts[other] for other in chosen] for one in chosen])
    if len({parts[name] for name in chosen}) < _FEWEST_SOURCES or len(cuts) - 1 < _FEWEST_GROUPS:
        return None
    # Of a table by position, that of its mean.
    tables = [accuracies[name].reshape(-1, *accuracies[name].shape[-2:]).mean(axis=0) for name in chosen]
    signs = np.array([-1.0, 1.0])
    slopes = np.array([signs @ one[:, :2] @ signs / 2 if one.shape == (2, 3) else 0.0 for one in tables])
    skews, memories = _solve(votes, chosen, (places, cuts), apart, slopes)
    positives = (1 - skews / np.sqrt(4 + skews**2)) / 2
    # Of the jackknife: the first number is that of all groups, the others are those without each.
    errors = [float(np.sqrt((len(one) - 2) * np.var(one[1:]))) for one in (positives, memories)]
    lasting = any(name in graph.temporal for name in chosen)
    balance, memory = _said(prior, votes)
    return (
        LabelMoment(given=balance, found=float(positives[0]), error=errors[0]),
        LabelMoment(given=memory, found=float(memories[0]), error=np.inf if lasting else errors[1]),
    )


def _sample(votes: Votes, grouping: Grouping) -> tuple[IntArray, IntArray]:
    """Elements of every group, of very many the first ones, one group after the other; where each group begins.

    Group 0 is what was left over when groups were made; it takes no part.
    """
    # Runs of elements, not elements, are sorted: this must not take longer than the fit that it is about.
    owners = np.flatnonzero((grouping.base > 0) & (votes.lengths > 0))
    starts, sizes, groups = votes.layout("element").offsets[owners], votes.lengths[owners], grouping.base[owners]
    blocks = grouping.blocks[owners]
    if (blocks > 1).any():
        inside, lengths = ranges(np.zeros_like(blocks), blocks), np.repeat(sizes, blocks)
        starts, groups, blocks = (np.repeat(one, blocks) for one in (starts, groups, blocks))
        begins, ends = (-(-(inside + late) * lengths // blocks) for late in (0, 1))
        starts, sizes, groups = starts + begins, ends - begins, groups + inside
    # Sorting 16-bit numbers is a radix sort, several times as fast as comparing them.
    groups = groups.astype(np.uint16) if grouping.n_groups < 1 << 16 else groups
    order = np.argsort(groups, kind="stable")
    sizes, groups = sizes[order], groups[order]
    first = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])) if len(groups) else np.zeros(0, dtype=np.int64)
    before = np.cumsum(sizes) - sizes
    before -= np.repeat(before[first], np.diff(np.append(first, len(groups))))
    taken = np.clip(max(_MOST_ELEMENTS // max(len(first), 1), 1) - before, 0, sizes)
    kept = np.flatnonzero(taken)
    each = np.add.reduceat(taken, first) if len(first) else taken
    return ranges(starts[order[kept]], taken[kept]), np.append(0, np.cumsum(each[each > 0]))


def _independent(votes: Votes, graph: SourceGraph, places: IntArray) -> list[str]:
    """Sources on elements that do not repeat themselves, of many those with most votes in a sample."""
    names = [info.name for info in votes.sources if isinstance(info.resolution, Element)]
    once = [name for name in names if name not in graph.temporal]
    # Where a prior is wrong, a search for dependencies takes what labels do in time for repeated errors of all sources.
    # On the same element those hardly matter: the balance can still be looked at.
    names = once if len(once) >= _FEWEST_SOURCES else names
    if len(names) <= _MOST_SOURCES:
        return names
    n_votes = {name: int(np.count_nonzero(np.abs(votes.column(name)[places]) == 1)) for name in names}
    return sorted(names, key=lambda name: (-n_votes[name], name))[:_MOST_SOURCES]


def _products(left: FloatArray, right: FloatArray, cuts: IntArray) -> FloatArray:
    """Sums of left_j right_k over all groups, then over all but each, (1 + n_groups, rows of left, rows of right)."""
    each = np.stack([left[:, a:b] @ right[:, a:b].T for a, b in pairwise(cuts)]).astype(np.float64)
    whole = each.sum(axis=0)
    return np.concatenate([whole[np.newaxis], whole - each])


def _solve(
    votes: Votes, chosen: list[str], sample: tuple[IntArray, IntArray], apart: BoolArray, slopes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Skewness of the label, and its correlation with the next, (1 + n_groups,) each."""
    columns = [votes.column(name) for name in chosen]
    covariances, third = _same_task(columns, *sample)
    # Only elements that have one before them.
    (places, cuts), offsets = sample, votes.layout("element").offsets
    follows = np.ones(votes.n_elements, dtype=np.bool_)
    follows[offsets[:-1][votes.lengths > 0]] = False
    follows = follows[places]
    memory = _lagged(columns, places[follows], np.append(0, np.cumsum(follows))[cuts])
    both = apart.astype(np.float64)
    memory, covariances = (memory + memory.swapaxes(1, 2)) / 2 * both, covariances * both
    # Slopes in units of the label's own spread, from the covariances alone: a wrong prior has no part in them.
    units = np.tile(slopes + 1e-3, (len(covariances), 1))
    for _ in range(_ROUNDS):
        shared = np.matmul(covariances, units[..., np.newaxis])[..., 0]
        units = (units + shared / np.maximum((units * units) @ both, 1e-12)) / 2
    product = np.einsum("ra,rb,rc->rabc", units, units, units)
    product *= both[:, :, np.newaxis] * both[:, np.newaxis] * both
    tops, bottoms = np.einsum("rabc,rabc->r", third, product), np.einsum("rabc,rabc->r", product, product)
    together = (memory * covariances).sum(axis=(1, 2)) / np.maximum((covariances**2).sum(axis=(1, 2)), 1e-300)
    return np.asarray(tops / np.maximum(bottoms, 1e-300)), np.asarray(together)


def _read(columns: list[Int8Array], places: IntArray) -> tuple[FloatArray, FloatArray]:
    """Votes of some elements as -1, 0 and +1, and who was asked, (m, n) each; one row where all were asked."""
    codes = np.stack([column[places] for column in columns])
    # Half as long numbers hold sums of so few ones exactly.
    values = (codes * (np.abs(codes) == 1)).astype(np.float32)
    asked = codes != MISSING
    return values, np.ones_like(values[:1]) if asked.all() else asked.astype(np.float32)


def _monomials(rows: FloatArray) -> FloatArray:
    """One, every row, and the products of all pairs of rows."""
    products = [rows[place] * rows[place + 1 :] for place in range(len(rows))]
    return np.concatenate([np.ones_like(rows[:1]), rows, *products])


def _same_task(columns: list[Int8Array], places: IntArray, cuts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Covariances and third centred moments of votes on the same element, (1 + n_groups, m, m) and (..., m, m, m).

    Third moments are of three different votes: those with a vote twice are zero.
    """
    values, asked = _read(columns, places)
    m = len(values)
    counts = _products(_monomials(asked) if len(asked) == m else asked, asked, cuts)
    found = _products(_monomials(values), values, cuts) / np.maximum(counts, 1)
    means, pairs = found[:, 0], found[:, 1 : m + 1]
    third, (first, second) = np.zeros((len(found), m, m, m)), np.triu_indices(m, 1)
    third[:, first, second] = third[:, second, first] = found[:, m + 1 :]
    for axes in ("a,bc", "b,ac", "c,ab"):
        third -= np.einsum(f"r{axes.replace(',', ',r')}->rabc", means, pairs)
    third += 2 * np.einsum("ra,rb,rc->rabc", means, means, means)
    return pairs - means[:, :, np.newaxis] * means[:, np.newaxis], third


def _lagged(columns: list[Int8Array], places: IntArray, cuts: IntArray) -> FloatArray:
    """Covariances of votes with those on the element before, (1 + n_groups, m, m)."""
    (x, asked_x), (y, asked_y) = (_read(columns, places - back) for back in (1, 0))
    m, sums = len(x), _products(np.concatenate([x, asked_x]), np.concatenate([y, asked_y]), cuts)
    counts = np.maximum(sums[:, m:, m:], 1)
    return np.asarray(sums[:, :m, :m] / counts - (sums[:, :m, m:] / counts) * (sums[:, m:, :m] / counts))


def _said(prior: Prior, votes: Votes) -> tuple[float, float]:
    """Share of positives, and correlation of a label with the next, as a prior has them for sequences so long."""
    laws, element, values = Laws(prior, Shapes.of(votes.lengths, {})), Element(), np.array([-1.0, 1.0])
    share = np.diag(laws.joint("same", element, element))
    spread = float(1 - (values @ share) ** 2)
    if votes.lengths.max() < 2 or spread <= 0:
        return float(share[1]), 0.0
    pairs = laws.joint("same", element, element, lag=1)
    together = float(values @ pairs @ values - (values @ pairs.sum(axis=1)) * (values @ pairs.sum(axis=0)))
    return float(share[1]), together / spread
