"""Files of other tools: intervals in and out of what labs use to look at labels and correct them.

`read` gives `Segments`, `write` takes them; `names` lists the formats. Everything is made in memory first, so that
segments that a format cannot hold leave nothing behind; a folder is filled aside and moved into place.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dugong.contract import typed
from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.paths import Place, Url, place_of, write_atomically
from dugong.segments import Recording, Segments

__all__ = ["File", "Format", "Intervals", "find", "joined", "names", "of_name", "put", "read", "write"]


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


def joined(folder: Place, parts: Sequence[Segments]) -> Segments:
    """All segments of the files of a folder."""
    if len(parts) == 1:
        return parts[0]
    units = {part.unit for part in parts}
    if len(units) != 1:
        raise FormatError(f"{folder}: all files must count the same; found {' and '.join(sorted(units))}.")
    recordings: dict[str, Recording] = {}
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for part in parts:
        twice = [name for name in part.recordings if name in recordings]
        if twice:
            raise FormatError(f"{folder}: the sequence {twice[0]!r} is in two files.")
        recordings |= part.recordings
        whole = {(source, name): ((0.0, np.inf),) for source in part.sources or ("",) for name in part.recordings}
        asked |= whole if part.asked is None else part.asked
    voices = {frozenset(part.sources) for part in parts if part.sources}
    plain = all(part.asked is None for part in parts) and len(voices) <= 1
    names = ("sequence", "start", "end", "label", "probability", "source", "resolution", "attributes")
    rows: dict[str, Any] = {name: [one for part in parts for one in part.column(name)] for name in names}
    return Segments(**rows, unit=units.pop(), recordings=recordings, asked=None if plain else asked)


def put(segments: Segments, place: Place, wanted: Format, options: Mapping[str, Any]) -> tuple[Place, ...]:
    """Write segments in a format; returns the files."""
    ending = "" if place.is_dir() else _ending(place.name, wanted.suffixes)
    if ending and wanted.single and len(segments.recordings) != 1:
        raise FormatError(
            f"a file of the format {wanted.name!r} holds one sequence, and there are {len(segments.recordings)}.\n"
            f"  Name a folder in place of {place.name!r}: it gets one file per sequence."
        )
    if ending:
        made = wanted.write(segments, place.name[: -len(ending)], options)
        usual = wanted.suffixes[0]  # the caller may have asked for another of its endings
        renamed = {name.removesuffix(usual) + ending if name.endswith(usual) else name: made[name] for name in made}
        return _into(place.parent, renamed)
    if not wanted.single:
        return _folder(place, wanted.write(segments, "segments", options))
    made = {} if wanted.shared is None else dict(wanted.shared(segments))
    for name in segments.recordings:
        made |= wanted.write(segments.select(sequences=[name]), file_name(name), options)
    return _folder(place, made)


def file_name(sequence: str) -> str:
    """The id of a sequence as the name of a file; never a way out of the folder."""
    if sequence in ("", ".", "..") or any(one in sequence for one in "/\\\0") or len(sequence.encode()) > 200:
        raise FormatError(
            f"the sequence {sequence!r} cannot be the name of a file.\n"
            "  Choose a format that holds several sequences per file, or rename it."
        )
    return sequence


def _into(folder: Place, made: Files) -> tuple[Place, ...]:
    for name, data in made.items():
        write_atomically(folder / name, lambda handle, data=data: handle.write(data))  # type: ignore[misc]
    return tuple(folder / name for name in made)


def _folder(place: Place, made: Files) -> tuple[Place, ...]:
    if isinstance(place, Url) or place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return _into(place, made)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as draft:
        new = Path(draft) / "new"
        new.mkdir()
        for name, data in made.items():
            (new / name).write_bytes(data)
        shutil.move(new, place)
    return tuple(place / name for name in made)


GROUP = "dugong.formats"
Files = dict[str, bytes]
_MODULES = ("cvat", "label_studio", "lists", "plain", "recordings", "signals", "spans", "tiers", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Format:
    """One format.

    Attributes
    ----------
    name : what it is called in ``format=`` and ``--to``
    title : what people call it
    suffixes : endings of its files; the first one is written
    owns : endings that mean this format when a file is written
    unit : what its numbers count, and how exactly
    keeps, loses : what survives, in words
    checked : whose parser accepts what we write
    fits : whether the content of a file looks like this format
    read : from a file to segments
    write : from segments, the name of the file without ending, and options to the bytes of files by name
    single : whether a file holds one sequence; several then make a folder
    extra : the extra that installs what it needs
    options : options that `write` understands
    aliases : other names
    shared : further files of a folder, beside those of the sequences
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    unit: str
    keeps: str
    loses: str
    checked: str
    fits: Callable[[File], bool]
    read: Callable[[File], Segments]
    write: Callable[[Segments, str, Mapping[str, Any]], Files]
    single: bool = False
    extra: str | None = None
    options: tuple[str, ...] = ()
    owns: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    shared: Callable[[Segments], Files] | None = None


