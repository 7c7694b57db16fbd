"""A block of sequences as a chain of steps, and its windows as groups without overlap: what the kernels read.

In: prepared votes. Out: `LocalChain`: for every element one table of weights over (state before, state), votes and
potentials included; and `WindowGroup`s: windows of one resolution that lie apart, what they count, and what the votes
on them say. Sources that look one element back only change the tables, so they cost nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.special import expit, logit

from dugong.infer.factors import Channel
from dugong.infer.patterns import one_hot
from dugong.infer.potentials import sum_by_sequence
from dugong.infer.prepare import UNIT, Prepared, VotesBlock
from dugong.priors.chain import LabelChain, positive_class
from dugong.tasks import Element, Layout, Resolution, Window
from dugong.types import BoolArray, FloatArray, IntArray

_FEW_STATES = 4  # numpy is several times as fast column by column as along rows so short
MOST_GROUPS = 8  # beyond twice as many, neighbouring windows share what they know
MOST_SHIFT = 3  # elements from one window to the next up to which it is counted beside its neighbours (`trios`)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalChain:
    """Steps of all elements of a block.

    Attributes
    ----------
    steps : (n_elements, S, S) weights, the largest of each element is one; row 0 alone at the first of a sequence
    offsets : (n_sequences + 1,) where sequences begin
    logs : (n_sequences,) logarithm of what the steps were divided by
    labels : (S,) class index of every state
    codes : by channel of the elements, what it sees at (state before, state): (S, S)
    """

    steps: FloatArray
    offsets: IntArray
    logs: FloatArray
    labels: IntArray
    codes: tuple[IntArray, ...]

    @property
    def n_states(self) -> int:
        """States of the label chain."""
        return len(self.labels)

    def spans(self, windows: IntArray) -> IntArray:
        """Elements begin..end and windows first..last of every sequence, as the kernels take them."""
        first = np.searchsorted(windows[:, 0], self.offsets)
        return np.column_stack([self.offsets[:-1], self.offsets[1:], first[:-1], first[1:]]).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowGroup:
    """Windows of one resolution that do not overlap.

    Attributes
    ----------
    place : of the resolution among all
    tasks : (W,) which tasks of the resolution these are
    windows : (W, 3) begin, end, threshold: positive if more than that many elements are counted
    counted : (S,) which states are counted
    factors : (W, 2) weight of not exceeding the threshold, and of exceeding it; the larger is one
    tops : (W,) logarithm of what the factors were divided by
    negated : whether exceeding it means that the task is negative
    """

    place: int
    tasks: IntArray
    windows: IntArray
    counted: BoolArray
    factors: FloatArray
    tops: FloatArray
    negated: bool


def states_of(chain: LabelChain, lag: int) -> tuple[LabelChain, IntArray]:
    """The label chain with states that remember enough for a source that looks `lag` elements back, and what they do.

    One less than that: the step itself knows the state before.
    """
    order = max(lag - 1, 0)
    return chain.with_memory(order) if order else (chain, np.zeros((chain.n_states, 0), int))


def make_local(prepared: Prepared, block: VotesBlock) -> LocalChain:
    """Multiply the prior's steps by what is known about every element."""
    chain, past = states_of(prepared.chain, prepared.lag)
    offsets = block.layouts[0].element_offsets
    firsts, tops = offsets[:-1][np.diff(offsets) > 0], np.zeros(offsets[-1])
    channels = [channel for channel in prepared.codes.channels if isinstance(channel.resolution, Element)]
    codes = tuple(_codes(channel, chain, past) for channel in channels)
    weights = [_near_one(prepared, block, place, tops) for place in range(len(codes))]
    # The labels of the elements are the first channel; all others look back.
    steps = _make_steps(chain, weights, codes)
    begin = chain.initial * weights[0][firsts][:, chain.labels]
    for own in weights[1:]:
        begin *= own[firsts][:, chain.labels]  # without a label before, the code is that of the label
    # A first element has no state before: row 0 stands for the beginning.
    steps[firsts] = 0.0
    steps[firsts, 0] = begin
    # Column by column, because numpy reduces axes of two or three places ten times as slowly.
    top = reduce(np.maximum, steps.reshape(len(steps), chain.n_states**2).T)
    top[top <= 0] = 1.0
    steps /= top[:, None, None]
    tops += np.log(top)
    logs = sum_by_sequence(tops, offsets)
    return LocalChain(steps=steps, offsets=offsets, logs=logs, labels=chain.labels, codes=codes)


