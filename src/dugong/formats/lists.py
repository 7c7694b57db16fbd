"""WebVTT and SRT: labels as subtitles, shown by every player; one sequence per file.

A probability follows the label (``walk 0.93``). Cues are written without identifiers: some readers take an identifier
for a part of the cue before it.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from typing import Any

import numpy as np

from dugong.formats import Files, Format
from dugong.formats.files import (
    TOOL,
    File,
    Intervals,
    columns,
    forbid,
    forbid_in,
    media_name,
    media_stem,
    only,
    placed,
    split_note,
    with_note,
    written,
)
from dugong.segments import Recording, Segments
from dugong.segments.container import Unit

_TIME = r"(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$")
_TAG = re.compile(r"</?[^<>]*>")


def _clock(seconds: float, point: str) -> str:
    whole = round(seconds * 1000)
    minutes, rest = divmod(whole, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _blocks(file: File) -> Iterator[tuple[int, list[str]]]:
    """Blocks between empty lines, with the number of their first line."""
    block: list[str] = []
    for number, line in enumerate([*file.lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _read(file: File, *, plain: Callable[[str], str]) -> Segments:
    rows = Intervals(file, "second")
    for number, block in _blocks(file):
        place = next((place for place, line in enumerate(block) if "-->" in line), None)
        if place is None:
            if block[0].startswith(("WEBVTT", "NOTE", "STYLE", "REGION")):
                continue
            raise file.error(f"a subtitle must have a line with its times; found {block[0]!r}.", number)
        found = _TIMES.match(block[place])
        if found is None:
            raise file.error(f"these are no times of a subtitle: {block[place]!r}.", number + place)
        label, probability, _ = split_note(plain(" ".join(block[place + 1 :])).strip(), mark="")
        start, end = _seconds(*found.groups()[:4]), _seconds(*found.groups()[4:])
        rows.add(number + place, file.stem, start, end, label, probability)
    return rows.done({file.stem: Recording()})


def _cues(segments: Segments, name: str, point: str, text: Callable[[str], str]) -> Iterator[str]:
    found = placed(segments, "second", name).sort()
    forbid(found, r"\n\r", name)
    for start, end, label, p in columns(found, "start", "end", "label", "probability"):
        yield f"{_clock(start, point)} --> {_clock(end, point)}\n{text(with_note(label, p, mark=''))}\n"


def _write_vtt(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    cues = _cues(segments, "webvtt", ".", partial(html.escape, quote=False))
    return {f"{stem}.vtt": "\n".join([f"WEBVTT\n\nNOTE {TOOL}\n", *cues]).encode()}


def _write_srt(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    cues = enumerate(_cues(segments, "srt", ",", str), start=1)
    return {f"{stem}.srt": "\n".join(f"{number}\n{cue}" for number, cue in cues).encode()}


_SUBTITLES = (
    Format(
        name="webvtt",
        title="WebVTT subtitles",
        suffixes=(".vtt",),
        unit="seconds, 1 ms",
        keeps="start, end, label, probability (4 decimals); instants",
        loses="source",
        checked="webvtt-py",
        fits=lambda file: file.text.startswith("WEBVTT"),
        read=partial(_read, plain=lambda text: html.unescape(_TAG.sub("", text))),
        write=_write_vtt,
        single=True,
        aliases=("vtt",),
    ),
    Format(
        name="srt",
        title="SRT subtitles",
        suffixes=(".srt",),
        unit="seconds, 1 ms",
        keeps="start, end, label, probability (4 decimals); instants",
        loses="source",
        checked="srt",
        fits=lambda file: "-->" in file.text[:10_000],
        read=partial(_read, plain=str),
        write=_write_srt,
        single=True,
    ),
)


# --- Lists of intervals: text with one interval per line, and the table that says what its columns are ----------------
# Audacity, RTTM, DCASE, BIDS, MNE and plain CSV files: each of them is one `ListStyle`, which reads it and, all but
# CSV, writes it. MNE's CSV files are not read: they hold dates, and the offset of the recording is lost in them.
_ABSENT = ("", "n/a", "<NA>", "NA", "nan", "None")
# What a column may hold of an interval, and how that is written; sources and resolutions are only read here.
_CELLS = {
    "sequence": "{sequence}",
    "start": "{start:.6f}",
    "end": "{end:.6f}",
    "duration": "{duration:.6f}",
    "label": "{label}",
    "probability": "{p}",
    "source": "",
    "resolution": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStyle:
    """How a list of intervals is laid out.

    Attributes
    ----------
    columns : what stands in each, by its name: one of `_CELLS`, or a word that is the same in every line
    header : whether the first line names the columns; if not, they come in the order given here
    delimiter : one character, or None for white space
    quoted : whether cells may be in quotation marks
    comments : lines that begin like this are left out
    head : lines above the intervals, where there is no header
    absent : what is written where there is no probability
    forbidden : characters that labels, and ids where there is a column for them, must not hold
    media : ending of the media by whose names sequences are called, if they are
    """

    columns: Mapping[str, str]
    header: bool = False
    delimiter: str | None = "\t"
    quoted: bool = False
    comments: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    absent: str = ""
    forbidden: str = r"\t\n\r"
    media: str = ""


def read_list(file: File, style: ListStyle, sequence: str | None = None, *, unit: Unit = "second") -> Segments:
    """Read a list of intervals; `sequence` is the id where there is no column for it."""
    lines = list_lines(file, style)
    names: Sequence[str] = tuple(style.columns)
    if style.header:
        first = next(lines, None)
        if first is None:
            raise file.error("the file is empty; its first line must name the columns.")
        names = first[1]
    places = {style.columns[name]: place for place, name in enumerate(names) if style.columns.get(name) in _CELLS}
    _check_columns(file, style, places, names, sequence)
    rows = Intervals(file, unit)
    media: dict[str, str | None] = {} if sequence is None else {sequence: None}
    for number, cells in lines:
        if len(cells) < len(names) and len(cells) <= max(places.values()):
            raise file.error(f"a line must have {len(names)} columns; found {len(cells)}.", number)
        found = {name: cells[place] for name, place in places.items() if place < len(cells)}
        called = found.get("sequence", sequence or "")
        if style.media:
            media[media_stem(called)] = called
        _add(rows, number, media_stem(called) if style.media else called, found)
    return rows.done({name: Recording(media=one) for name, one in media.items()})


def list_lines(file: File, style: ListStyle) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, without comments and empty lines."""
    if style.quoted:
        reader = csv.reader(StringIO(file.text), delimiter=style.delimiter or ",", strict=True)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise file.error(f"this is no CSV: {error}.", reader.line_num) from None
        return
    for number, line in enumerate(file.lines, start=1):
        if line.strip() and not line.startswith(style.comments or ("\0",)):
            yield number, line.split(style.delimiter)