@cache
def every() -> dict[str, Format]:
    """All formats by name: ours, then those of other packages."""
    ours = [one for module in _MODULES for one in import_module(f"dugong.formats.{module}").FORMATS]
    found: dict[str, Format] = {one.name: one for one in ours}
    for entry in entry_points(group=GROUP):
        one = entry.load()
        if not isinstance(one, Format):
            raise FormatError(f"the entry point {entry.name!r} of {GROUP!r} must name a Format; found {one!r}.")
        if one.name in found:
            raise FormatError(f"there are two formats {one.name!r}; the second is {entry.value}.")
        found[one.name] = one
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """The names of all formats."""
    return tuple(every())


@typed(FormatError)
def of_name(name: str) -> Format:
    """The format of that name, or of that other name."""
    formats = every()
    if name in formats:
        return formats[name]
    others = {alias: one for one in formats.values() for alias in one.aliases}
    if name.lower() in others:
        return others[name.lower()]
    raise FormatError(f"there is no format {name!r}; known are {', '.join(formats)}.")


def find(place: Place) -> Format:
    """The format to write, by the ending of the file."""
    ending, fitting = _likely(place)
    owners = [one for one in fitting if ending in one.owns] or fitting
    return _one(owners, f"{place}: the ending does not say which format to write")


def of_file(file: File) -> Format:
    """The format of a file that exists, by its ending and what is in it."""
    likely = _likely(file.place)[1] or list(every().values())
    fitting = [one for one in likely if _fits(one, file)]
    if not fitting and len(likely) == 1:
        return likely[0]  # its reader says what is wrong with the file
    return _one(fitting, f"{file.place}: what is in the file does not say which format it has", likely)


def _likely(place: Place) -> tuple[str, list[Format]]:
    """The longest known ending of a file, and the formats that have it."""
    ending = _ending(place.name, [suffix for one in every().values() for suffix in one.suffixes])
    return ending, [one for one in every().values() if ending in one.suffixes]


def _fits(one: Format, file: File) -> bool:
    try:
        return one.fits(file)
    except FormatError:
        return False


def _ending(name: str, known: Iterable[str]) -> str:
    """The longest known ending of a name."""
    return max((one for one in known if name.lower().endswith(one.lower())), key=len, default="")


def _one(fitting: list[Format], problem: str, likely: list[Format] | None = None) -> Format:
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        listed = " or ".join(f"{one.name!r}" for one in fitting)
        raise FormatError(f"{problem}; it may be {listed}.\n  Say which: format={fitting[0].name!r} (--to, --format).")
    tried = ", ".join(one.name for one in likely or []) or "none"
    raise FormatError(
        f"{problem}: none fits (tried {tried}).\n  Say which: format='...'; `dugong formats` lists them all. If it is "
        "one of these, the file is damaged, and reading it with format= says where."
    )
