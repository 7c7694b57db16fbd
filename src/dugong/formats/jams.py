"""JAMS: annotations of sound as JSON, one list of tags per source; one sequence per file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, placed
from dugong.segments import Recording, Segments

_NAMESPACE = "tag_open"


def _read(file: File) -> Segments:
    rows = Intervals(file, "second")
    whole = file.json
    with file.at("file_metadata"):
        given = whole["file_metadata"].get("duration")
        duration = None if given is None else file.number(given, "the duration", "file_metadata")
    with file.at("annotations"):
        annotations = list(whole["annotations"])
    for place, one in enumerate(annotations):
        with file.at(f"annotations[{place}]"):
            source, items = _source(one), list(one["data"])
        for number, data in enumerate(items):
            path = f"annotations[{place}].data[{number}]"
            with file.at(path):
                _add(rows, path, data, source)
    return rows.done({file.stem: Recording(duration=duration)})


def _source(one: dict[str, Any]) -> str:
    return str(((one.get("annotation_metadata") or {}).get("annotator") or {}).get("name", ""))


def _add(rows: Intervals, path: str, data: dict[str, Any], source: str) -> None:
    start = rows.file.number(data["time"], "the time", path)
    end = start + rows.file.number(data["duration"], "the duration", path)
    rows.add(path, rows.file.stem, start, round(end, 9), str(data["value"]), data["confidence"], source=source)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "jams").sort()
    known = [about.seconds for about in found.recordings.values()]
    duration = known[0] if known and known[0] is not None else float(found.end.max(initial=0.0))
    data: dict[str, list[dict[str, Any]]] = {source: [] for source in found.sources or ("",)}
    rows = columns(found, "source", "start", "end", "label", "probability")
    for source, start, end, label, p in rows:
        data[source].append({"time": start, "duration": round(end - start, 9), "value": label, "confidence": p})
    whole = {
        "annotations": [_annotation(source, items, duration) for source, items in data.items()],
        "file_metadata": {
            "title": stem,
            "artist": "",
            "release": "",
            "duration": duration,
            "identifiers": {},
            "jams_version": "0.3.4",
        },
        "sandbox": {},
    }
    return {f"{stem}.jams": json.dumps(whole, ensure_ascii=False).encode()}


def _annotation(source: str, data: list[dict[str, Any]], duration: float) -> dict[str, Any]:
    return {
        "namespace": _NAMESPACE,
        "data": data,
        "annotation_metadata": {
            "curator": {"name": "", "email": ""},
            "version": "",
            "corpus": "",
            "annotator": {"name": source} if source else {},
            "annotation_tools": TOOL,
            "annotation_rules": "",
            "validation": "",
            "data_source": "program",
        },
        "sandbox": {},
        "time": 0,
        "duration": duration,
    }


FORMATS = (
    Format(
        name="jams",
        title="JAMS",
        suffixes=(".jams",),
        unit="seconds, 1 ns",
        keeps="start, end, label, probability, source, duration; instants",
        loses="resolution, attributes",
        checked="jams",
        fits=lambda file: isinstance(file.json, dict) and {"annotations", "file_metadata"} <= set(file.json),
        read=_read,
        write=_write,
        single=True,
    ),
)
