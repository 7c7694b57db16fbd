"""ActivityNet: segments of videos as JSON, either results with scores or known labels; several sequences per file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, placed
from dugong.segments import Recording, Segments

_VERSION = "VERSION 1.3"


def _read(file: File) -> Segments:
    rows, recordings = Intervals(file, "second"), {}
    key = "results" if "results" in file.json else "database"
    with file.at(key):
        videos = dict(file.json[key])
    for name, one in videos.items():
        where = f"{key}.{name}"
        with file.at(where):
            items = list(one if key == "results" else one["annotations"])
            length = None if key == "results" else one.get("duration")
        recordings[name] = Recording(duration=None if length is None else file.number(length, "the duration", where))
        for number, item in enumerate(items):
            path = f"{where}[{number}]"
            with file.at(path):
                _add(rows, path, name, item)
    return rows.done(recordings)


def _add(rows: Intervals, path: str, name: str, item: dict[str, Any]) -> None:
    start, end = (rows.file.number(one, "a bound", path) for one in item["segment"])
    rows.add(path, name, start, end, str(item["label"]), item.get("score"))


def _write(segments: Segments, stem: str, options: Mapping[str, Any]) -> Files:
    kind = options.get("kind", "results")
    if kind not in ("results", "truth"):
        raise FormatError(f"the kind of an ActivityNet file is 'results' or 'truth'; found {kind!r}.")
    found = placed(segments, "second", "activitynet").sort()
    by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in found.recordings}
    for name, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        score = {} if kind == "truth" else {"score": 1.0 if p is None else p}  # results must have one
        by_name[name].append({"label": label, **score, "segment": [start, end]})
    if kind == "results":
        whole: dict[str, Any] = {"version": _VERSION, "results": by_name}
        whole["external_data"] = {"used": False, "details": TOOL}
    else:
        whole = {"version": _VERSION, "taxonomy": [], "database": _database(found, by_name)}
    return {f"{stem}.json": json.dumps(whole, ensure_ascii=False).encode()}


def _database(segments: Segments, by_name: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        name: {
            "subset": "validation",
            **({} if about.seconds is None else {"duration": about.seconds}),
            "url": about.media or "",
            "annotations": by_name[name],
        }
        for name, about in segments.recordings.items()
    }


FORMATS = (
    Format(
        name="activitynet",
        title="ActivityNet",
        suffixes=(".json",),
        unit="seconds, exact",
        keeps="sequence, start, end, label, probability (1 where there is none); durations (kind='truth'); instants",
        loses="source; with kind='truth' the probability",
        checked="structure of the sample (the official evaluation)",
        fits=lambda file: isinstance(file.json, dict) and ("results" in file.json or "database" in file.json),
        read=_read,
        write=_write,
        options=("kind",),
    ),
)
