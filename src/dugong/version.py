"""The version of this library, in a place that every stage may import."""

from __future__ import annotations

__version__ = "0.2.0"
