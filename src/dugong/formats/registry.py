"""The formats: what each is called, what it keeps and loses, and which one a file has.

A format is one value, in a file beside this one. Packages add theirs through the entry point group
``dugong.formats``: each entry names a `Format`. A file is recognised by its ending and its content; where two formats
fit, or none, the caller has to say which one is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from dugong.contract import typed
from dugong.exceptions import FormatError
from dugong.formats.files import File
from dugong.paths import Place
from dugong.segments import Segments

GROUP = "dugong.formats"
Files = dict[str, bytes]
_MODULES = (
    "activitynet",
    "boris",
    "brat",
    "conll",
    "conllu",
    "cvat",
    "doccano",
    "edf",
    "elan",
    "huggingface",
    "jams",
    "label_studio",
    "lists",
    "plain",
    "praat",
    "prodigy",
    "spacy",
    "subtitles",
    "via",
    "wfdb",
)


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
    shared: Callable[[Segments], Files] | None = field(default=None)


@cache
def every() -> dict[str, Format]:
    """All formats by name: ours, then those of other packages."""
    found: dict[str, Format] = {}
    for module in _MODULES:
        for one in import_module(f"dugong.formats.{module}").FORMATS:
            found[one.name] = one
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
    ending = _ending(place.name, {suffix for one in every().values() for suffix in one.suffixes})
    fitting = [one for one in every().values() if ending in one.suffixes]
    owners = [one for one in fitting if ending in one.owns] or fitting
    return _one(owners, f"{place}: the ending does not say which format to write")


def of_file(file: File) -> Format:
    """The format of a file that exists, by its ending and what is in it."""
    known = {suffix for one in every().values() for suffix in one.suffixes}
    ending = _ending(file.place.name, known)
    likely = [one for one in every().values() if ending in one.suffixes] or list(every().values())
    fitting = [one for one in likely if _fits(one, file)]
    if not fitting and len(likely) == 1:
        return likely[0]  # its reader says what is wrong with the file
    return _one(fitting, f"{file.place}: what is in the file does not say which format it has", likely)


def _fits(one: Format, file: File) -> bool:
    try:
        return one.fits(file)
    except FormatError:
        return False


def _ending(name: str, known: set[str]) -> str:
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
