"""The error of an end model that cannot be trained, loaded or applied as asked."""

from __future__ import annotations

from dugong.exceptions import DugongError

__all__ = ["EndModelError"]


class EndModelError(DugongError, ValueError):
    """Data, weights, a checkpoint or a setting does not fit the end model."""
