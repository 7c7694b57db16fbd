"""Which chain engine answers: the window engine where it is exact, the product where that is small, else propagation.

In: prepared votes and what the user asks for ("auto", "exact", "approximate"). Out: an engine. A refusal names the
cause and the remedy before any memory is asked for.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from dugong.exceptions import GraphError, TaskError
from dugong.infer import chain
from dugong.infer.crossings import different_paths
from dugong.infer.grouped import WindowEngine
from dugong.infer.prepare import Prepared
from dugong.infer.product import TooManyStatesError
from dugong.infer.runs import BlockEngine
from dugong.types import Inference

# Beyond these a product takes longer than propagation, which is then exact enough to be preferred.
SMALL_STATES = 512
SMALL_WORK = 200_000_000  # steps between states, over all elements
_MOST_BYTES = 1 << 31


def check_inference(inference: str) -> None:
    """Raise unless this is one of the words for how exact answers must be."""
    if inference not in get_args(Inference):
        words = ", ".join(f'"{word}"' for word in get_args(Inference))
        raise GraphError(f"inference must be one of {words}; found {inference!r}.")


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
    if inference == "approximate":
        return windows
    # Building stops as soon as a layer is too wide, so that trying costs little.
    try:
        engine = chain.build(prepared, SMALL_STATES)
    except TooManyStatesError:
        return windows
    work, n_bytes = _work(engine)
    return engine if work <= SMALL_WORK and n_bytes <= _MOST_BYTES // 8 else windows


def _product(prepared: Prepared) -> chain.ProductEngine:
    engine = chain.build(prepared)
    _, n_bytes = _work(engine)
    if n_bytes > _MOST_BYTES:
        longest = int(prepared.votes.lengths.max(initial=0))
        raise TaskError(
            f"exact inference keeps all states of a sequence; for one of {longest} elements that is "
            f"{n_bytes / 2**30:.1f} GB, and at most {_MOST_BYTES / 2**30:.0f} GB are used.\n"
            '  Cut the sequences, or allow inference="approximate".'
        )
    return engine


def _work(engine: chain.ProductEngine) -> tuple[float, int]:
    """Steps between states over all elements, and bytes for the states of the longest sequence."""
    prepared, machine = engine.prepared, engine.machine
    paths, begins = different_paths(prepared.layouts)
    steps = machine.steps_along(paths)
    edges = machine.pointers[machine.step_first[1:] - 1] - machine.pointers[machine.step_first[:-1]]
    states = np.append(0, np.cumsum(machine.sizes[machine.following[steps]]))
    work = np.append(0, np.cumsum(edges[steps]))
    ends = begins + prepared.votes.lengths
    return float((work[ends] - work[begins]).sum()), int(16 * (states[ends] - states[begins]).max(initial=0))
