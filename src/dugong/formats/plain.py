"""Hugging Face datasets: Parquet with the types of the columns in its header (`load_dataset("parquet", ...)` reads it).

Texts become one row each, with tokens, BIO tags as a ClassLabel, and soft labels; everything else becomes one row per
interval. No other package is needed to read or write these files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import islice
from math import isinf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dugong.archives import read_table
from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals, columns, json_lines
from dugong.formats.lists import ListStyle, list_lines, quoted, read_list
from dugong.formats.tokens import Document, TaggedToken, bio_tags, segments_of
from dugong.segments import UNITS, Recording, Segments
from dugong.segments.container import Unit

_HEADER = b"huggingface"
_FLOATS = {"float": "float32", "double": "float64"}  # other types have one name in Arrow and NumPy


def _table(file: File) -> pa.Table:
    try:
        return read_table(file.data)
    except (pa.ArrowInvalid, OSError) as error:
        raise file.error(f"this is no Parquet file, or it is damaged: {error}.") from None


# --- reading -----------------------------------------------------------------------------------------------------
def _read(file: File) -> Segments:
    table = _table(file)
    with file.at("the header"):
        features = json.loads((table.schema.metadata or {})[_HEADER])["info"]["features"]
    with file.at("the table"):
        rows = table.to_pylist()
    return _read_texts(file, rows, features) if "tokens" in features else _read_intervals(file, rows, features)


def _read_texts(file: File, rows: list[dict[str, Any]], features: dict[str, Any]) -> Segments:
    with file.at("ner_tags"):
        names = features["ner_tags"]["feature"]["names"]
    documents = []
    for number, row in enumerate(rows):
        with file.at(f"row {number}"):
            shares = row.get("soft_labels") or [None] * len(row["tokens"])
            tokens = [
                TaggedToken(number, word, names[tag], share=None if soft is None else float(soft[tag]))
                for word, tag, soft in zip(row["tokens"], row["ner_tags"], shares, strict=True)
            ]
            documents.append(Document(name=str(row.get("id", f"{file.stem}-{number + 1}")), tokens=tokens))
    return segments_of(file, documents)


def _read_intervals(file: File, listed: list[dict[str, Any]], features: dict[str, Any]) -> Segments:
    with file.at("label"):
        names = features["label"]["names"]
    units = {row.get("unit") for row in listed}
    rows = Intervals(file, next((unit for unit in UNITS if unit in units), "second"))
    for number, row in enumerate(listed):
        with file.at(f"row {number}"):
            label, end = names[row["label"]], row["end"]
            end = float("inf") if end is None else end
            more: dict[str, Any] = {"source": row.get("source") or "", "resolution": row.get("resolution") or "element"}
            rows.add(f"row {number}", str(row["id"]), row["start"], end, label, row.get("probability"), **more)
    return rows.done()


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    texts = bool(segments.recordings) and all(about.tokens is not None for about in segments.recordings.values())
    table, names = _texts(segments) if texts else _intervals(segments)
    features = {field.name: _feature(field.type, names) for field in table.schema}
    header = {_HEADER: json.dumps({"info": {"features": features}})}
    handle = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(header), handle)
    return {f"{stem}.parquet": handle.getvalue()}


def _feature(kind: pa.DataType, names: list[str]) -> dict[str, Any]:
    """How Hugging Face describes a column; whole numbers are classes in all of ours."""
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type, names), "_type": "List"}
    if pa.types.is_integer(kind):
        return {"names": names, "_type": "ClassLabel"}
    return {"dtype": _FLOATS.get(str(kind), str(kind)), "_type": "Value"}


def _texts(segments: Segments) -> tuple[pa.Table, list[str]]:
    """One row per text, and the names of the tags."""
    names = ["O", *(f"{prefix}-{label}" for label in segments.labels for prefix in "BI")]
    place = {name: number for number, name in enumerate(names)}
    rows = []
    for name, (tokens, tags, shares) in bio_tags(segments, "huggingface").items():
        codes = [place[tag] for tag in tags]
        soft = np.zeros((len(tags), len(names)), dtype=np.float32)
        sure = np.array([1.0 if one is None else one for one in shares], dtype=np.float32)
        soft[:, 0] = 1 - sure
        soft[np.arange(len(tags)), codes] = np.where(np.array(codes) == 0, 1.0, sure)
        rows.append({"id": name, "tokens": tokens, "ner_tags": codes, "soft_labels": soft.tolist()})
    word, soft_type = pa.string(), pa.list_(pa.list_(pa.float32()))
    kinds = {"id": word, "tokens": pa.list_(word), "ner_tags": pa.list_(pa.int64()), "soft_labels": soft_type}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds)), names


def _intervals(segments: Segments) -> tuple[pa.Table, list[str]]:
    """One row per interval, and the names of the labels."""
    place = {name: number for number, name in enumerate(segments.labels)}
    rows = segments.to_arrow()
    found = dict(zip(rows.column_names, rows.columns, strict=True))
    found["end"] = pa.array(segments.end, mask=np.isinf(segments.end))
    found["label"] = pa.array([place[label] for label in segments.label], pa.int64())
    return pa.table(found).rename_columns(["id", *rows.column_names[1:]]), list(place)


_DATASETS = (
    Format(
        name="huggingface",
        title="Hugging Face datasets (Parquet)",
        suffixes=(".parquet",),
        owns=(".parquet",),
        unit="elements (tokens), or the unit of the intervals; exact",
        keeps="sequence, start, end, label, probability; tokens (texts); source, resolution (intervals)",
        loses="sentences and sources (texts), attributes",
        checked="datasets",
        fits=lambda file: _HEADER in (_table(file).schema.metadata or {}),
        read=_read,
        write=_write,
        aliases=("hf", "datasets"),
    ),
)


# --- Our own plain files: CSV with one interval per line, and JSON lines, which keep everything -----------------------
# A CSV file has the columns sequence, start, end and label, and may have unit, probability, source and resolution; in
# place of start and end it may have start_seconds and end_seconds. JSON lines also hold one line per recording.
_COLUMNS = ("sequence", "start", "end", "label", "probability", "source", "resolution")
_NAMES = (*_COLUMNS[:3], "unit", *_COLUMNS[3:])
_ELEMENTS = ListStyle(columns={name: name for name in _COLUMNS}, header=True, delimiter=",", quoted=True)
_SECONDS = replace(
    _ELEMENTS, columns={f"{name}_seconds" if name in ("start", "end") else name: name for name in _COLUMNS}
)


# --- CSV ---------------------------------------------------------------------------------------------------------
def _header(file: File) -> list[str]:
    return file.lines[0].replace('"', "").split(",")


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
    if "unit" not in header:
        return "element"
    place, lines = header.index("unit"), islice(list_lines(file, _ELEMENTS), 1, None)
    found = {cells[place] for _, cells in lines if len(cells) > place}
    for unit in UNITS:
        if found <= {unit}:
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
        last = None if isinf(end) else _number(end)
        row: dict[str, Any] = {"sequence": name, "start": _number(start), "end": last, "unit": segments.unit}
        row |= {"label": label} | ({} if p is None else {"probability": p})
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
            source: [[a, None if isinf(b) else b] for a, b in spans]
            for (source, one), spans in segments.asked.items()
            if one == name
        }
    return about


FORMATS = (
    *_DATASETS,
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