def _check_columns(
    file: File, style: ListStyle, places: Mapping[str, int], names: Sequence[str], sequence: str | None
) -> None:
    needed = [("sequence",)] if sequence is None else []
    for any_of in (*needed, ("start",), ("label",), ("end", "duration")):
        if not any(one in places for one in any_of):
            theirs = [name for name, one in style.columns.items() if one in any_of]
            raise file.error(f"there must be a column {' or '.join(map(repr, theirs))}; found {', '.join(names)}.", 1)


def _add(rows: Intervals, number: int, sequence: str, cells: Mapping[str, str]) -> None:
    file = rows.file
    start = file.number(cells["start"], "the start", number)
    if "end" in cells:
        end = file.number(cells["end"], "the end", number)
    else:
        lasts = 0.0 if cells["duration"] in _ABSENT else file.number(cells["duration"], "the duration", number)
        end = round(start + lasts, 9)
    given = cells.get("probability", "")
    rows.add(
        number,
        sequence,
        start,
        end,
        cells["label"],
        None if given in _ABSENT else file.number(given, "the probability", number),
        source=cells.get("source", ""),
        resolution=cells.get("resolution") or "element",
    )


# --- writing -----------------------------------------------------------------------------------------------------
def write_list(segments: Segments, style: ListStyle, name: str) -> bytes:
    """Intervals in seconds, in order, as the lines of a style; nothing where there are neither intervals nor a head."""
    found = placed(segments, "second", name).sort()
    forbid(found, style.forbidden, name, sequences="sequence" in style.columns.values())
    delimiter = style.delimiter or " "
    line = delimiter.join(_CELLS.get(one, one) for one in style.columns.values())
    lines = [delimiter.join(style.columns)] if style.header else list(style.head)
    names = {
        one: media_name(one, about, style.media) if style.media else one for one, about in found.recordings.items()
    }
    if style.media and style.forbidden:
        forbid_in(names.values(), style.forbidden, name)
    for sequence, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        cells = {"sequence": names[sequence], "start": start, "end": end, "duration": end - start, "label": label}
        lines.append(line.format(**cells, p=style.absent if p is None else p))
    return written(lines)


