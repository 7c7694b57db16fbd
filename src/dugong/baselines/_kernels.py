"""Compiled Gibbs sampling for data programming: arrays in, sums of factors out.

Given the label y of an element, source j votes for y with weight exp(propensity[j] + accuracy[j]), for each other
class with exp(propensity[j]), and abstains with weight 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dugong.types import AnyArray, FloatArray, Int8Array, IntArray


@njit(cache=True, nogil=True)
def _uniform(state: AnyArray) -> float:
    """A number in [0, 1) and the next state of the generator (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _draw_label(votes: Int8Array, weights: FloatArray, balance: FloatArray, law: FloatArray, state: AnyArray) -> int:
    """A label given all votes on an element; `weights` are exp(accuracy)."""
    n_classes = len(balance)
    for y in range(n_classes):
        law[y] = balance[y]
    for j in range(len(votes)):
        if 0 <= votes[j] < n_classes:
            law[votes[j]] *= weights[j]
    total = 0.0
    for y in range(n_classes):
        total += law[y]
    level = _uniform(state) * total
    label = 0
    level -= law[0]
    while level >= 0.0 and label < n_classes - 1:
        label += 1
        level -= law[label]
    return label


@njit(cache=True, nogil=True)
def _draw_vote(label: int, right: float, wrong: float, n_classes: int, state: AnyArray) -> int:
    """A vote given the label: right with probability `right`, for each other class with `wrong`, else abstain."""
    level = _uniform(state)
    if level < right:
        return label
    place = int((level - right) / wrong) if wrong > 0.0 else n_classes
    if place >= n_classes - 1:
        return n_classes
    return place if place < label else place + 1


@njit(cache=True, nogil=True)
def train_epoch(
    codes: Int8Array,
    known: Int8Array,
    order: IntArray,
    chains: Int8Array,
    accuracy: FloatArray,
    propensity: FloatArray,
    balance: FloatArray,
    rate: float,
    bound: float,
    mean_accuracy: FloatArray,
    mean_propensity: FloatArray,
    state: AnyArray,
) -> None:
    """One pass over all elements in batches of ``len(chains)``, a step of the weights after each batch.

    A batch draws a label for each of its elements given the votes (or takes the known one, -1 = unknown), moves one
    free chain per element by a label and a set of votes, and steps along the difference of the mean factors. The
    means of the weights over the batches are added up in the last two arrays. `codes` (n, m) are classes, then
    abstain; -1 was not asked.
    """
    n_classes, n_sources, size = len(balance), codes.shape[1], len(chains)
    law = np.empty(n_classes)
    weights, right, wrong = np.empty(n_sources), np.empty(n_sources), np.empty(n_sources)
    up_accuracy, up_propensity, asked = np.empty(n_sources), np.empty(n_sources), np.empty(n_sources)
    n_batches = (len(order) + size - 1) // size
    for batch in range(n_batches):
        for j in range(n_sources):
            weights[j] = np.exp(accuracy[j])
            speak = np.exp(propensity[j])
            total = 1.0 + speak * (weights[j] + n_classes - 1)
            right[j], wrong[j] = speak * weights[j] / total, speak / total
            up_accuracy[j], up_propensity[j], asked[j] = 0.0, 0.0, 0.0
        for place in range(batch * size, min((batch + 1) * size, len(order))):
            element, chain = order[place], chains[place - batch * size]
            votes = codes[element]
            label = known[element]
            if label < 0:
                label = _draw_label(votes, weights, balance, law, state)
            free = _draw_label(chain, weights, balance, law, state)
            for j in range(n_sources):
                chain[j] = _draw_vote(free, right[j], wrong[j], n_classes, state)
                if votes[j] >= 0:
                    asked[j] += 1.0
                    up_accuracy[j] += (votes[j] == label) - (chain[j] == free)
                    up_propensity[j] += (votes[j] < n_classes) - (chain[j] < n_classes)
        for j in range(n_sources):
            if asked[j] > 0.0:
                accuracy[j] += rate * up_accuracy[j] / asked[j]
                propensity[j] += rate * up_propensity[j] / asked[j]
                accuracy[j] = min(max(accuracy[j], -bound), bound)
                propensity[j] = min(max(propensity[j], -bound), bound)
            mean_accuracy[j] += accuracy[j] / n_batches
            mean_propensity[j] += propensity[j] / n_batches
