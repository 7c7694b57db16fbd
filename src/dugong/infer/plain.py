"""Markov chains with potentials and nothing else: their marginals, and the potentials that marginals need.

In: log-potentials (or wanted marginals) of many sequences, laid end to end. Out: marginals (or potentials). A law that
was learned as probabilities of elements answers about windows, best paths and samples as such a chain: the potentials
of `match_marginals` give it exactly those probabilities, so that no two answers contradict each other.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dugong.exceptions import PriorError
from dugong.infer.blocks import Sums, block_bounds, on_threads
from dugong.infer.packed import _kernels as kernels
from dugong.infer.potentials import soften, sum_by_sequence
from dugong.types import FloatArray, IntArray

_BLOCK = 1 << 16
_NO_VOTES = np.zeros((0, 0), dtype=np.uint16), np.zeros(0), np.zeros(1, dtype=np.int64)


def chain_marginals(
    potentials: FloatArray,
    initial: FloatArray,
    transition: FloatArray,
    offsets: IntArray,
    *,
    n_threads: int | None = None,
) -> tuple[FloatArray, Sums]:
    """Marginals (n_elements, K) of Markov chains given log-potentials, and their sums: pairs, log-likelihoods.

    `offsets` (n_sequences + 1) says where sequences begin. The cheapest way to ask a plain chain: no votes, no factors.
    """
    found, counts = np.empty(potentials.shape), Sums.none(len(initial), 0, 1)
    counts.log_likelihood = np.zeros(len(offsets) - 1)
    chain = np.array(initial, dtype=np.float64), np.array(transition, dtype=np.float64)
    work = partial(_smooth_plain, np.asarray(potentials, dtype=np.float64), chain, offsets, found, counts)
    # Added in the order of blocks: threads do not change the last digit.
    for pairs in on_threads(work, block_bounds(offsets, _BLOCK), n_threads):
        counts.transitions += pairs
    counts.initial[0] = found[offsets[:-1][np.diff(offsets) > 0]].sum(axis=0)
    counts.transitions, counts.initial = counts.transitions[0], counts.initial[0]
    return found, counts


def _smooth_plain(
    potentials: FloatArray,
    chain: tuple[FloatArray, FloatArray],
    offsets: IntArray,
    found: FloatArray,
    counts: Sums,
    bounds: tuple[int, int],
) -> FloatArray:
    """Marginals and log-likelihoods of one block in place; its expected pairs of labels."""
    own = offsets[bounds[0] : bounds[1] + 1]
    first, last, likelihood = int(own[0]), int(own[-1]), counts.log_likelihood[slice(*bounds)]
    soft, tops = soften(potentials, first, last)
    kernel = kernels.smooth_two if len(chain[0]) == 2 else kernels.smooth_many
    pairs, owners = np.zeros(counts.transitions.shape), np.zeros(len(likelihood), dtype=np.int64)
    failed = kernel(*_NO_VOTES, soft, *chain, own - first, found[first:last], likelihood, owners, pairs)
    if failed >= 0:
        raise PriorError(
            f"potentials must leave every sequence possible; sequence {bounds[0] + failed} has none of its labels left."
        )
    likelihood += sum_by_sequence(tops, own - first)
    return pairs


def match_marginals(
    targets: FloatArray,
    initial: FloatArray,
    transition: FloatArray,
    offsets: IntArray,
    *,
    tolerance: float = 1e-6,
    most_rounds: int = 200,
    n_threads: int | None = None,
) -> tuple[FloatArray, float]:
    """Log-potentials under which the marginals of the chain are `targets` (n_elements, K), and the largest gap.

    There is exactly one law with these marginals and the chain's odds ratios between neighbours, if the chain allows
    every step. Neighbours can be fitted pair by pair (see the kernel), which takes no pass along the sequence.
    """
    wanted = np.asarray(targets, dtype=np.float64)
    weights, chain = np.empty(wanted.shape), (np.array(initial, dtype=float), np.array(transition, dtype=float))

    def work(bounds: tuple[int, int]) -> float:
        own = offsets[bounds[0] : bounds[1] + 1]
        rows = slice(int(own[0]), int(own[-1]))
        settings = tolerance, most_rounds
        gap = kernels.match(wanted[rows], own - rows.start, *chain, *settings, weights[rows])
        with np.errstate(divide="ignore"):
            np.log(weights[rows], out=weights[rows])
        return float(gap)

    gaps = list(on_threads(work, block_bounds(offsets, _BLOCK), n_threads))
    return weights, max(gaps, default=0.0)
