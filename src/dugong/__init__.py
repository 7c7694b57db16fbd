"""Dugong: weak supervision for sequences.

Experts write a few noisy sources that vote on elements, windows or whole sequences. Dugong estimates, without ground
truth, how accurate each source is and how they depend on each other, and turns the votes into probabilistic labels.

The public names are resolved when they are first used, so that ``dugong --help`` imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dugong.version import __version__ as __version__

if TYPE_CHECKING:
    from dugong import baselines, endmodels, estimators, experiments, formats, metrics, priors, sources, worlds
    from dugong.baselines import DataProgramming, HiddenMarkov, MajorityVote, Supervised
    from dugong.exceptions import (
        DugongError,
        FileError,
        FormatError,
        GraphError,
        LabelError,
        LoaderError,
        MissingExtraError,
        NotFittedError,
        NotIdentifiableError,
        PriorError,
        SourceError,
        TaskError,
        VoteError,
    )
    from dugong.fit.beliefs import Belief
    from dugong.fit.learned import LearnedGraph, learn_graph
    from dugong.graph import temporal
    from dugong.labels import Labels
    from dugong.metrics.compare import compare
    from dugong.metrics.evaluate import evaluate
    from dugong.model import LabelModel
    from dugong.segments import Segments
    from dugong.sources import apply, apply_with_report, loaders, source
    from dugong.sums import Moments
    from dugong.tasks import Element, Sequence, Spans, WholeSequence, Window
    from dugong.types import ABSTAIN, MISSING, NEGATIVE, POSITIVE
    from dugong.votes import Votes

_MODULES = ("baselines", "endmodels", "estimators", "experiments", "formats", "metrics", "priors", "sources", "worlds")
_HOMES = {
    "dugong.baselines": ("DataProgramming", "HiddenMarkov", "MajorityVote", "Supervised"),
    "dugong.fit.beliefs": ("Belief",),
    "dugong.fit.learned": ("LearnedGraph", "learn_graph"),
    "dugong.graph": ("temporal",),
    "dugong.labels": ("Labels",),
    "dugong.metrics": ("compare", "evaluate"),
    "dugong.model": ("LabelModel",),
    "dugong.sums": ("Moments",),
    "dugong.segments": ("Segments",),
    "dugong.sources": ("apply", "apply_with_report", "loaders", "source"),
    "dugong.tasks": ("Element", "Sequence", "Spans", "WholeSequence", "Window"),
    "dugong.types": ("ABSTAIN", "MISSING", "NEGATIVE", "POSITIVE"),
    "dugong.votes": ("Votes",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ABSTAIN",
    "MISSING",
    "NEGATIVE",
    "POSITIVE",
    "Belief",
    "DataProgramming",
    "DugongError",
    "Element",
    "FileError",
    "FormatError",
    "GraphError",
    "HiddenMarkov",
    "LabelError",
    "LabelModel",
    "Labels",
    "LearnedGraph",
    "LoaderError",
    "MajorityVote",
    "MissingExtraError",
    "Moments",
    "NotFittedError",
    "NotIdentifiableError",
    "PriorError",
    "Segments",
    "Sequence",
    "SourceError",
    "Spans",
    "Supervised",
    "TaskError",
    "VoteError",
    "Votes",
    "WholeSequence",
    "Window",
    "apply",
    "apply_with_report",
    "baselines",
    "compare",
    "endmodels",
    "estimators",
    "evaluate",
    "experiments",
    "formats",
    "learn_graph",
    "loaders",
    "metrics",
    "priors",
    "source",
    "sources",
    "temporal",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dugong.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'dugong' has no attribute {name!r}")
    value = getattr(import_module(_HOME.get(name, "dugong.exceptions")), name)
    globals()[name] = value  # sources ask for dg.POSITIVE at every vote
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
