"""Slow and obvious: laws of tasks by listing every label pattern of a sequence."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st

from dugong.priors import Joint, Markov, Patterns, Uniform
from dugong.tasks import Element, Sequence, Spans, Window

LINKS = ("any", "all", "majority")


def class_values(n_classes):
    return (-1, 1) if n_classes == 2 else tuple(range(1, n_classes + 1))


def bounds(resolution, length, spans=None):
    """Start and stop of every task of a sequence, by the rule in the documentation."""
    if length == 0:
        return []
    if isinstance(resolution, Element):
        return [(i, i + 1) for i in range(length)]
    if isinstance(resolution, Sequence):
        return [(0, length)]
    if isinstance(resolution, Spans):
        return list(spans[resolution.name])
    found, start = [], 0
    while True:
        found.append((start, min(start + resolution.size, length)))
        if start + resolution.size >= length:
            return found
        start += resolution.stride


def label(resolution, piece, pattern, n_classes):
    """Class index of a task; `pattern` holds class values."""
    start, stop = piece
    if isinstance(resolution, Element):
        return class_values(n_classes).index(pattern[start])
    counted = 1 if n_classes == 2 else resolution.of
    hits = sum(value == counted for value in pattern[start:stop])
    if resolution.link == "any":
        return int(hits > 0)
    if resolution.link == "all":
        return int(hits == stop - start)
    return int(2 * hits > stop - start)


def patterns(n_classes, length):
    return list(product(class_values(n_classes), repeat=length))


def law(prior, tasks, length, spans=None):
    """Joint law of tasks (resolution, index) by enumeration of element patterns."""
    sizes = [prior.n_classes if isinstance(r, Element) else 2 for r, _ in tasks]
    table = np.zeros(sizes)
    for pattern in patterns(prior.n_classes, length):
        cell = tuple(label(r, bounds(r, length, spans)[i], pattern, prior.n_classes) for r, i in tasks)
        table[cell] += prior.probability(pattern)
    return table


def pairs(kind, first, second, lag, length, spans=None):
    """Indices of the paired tasks of one sequence."""
    a, b = bounds(first, length, spans), bounds(second, length, spans)
    if kind == "same":
        return [(i, i + lag) for i in range(len(a)) if 0 <= i + lag < len(a)]
    return [(i, w) for w, (start, stop) in enumerate(b) for i, (at, _) in enumerate(a) if start <= at < stop]


# --- strategies ---------------------------------------------------------------------------------------------


def rows(size):
    weights = st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


def sparse_rows(size):
    weights = st.lists(st.sampled_from([0.0, 0.0, 0.3, 1.0]), min_size=size, max_size=size)
    return weights.filter(any).map(lambda w: np.array(w) / np.sum(w))


@st.composite
def markov_priors(draw, n_classes=2):
    initial = draw(rows(n_classes))
    transition = np.stack([draw(st.one_of(rows(n_classes), sparse_rows(n_classes))) for _ in range(n_classes)])
    return Markov(initial=initial, transition=transition)


@st.composite
def stationary_priors(draw):
    positive = draw(st.floats(0.02, 0.6))
    stay = draw(st.floats(max(0.0, 2 - 1 / positive) + 1e-9, 1.0))
    return Markov(positive=positive, stay=stay)


@st.composite
def pattern_priors(draw, n_classes=2):
    length = draw(st.integers(1, 4 if n_classes == 2 else 3))
    weights = draw(sparse_rows(n_classes**length))
    return Patterns(weights.reshape((n_classes,) * length))


def chain_priors(n_classes=2):
    kinds = [markov_priors(n_classes), pattern_priors(n_classes), st.just(Uniform(n_classes=n_classes))]
    if n_classes == 2:
        kinds.append(stationary_priors())
    return st.one_of(kinds)


@st.composite
def joint_priors(draw, n_elements=3):
    weights = draw(sparse_rows(2**n_elements))
    return Joint([("element", i) for i in range(n_elements)], weights.reshape((2,) * n_elements))


@st.composite
def resolutions(draw, n_classes=2):
    of = None if n_classes == 2 else draw(st.integers(1, n_classes))
    link = draw(st.sampled_from(LINKS))
    kind = draw(st.sampled_from(["element", "window", "sequence"]))
    if kind == "element":
        return Element()
    if kind == "sequence":
        return Sequence(link, of=of)
    size = draw(st.integers(1, 5))
    return Window(size, draw(st.integers(1, size)), link, of=of)


@st.composite
def span_lists(draw, length):
    cuts = sorted(draw(st.lists(st.integers(0, length), min_size=2, max_size=6, unique=True)))
    return [(a, b) for a, b in pairwise(cuts) if draw(st.booleans())]
