"""Videos and sounds with segments, as JSON: ActivityNet (results or known labels), VIA 3, JAMS and BORIS.

JAMS holds one sequence per file, the others several. In BORIS a state is two rows, its start and its stop; a point
event is one row, and becomes an interval without length; the probability is in the comment (``p=0.93``), subject and
modifier are attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from dugong.exceptions import FormatError
from dugong.formats import Files, Format
from dugong.formats.files import (
    TOOL,
    File,
    Intervals,
    apart,
    columns,
    grouped,
    media_name,
    media_stem,
    placed,
    short,
    split_note,
)
from dugong.segments import Recording, Segments

# --- ActivityNet ------------------------------------------------------------------------------------------------------
_VERSION = "VERSION 1.3"


def _read_activitynet(file: File) -> Segments:
    rows, recordings = Intervals(file, "second"), {}
    key = "results" if isinstance(file.json, dict) and "results" in file.json else "database"
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
                start, end = (file.number(bound, "a bound", path) for bound in item["segment"])
                rows.add(path, name, start, end, str(item["label"]), item.get("score"))
    return rows.done(recordings)


def _write_activitynet(segments: Segments, stem: str, options: Mapping[str, Any]) -> Files:
    kind = options.get("kind", "results")
    if kind not in ("results", "truth"):
        raise FormatError(f"the kind of an ActivityNet file is 'results' or 'truth'; found {kind!r}.")
    found = placed(segments, "second", "activitynet").sort()
    by_name: dict[str, list[dict[str, Any]]] = {
        # Results must have a score.
        name: [
            {"label": label, **({} if kind == "truth" else {"score": 1.0 if p is None else p}), "segment": [start, end]}
            for start, end, label, p in rows
        ]
        for name, rows in grouped(found, "sequence", "start", "end", "label", "probability").items()
    }
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


# --- VIA --------------------------------------------------------------------------------------------------------------
_LABEL, _PROBABILITY = "1", "2"
_SELECT, _TEXT, _VIDEO, _LOCAL = 4, 1, 4, 1


def _read_via(file: File) -> Segments:
    rows, whole = Intervals(file, "second"), file.json
    with file.at("view"):
        media = {key: _media(whole, one) for key, one in whole["view"].items()}
        names = {key: media_stem(one) for key, one in media.items()}
    with file.at("attribute"):
        options = {key: one.get("options") or {} for key, one in whole["attribute"].items()}
        score = next((key for key, one in whole["attribute"].items() if one.get("aname") == "probability"), None)
    with file.at("metadata"):
        items = dict(whole["metadata"])
    for key, one in items.items():
        path = f"metadata.{key}"
        with file.at(path):
            if len(one["z"]) != 2 or one["xy"]:
                continue  # a still frame or a region of a picture, no interval
            start, end = (file.number(bound, "a bound", path) for bound in one["z"])
            given = dict(one["av"])
            p = given.pop(score, None)
            label = next(((options.get(key) or {}).get(value, value) for key, value in given.items()), "")
            rows.add(path, names[str(one["vid"])], start, end, str(label), float(p) if p else None)
    return rows.done({names[key]: Recording(media=media[key]) for key in names})


def _media(whole: dict[str, Any], view: dict[str, Any]) -> str:
    one = whole["file"][str(view["fid_list"][0])]
    return str(one.get("src") or one["fname"])


def _write_via(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "via").sort()
    place = {name: str(number) for number, name in enumerate(found.recordings, start=1)}
    metadata = {}
    rows = columns(found, "sequence", "start", "end", "label", "probability")
    for number, (name, start, end, label, p) in enumerate(rows):
        values = {_LABEL: label} | ({} if p is None else {_PROBABILITY: repr(p)})
        region = {"vid": place[name], "flg": 0, "z": [start, end], "xy": [], "av": values}
        metadata[f"{place[name]}_{number:08d}"] = region
    whole = {
        "project": {
            "pid": "__VIA_PROJECT_ID__",
            "rev": "__VIA_PROJECT_REV_ID__",
            "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
            "pname": stem,
            "creator": TOOL,
            "created": 0,
            "vid_list": list(place.values()),
        },
        "config": _CONFIG,
        "attribute": _attributes(found.labels),
        "file": {key: _file(key, name, found.recordings[name]) for name, key in place.items()},
        "view": {key: {"fid_list": [key]} for key in place.values()},
        "metadata": metadata,
    }
    return {f"{stem}.json": json.dumps(whole, ensure_ascii=False).encode()}


def _attributes(labels: tuple[str, ...]) -> dict[str, Any]:
    anchor = {"anchor_id": "FILE1_Z2_XY0", "default_option_id": ""}
    options = {label: label for label in labels}
    return {
        _LABEL: {"aname": "TEMPORAL-SEGMENTS", "type": _SELECT, "desc": "labels", "options": options, **anchor},
        _PROBABILITY: {"aname": "probability", "type": _TEXT, "desc": "of the label", "options": {}, **anchor},
    }


def _file(key: str, name: str, about: Recording) -> dict[str, Any]:
    media = media_name(name, about, ".mp4")
    return {"fid": key, "fname": media, "type": _VIDEO, "loc": _LOCAL, "src": media}


_CONFIG = {
    "file": {"loc_prefix": {"1": "", "2": "", "3": "", "4": ""}},
    "ui": {
        "file_content_align": "center",
        "file_metadata_editor_visible": True,
        "spatial_metadata_editor_visible": True,
        "temporal_segment_metadata_editor_visible": True,
        "spatial_region_label_attribute_id": "",
        "gtimeline_visible_row_count": "4",
    },
}


# --- JAMS -------------------------------------------------------------------------------------------------------------
def _read_jams(file: File) -> Segments:
    rows = Intervals(file, "second")
    whole = file.json
    with file.at("file_metadata"):
        given = whole["file_metadata"].get("duration")
        duration = None if given is None else file.number(given, "the duration", "file_metadata")
    with file.at("annotations"):
        annotations = list(whole["annotations"])
    for place, one in enumerate(annotations):
        with file.at(f"annotations[{place}]"):
            who = (one.get("annotation_metadata") or {}).get("annotator") or {}
            source, items = str(who.get("name", "")), list(one["data"])
        for number, data in enumerate(items):
            path = f"annotations[{place}].data[{number}]"
            with file.at(path):
                start = file.number(data["time"], "the time", path)
                end = round(start + file.number(data["duration"], "the duration", path), 9)
                rows.add(path, file.stem, start, end, str(data["value"]), data["confidence"], source=source)
    return rows.done({file.stem: Recording(duration=duration)})


def _write_jams(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "jams").sort()
    known = [about.seconds for about in found.recordings.values()]
    duration = known[0] if known and known[0] is not None else float(found.end.max(initial=0.0))
    by_source = grouped(found, "source", "start", "end", "label", "probability")
    whole = {
        "annotations": [_annotation(source, rows, duration) for source, rows in by_source.items()],
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


def _annotation(source: str, rows: list[tuple[Any, ...]], duration: float) -> dict[str, Any]:
    return {
        "namespace": "tag_open",
        "data": [
            {"time": start, "duration": round(end - start, 9), "value": label, "confidence": p}
            for start, end, label, p in rows
        ],
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


# --- BORIS ------------------------------------------------------------------------------------------------------------
def _read_boris(file: File) -> Segments:
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
        if code not in points and key not in opened:
            opened[key] = (number, seconds, comment)
            continue
        _, start, note = opened.pop(key, (number, seconds, comment))
        attributes = {field: value for field, value in (("subject", key[0]), ("modifier", key[2])) if value}
        rows.add(path, name, start, seconds, key[1], split_note(str(note or comment))[1], attributes=attributes)
    if opened:
        (_, code, _), (number, start, _) = next(iter(opened.items()))
        raise rows.file.error(f"the state {code!r} starts at {start:g} s and never stops.", f"{where}.events[{number}]")


def _write_boris(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "boris"), "boris", of=("sequence", "label"))
    by_name = grouped(found, "sequence", "start", "end", "label", "probability", "attributes")
    whole = {
        "time_format": "hh:mm:ss",
        "project_date": "1970-01-01T00:00:00",
        "project_name": stem,
        "project_description": TOOL,
        "project_format_version": "7.0",
        "subjects_conf": {},
        "behaviors_conf": {str(place): _behaviour(label) for place, label in enumerate(found.labels)},
        "observations": {name: _observation(found.recordings[name], rows) for name, rows in by_name.items()},
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


def _observation(about: Recording, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    events = [
        [time, more.get("subject", ""), label, more.get("modifier", ""), "" if p is None else f"p={short(p)}"]
        for start, end, label, p, more in rows
        for time in (start, end)
    ]
    media = about.media
    last = max((row[0] for row in events), default=0.0)
    length = about.seconds if about.seconds is not None else last
    info = {"length": length, "fps": about.rate or 0.0, "hasVideo": True, "hasAudio": False}
    return {
        "file": {str(player): [media] if media is not None and player == 1 else [] for player in range(1, 9)},
        "type": "MEDIA" if media is not None else "LIVE",
        "date": "1970-01-01T00:00:00",
        "description": TOOL,
        "time offset": 0.0,
        "events": sorted(events, key=itemgetter(0)),
        "observation time interval": [0, 0],
        "independent_variables": {},
        "visualize_spectrogram": False,
        "visualize_waveform": False,
        "close_behaviors_between_videos": False,
        "scan_sampling_time": 0,
        "media_info": {
            **{fact: {} if media is None else {media: value} for fact, value in info.items()},
            "offset": {"1": 0.0},
        },
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
        read=_read_activitynet,
        write=_write_activitynet,
        options=("kind",),
    ),
    Format(
        name="via",
        title="VIA 3 project",
        suffixes=(".json",),
        unit="seconds, exact",
        keeps="sequence, start, end, label, probability, media; instants",
        loses="source; regions of pictures",
        checked="structure of the sample (VIA's own export script)",
        fits=lambda file: (
            isinstance(file.json, dict) and {"project", "attribute", "metadata", "view"} <= set(file.json)
        ),
        read=_read_via,
        write=_write_via,
        aliases=("via3",),
    ),
    Format(
        name="jams",
        title="JAMS",
        suffixes=(".jams",),
        unit="seconds, 1 ns",
        keeps="start, end, label, probability, source, duration; instants",
        loses="resolution, attributes",
        checked="jams",
        fits=lambda file: isinstance(file.json, dict) and {"annotations", "file_metadata"} <= set(file.json),
        read=_read_jams,
        write=_write_jams,
        single=True,
    ),
    Format(
        name="boris",
        title="BORIS project",
        suffixes=(".boris",),
        unit="seconds, exact",
        keeps="sequence, start, end, label, probability (4 decimals), media, rate; subject and modifier as attributes",
        loses="source; overlaps of one label in a sequence are refused",
        checked="structure of the sample (BORIS)",
        fits=lambda file: isinstance(file.json, dict) and {"observations", "behaviors_conf"} <= set(file.json),
        read=_read_boris,
        write=_write_boris,
    ),
)
