"""Shares of the work on threads of their own; the kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

WorkT = TypeVar("WorkT")
ResultT = TypeVar("ResultT")


def on_threads(work: Callable[[WorkT], ResultT], shares: list[WorkT]) -> list[ResultT]:
    """Do one share of the work on each thread; the results are in the order of the shares."""
    if len(shares) == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(work, shares))
