"""Label Studio: tasks with pre-annotations to import, and exported annotations to read back, as JSON.

Five kinds of task: ``video`` (timeline labels; frames, counted from 1, both ends inside), ``timeseries`` and ``audio``
(seconds), ``text`` (characters), ``sequence`` (one choice per task). Beside the tasks goes the labelling interface that
they need (``.xml``), to be pasted into the settings of the project. When a file is read, annotations count; tasks that
have none give their predictions, if no task has annotations. ``data`` of a task keeps our id, rate and length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dugong.exceptions import FormatError
from dugong.formats import Files, Format
from dugong.formats.files import TOOL, File, Intervals, columns, media_stem, placed
from dugong.segments import Recording, Segments
from dugong.segments.container import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How one kind of task is written: its unit, the type and the names of its tags, and where the data are."""

    unit: Unit
    type: str
    names: tuple[str, str]
    data: str


_KINDS = {
    "video": _Kind(unit="element", type="timelinelabels", names=("tl", "v"), data="video"),
    "timeseries": _Kind(unit="second", type="timeserieslabels", names=("ts_l", "ts"), data="csv"),
    "audio": _Kind(unit="second", type="labels", names=("a_l", "a"), data="audio"),
    "text": _Kind(unit="character", type="labels", names=("n_l", "t"), data="text"),
    "sequence": _Kind(unit="element", type="choices", names=("c", "t"), data="text"),
}
# The labelling interfaces.
_VIEWS = {
    "video": '<TimelineLabels name="tl" toName="v">{labels}</TimelineLabels><Video name="v" value="$video"{rate}/>',
    "timeseries": '<TimeSeriesLabels name="ts_l" toName="ts">{labels}</TimeSeriesLabels>'
    '<TimeSeries name="ts" valueType="url" value="$csv" timeColumn={time}>{channels}</TimeSeries>',
    "audio": '<Labels name="a_l" toName="a">{labels}</Labels><Audio name="a" value="$audio"/>',
    "text": '<Labels name="n_l" toName="t">{labels}</Labels><Text name="t" value="$text"/>',
    "sequence": '<Text name="t" value="$text"/><Choices name="c" toName="t" choice="single">{choices}</Choices>',
}
_MEDIA = {
    "video": (".mp4", ".avi", ".mov", ".mkv", ".webm", ".mpg"),
    "audio": (".wav", ".mp3", ".flac", ".ogg", ".m4a"),
    "timeseries": (".csv", ".tsv", ".json"),
}
_VALUES = ("timelinelabels", "timeserieslabels", "labels", "choices")


def _fits(file: File) -> bool:
    tasks = file.json
    return isinstance(tasks, list) and all(
        isinstance(one, dict) and "data" in one and ("predictions" in one or "annotations" in one) for one in tasks
    )


# --- reading -----------------------------------------------------------------------------------------------------
def _read(file: File) -> Segments:
    with file.at("the file"):
        tasks = list(file.json if isinstance(file.json, list) else [file.json])
        marked = [[one for one in task.get("annotations") or [] if not one.get("was_cancelled")] for task in tasks]
    people = any(marked)
    units: dict[Unit, str] = {}
    rows, recordings = Intervals(file, "element"), {}
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for place, one in enumerate(tasks):
        with file.at(f"[{place}]"):
            name = _name(one, place)
            recordings[name] = _recording(one["data"])
            for found in marked[place] if people else one.get("predictions") or []:
                if not isinstance(found, dict):
                    continue  # exports list the numbers of predictions only
                source = _source(found)
                asked[source, name] = ((0.0, float("inf")),)
                for number, region in enumerate(found["result"]):
                    path = f"[{place}] {name!r}, region {number}"
                    with file.at(path):
                        unit = _add(rows, path, name, region, source)
                        units.setdefault(unit, path) if unit else None
    if len(units) > 1:
        first, second = units
        raise file.error(
            f"regions must count the same; {units[first]} counts {first}s and {units[second]} {second}s.\n"
            "  Export one control tag at a time."
        )
    rows.unit = next(iter(units), "element")
    return rows.done(recordings, asked)


