"""BORIS projects: behaviours of subjects in observations, as JSON; several sequences per file.

A state is two rows, its start and its stop. A point event is one row, and becomes an interval without length. The
probability is in the comment (``p=0.93``), subject and modifier are attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, apart, columns, placed, short, split_note
from dugong.segments import Recording, Segments

_FIELDS = ("subject", "modifier")


# --- reading -----------------------------------------------------------------------------------------------------
def _read(file: File) -> Segments:
    rows, recordings = Intervals(file, "second"), {}
    with file.at("behaviors_conf"):
        conf = list(file.json["behaviors_conf"].values())
        points = {one.get("code") for one in conf if str(one.get("type", "")).lower().startswith("point")}
    with file.at("observations"):
        observations = dict(file.json["observations"])
    for name, one in observations.items():
        where = f"observations.{name}"
        with file.at(where):
            recordings[name] = _recording(one)
            _events(rows, name, one, points, where)
    return rows.done(recordings)


def _recording(one: dict[str, Any]) -> Recording:
    media = next(iter(one.get("file", {}).get("1") or []), None)
    info = one.get("media_info") or {}
    lengths, rates = info.get("length") or {}, info.get("fps") or {}
    rate = float(rates[media]) if rates.get(media) else None
    return Recording(duration=float(lengths[media]) if lengths.get(media) else None, rate=rate, media=media)


def _events(rows: Intervals, name: str, one: dict[str, Any], points: set[Any], where: str) -> None:
    opened: dict[tuple[str, str, str], tuple[int, float, str]] = {}
    for number, (time, subject, code, modifier, comment, *_) in enumerate(one["events"]):
        path = f"{where}.events[{number}]"
        seconds = rows.file.number(time, "the time", path)
        key = (str(subject), str(code), str(modifier))
        if code in points:
            _add(rows, path, name, (seconds, seconds), key, comment)
        elif key in opened:
            _, start, note = opened.pop(key)
            _add(rows, path, name, (start, seconds), key, note or comment)
        else:
            opened[key] = (number, seconds, comment)
    if opened:
        (_, code, _), (number, start, _) = next(iter(opened.items()))
        raise rows.file.error(f"the state {code!r} starts at {start:g} s and never stops.", f"{where}.events[{number}]")


def _add(
    rows: Intervals, path: str, name: str, times: tuple[float, float], key: tuple[str, str, str], note: str
) -> None:
    attributes = {field: value for field, value in zip(_FIELDS, (key[0], key[2]), strict=True) if value}
    probability = split_note(str(note))[1]
    rows.add(path, name, *times, key[1], probability, attributes=attributes)


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "boris"), "boris", of=("sequence", "label"))
    events: dict[str, list[list[Any]]] = {name: [] for name in found.recordings}
    rows = columns(found, "sequence", "start", "end", "label", "probability", "attributes")
    for name, start, end, label, p, more in rows:
        note = "" if p is None else f"p={short(p)}"
        for time in (start, end):
            events[name].append([time, more.get("subject", ""), label, more.get("modifier", ""), note])
    whole = {
        "time_format": "hh:mm:ss",
        "project_date": "1970-01-01T00:00:00",
        "project_name": stem,
        "project_description": TOOL,
        "project_format_version": "7.0",
        "subjects_conf": {},
        "behaviors_conf": {str(place): _behaviour(label) for place, label in enumerate(found.labels)},
        "observations": {name: _observation(found.recordings[name], rows) for name, rows in events.items()},
        "behavioral_categories": [],
        "independent_variables": {},
        "coding_map": {},
        "behaviors_coding_map": [],
        "converters": {},
    }
    return {f"{stem}.boris": json.dumps(whole, ensure_ascii=False).encode()}


def _behaviour(label: str) -> dict[str, str]:
    empty = ("description", "color", "category", "modifiers", "excluded", "coding map")
    return {"type": "State event", "key": label[:1].lower(), "code": label, **dict.fromkeys(empty, "")}


def _observation(about: Recording, events: list[list[Any]]) -> dict[str, Any]:
    media = about.media
    files: dict[str, list[str]] = {str(player): [] for player in range(1, 9)}
    info: dict[str, Any] = {"length": {}, "fps": {}, "hasVideo": {}, "hasAudio": {}, "offset": {"1": 0.0}}
    if media is not None:
        files["1"] = [media]
        last = max((row[0] for row in events), default=0.0)
        info |= {
            "length": {media: about.seconds if about.seconds is not None else last},
            "fps": {media: about.rate or 0.0},
            "hasVideo": {media: True},
            "hasAudio": {media: False},
        }
    times = np.argsort([row[0] for row in events], kind="stable")
    return {
        "file": files,
        "type": "MEDIA" if media is not None else "LIVE",
        "date": "1970-01-01T00:00:00",
        "description": TOOL,
        "time offset": 0.0,
        "events": [events[place] for place in times.tolist()],
        "observation time interval": [0, 0],
        "independent_variables": {},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "close_behaviors_between_videos": False,
        "scan_sampling_time": 0,
        "media_info": info,
    }


FORMATS = (
    Format(
        name="boris",
        title="BORIS project",
        suffixes=(".boris",),
        unit="seconds, exact",
        keeps="sequence, start, end, label, probability (4 decimals), media, rate; subject and modifier as attributes",
        loses="source; overlaps of one label in a sequence are refused",
        checked="structure of the sample (BORIS)",
        fits=lambda file: isinstance(file.json, dict) and {"observations", "behaviors_conf"} <= set(file.json),
        read=_read,
        write=_write,
    ),
)
