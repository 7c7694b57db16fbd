"""The records that votes carry beside the codes: who votes, and what went wrong while they were asked.

A `Fault` is an exception that a source raised on one task: a plain value that survives pickling to another process
and that later stages, tables and files can count. `Votes.faults` holds them when ``on_fault="abstain"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from dugong.tasks import Element, Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """Who votes, on what, and with whom it shares its parameters."""

    name: str
    resolution: Resolution = field(default_factory=Element)
    shares: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One source that raised on one task.

    Attributes
    ----------
    source : str
        Name of the source.
    sequence : str or int
        Id of the sequence.
    task : int or None
        Place of the task among the tasks of its sequence; None if the source failed on the whole sequence
        (a vectorised source, or its preprocessing).
    error : str
        Type and message of the exception, such as ``"ValueError: no face"``.
    traceback : str
        The original traceback as text.
    """

    source: str
    sequence: str | int
    task: int | None
    error: str
    traceback: str = ""

    def __str__(self) -> str:
        where = "the whole sequence" if self.task is None else f"task {self.task}"
        return f"{self.source} on {where} of sequence {self.sequence!r}: {self.error}"

    def to_dict(self) -> dict[str, str | int | None]:
        """Plain data that `Fault` turns back into the same value: ``Fault(**plain)``."""
        return asdict(self)


def count_faults(faults: Iterable[Fault]) -> dict[str, int]:
    """Number of faults per source, in order of first appearance."""
    return dict(Counter(fault.source for fault in faults))
