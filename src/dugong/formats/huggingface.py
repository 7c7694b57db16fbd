"""Hugging Face datasets: Parquet with the types of the columns in its header (`load_dataset("parquet", ...)` reads it).

Texts become one row each, with tokens, BIO tags as a ClassLabel, and soft labels; everything else becomes one row per
interval. No other package is needed to read or write these files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dugong.archives import read_table
from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals
from dugong.formats.texts import columns
from dugong.formats.tokens import Document, TaggedToken, bio_tags, segments_of, tokens_of
from dugong.segments import UNITS, Segments

_HEADER = b"huggingface"
_WORD, _NUMBER = {"dtype": "string", "_type": "Value"}, {"dtype": "float64", "_type": "Value"}


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
    return _read_texts(file, table, features) if "tokens" in features else _read_intervals(file, table, features)


def _read_texts(file: File, table: pa.Table, features: dict[str, Any]) -> Segments:
    with file.at("ner_tags"):
        names = features["ner_tags"]["feature"]["names"]
    documents = []
    for number, row in enumerate(table.to_pylist()):
        with file.at(f"row {number}"):
            shares = row.get("soft_labels") or [None] * len(row["tokens"])
            tokens = [
                TaggedToken(number, word, names[tag], share=None if soft is None else float(soft[tag]))
                for word, tag, soft in zip(row["tokens"], row["ner_tags"], shares, strict=True)
            ]
            documents.append(Document(name=str(row.get("id", f"{file.stem}-{number + 1}")), tokens=tokens))
    return segments_of(file, documents)


def _read_intervals(file: File, table: pa.Table, features: dict[str, Any]) -> Segments:
    with file.at("label"):
        names = features["label"]["names"]
    units = set(table.column("unit").to_pylist()) if "unit" in table.column_names else set()
    rows = Intervals(file, next((unit for unit in UNITS if unit in units), "second"))
    for number, row in enumerate(table.to_pylist()):
        with file.at(f"row {number}"):
            label, end = names[row["label"]], row["end"]
            end = float("inf") if end is None else end
            more: dict[str, Any] = {"source": row.get("source") or "", "resolution": row.get("resolution") or "element"}
            rows.add(f"row {number}", str(row["id"]), row["start"], end, label, row.get("probability"), **more)
    return rows.done()


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    texts = bool(segments.recordings) and all(about.tokens is not None for about in segments.recordings.values())
    table, features = _texts(segments) if texts else _intervals(segments)
    header = {_HEADER: json.dumps({"info": {"features": features}})}
    handle = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(header), handle)
    return {f"{stem}.parquet": handle.getvalue()}


def _texts(segments: Segments) -> tuple[pa.Table, dict[str, Any]]:
    names = ["O", *(f"{prefix}-{label}" for label in segments.labels for prefix in "BI")]
    place = {name: number for number, name in enumerate(names)}
    rows = []
    for name, (tags, shares) in bio_tags(segments, "huggingface").items():
        codes = [place[tag] for tag in tags]
        soft = np.zeros((len(tags), len(names)), dtype=np.float32)
        sure = np.array([1.0 if one is None else one for one in shares], dtype=np.float32)
        soft[:, 0] = 1 - sure
        soft[np.arange(len(tags)), codes] = np.where(np.array(codes) == 0, 1.0, sure)
        tokens = tokens_of(segments.recordings[name], name, "huggingface")
        rows.append({"id": name, "tokens": tokens, "ner_tags": codes, "soft_labels": soft.tolist()})
    kinds = pa.schema(
        {
            "id": pa.string(),
            "tokens": pa.list_(pa.string()),
            "ner_tags": pa.list_(pa.int64()),
            "soft_labels": pa.list_(pa.list_(pa.float32())),
        }
    )
    soft_type = {"feature": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"}, "_type": "List"}
    features = {
        "id": _WORD,
        "tokens": {"feature": _WORD, "_type": "List"},
        "ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"},
        "soft_labels": soft_type,
    }
    return pa.Table.from_pylist(rows, schema=kinds), features


def _intervals(segments: Segments) -> tuple[pa.Table, dict[str, Any]]:
    place = {name: number for number, name in enumerate(segments.labels)}
    rows = segments.to_arrow()
    table = pa.table(
        {
            "id": rows.column("sequence"),
            "start": rows.column("start"),
            "end": pa.array(segments.end, mask=np.isinf(segments.end)),
            "unit": rows.column("unit"),
            "label": pa.array([place[label] for (label,) in columns(segments, "label")], pa.int64()),
            "probability": rows.column("probability"),
            "source": rows.column("source"),
            "resolution": rows.column("resolution"),
        }
    )
    features = {
        "id": _WORD,
        "start": _NUMBER,
        "end": _NUMBER,
        "unit": _WORD,
        "label": {"names": list(place), "_type": "ClassLabel"},
        "probability": _NUMBER,
        "source": _WORD,
        "resolution": _WORD,
    }
    return table, features


FORMATS = (
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
