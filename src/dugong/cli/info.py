"""`dugong info`: versions, and what is in files, without reading more of them than needed."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from dugong import __version__
from dugong.archives import open_archive
from dugong.cli.output import PATH, Outcome, verb
from dugong.codec import parse, reading
from dugong.exceptions import FileError
from dugong.store import FORMAT as MODEL
from dugong.store import load_model
from dugong.votes import SourceInfo
from dugong.votes.files import VERSION, Header, decode_header
from dugong.votes.parquet import open_parquet

PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "click", "rich")
EXTRAS = ("matplotlib", "scikit-learn", "torch", "av", "dask", "ray", "pyspark")


@verb("info", "dugong info", "dugong info votes.parquet model.json labels.parquet")
@click.argument("files", nargs=-1, type=PATH)
def command(*, files: tuple[Path, ...]) -> Outcome:
    """Show the versions of Dugong and what it stands on; with FILES: what is in votes, models and labels."""
    if files:
        found = {str(file): describe_file(file) for file in files}
        blocks = [
            "\n".join([name, *(f"  {key:<13} {_words(value)}" for key, value in about.items())])
            for name, about in found.items()
        ]
        return {"files": found}, "\n\n".join(blocks)
    versions = {"dugong": __version__, "python": platform.python_version(), "system": platform.platform()}
    packages = {name: _version(name) for name in (*PACKAGES, *EXTRAS)}
    rows = [*versions.items(), *((name, version or "not installed") for name, version in packages.items())]
    return {**versions, "packages": packages}, "\n".join(f"{name:<13} {value}" for name, value in rows)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} ({inner})" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


# --- What a file holds, read off its header: votes, models, labels, gold. ---------------------------------------------
# In: a path. Out: plain data about it. Nothing but headers is read, so that large files are described at once.

LABEL_COLUMNS = {"sequence", "start", "end", "resolution"}
GOLD_COLUMNS = {"sequence", "start", "end", "label"}


def describe_file(path: Path) -> dict[str, Any]:
    """What a file holds."""
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    readers = {".json": _model, ".npz": _archive, ".parquet": _parquet}
    if path.suffix not in readers:
        raise FileError(f"{path} is none of our files: votes (.parquet, .npz), models (.json), labels (.parquet).")
    with reading(path, FileError, "It is truncated, damaged, or none of ours."):
        return {**readers[path.suffix](path), "bytes": path.stat().st_size}


def _parquet(path: Path) -> dict[str, Any]:
    with open_parquet(path) as file:
        metadata, names, n_rows = file.schema_arrow.metadata or {}, file.schema_arrow.names, file.metadata.num_rows
    if b"dugong" in metadata:
        return _votes(parse(metadata[b"dugong"]))
    kind = "labels" if set(names) >= LABEL_COLUMNS else "gold labels" if set(names) >= GOLD_COLUMNS else "a table"
    return {"kind": kind, "rows": n_rows, "columns": names}


def _archive(path: Path) -> dict[str, Any]:
    with open_archive(path, "it is a NumPy archive, but holds no votes written by Dugong") as archive:
        return _votes(archive.header)


def _votes(plain: Any) -> dict[str, Any]:
    version = plain.get("version") if isinstance(plain, dict) else None
    if isinstance(version, int) and version > VERSION:
        return {"kind": "votes", "format": f"{plain.get('format')} {version} (newer than this Dugong can read)"}
    header: Header = decode_header(plain)
    return {
        "kind": "votes",
        "format": f"{header.format} {header.version}",
        "sequences": header.arrays["lengths"].length,
        "classes": header.class_names or header.n_classes,
        "sources": _sources(header.sources),
        "votes": sum(one.length for name, one in header.arrays.items() if name.startswith("vote:")),
        "time": header.time is not None,
        "faults": len(header.faults),
    }


def _sources(sources: tuple[SourceInfo, ...]) -> dict[str, str]:
    return {one.name: one.resolution.name for one in sources}


def _model(path: Path) -> dict[str, Any]:
    plain = parse(path.read_bytes())
    if not isinstance(plain, dict) or plain.get("format") != MODEL:
        raise FileError("it is a JSON file, but holds no model written by Dugong")
    stored = load_model(path)
    estimator = stored.settings.get("estimator")
    return {
        "kind": "model",
        "format": f"{MODEL} {plain['version']}",
        "written by": f"Dugong {plain.get('dugong')}",
        "classes": stored.class_names or stored.n_classes,
        "sources": _sources(stored.sources),
        "prior": stored.law.prior.to_dict()["kind"],
        "estimator": estimator if isinstance(estimator, str) else type(estimator).__name__,
    }
