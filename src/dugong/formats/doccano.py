"""doccano JSON lines: one text per line, with a list of [start, end, label] in characters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, placed
from dugong.segments import Recording, Segments


def _fits(file: File) -> bool:
    first = file.first_object()
    return "text" in first and isinstance(first.get("label", first.get("entities")), list)


def _read(file: File) -> Segments:
    rows, recordings = Intervals(file, "character"), {}
    every = file.json_lines()
    for place, (number, one) in enumerate(every, start=1):
        with file.at(number):
            name = str(one.get("sequence") or (file.stem if len(every) == 1 else one.get("id", f"{file.stem}-{place}")))
            recordings[name] = Recording(text=one["text"])
            shares = one.get("p") or []
            for row, (start, end, label) in enumerate(_spans(one)):
                rows.add(number, name, start, end, str(label), shares[row] if row < len(shares) else None)
    return rows.done(recordings)


def _spans(one: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Spans as doccano writes them: lists, or in newer exports objects."""
    for span in one.get("label") or []:
        yield span[0], span[1], span[2]
    for span in one.get("entities") or []:
        yield span["start_offset"], span["end_offset"], span["label"]


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "character", "doccano").sort()
    texts: dict[str, dict[str, Any]] = {}
    for name, about in found.recordings.items():
        if about.text is None:
            raise FormatError(f"the format 'doccano' holds text, and the text of {name!r} is not known.")
        texts[name] = {"text": about.text, "label": [], "p": [], "sequence": name}
    for name, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        texts[name]["label"].append([int(start), int(end), label])
        texts[name]["p"].append(p)
    return {f"{stem}.jsonl": "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in texts.values()).encode()}


FORMATS = (
    Format(
        name="doccano",
        title="doccano JSON lines",
        suffixes=(".jsonl",),
        unit="characters, exact",
        keeps="sequence, text, start, end, label; probability (a column of its own, which doccano keeps as it is)",
        loses="source, tokens",
        checked="structure of the sample (datasets reads it)",
        fits=_fits,
        read=_read,
        write=_write,
    ),
)
