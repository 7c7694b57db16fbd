"""What a file holds, read off its header: votes, models, labels, gold.

In: a path. Out: plain data about it. Nothing but headers is read, so that large files are described at once.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dugong.exceptions import DugongError
from dugong.votes.header import FORMAT, VERSION

LABEL_COLUMNS = {"sequence", "start", "end", "resolution"}
GOLD_COLUMNS = {"sequence", "start", "end", "label"}


class FileError(DugongError, ValueError):
    """A file that cannot be read, or that Dugong did not write."""


def describe_file(path: Path) -> dict[str, Any]:
    """What a file holds."""
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    readers = {".json": _model, ".npz": _archive, ".parquet": _parquet}
    if path.suffix not in readers:
        raise FileError(f"{path} is none of our files: votes (.parquet, .npz), models (.json), labels (.parquet).")
    try:
        found = readers[path.suffix](path)
    except (ValueError, KeyError, OSError, pa.ArrowException, zipfile.BadZipFile) as error:
        if isinstance(error, FileError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path} cannot be read: {reason}.\n  It is truncated, damaged, or none of ours.") from error
    return {**found, "bytes": path.stat().st_size}


def _parquet(path: Path) -> dict[str, Any]:
    with pq.ParquetFile(path) as file:
        metadata, names, n_rows = file.schema_arrow.metadata or {}, file.schema_arrow.names, file.metadata.num_rows
    if b"dugong" in metadata:
        return _votes(json.loads(metadata[b"dugong"]))
    kind = "labels" if set(names) >= LABEL_COLUMNS else "gold labels" if set(names) >= GOLD_COLUMNS else "a table"
    return {"kind": kind, "rows": n_rows, "columns": names}


def _archive(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        if "header" not in file.files:
            raise FileError(f"{path} is a NumPy archive, but holds no votes written by Dugong.")
        return _votes(json.loads(file["header"].tobytes()))


def _votes(header: dict[str, Any]) -> dict[str, Any]:
    newer = " (newer than this Dugong can read)" if header["version"] > VERSION else ""
    about: dict[str, Any] = {"kind": "votes", "format": f"{header['format']} {header['version']}{newer}"}
    if newer or header["format"] != FORMAT:
        return about
    arrays = header["arrays"]
    return about | {
        "sequences": arrays["lengths"]["length"],
        "classes": header["class_names"] or header["n_classes"],
        "sources": {one["name"]: one["resolution"].get("name", one["resolution"]["kind"]) for one in header["sources"]},
        "votes": sum(one["length"] for name, one in arrays.items() if name.startswith("vote:")),
        "time": header["time"] is not None,
        "faults": len(header["faults"]),
    }


def _model(path: Path) -> dict[str, Any]:
    plain = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(plain, dict) or plain.get("format") != "dugong-model":
        raise FileError(f"{path} is a JSON file, but holds no model written by Dugong.")
    return {
        "kind": "model",
        "format": f"{plain['format']} {plain['version']}",
        "written by": f"Dugong {plain['dugong']}",
        "classes": plain["class_names"] or plain["n_classes"],
        "sources": {one["name"]: one["resolution"].get("name", one["resolution"]["kind"]) for one in plain["sources"]},
        "prior": plain.get("law", plain)["prior"]["kind"],  # version 1 had no law around it
        "estimator": plain["settings"]["estimator"],
    }
