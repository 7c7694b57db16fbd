"""Shared preprocessing: every step of every ``pre=[...]`` runs once per sequence.

In: one sequence. Out: what each chain of functions makes of it. Chains that begin alike share their
beginning, so a detector that ten sources read runs once. Nothing is kept from one sequence to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from dugong.engines import mark

Step = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Made:
    value: Any


class Preprocessed:
    """The results of preprocessing one sequence, made when first asked for.

    Attributes
    ----------
    seconds : dict of step name to seconds
    """

    def __init__(self, sequence: Any) -> None:
        self._outcomes: dict[tuple[Hashable, ...], _Made | BaseException] = {(): _Made(sequence)}
        self.seconds: dict[str, float] = {}

    def get(self, chain: tuple[Step, ...]) -> Any:
        """What the steps make of the sequence, from left to right; raises again what a step has raised."""
        key = tuple(map(_identity, chain))
        if key not in self._outcomes:
            before = self.get(chain[:-1])
            self._outcomes[key] = self._run(chain[-1], before)
        outcome = self._outcomes[key]
        if isinstance(outcome, _Made):
            return outcome.value
        raise outcome

    def _run(self, step: Step, value: Any) -> _Made | BaseException:
        name = step_name(step)
        mark(f"preprocessing {name}")
        begin = perf_counter()
        try:
            return _Made(step(value))
        except (Exception, SystemExit) as error:  # kept: every source that needs it has a fault
            return error
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin


def _identity(step: Step) -> Hashable:
    """Functions and bound methods stand for themselves; what has no hash stands for its identity."""
    try:
        hash(step)
    except TypeError:
        return ("object", id(step))
    return step


def step_name(step: Step) -> str:
    """How a preprocessing function is called in messages and reports."""
    return str(getattr(step, "__name__", type(step).__name__))
