"""Shares of the work on threads of their own; the kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba

WorkT = TypeVar("WorkT")
ResultT = TypeVar("ResultT")


def divide(work: range, n_threads: int | None) -> list[range]:
    """Every thread its share of the work, at least one; as many threads as numba would use by default."""
    workers = max(1, min(len(work), numba.get_num_threads() if n_threads is None else n_threads))
    return [work[place::workers] for place in range(workers)]


def on_threads(work: Callable[[WorkT], ResultT], shares: list[WorkT]) -> list[ResultT]:
    """Do one share of the work on each thread; the results are in the order of the shares."""
    if len(shares) == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))