def quoted(rows: Iterable[Sequence[Any]]) -> bytes:
    """Intervals as CSV; NaN becomes an empty cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(["" if isinstance(one, float) and np.isnan(one) else one for one in row] for row in rows)
    return text.getvalue().encode()


def list_format(style: ListStyle, *, name: str, suffixes: tuple[str, ...], **facts: Any) -> Format:
    """A format that is a style and no more; facts are what else is to be said about it, or done differently."""

    def read(file: File) -> Segments:
        return read_list(file, style, file.stem if facts.get("single") else None)

    def write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
        return {f"{stem}{suffixes[0]}": write_list(segments, style, name)}

    return Format(name=name, suffixes=suffixes, unit="seconds, 1 µs", **{"read": read, "write": write, **facts})


# --- Audacity, MNE, RTTM -----------------------------------------------------------------------------------------
_AUDACITY = ListStyle(
    columns={"start": "start", "end": "end", "label": "label"},
    comments=("\\",),  # lines of frequency ranges begin so
)
_MNE = ListStyle(
    columns={"onset": "start", "duration": "duration", "description": "label"},
    delimiter=",",
    comments=("#",),
    head=("# MNE-Annotations", "# onset, duration, description"),
    forbidden=r",\n\r#",
)
_RTTM = ListStyle(
    columns={
        "type": "SPEAKER",
        "file": "sequence",
        "channel": "1",
        "onset": "start",
        "duration": "duration",
        "text": "<NA>",
        "kind": "<NA>",
        "speaker": "label",
        "confidence": "probability",
        "lookahead": "<NA>",
    },
    delimiter=None,
    comments=(";;",),
    absent="<NA>",
    forbidden=r"\s",
)


def _fits_audacity(file: File) -> bool:
    first = _first(file).split("\t")
    return len(first) >= 2 and all(cell.replace(".", "", 1).isdigit() for cell in first[:2])


def _first(file: File) -> str:
    return next((line for line in file.lines if line.strip()), "")


# --- BIDS: a table, and a JSON file that explains it -------------------------------------------------------------
_EVENTS = "_events.tsv"
_BIDS = ListStyle(
    columns={"onset": "start", "duration": "duration", "trial_type": "label", "probability": "probability"},
    header=True,
    absent="n/a",
)


def _header(file: File) -> list[str]:
    return file.lines[0].split("\t")


def _read_bids(file: File) -> Segments:
    found = read_list(file, _BIDS, file.place.name.removesuffix(_EVENTS).removesuffix(".tsv"))
    named = [label != "n/a" for label in found.label]
    return found if all(named) else replace(found.take(named), recordings=found.recordings)


def _write_bids(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    whose = f"label of the interval in {only(segments)}" if segments.recordings else "label of the interval"
    about = {
        "trial_type": {"Description": whose, "Levels": {label: label for label in segments.sort().labels}},
        "probability": {"Description": f"probability of trial_type, given all votes; {TOOL}"},
    }
    table = write_list(segments, _BIDS, "bids")
    return {f"{stem}{_EVENTS}": table, f"{stem}_events.json": json.dumps(about, indent=2).encode()}


# --- DCASE: sequences by the name of their sound file ------------------------------------------------------------
_DCASE = ListStyle(
    columns={"filename": "sequence", "onset": "start", "offset": "end", "event_label": "label"},
    header=True,
    media=".wav",
)


FORMATS = (
    *_SUBTITLES,
    list_format(
        _AUDACITY,
        name="audacity",
        title="Audacity label track",
        suffixes=(".txt",),
        keeps="start, end, label; instants",
        loses="probability, source",
        checked="structure of the sample (crowsetta)",
        fits=_fits_audacity,
        single=True,
    ),
    list_format(
        _BIDS,
        name="bids",
        title="BIDS events",
        suffixes=(_EVENTS,),
        keeps="start, end, label, probability; instants",
        loses="source; further columns",
        checked="structure of the sample (bids-validator)",
        fits=lambda file: {"onset", "duration"} <= set(_header(file)),
        read=_read_bids,
        write=_write_bids,
        single=True,
    ),
    list_format(
        _DCASE,
        name="dcase",
        title="DCASE sound events",
        suffixes=(".tsv", ".csv", ".txt"),
        owns=(".tsv",),
        keeps="sequence, start, end, label, name of the sound file",
        loses="probability, source; sequences without intervals",
        checked="sed_eval",
        fits=lambda file: {"event_label", "onset"} <= set(_header(file)),
    ),
    list_format(
        _MNE,
        name="mne",
        title="MNE annotations (.txt)",
        suffixes=(".txt",),
        keeps="start, end, label; instants",
        loses="probability, source; labels with commas are refused",
        checked="mne",
        fits=lambda file: file.text.startswith("# MNE-Annotations"),
        single=True,
    ),
    list_format(
        _RTTM,
        name="rttm",
        title="RTTM",
        suffixes=(".rttm",),
        keeps="sequence, start, end, label, probability; instants",
        loses="source; sequences without intervals; names with white space are refused",
        checked="structure of the sample (pyannote)",
        fits=lambda file: _first(file).startswith(("SPEAKER ", ";;", "SPKR-INFO")),
    ),
)
