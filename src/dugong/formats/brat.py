"""brat standoff: spans of characters in an .ann file, beside the text; one sequence per pair of files.

The probability and the source are a note of the annotator (``p=0.88 dugong-0.1.0``). A span in several pieces becomes
several intervals with the same ``id`` among their attributes. Relations, events and attributes are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, only, placed, short, split_note
from dugong.segments import Recording, Segments

_SPAN = re.compile(r"^(?P<label>\S+) (?P<pieces>\d+ \d+(?:;\d+ \d+)*)$")


def _fits(file: File) -> bool:
    first = next((line for line in file.lines if line.strip()), "T1\t")
    return bool(re.match(r"^[TREAMN#*]\S*\t", first))


def _read(file: File) -> Segments:
    notes: dict[str, tuple[float | None, str]] = {}
    for line in file.lines:
        if line.startswith("#") and line.count("\t") >= 2:
            _, kind, text = line.split("\t", 2)
            if kind.startswith("AnnotatorNotes "):
                _, probability, rest = split_note(text)
                notes[kind.split(" ")[1]] = (probability, rest)
    rows = Intervals(file, "character")
    for number, line in enumerate(file.lines, start=1):
        if line.startswith("T"):
            _add(rows, number, line, notes)
    beside = file.beside(f"{file.stem}.txt")
    return rows.done({file.stem: Recording(text=None if beside is None else beside.text)})


def _add(rows: Intervals, number: int, line: str, notes: Mapping[str, tuple[float | None, str]]) -> None:
    cells = line.split("\t")
    found = _SPAN.match(cells[1]) if len(cells) > 1 else None
    if found is None:
        raise rows.file.error(f"a span must look like T1, tab, LABEL 12 27, tab, text; found {line!r}.", number)
    pieces = [piece.split(" ") for piece in found["pieces"].split(";")]
    probability, source = notes.get(cells[0], (None, ""))
    attributes = {"id": cells[0]} if len(pieces) > 1 else {}
    for start, end in pieces:
        rows.add(
            number,
            rows.file.stem,
            int(start),
            int(end),
            found["label"],
            probability,
            source=source,
            attributes=attributes,
        )


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "character", "brat").sort()
    forbid(found, r"\s", "brat")
    text = found.recordings[only(found)].text
    if text is None:
        raise FormatError(
            f"the format 'brat' holds text, and the text of {only(found)!r} is not known.\n"
            "  Say it: segments.describe(text={sequence: ...})."
        )
    lines = []
    rows = columns(found, "start", "end", "label", "probability", "source")
    for number, (start, end, label, p, source) in enumerate(rows, start=1):
        if end > len(text):
            raise FormatError(f"an interval ends at character {end:g} of {only(found)!r}, which has {len(text)}.")
        piece = text[int(start) : int(end)].replace("\n", " ").replace("\r", " ").replace("\t", " ")
        lines.append(f"T{number}\t{label} {int(start)} {int(end)}\t{piece}")
        if p is not None:
            lines.append(f"#{number}\tAnnotatorNotes T{number}\tp={short(p)} {source}".rstrip())
    body = "".join(f"{line}\n" for line in lines).encode()
    return {f"{stem}.ann": body, f"{stem}.txt": text.encode()}


def _configuration(segments: Segments) -> Files:
    lines = ["[entities]", *segments.labels, "[relations]", "[events]", "[attributes]"]
    return {"annotation.conf": ("\n".join(lines) + "\n").encode()}


FORMATS = (
    Format(
        name="brat",
        title="brat standoff",
        suffixes=(".ann",),
        unit="characters, exact",
        keeps="text, start, end, label; with a probability (4 decimals) also the source",
        loses="tokens; the source of intervals without a probability",
        checked="structure of the sample (brat's own tools)",
        fits=_fits,
        read=_read,
        write=_write,
        single=True,
        shared=_configuration,
    ),
)