def _source(found: dict[str, Any]) -> str:
    """Who: the person who completed an annotation, or the model version of a prediction."""
    by = found.get("completed_by", found.get("model_version"))
    by = by.get("email") or by.get("id") if isinstance(by, dict) else by
    return "" if by is None else str(by)


def _name(task: dict[str, Any], place: int) -> str:
    data = task["data"]
    if "sequence" in data:
        return str(data["sequence"])
    media = [value for key, value in data.items() if key != "text" and isinstance(value, str)]
    return media_stem(media[0]) if media else str(task.get("id", place))


def _recording(data: dict[str, Any]) -> Recording:
    known = [kind.data for kind in _KINDS.values() if kind.data != "text"]
    media = next((data[key] for key in known if isinstance(data.get(key), str)), None)
    text = data.get("text") if isinstance(data.get("text"), str) else None
    rate, length, duration = (data.get(key) for key in ("rate", "length", "duration"))
    return Recording(
        media=media,
        text=text,
        rate=None if rate is None else float(rate),
        length=None if length is None else int(length),
        duration=None if duration is None else float(duration),
    )


def _add(rows: Intervals, path: str, name: str, region: dict[str, Any], source: str) -> Unit | None:
    """Note a region, and say what it counts; None for choices, which count nothing, and for other controls."""
    value = region["value"]
    key = next((one for one in _VALUES if one in value), None)
    if key is None:
        return None
    number = rows.file.number
    labels, score = value[key], region.get("score")
    if key == "choices":
        for label in labels:
            rows.add(path, name, 0, float("inf"), label, score, source=source, resolution="sequence")
        return None
    if "ranges" in value:
        ranges = value["ranges"]
        spans = [(number(one["start"], "a start", path) - 1, number(one["end"], "an end", path)) for one in ranges]
    else:
        spans = [(number(value["start"], "the start", path), number(value["end"], "the end", path))]
    for label in labels:
        for start, end in spans:
            rows.add(path, name, start, end, label, score, source=source)
    if "ranges" in value:
        return "element"
    return "character" if "text" in value or "startOffset" in value else "second"


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, options: Mapping[str, Any]) -> Files:
    kind = options.get("kind") or _guess(segments)
    if kind not in _KINDS:
        raise FormatError(f"the kind of a Label Studio project is one of {', '.join(_KINDS)}; found {kind!r}.")
    style = _KINDS[kind]
    found = (segments if kind == "sequence" else placed(segments, style.unit, "label-studio")).sort()
    names = (options.get("from_name", style.names[0]), options.get("to_name", style.names[1]))
    regions: dict[str, list[dict[str, Any]]] = {name: [] for name in found.recordings}
    for name, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        about = found.recordings[name]
        region: dict[str, Any] = {"id": f"r{len(regions[name])}", "type": style.type}
        region |= {"from_name": names[0], "to_name": names[1]}
        region |= {} if p is None else {"score": p}
        region |= {"original_length": about.seconds} if kind == "audio" and about.seconds is not None else {}
        regions[name].append(region | {"value": _value(kind, start, end, label, about)})
    sources = dict(zip(found.sequence, found.source, strict=True))
    tasks = [
        _task(name, about, regions[name], kind, options, sources.get(name) or TOOL)
        for name, about in found.recordings.items()
    ]
    view = _view(found, kind, options)
    body = ",\n".join(json.dumps(task, ensure_ascii=False) for task in tasks)
    return {f"{stem}.json": f"[{body}]\n".encode(), f"{stem}.xml": view.encode()}


