"""The error of a file that cannot be read as a sequence."""

from __future__ import annotations

from pathlib import Path

from dugong.exceptions import DugongError


class LoaderError(DugongError, ValueError):
    """A file or folder is not readable, or does not fit the others."""


def in_file(path: Path, text: str) -> LoaderError:
    """An error that begins with the name of the file."""
    return LoaderError(f"{path}: {text}")
