"""Files of other tools: intervals in and out of what labs use to look at labels and correct them.

`read` gives `Segments`, `write` takes them; `names` lists the formats. Files appear under their names only when all of
them are complete.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from dugong.contract import typed
from dugong.exceptions import FormatError
from dugong.formats.files import File
from dugong.formats.intervals import Intervals
from dugong.formats.joining import joined
from dugong.formats.registry import Format, every, find, names, of_file, of_name
from dugong.formats.writing import put
from dugong.paths import Place, place_of
from dugong.segments import Segments

__all__ = ["File", "Format", "Intervals", "find", "names", "of_name", "read", "write"]


@typed(FormatError)
def read(path: str | PathLike[str], format: str | None = None, *, encoding: str | None = None) -> Segments:  # noqa: A002
    """Read the intervals of a file, or of a folder of files of one format.

    Parameters
    ----------
    path : path or URL
    format : name, optional
        By default the one that the ending and the content of the file say.
    encoding : str, optional
        Of the text; UTF-8, or what the byte order mark says, by default.

    Raises
    ------
    FormatError
        With the file and, where there is one, the line or the path inside it.
    """
    place = place_of(path)
    wanted = None if format is None else of_name(format)
    with _without_collecting():
        if place.is_dir():
            return joined(place, [_read(one, wanted, encoding) for one in _files(place, wanted)])
        return _read(place, wanted, encoding)


@typed(FormatError)
def write(
    segments: Segments,
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> tuple[Place, ...]:
    """Write intervals as a file of another tool, or as a folder with one file per sequence.

    Parameters
    ----------
    segments : Segments
    path : path or URL
        A name without an ending, or a folder that exists, becomes a folder. Formats that hold one sequence per file
        make a folder of several.
    format : name, optional
        By default the one that the ending says.
    **options
        What some formats take, such as ``kind="video"`` for Label Studio; facts about recordings are part of the
        segments, see `Segments.describe`.

    Returns
    -------
    tuple of the files that were written
    """
    place = place_of(path)
    wanted = find(place) if format is None else of_name(format)
    unknown = [name for name in options if name not in wanted.options]
    if unknown:
        known = ", ".join(wanted.options) or "none"
        raise FormatError(f"the format {wanted.name!r} has no option {unknown[0]!r}; it has {known}.")
    return put(segments, place, wanted, options)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from searching a growing tree again and again: that doubles the time of reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(place: Place, wanted: Format | None, encoding: str | None) -> Segments:
    file = File.open(place, encoding)
    return (wanted or of_file(file)).read(file)


def _files(folder: Place, wanted: Format | None) -> list[Place]:
    """The files of a folder that hold intervals of one format; media and texts may lie beside them."""
    listed: list[Place] = [one for one in folder.glob("*") if one.is_file() and not one.name.startswith(".")]
    listed.sort(key=str)
    formats = list(every().values()) if wanted is None else [wanted]
    found = [one for one in listed if any(one.name.lower().endswith(each.suffixes[0].lower()) for each in formats)]
    if wanted is None:
        kinds = {of_file(File.open(one)).name for one in found if one.suffix != ".txt"}
        if len(kinds) > 1:
            raise FormatError(f"{folder}: files of several formats; say which: format={min(kinds)!r}.")
        return _files(folder, of_name(kinds.pop())) if kinds else found
    if not found:
        raise FormatError(f"{folder}: there are no files *{wanted.suffixes[0]} in this folder.")
    return found