def _guess(segments: Segments) -> str:
    """The kind that follows from the unit or from the names of the media; never one of two."""
    if set(segments.resolution) == {"sequence"}:
        return "sequence"
    if segments.unit == "character":
        return "text"
    media = {about.media.lower() for about in segments.recordings.values() if about.media}
    for kind, endings in _MEDIA.items():
        if media and all(one.endswith(endings) for one in media):
            return kind
    raise FormatError(
        "Label Studio shows video, timeseries, audio, text or one choice per sequence, and the segments do not say "
        'which.\n  Say it: kind="video" (--kind video), or give media= with its ending.'
    )


def _value(kind: str, start: float, end: float, label: str, about: Recording) -> dict[str, Any]:
    style = _KINDS[kind]
    if kind == "video":
        return {"ranges": [{"start": int(start) + 1, "end": int(end)}], style.type: [label]}
    if kind == "timeseries":
        return {"start": start, "end": end, "instant": start == end, style.type: [label]}
    if kind == "audio":
        return {"start": start, "end": end, "channel": 0, style.type: [label]}
    if kind == "sequence":
        return {style.type: [label]}
    text = about.text
    if text is None or end > len(text):
        raise FormatError(
            f"the text must be known and hold the interval {start:g} to {end:g}; found "
            f"{'no text' if text is None else f'{len(text)} characters'}.\n  Say it: segments.describe(text=...)."
        )
    return {"start": int(start), "end": int(end), "text": text[int(start) : int(end)], style.type: [label]}


def _task(
    name: str, about: Recording, regions: list[dict[str, Any]], kind: str, options: Mapping[str, Any], source: str
) -> dict[str, Any]:
    shown = about.text if kind == "text" else about.media
    if kind == "sequence":
        shown = about.text or about.media or name
    if shown is None:
        raise FormatError(
            f"Label Studio needs to know what to show for {name!r}.\n"
            "  Say it: segments.describe(media={sequence: url}) or text=; on the command line --media."
        )
    data: dict[str, Any] = {options.get("data_key", _KINDS[kind].data): shown, "sequence": name}
    facts = {"rate": about.rate, "length": about.n_elements, "duration": about.seconds}
    data |= {key: value for key, value in facts.items() if value is not None and kind != "text"}
    scores = [one["score"] for one in regions if "score" in one]
    prediction: dict[str, Any] = {"model_version": options.get("model_version", source), "result": regions}
    prediction |= {"score": float(np.mean(scores))} if scores else {}
    return {"data": data, "predictions": [prediction]}


def _view(segments: Segments, kind: str, options: Mapping[str, Any]) -> str:
    labels = tuple(dict.fromkeys([*options.get("labels", ()), *segments.labels]))
    rates = {about.rate for about in segments.recordings.values() if about.rate}
    channels = options.get("channels", ("x",))
    body = _VIEWS[kind].format(
        labels="".join(f"<Label value={quoteattr(one)}/>" for one in labels),
        choices="".join(f"<Choice value={quoteattr(one)}/>" for one in labels),
        # Where the rate is not known, or not the same for all, the tool's own default is better than a guess of ours.
        rate=f' frameRate="{next(iter(rates)):g}"' if len(rates) == 1 else "",
        time=quoteattr(str(options.get("time_column", "time"))),
        channels="".join(f"<Channel column={quoteattr(str(one))}/>" for one in channels),
    )
    return f"<View>{body}</View>\n"


FORMATS = (
    Format(
        name="label-studio",
        title="Label Studio",
        suffixes=(".json",),
        unit="elements (video), seconds (timeseries, audio), characters (text); exact",
        keeps="sequence, start, end, label, probability, media, text, rate, length; who annotated; one source when "
        "written; whole-sequence labels (kind='sequence')",
        loses="attributes, tokens",
        checked="label-studio-sdk",
        fits=_fits,
        read=_read,
        write=_write,
        options=("kind", "labels", "from_name", "to_name", "data_key", "model_version", "time_column", "channels"),
        aliases=("labelstudio", "label_studio", "ls"),
    ),
)
