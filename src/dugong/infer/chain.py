"""The product engine: exact inference for sequences of any length, linear in their length.

In: prepared votes. Out: an engine (see `runs`) whose state space is a product of automata (`product`); the work is done
block by block of sequences by `_kernels`. Right for every dependency there is, and the only one for sources that look
at the label of a coarser task; its states multiply where windows overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer import _kernels as kernels
from dugong.infer.blocks import BLOCK, report_impossible
from dugong.infer.factors import Channel
from dugong.infer.prepare import Codes, Emissions, Prepared, VotesBlock
from dugong.infer.product import Coarse, Machine, Product, cumulated, different_paths, explore
from dugong.infer.runs import BlockAnswer
from dugong.priors.chain import MOST_STATES, LabelChain, positive_class
from dugong.tasks import Element, Layout, Resolution, describe
from dugong.types import AnyArray, Int8Array, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductEngine:
    """Votes, and the product of automata that their sequences walk through."""

    prepared: Prepared
    machine: Machine
    block_size: int = BLOCK
    exact: bool = True

    @property
    def n_bytes(self) -> IntArray:
        """Memory for the states of every sequence; negative where the product is too wide for it."""
        paths, begins = different_paths(self.prepared.layouts)
        # Of paths that begin at one place the last is the one that has elements.
        return 16 * self.machine.n_states[np.searchsorted(paths[0].offsets[:-1], begins, side="right") - 1]

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        n_classes, machine, paths = self.prepared.n_classes, self.machine, self._paths(block)
        pairs = machine.pairs if counting else machine.pairs[:0]
        likelihood = np.zeros(len(block.layouts[0].lengths))
        mass, transitions = np.zeros(len(block.emissions.values)), np.zeros((len(likelihood), n_classes, n_classes))
        failed = kernels.smooth(
            self._way(paths, block.emissions),
            *_scratch(paths),
            paths.widest,
            mass,
            likelihood,
            pairs,
            transitions.reshape(len(likelihood), n_classes * n_classes),
        )
        self._check(begin, failed)
        parts = self.prepared.codes.pieces(mass, block.layouts)
        return BlockAnswer(parts=parts, transitions=transitions, log_likelihood=likelihood)

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior; of the most likely ones without a generator."""
        labels, paths = np.zeros((n_draws, block.layouts[0].n_tasks), dtype=np.int8), self._paths(block)
        way, scratch = self._way(paths, block.emissions), _scratch(paths)
        if rng is None:
            logs = way._replace(weights=np.log(way.weights), likelihood=block.emissions.logs())
            failed = kernels.find_best(logs, *scratch, labels[0])
        else:
            failed = kernels.draw(way, *scratch, paths.widest, rng.random(labels.shape), labels)
        self._check(begin, failed)
        return labels

    def _paths(self, block: VotesBlock) -> Paths:
        return find_paths(block.layouts, self.machine, self.prepared.codes)

    def _way(self, paths: Paths, emissions: Emissions) -> kernels.BlockWay:
        """What every kernel reads."""
        machine = self.machine
        return kernels.BlockWay(
            sequences=paths.sequences,
            path=paths.rows,
            weighings=paths.weighings,
            codes=machine.codes.reshape(-1),
            pointers=machine.pointers,
            targets=machine.targets,
            weights=machine.weights,
            likelihood=emissions.values,
            power=emissions.all_powers(),
        )

    def _check(self, begin: int, failed: int) -> None:
        if failed >= 0:
            report_impossible(self.prepared.votes, begin + failed)


def build(prepared: Prepared, most_states: int = MOST_STATES, *, partly: bool = False) -> ProductEngine:
    """Build the product of the resolutions that have votes, or are wanted, and walk all sequences through it.

    Partly: an engine for those sequences alone that need no more states; `ProductEngine.n_bytes` says which.
    """
    coarse = tuple(_coarse(prepared, resolution) for resolution in prepared.resolutions[1:])
    space = _Space(prepared.chain, prepared.lag, coarse, prepared.codes.channels, most_states)
    if any(layout.spans is not None for layout in prepared.layouts):
        return ProductEngine(prepared=prepared, machine=_explore(space, prepared.layouts, partly=partly))
    lengths = np.unique(prepared.votes.lengths).tolist()
    return ProductEngine(prepared=prepared, machine=_explore_lengths(space, tuple(lengths), partly=partly))


class _Space(NamedTuple):
    """What a product is made of, and the channels that look at its states."""

    chain: LabelChain
    lag: int
    coarse: tuple[Coarse, ...]
    channels: tuple[Channel, ...]
    most_states: int


