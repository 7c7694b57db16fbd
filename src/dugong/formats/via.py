"""VIA 3 projects (VGG Image Annotator): temporal segments of videos and sounds, as JSON; several sequences per file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, media_stem, placed
from dugong.segments import Recording, Segments

_LABEL, _PROBABILITY = "1", "2"
_SELECT, _TEXT, _VIDEO, _LOCAL = 4, 1, 4, 1


def _read(file: File) -> Segments:
    rows = Intervals(file, "second")
    whole = file.json
    with file.at("view"):
        media = {key: _media(whole, one) for key, one in whole["view"].items()}
        names = {key: media_stem(one) for key, one in media.items()}
    with file.at("attribute"):
        options = {key: one.get("options") or {} for key, one in whole["attribute"].items()}
        score = next((key for key, one in whole["attribute"].items() if one.get("aname") == "probability"), None)
    with file.at("metadata"):
        items = dict(whole["metadata"])
    for key, one in items.items():
        with file.at(f"metadata.{key}"):
            _add(rows, f"metadata.{key}", names, options, score, one)
    return rows.done({names[key]: Recording(media=media[key]) for key in names})


def _media(whole: dict[str, Any], view: dict[str, Any]) -> str:
    one = whole["file"][str(view["fid_list"][0])]
    return str(one.get("src") or one["fname"])


def _add(
    rows: Intervals,
    path: str,
    names: dict[str, str],
    options: dict[str, dict[str, str]],
    score: str | None,
    one: dict[str, Any],
) -> None:
    if len(one["z"]) != 2 or one["xy"]:
        return  # a still frame or a region of a picture, no interval
    start, end = (rows.file.number(bound, "a bound", path) for bound in one["z"])
    given = dict(one["av"])
    p = given.pop(score, None) if score is not None else None
    label = next(((options.get(key) or {}).get(value, value) for key, value in given.items()), "")
    rows.add(path, names[str(one["vid"])], start, end, str(label), float(p) if p else None)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "via").sort()
    place = {name: str(number) for number, name in enumerate(found.recordings, start=1)}
    metadata = {}
    rows = columns(found, "sequence", "start", "end", "label", "probability")
    for number, (name, start, end, label, p) in enumerate(rows):
        values = {_LABEL: label} | ({} if p is None else {_PROBABILITY: repr(p)})
        metadata[f"{place[name]}_{number:08d}"] = {
            "vid": place[name],
            "flg": 0,
            "z": [start, end],
            "xy": [],
            "av": values,
        }
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
    media = about.media if about.media is not None and media_stem(about.media) == name else f"{name}.mp4"
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

FORMATS = (
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
        read=_read,
        write=_write,
        aliases=("via3",),
    ),
)
