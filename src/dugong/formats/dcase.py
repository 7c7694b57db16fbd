"""DCASE sound events: filename, onset, offset and event_label between tabs; several sequences per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dugong.formats.files import File
from dugong.formats.lists import ListStyle, read_list, written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, media_stem, placed
from dugong.segments import Recording, Segments

_NAMES = ("filename", "onset", "offset", "event_label")
_OURS = {"filename": "sequence", "onset": "start", "offset": "end", "event_label": "label"}
_STYLE = ListStyle(names=_NAMES, ours=_OURS, header=True)


def _fits(file: File) -> bool:
    first = file.lines[0].removeprefix("\ufeff").split("\t")
    return "event_label" in first and "onset" in first


def _read(file: File) -> Segments:
    found = read_list(file, _STYLE)
    named = {name: media_stem(name) for name in found.recordings}
    return replace(
        found,
        sequence=tuple(named[name] for name in found.sequence),
        recordings={stem: Recording(media=name) for name, stem in named.items()},
    )


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "dcase").sort()
    forbid(found, r"\t\n\r", "dcase", sequences=True)
    media = {name: _media(name, about) for name, about in found.recordings.items()}
    lines = [
        f"{media[name]}\t{start:.6f}\t{end:.6f}\t{label}"
        for name, start, end, label in columns(found, "sequence", "start", "end", "label")
    ]
    return {f"{stem}.tsv": written(["\t".join(_NAMES), *lines])}


def _media(name: str, about: Recording) -> str:
    """The name of the sound file, if its stem is the id; else the id with an ending."""
    return about.media if about.media is not None and media_stem(about.media) == name else f"{name}.wav"


FORMATS = (
    Format(
        name="dcase",
        title="DCASE sound events",
        suffixes=(".tsv", ".csv", ".txt"),
        owns=(".tsv",),
        unit="seconds, 1 µs",
        keeps="sequence, start, end, label, name of the sound file",
        loses="probability, source; sequences without intervals",
        checked="sed_eval",
        fits=_fits,
        read=_read,
        write=_write,
    ),
)