def _make_steps(chain: LabelChain, weights: list[FloatArray], codes: tuple[IntArray, ...]) -> FloatArray:
    """Weights of (state before, state) at every element, (n_elements, S, S)."""
    if chain.n_states > _FEW_STATES:
        steps = chain.transition * weights[0][:, None, chain.labels]
        for own, seen in zip(weights[1:], codes[1:], strict=True):
            steps *= own[:, seen]
        return np.asarray(steps)
    steps = np.empty((len(weights[0]), *chain.transition.shape))
    for i, j in np.ndindex(chain.transition.shape):
        column = weights[0][:, chain.labels[j]] * chain.transition[i, j]
        for own, seen in zip(weights[1:], codes[1:], strict=True):
            column *= own[:, seen[i, j]]
        steps[:, i, j] = column
    return steps


def _codes(channel: Channel, chain: LabelChain, past: IntArray) -> IntArray:
    """What a channel of the elements sees in (state before, state)."""
    if not channel.lag:
        return np.tile(chain.labels, (chain.n_states, 1))
    before = chain.labels if channel.lag == 1 else np.maximum(past[:, channel.lag - 2], 0)
    return np.asarray(before[:, None] * chain.n_classes + chain.labels)


def _near_one(prepared: Prepared, block: VotesBlock, channel: int, tops: FloatArray) -> FloatArray:
    """Likelihoods by task and code as plain numbers; what they are divided by goes to `tops`, as a logarithm."""
    codes, emissions = prepared.codes, block.emissions
    values = codes.pieces(emissions.values, block.layouts)[channel]
    if emissions.powers is None:
        return np.asarray(values)
    powers = codes.pieces(emissions.powers, block.layouts)[channel]
    if not powers.any():
        return np.asarray(values)
    with np.errstate(divide="ignore"):
        logs = np.log(values) + powers * UNIT
    most = logs.max(axis=1)
    tops += most
    return np.asarray(np.exp(logs - most[:, None]))


def label_parts(prepared: Prepared, local: LocalChain, pairs: FloatArray, *, counting: bool = True) -> list[FloatArray]:
    """Posterior by channel of the elements from that of pairs of states, (n_elements, codes) each.

    Only counts ask for channels that look back; they are empty otherwise.
    """
    n_classes = prepared.n_classes
    states = reduce(np.add, np.moveaxis(pairs, 1, 0))
    labels = states if np.array_equal(local.labels, np.arange(n_classes)) else states @ one_hot(local.labels, n_classes)
    found = [labels]
    firsts = local.offsets[:-1][np.diff(local.offsets) > 0]
    if not counting:
        return [labels, *(np.zeros((0, n_classes * n_classes)) for _ in local.codes[1:])]
    for seen in local.codes[1:]:
        part, size = pairs.reshape(len(pairs), seen.size), n_classes * n_classes
        part = part.copy() if np.array_equal(seen.reshape(-1), range(size)) else part @ one_hot(seen.reshape(-1), size)
        part[firsts] = 0.0
        part[firsts, :n_classes] = labels[firsts]
        found.append(part)
    return found


def label_pairs(local: LocalChain, pairs: FloatArray, n_classes: int) -> FloatArray:
    """Expected pairs of labels by sequence, (n_sequences, K, K): those of all elements but the first."""
    n_states, filled = local.n_states, np.diff(local.offsets) > 0
    firsts, total = local.offsets[:-1][filled], np.zeros((len(filled), n_states, n_states))
    total[filled] = np.add.reduceat(pairs, firsts, axis=0) - pairs[firsts] if filled.any() else 0.0
    if np.array_equal(local.labels, np.arange(n_classes)):
        return total
    hot = one_hot(local.labels, n_classes)
    return np.asarray(hot.T @ total @ hot)


# --- windows -------------------------------------------------------------------------------------------------------
def make_groups(prepared: Prepared, block: VotesBlock, resolution: Resolution) -> list[WindowGroup]:
    """The windows of a resolution in groups without overlap: as many as there are windows open at a time."""
    assert not isinstance(resolution, Element)
    place = prepared.resolutions.index(resolution)
    layout = block.layouts[place]
    begin, end = layout.flat_bounds()
    positive = positive_class(resolution, prepared.n_classes, prepared.votes.class_names)
    chain, _ = states_of(prepared.chain, prepared.lag)
    # All are positive: none is of another class. So "all" counts the others, and is the opposite of "any".
    negated = resolution.link == "all"
    threshold = (end - begin) // 2 if resolution.link == "majority" else np.zeros_like(begin)
    factors, tops = _factors(prepared, block, place)
    factors = factors[:, ::-1] if negated else factors
    # Windows as many apart as are open at a time do not overlap: their places, counted round, are the groups.
    colour = layout.positions() % n_groups(layout)
    return [
        WindowGroup(
            place=place,
            tasks=tasks,
            windows=np.column_stack([begin, end, threshold])[tasks],
            counted=(chain.labels != positive) if negated else (chain.labels == positive),
            factors=np.ascontiguousarray(factors[tasks]),
            tops=tops[tasks],
            negated=negated,
        )
        for tasks in (np.flatnonzero(colour == one) for one in range(n_groups(layout)))
    ]


