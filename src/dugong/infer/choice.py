"""Which chain engine answers: the window engine where it is exact, the product where that is small, else propagation.

In: prepared votes and what the user asks for ("auto", "exact", "approximate"). Out: an engine. A refusal names the
cause and the remedy before any memory is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.infer import chain
from dugong.infer.chain import ProductEngine
from dugong.infer.grouped import WindowEngine
from dugong.infer.prepare import Prepared, VotesBlock, read_block
from dugong.infer.runs import BlockAnswer, BlockEngine, Smoother
from dugong.infer.short import ShortEngine
from dugong.tasks import Resolution
from dugong.types import BoolArray, Inference, Int8Array
from dugong.votes import Votes

# Beyond these a product takes several times as long as propagation, which is then exact enough to be preferred. Both
# are of one sequence alone: its answer must not depend on which others are asked about at the same time.
SMALL_STATES = 512
_SMALL_BYTES = 1 << 28
_MOST_COARSE = 10  # tasks open and close in four to the power of this many ways, each with a place in a table
_MOST_BYTES = 1 << 31


def check_inference(inference: str) -> None:
    """Raise unless this is one of the words for how exact answers must be."""
    if inference not in get_args(Inference):
        words = ", ".join(f'"{word}"' for word in get_args(Inference))
        raise GraphError(f"inference must be one of {words}; found {inference!r}.")


def choose_smoother(prepared: Prepared, inference: Inference = "auto") -> Smoother:
    """The engine that finds marginals: short sequences need no product of automata, all their patterns are few."""
    check_inference(inference)
    short = is_short(prepared.votes, prepared.resolutions, inference) and not WindowEngine(prepared).exact
    return ShortEngine(prepared=prepared) if short else choose_engine(prepared, inference)


def is_short(votes: Votes, resolutions: tuple[Resolution, ...], inference: Inference) -> bool:
    """Whether answers are exact because all patterns of all sequences are few, whatever lies where."""
    return inference != "approximate" and ShortEngine.fits(votes, resolutions)


def choose_engine(prepared: Prepared, inference: Inference = "auto") -> BlockEngine:
    """The engine that answers about these votes.

    Raises
    ------
    TaskError
        If exact answers are asked for, or are the only ones there are, and need more states than can be kept.
    """
    check_inference(inference)
    windows = WindowEngine(prepared)
    if not windows.fits():
        return _product(prepared)
    # Exact and linear, whatever the size of the windows: nothing is gained by another engine.
    if windows.exact and windows.is_safe():
        return windows
    if inference == "exact" or windows.exact:
        return _product(prepared)
    if inference == "approximate" or len(prepared.resolutions) - 1 > _MOST_COARSE:
        return windows
    engine = chain.build(prepared, SMALL_STATES, partly=True)
    small = (engine.n_bytes >= 0) & (engine.n_bytes <= _SMALL_BYTES)
    if small.all():
        return engine
    if not small.any():
        return windows
    size = windows.block_size
    return MixedEngine(prepared=prepared, product=engine, windows=windows, small=small, block_size=size)


def _product(prepared: Prepared) -> chain.ProductEngine:
    n_coarse = len(prepared.resolutions) - 1
    if n_coarse > _MOST_COARSE:
        raise TaskError(
            f"exact inference takes at most {_MOST_COARSE} resolutions beside the elements; found {n_coarse}.\n"
            "  Ask about fewer of them, choose sources with votes.select(sources=...), or allow "
            'inference="approximate".'
        )
    engine = chain.build(prepared)
    n_bytes, longest = (int(one.max(initial=0)) for one in (engine.n_bytes, prepared.votes.lengths))
    if n_bytes > _MOST_BYTES:
        raise TaskError(
            f"exact inference keeps all states of a sequence; for one of {longest} elements that is "
            f"{n_bytes / 2**30:.1f} GB, and at most {_MOST_BYTES / 2**30:.0f} GB are used.\n"
            '  Cut the sequences, or allow inference="approximate".'
        )
    return engine


# --- Two engines for one batch: the product for sequences where it is small, propagation for the others. --------------
# In: both engines, and which sequences are small. Out: an engine (see `runs`). A sequence gets the same answer alone
# and among any others.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixedEngine:
    """Exact about the small sequences."""

    prepared: Prepared
    product: ProductEngine
    windows: WindowEngine
    small: BoolArray
    block_size: int
    exact: bool = False

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        found = [engine.smooth(part, first, counting=counting) for engine, part, first in self._parts(block, begin)]
        return BlockAnswer(
            parts=[np.concatenate(parts) for parts in zip(*(one.parts for one in found), strict=True)],
            transitions=np.concatenate([one.transitions for one in found]) if counting else found[0].transitions,
            log_likelihood=np.concatenate([one.log_likelihood for one in found]),
        )

    def draw(self, block: VotesBlock, begin: int, rng: np.random.Generator | None, n_draws: int) -> Int8Array:
        """Class indices of labels drawn from the posterior; of the most likely ones without a generator."""
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
            (engine, read_block(self.prepared, begin + first, begin + last), begin + first)
            for engine, first, last in zip(engines, edges[:-1], edges[1:], strict=True)
        ]
