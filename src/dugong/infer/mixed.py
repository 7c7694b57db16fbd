"""Two engines for one batch: the product for sequences where it is small, propagation for the others.

In: both engines, and which sequences are small. Out: an engine (see `runs`). A sequence gets the same answer alone and
among any others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.infer.chain import ProductEngine
from dugong.infer.grouped import WindowEngine
from dugong.infer.prepare import Prepared, VotesBlock
from dugong.infer.runs import BlockAnswer, BlockEngine
from dugong.types import BoolArray, Int8Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedEngine:
    """Exact about the small sequences."""

    product: ProductEngine
    windows: WindowEngine
    small: BoolArray
    exact: bool = False

    @property
    def prepared(self) -> Prepared:
        """The votes."""
        return self.windows.prepared

    @property
    def block_size(self) -> int:
        """Elements of one block."""
        return self.windows.block_size

    def read(self, begin: int, end: int) -> VotesBlock:
        """The votes of some sequences."""
        return self.windows.read(begin, end)

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        found = [engine.smooth(part, first, counting=counting) for engine, part, first in self._parts(block, begin)]
        return BlockAnswer(
            parts=[np.concatenate(parts) for parts in zip(*(one.parts for one in found), strict=True)],
            transitions=np.concatenate([one.transitions for one in found]) if counting else found[0].transitions,
            log_likelihood=np.concatenate([one.log_likelihood for one in found]),
        )

    def find_best(self, block: VotesBlock, begin: int) -> Int8Array:
        """Class indices of the most likely joint labels."""
        return np.concatenate([engine.find_best(part, first) for engine, part, first in self._parts(block, begin)])

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior."""
        found = [engine.draw(part, first, rng, n_draws) for engine, part, first in self._parts(block, begin)]
        return np.concatenate(found, axis=1)

    def _parts(self, block: VotesBlock, begin: int) -> list[tuple[BlockEngine, VotesBlock, int]]:
        """Runs of sequences that one engine answers about: the engine, their votes, and the first of them."""
        small = self.small[begin : begin + len(block.layouts[0].lengths)]
        edges = [0, *(np.flatnonzero(np.diff(small)) + 1).tolist(), len(small)]
        engines = [self.product if small[edge] else self.windows for edge in edges[:-1]]
        if len(engines) == 1:
            return [(engines[0], block, begin)]
        return [
            (engine, engine.read(begin + first, begin + last), begin + first)
            for engine, first, last in zip(engines, edges[:-1], edges[1:], strict=True)
        ]
