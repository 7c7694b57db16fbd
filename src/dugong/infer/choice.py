"""Which chain engine answers: the window engine where it is exact, the product where that is small, else propagation.

In: prepared votes and what the user asks for ("auto", "exact", "approximate"). Out: an engine. A refusal names the
cause and the remedy before any memory is asked for.
"""

from __future__ import annotations

from typing import get_args

from dugong.exceptions import GraphError, TaskError
from dugong.infer import chain
from dugong.infer.grouped import WindowEngine
from dugong.infer.mixed import MixedEngine
from dugong.infer.prepare import Prepared
from dugong.infer.runs import BlockEngine, Smoother
from dugong.infer.short import ShortEngine
from dugong.types import Inference

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
    short = inference != "approximate" and ShortEngine.fits(prepared) and not WindowEngine(prepared).exact
    return ShortEngine(prepared=prepared) if short else choose_engine(prepared, inference)


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
    return MixedEngine(product=engine, windows=windows, small=small) if small.any() else windows


def _product(prepared: Prepared) -> chain.ProductEngine:
    n_coarse = len(prepared.resolutions) - 1
    if n_coarse > _MOST_COARSE:
        raise TaskError(
            f"exact inference takes at most {_MOST_COARSE} resolutions beside the elements; found {n_coarse}.\n"
            "  Ask about fewer of them, choose sources with votes.select(sources=...), or allow "
            'inference="approximate".'
        )
    engine = chain.build(prepared)
    n_bytes = int(engine.n_bytes.max(initial=0))
    if n_bytes > _MOST_BYTES:
        longest = int(prepared.votes.lengths.max(initial=0))
        raise TaskError(
            f"exact inference keeps all states of a sequence; for one of {longest} elements that is "
            f"{n_bytes / 2**30:.1f} GB, and at most {_MOST_BYTES / 2**30:.0f} GB are used.\n"
            '  Cut the sequences, or allow inference="approximate".'
        )
    return engine
