"""Finding the files of real data below the folder that the user names."""

from __future__ import annotations

from pathlib import Path

from dugong.exceptions import LoaderError


def find_folder(folder: Path, name: str, files: tuple[str, ...]) -> Path:
    """The folder that holds `files`: the given one, or the one called `name` in it."""
    for place in (folder / name, folder):
        if all((place / one).is_file() for one in files):
            return place
    wanted = " and ".join(files)
    raise LoaderError(f"the real data must be in {folder / name} or {folder}: {wanted}; found no such files there.")
