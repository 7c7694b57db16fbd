"""The error of a file that cannot be read as a sequence."""

from __future__ import annotations

from pathlib import Path

from dugong.exceptions import LoaderError

__all__ = ["LoaderError", "in_file"]


def in_file(path: Path, text: str) -> LoaderError:
    """An error that begins with the name of the file."""
    return LoaderError(f"{path}: {text}")
