"""`dugong info`: versions, and what is in files, without reading more of them than needed."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from dugong import __version__
from dugong.cli.output import emit, example, json_option

PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "click", "rich")
EXTRAS = ("matplotlib", "scikit-learn", "torch", "av", "dask", "ray", "pyspark")


@click.command("info", epilog=example("dugong info", "dugong info votes.parquet model.json labels.parquet"))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@json_option
def command(*, files: tuple[Path, ...], as_json: bool) -> None:
    """Show the versions of Dugong and what it stands on; with FILES: what is in votes, models and labels."""
    if files:
        from dugong.cli.headers import describe_file

        found = {str(file): describe_file(file) for file in files}
        text = "\n\n".join(_lines(name, about) for name, about in found.items())
        emit({"files": found}, text, as_json=as_json)
        return
    versions = {"dugong": __version__, "python": platform.python_version(), "system": platform.platform()}
    packages = {name: _version(name) for name in (*PACKAGES, *EXTRAS)}
    rows = [*versions.items(), *((name, version or "not installed") for name, version in packages.items())]
    emit({**versions, "packages": packages}, "\n".join(f"{name:<13} {value}" for name, value in rows), as_json=as_json)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _lines(name: str, about: dict[str, Any]) -> str:
    return "\n".join([name, *(f"  {key:<13} {_words(value)}" for key, value in about.items())])


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} ({inner})" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
