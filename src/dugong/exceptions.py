"""Errors that say what must hold, what was found, and what to do.

The tree, every branch of which is also the built-in error that callers already catch::

    DugongError
    ├── VoteError             (ValueError)    votes outside their coding, shapes, files
    ├── TaskError             (ValueError)    resolutions, spans, time axes
    ├── SourceError           (ValueError)    a source raised, or returned something that is no vote
    ├── LoaderError           (ValueError)    a file that cannot be read as a sequence
    ├── FileError             (ValueError)    a file of ours that is damaged, foreign or newer
    ├── FormatError           (ValueError)    a file of another tool that cannot be read, or written
    ├── GraphError            (ValueError)    dependencies that name unknown sources, cycles
    ├── PriorError            (ValueError)    priors that are no probability distributions
    ├── LabelError            (ValueError)    gold labels and predictions that do not fit together
    ├── EndModelError         (ValueError)    inputs, labels or files that an end model cannot use
    ├── NotIdentifiableError  (ValueError)    the votes cannot determine what was asked
    ├── NotFittedError        (ValueError, AttributeError)
    └── MissingExtraError     (ImportError)   an optional dependency is not installed
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class DugongError(Exception):
    """Root of every error that Dugong raises on purpose."""


class VoteError(DugongError, ValueError):
    """Votes do not follow their coding, shape or file format."""


class TaskError(DugongError, ValueError):
    """A resolution, span or time axis is not usable."""


class SourceError(DugongError, ValueError):
    """A source raised, or returned something that is no vote."""


class LoaderError(DugongError, ValueError):
    """A file or folder is not readable, or does not fit the others."""


class FileError(DugongError, ValueError):
    """A file that should be one of ours is truncated, damaged, foreign or newer."""


class FormatError(DugongError, ValueError):
    """A file of another tool is damaged or of another kind, or cannot hold what it should."""


class GraphError(DugongError, ValueError):
    """A dependency is not usable."""


class PriorError(DugongError, ValueError):
    """A prior is no probability distribution, or does not fit the votes."""


class LabelError(DugongError, ValueError):
    """Gold labels or predictions do not fit together."""


class EndModelError(DugongError, ValueError):
    """Data, weights, a checkpoint or a setting does not fit the end model."""


class NotIdentifiableError(DugongError, ValueError):
    """The votes cannot determine what was asked of them."""


class NotFittedError(DugongError, ValueError, AttributeError):
    """A model is used before `fit`."""


class MissingExtraError(DugongError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f"  Install it with: pip install 'dugong-ws[{extra}]'"
        )


def import_extra(module: str, extra: str, purpose: str, package: str | None = None) -> Any:
    """A module of an optional package, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(package or module.partition(".")[0], extra, purpose) from None