def n_groups(layout: Layout) -> int:
    """How many windows are open at a time; two more where trios of neighbours have to lie apart as well."""
    resolution = layout.resolution
    if not isinstance(resolution, Window):
        return 1
    n_open = -(-resolution.size // resolution.stride)
    return n_open + 2 if resolution.stride <= MOST_SHIFT and 3 <= n_open <= 2 * MOST_GROUPS - 2 else n_open


def pool(groups: list[WindowGroup], offsets: IntArray) -> tuple[list[WindowGroup], list[WindowGroup]]:
    """Where very many windows are open at a time, neighbours share the one in their middle, with all their votes.

    Their labels differ in few elements, and costs grow with the number of groups. Also returns groups of the windows
    half-way between, and of the last ones, which together with the former tell about all others (`spread`). `offsets`
    say where sequences begin.
    """
    if len(groups) <= 2 * MOST_GROUPS:
        return groups, []
    run, every = -(-len(groups) // MOST_GROUPS), joined(groups)
    # Runs of neighbours begin anew in every sequence.
    owners = np.searchsorted(offsets, every.windows[:, 0], side="right")
    positions = np.arange(len(owners)) - np.searchsorted(owners, owners)
    first = np.flatnonzero(positions % run == 0)
    last = np.append(first[1:], len(owners))
    middle = (first + last - 1) // 2
    with np.errstate(divide="ignore"):
        summed = np.add.reduceat(np.log(every.factors), first, axis=0)
    most = np.where(np.isfinite(summed.max(axis=1)), summed.max(axis=1), 0.0)
    factors, tops = np.exp(summed - most[:, None]), np.add.reduceat(every.tops, first) + most
    shared = replace(only(every, middle), factors=factors, tops=tops)
    # One colour for windows that lie apart: as many runs as fit into a window, and one more for those that are cut.
    colour = (positions[first] // run) % (-(-len(groups) // run) + 1)
    ends = np.flatnonzero(np.append(np.diff(owners) > 0, True))
    silent = replace(every, factors=np.ones_like(every.factors), tops=np.zeros(len(owners)))
    between = [only(silent, first[colour == one]) for one in np.unique(colour)]
    return [only(shared, colour == one) for one in np.unique(colour)], [*between, only(silent, ends)]


def joined(groups: list[WindowGroup]) -> WindowGroup:
    """The windows of some groups of a resolution in their order, whether they overlap or not."""
    order = np.argsort(np.concatenate([group.tasks for group in groups]))
    tasks, windows, factors, tops = (
        np.concatenate([getattr(group, name) for group in groups])[order]
        for name in ("tasks", "windows", "factors", "tops")
    )
    return replace(groups[0], tasks=tasks, windows=windows, factors=factors, tops=tops)


def only(group: WindowGroup, keep: BoolArray | IntArray) -> WindowGroup:
    """Some windows of a group."""
    return replace(
        group,
        tasks=group.tasks[keep],
        windows=group.windows[keep],
        factors=np.ascontiguousarray(group.factors[keep]),
        tops=group.tops[keep],
    )


def spread(tasks: IntArray, found: FloatArray, owners: IntArray) -> FloatArray:
    """Probabilities of all tasks from those of some, in between along the sequence: neighbours differ little.

    `owners` (n_tasks,) is the sequence of every task.
    """
    every = np.arange(len(owners))
    tasks, order = np.unique(tasks, return_index=True)
    found = found[order]
    if len(tasks) == len(owners):
        return found
    after = np.minimum(np.searchsorted(tasks, every), len(tasks) - 1)
    before = np.maximum(np.searchsorted(tasks, every, side="right") - 1, 0)
    # At the ends of a sequence there is a neighbour on one side only.
    after = np.where(owners[tasks[after]] == owners, after, before)
    before = np.where(owners[tasks[before]] == owners, before, after)
    gap = np.maximum(tasks[after] - tasks[before], 1)
    share = (every - tasks[before]) / gap
    # Between two windows the expected count moves about evenly, and with it the log-odds, not the probability.
    odds = logit(np.clip(found, 1e-12, 1 - 1e-12))
    return np.asarray(expit(odds[before] * (1 - share) + odds[after] * share))


def _factors(prepared: Prepared, block: VotesBlock, place: int) -> tuple[FloatArray, FloatArray]:
    """What the votes on the tasks of a coarse resolution say; the larger of two is one."""
    channel = prepared.codes.places.index(place)
    tops = np.zeros(block.layouts[place].n_tasks)
    found = _near_one(prepared, block, channel, tops)
    most = found.max(axis=1)
    most = np.where(most > 0, most, 1.0)
    return np.asarray(found / most[:, None]), tops + np.log(most)
