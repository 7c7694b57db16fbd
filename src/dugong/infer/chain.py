"""The product engine: exact inference for sequences of any length, linear in their length.

In: prepared votes. Out: an engine (see `runs`) whose state space is a product of automata (`product`); the work is done
block by block of sequences by `_kernels`. Right for every dependency there is, and the only one for sources that look
at the label of a coarser task; its states multiply where windows overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer import _kernels as kernels
from dugong.infer.blocks import BLOCK, report_impossible
from dugong.infer.factors import Channel
from dugong.infer.prepare import Codes, Prepared, VotesBlock
from dugong.infer.product import Coarse, Machine, Space, cumulated, different_paths, explore
from dugong.infer.runs import BlockAnswer
from dugong.priors.chain import MOST_STATES, positive_class
from dugong.tasks import Element, Layout, Resolution, describe
from dugong.types import FloatArray, Int8Array, IntArray


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
        n_classes, way = self.prepared.n_classes, self._way(block)
        labels = self.machine.pairs if counting else self.machine.pairs[:0]
        likelihood = np.zeros(len(block.layouts[0].lengths))
        mass, transitions = np.zeros(len(block.emissions.values)), np.zeros((len(likelihood), n_classes, n_classes))
        pairs = transitions.reshape(len(likelihood), n_classes * n_classes)
        self._check(begin, kernels.smooth(way, *self._scratch(way), mass, likelihood, labels, pairs))
        parts = self.prepared.codes.pieces(mass, block.layouts)
        return BlockAnswer(parts=parts, transitions=transitions, log_likelihood=likelihood)

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior; of the most likely ones without a generator."""
        labels, way = np.zeros((n_draws, block.layouts[0].n_tasks), dtype=np.int8), self._way(block)
        if rng is None:
            logs = way._replace(weights=np.log(way.weights), likelihood=block.emissions.logs())
            failed = kernels.find_best(logs, *self._scratch(way), labels[0])
        else:
            failed = kernels.draw(way, *self._scratch(way), rng.random(labels.shape), labels)
        self._check(begin, failed)
        return labels

    def _way(self, block: VotesBlock) -> kernels.BlockWay:
        """The way of a block through the product, and what every kernel reads about it."""
        machine, codes = self.machine, self.prepared.codes
        # Sequences of one length share a path, so that tables are by path and not by sequence.
        paths, begins = different_paths(block.layouts)
        steps = machine.steps_along(paths)
        layers, lengths = machine.following[steps], block.layouts[0].lengths
        counts, weighings = _weighings(paths, layers, machine, codes)
        rows = np.zeros((len(steps) + 1, 3), dtype=np.int64)
        rows[:-1, 0], rows[:-1, 1], rows[:, 2] = machine.sizes[layers], machine.step_first[steps], cumulated(counts)
        return kernels.BlockWay(
            sequences=np.column_stack([lengths, begins, *codes.begins(block.layouts)]).astype(np.int64),
            path=rows,
            weighings=weighings,
            widest=int(machine.sizes.max()),
            longest=int(np.diff(cumulated(rows[:-1, 0])[paths[0].offsets]).max(initial=0)),
            codes=machine.codes.reshape(-1),
            pointers=machine.pointers,
            targets=machine.targets,
            weights=machine.weights,
            likelihood=block.emissions.values,
            power=block.emissions.all_powers(),
        )

    @staticmethod
    def _scratch(way: kernels.BlockWay) -> tuple[FloatArray, IntArray]:
        """Room for one value and one integer per state of a path, of layer 0, and of two more elements."""
        size = 1 + way.longest + 2 * way.widest
        return np.empty(size), np.empty(size, dtype=np.int64)

    def _check(self, begin: int, failed: int) -> None:
        if failed >= 0:
            report_impossible(self.prepared.votes, begin + failed)


def build(prepared: Prepared, most_states: int = MOST_STATES, *, partly: bool = False) -> ProductEngine:
    """Build the product of the resolutions that have votes, or are wanted, and walk all sequences through it.

    Partly: an engine for those sequences alone that need no more states; `ProductEngine.n_bytes` says which.
    """
    coarse = tuple(_coarse(prepared, resolution) for resolution in prepared.resolutions[1:])
    space = Space(prepared.chain, prepared.lag, coarse, prepared.codes.channels, most_states)
    if any(layout.spans is not None for layout in prepared.layouts):
        return ProductEngine(prepared=prepared, machine=explore(space, prepared.layouts, partly=partly))
    lengths = np.unique(prepared.votes.lengths).tolist()
    return ProductEngine(prepared=prepared, machine=_explore_lengths(space, tuple(lengths), partly=partly))


# The passes of a fit ask for the same product again and again: it depends on lengths, not on votes or tables.
@lru_cache(maxsize=4)
def _explore_lengths(space: Space, lengths: tuple[int, ...], *, partly: bool) -> Machine:
    one_of_each = np.array(lengths, dtype=np.int64)
    layouts = tuple(Layout.of(where, one_of_each) for where in (Element(), *(one.resolution for one in space.coarse)))
    return explore(space, layouts, partly=partly)


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


def _weighings(
    paths: tuple[Layout, ...], layers: IntArray, machine: Machine, codes: Codes
) -> tuple[IntArray, IntArray]:
    """How many tasks are weighed at every element of the paths, and the weighings, by element and channel."""
    # At its last element, because the label of a task is known then: its own votes, then those of coarse tasks.
    last = [layout.flat_bounds()[1] - 1 for layout in paths]
    counts = np.zeros(len(layers), dtype=np.int64)
    for place in codes.places:
        counts[last[place]] += 1
    free = np.cumsum(counts) - counts
    table = np.empty((int(counts.sum()), 3), dtype=np.int64)
    for channel, (place, width) in enumerate(zip(codes.places, codes.widths, strict=True)):
        at = free[last[place]]
        table[at, 0] = machine.code_first[layers[last[place]]] + channel * machine.codes.shape[1]
        table[at, 1] = channel
        table[at, 2] = paths[place].positions() * width
        free[last[place]] += 1
    return counts, table
