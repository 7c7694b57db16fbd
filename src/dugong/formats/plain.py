"""Our own plain files: CSV with one interval per line, and JSON lines, which keep everything.

A CSV file has the columns sequence, start, end and label, and may have unit, probability, source and resolution; in
place of start and end it may have start_seconds and end_seconds. JSON lines also hold one line per recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals
from dugong.formats.lists import ListStyle, quoted, read_list
from dugong.formats.texts import columns, json_lines
from dugong.segments import UNITS, Recording, Segments
from dugong.segments.container import Unit

_COLUMNS = ("sequence", "start", "end", "label", "probability", "source", "resolution")
_NAMES = (*_COLUMNS[:3], "unit", *_COLUMNS[3:])
_ELEMENTS = ListStyle(names=_NAMES, ours={name: name for name in _COLUMNS}, header=True, delimiter=",", quoted=True)
_SECONDS = ListStyle(
    names=_NAMES,
    ours={name: name for name in _COLUMNS if name not in ("start", "end")}
    | {"start_seconds": "start", "end_seconds": "end"},
    header=True,
    delimiter=",",
    quoted=True,
)


# --- CSV ---------------------------------------------------------------------------------------------------------
def _header(file: File) -> list[str]:
    return file.lines[0].removeprefix("\ufeff").replace('"', "").split(",")


def _fits_csv(file: File) -> bool:
    header = _header(file)
    return "sequence" in header and "label" in header and ("start" in header or "start_seconds" in header)


def _read_csv(file: File) -> Segments:
    header = _header(file)
    if "start" not in header and "start_seconds" in header:
        return read_list(file, _SECONDS, unit="second")
    return read_list(file, _ELEMENTS, unit=_unit(file, header))


def _unit(file: File, header: list[str]) -> Unit:
    """The unit that the column of that name holds; elements if there is none."""
    if "unit" not in header or len(file.lines) < 2 or not file.lines[1].strip():
        return "element"
    import csv

    place, rows = header.index("unit"), csv.reader(file.lines[1:], delimiter=",")
    found = {row[place] for row in rows if len(row) > place}
    for unit in UNITS:
        if found == {unit}:
            return unit
    raise file.error(f"the column 'unit' must hold one of {', '.join(UNITS)} in all lines; found {sorted(found)}.", 2)


def _write_csv(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    rows = (
        (name, _number(start), _number(end), segments.unit, *rest)
        for name, start, end, *rest in columns(segments, *_COLUMNS)
    )
    return {f"{stem}.csv": quoted([_NAMES, *rows])}


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value


# --- JSON lines --------------------------------------------------------------------------------------------------
def _fits_lines(file: File) -> bool:
    first = file.first_object()
    return "recording" in first or ("sequence" in first and isinstance(first.get("label"), str))


def _read_lines(file: File) -> Segments:
    recordings: dict[str, Recording] = {}
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    units: dict[str, int] = {}
    every = file.json_lines()
    rows = Intervals(file, "element")
    for number, one in every:
        with file.at(number):
            if "recording" not in one:
                _add(rows, number, one)
            else:
                name = str(one["recording"])
                recordings[name] = _recording(one)
                for source, spans in (one.get("asked") or {}).items():
                    asked[source, name] = tuple((float(a), float("inf") if b is None else float(b)) for a, b in spans)
        units.setdefault(str(one.get("unit", "element")), number)
    if len(units) > 1 or not set(units) <= set(UNITS):
        raise file.error(f"all lines must have one unit of {', '.join(UNITS)}; found {', '.join(units)}.", 1)
    rows.unit = next((unit for unit in UNITS if unit in units), "element")
    return rows.done(recordings, asked or None)


def _recording(one: dict[str, Any]) -> Recording:
    facts = {field.name: one[field.name] for field in fields(Recording) if one.get(field.name) is not None}
    if "tokens" in facts:
        facts["tokens"] = tuple((int(a), int(b)) for a, b in facts["tokens"])
    if "stamps" in facts:
        facts["stamps"] = tuple(map(float, facts["stamps"]))
    return Recording(**facts)


def _add(rows: Intervals, number: int, one: dict[str, Any]) -> None:
    rows.add(
        number,
        str(one["sequence"]),
        rows.file.number(one["start"], "the start", number),
        float("inf") if one["end"] is None else rows.file.number(one["end"], "the end", number),
        str(one["label"]),
        None if one.get("probability") is None else rows.file.number(one["probability"], "the probability", number),
        source=str(one.get("source") or ""),
        resolution=str(one.get("resolution") or "element"),
        attributes={str(key): str(value) for key, value in (one.get("attributes") or {}).items()},
    )


def _write_lines(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    lines = [_about(segments, name) for name in segments.recordings]
    for name, start, end, label, p, source, resolution, attributes in columns(segments, *_COLUMNS, "attributes"):
        row: dict[str, Any] = {
            "sequence": name,
            "start": _number(start),
            "end": None if np.isinf(end) else _number(end),
        }
        row |= {"unit": segments.unit, "label": label}
        row |= {} if p is None else {"probability": p}
        row |= {"source": source} if source else {}
        row |= {"resolution": resolution} if resolution != "element" else {}
        row |= {"attributes": dict(attributes)} if attributes else {}
        lines.append(row)
    return {f"{stem}.jsonl": json_lines(lines)}


def _about(segments: Segments, name: str) -> dict[str, Any]:
    known = {key: value for key, value in asdict(segments.recordings[name]).items() if value is not None}
    about: dict[str, Any] = {"recording": name, "unit": segments.unit, **known}
    if segments.asked is not None:
        about["asked"] = {
            source: [[a, None if np.isinf(b) else b] for a, b in spans]
            for (source, one), spans in segments.asked.items()
            if one == name
        }
    return about


FORMATS = (
    Format(
        name="csv",
        title="plain CSV",
        suffixes=(".csv",),
        owns=(".csv",),
        unit="elements, seconds or characters; exact",
        keeps="sequence, start, end, unit, label, probability, source, resolution; instants",
        loses="attributes; sequences without intervals; what was asked",
        checked="itself",
        fits=_fits_csv,
        read=_read_csv,
        write=_write_csv,
    ),
    Format(
        name="jsonl",
        title="plain JSON lines",
        suffixes=(".jsonl", ".ndjson"),
        owns=(".jsonl", ".ndjson"),
        unit="elements, seconds or characters; exact",
        keeps="everything",
        loses="nothing",
        checked="itself",
        fits=_fits_lines,
        read=_read_lines,
        write=_write_lines,
        aliases=("json-lines",),
    ),
)