# The passes of a fit ask for the same product again and again: it depends on lengths, not on votes or tables.
@lru_cache(maxsize=4)
def _explore_lengths(space: _Space, lengths: tuple[int, ...], *, partly: bool) -> Machine:
    one_of_each = np.array(lengths, dtype=np.int64)
    layouts = tuple(Layout.of(where, one_of_each) for where in (Element(), *(one.resolution for one in space.coarse)))
    return _explore(space, layouts, partly=partly)


def _explore(space: _Space, layouts: tuple[Layout, ...], *, partly: bool) -> Machine:
    product = Product(chain=space.chain, lag=space.lag, coarse=space.coarse, most_states=space.most_states)
    return explore(product, space.channels, layouts, partly=partly)


def _coarse(prepared: Prepared, resolution: Resolution) -> Coarse:
    assert not isinstance(resolution, Element)
    if resolution.link == "joint":
        raise TaskError(
            f"labels of {describe(resolution)} follow from no element: its link is joint.\n"
            "  Give a priors.Joint table that names these tasks, or use the link any, all or majority."
        )
    channels: tuple[Channel, ...] = prepared.codes.channels
    own = [channel for channel in channels if channel.resolution == resolution]
    carries = dict.fromkeys(prepared.resolutions.index(c.parent) - 1 for c in own if c.parent is not None)
    return Coarse(
        resolution=resolution,
        link=resolution.link,
        positive=positive_class(resolution, prepared.votes.n_classes, prepared.votes.class_names),
        memory=max(channel.lag for channel in own),
        guess=any(channel.parent == resolution for channel in channels),
        carries=tuple(carries),
    )


def _scratch(paths: Paths) -> tuple[AnyArray, AnyArray]:
    """Room for one value and one integer per state of a path, of layer 0, and of two more elements."""
    size = 1 + paths.n_states + 2 * paths.widest
    return np.empty(size), np.empty(size, dtype=np.int64)


# --- The way of a block of sequences through the product, as tables for the kernels. ----------------------------------
# In: layouts of the block and the `Machine`. Out: `Paths`. Sequences that take the same way share its rows. Along it,
# the votes on a task are *weighed* when its last element is reached: its own right away, then those of coarse tasks.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Tables of a block; the kernels name their columns.

    Attributes
    ----------
    sequences : (n_sequences, 2 + n_channels) length; row where its path begins; where the likelihoods of its tasks
        begin, by channel
    rows : (n_rows + 1, 3) by element of a path: number of states; where the step to it begins in `Machine.pointers`;
        its first weighing (as many as up to that of the next row)
    weighings : (n_weighings, 3) where the codes of the states begin; channel; place among the sequence's likelihoods
    n_states : states of all elements of the longest path
    widest : states of the largest layer
    """

    sequences: IntArray
    rows: IntArray
    weighings: IntArray
    n_states: int
    widest: int


def find_paths(layouts: tuple[Layout, ...], machine: Machine, codes: Codes) -> Paths:
    """The paths of all sequences of a block."""
    # Sequences of one length share a path, so that tables are by path and not by sequence.
    ways, begins = different_paths(layouts)
    steps = machine.steps_along(ways)
    layers = machine.following[steps]
    counts, weighings = _weighings(ways, layers, machine, codes)
    rows = np.zeros((len(steps) + 1, 3), dtype=np.int64)
    rows[:-1, 0] = machine.sizes[layers]
    rows[:-1, 1] = machine.step_first[steps]
    rows[:, 2] = cumulated(counts)
    ends = cumulated(rows[:-1, 0])[ways[0].offsets]
    return Paths(
        sequences=np.column_stack([layouts[0].lengths, begins, *codes.begins(layouts)]).astype(np.int64),
        rows=rows,
        weighings=weighings,
        n_states=int(np.diff(ends).max(initial=0)),
        widest=int(machine.sizes.max()),
    )


def _weighings(ways: tuple[Layout, ...], layers: IntArray, machine: Machine, codes: Codes) -> tuple[IntArray, IntArray]:
    """How many tasks are weighed at every element, and the weighings, by element and channel."""
    # A task is weighed at its last element, because its label is known then.
    last = [layout.flat_bounds()[1] - 1 for layout in ways]
    counts = np.zeros(len(layers), dtype=np.int64)
    for place in codes.places:
        counts[last[place]] += 1
    free = np.cumsum(counts) - counts
    table = np.empty((int(counts.sum()), 3), dtype=np.int64)
    for channel, (place, width) in enumerate(zip(codes.places, codes.widths, strict=True)):
        at = free[last[place]]
        table[at, 0] = machine.code_first[layers[last[place]]] + channel * machine.codes.shape[1]
        table[at, 1] = channel
        table[at, 2] = ways[place].positions() * width
        free[last[place]] += 1
    return counts, table
