"""`dugong init`: a project that works as it is, to be changed piece by piece."""

from __future__ import annotations

import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.project import ProjectError

FILES = ("project.toml", "loader.py", "sources.py")


@click.command("init", epilog=example("dugong init walking", "dugong run walking/project.toml"))
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@json_option
def command(*, folder: Path, as_json: bool) -> None:
    """Write a working project into DIR: a loader, three sources, a prior, project.toml and sample data.

    Nothing that exists is overwritten. The project runs at once; then replace its data and sources by your own.
    """
    written = write_project(folder)
    lines = [f"Wrote {folder}:", *(f"  {name}" for name in written), f"Next: dugong run {folder / 'project.toml'}"]
    emit({"folder": folder, "files": written, "project": folder / "project.toml"}, "\n".join(lines), as_json=as_json)


def write_project(folder: Path) -> list[str]:
    """Write all files or none; returns what was written."""
    if folder.exists() and any(folder.iterdir()):
        raise ProjectError(f"{folder} must not exist yet, or be empty; nothing was written.\n  Choose another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".dugong-init-") as temporary:
        draft = Path(temporary) / "project"
        draft.mkdir()
        for name in FILES:
            (draft / name).write_text(files("dugong.cli.template").joinpath(name).read_text(encoding="utf-8"), "utf-8")
        n_recordings = _write_sample(draft)
        if folder.exists():
            folder.rmdir()
        shutil.move(draft, folder)
    return [*FILES, f"data/ ({n_recordings} recordings)", "gold.csv"]


def _write_sample(draft: Path) -> int:
    from dugong.cli.sample import N_GOLD, gold_csv, recordings

    made = list(recordings())
    (draft / "data").mkdir()
    for one in made:
        (draft / "data" / f"{one.name}.csv").write_text(one.csv(), encoding="utf-8")
    (draft / "gold.csv").write_text(gold_csv(made[:N_GOLD]), encoding="utf-8")
    return len(made)
