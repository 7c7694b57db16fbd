"""Kernels that are interpreted until they have had enough to do.

Compiling a loop over a label chain takes seconds, and the chains of most data sets are walked a few times over short
sequences, which the interpreter does in milliseconds. So a kernel is interpreted until its work adds up to what
compiling it is worth. Both ways take the same steps in the same order, and give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import njit

# Steps of the innermost loops, about a third of a second of the interpreter's time.
ENOUGH = 200_000


def interpreted_first(work: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel; `work` says from its arguments how many steps a call takes."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled, spent = njit(cache=True)(function), 0

        @wraps(function)
        def run(*arguments: Any) -> Any:
            nonlocal spent
            spent += work(*arguments)
            return function(*arguments) if spent <= ENOUGH else compiled(*arguments)

        return run

    return decorate
