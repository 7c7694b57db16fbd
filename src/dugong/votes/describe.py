"""Votes in a few lines of text, for the prompt and the notebook.

In: `Votes`. Out: how much there is, what the codes mean, and which sources vote at which resolution.
"""

from __future__ import annotations

from dugong.tasks import describe
from dugong.votes.classes import code_name
from dugong.votes.container import Votes

__all__ = ["describe_votes"]

_MANY = 8


def describe_votes(votes: Votes) -> str:
    """The text of ``repr(votes)``."""
    lengths = " to ".join(f"{length:,}" for length in sorted({int(votes.lengths.min()), int(votes.lengths.max())}))
    lines = [
        f"Votes: {_count(votes.n_sources, 'source')}, {_count(votes.n_sequences, 'sequence')}, "
        f"{_count(votes.n_elements, 'element')} ({lengths} each)",
        f"  classes     {_listing([_class(votes, code) for code in votes.classes])}",
    ]
    for resolution in dict.fromkeys(source.resolution for source in votes.sources):
        names = [source.name for source in votes.sources if source.resolution == resolution]
        lines.append(f"  {_count(len(names), 'source')} on {describe(resolution)}: {_listing(names)}")
    if votes.partial:
        kinds = [code_name(votes, code, votes.resolutions[0]) for code in votes.partial]
        lines.append(f"  partial     {_listing(kinds)}")
    if votes.time is not None:
        lines.append(f"  time        {votes.time}")
    if votes.faults:
        lines.append(f"  faults      {len(votes.faults):,}, the first: {votes.faults[0]}")
    return "\n".join(lines)


def _class(votes: Votes, code: int) -> str:
    number = f"{code:+d}" if votes.n_classes == 2 else str(code)
    name = f" {code_name(votes, code, votes.resolutions[0])}" if votes.class_names is not None else ""
    return f"{number}{name}{' (background)' if code == votes.background else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown}, ... {len(names) - _MANY} more"
