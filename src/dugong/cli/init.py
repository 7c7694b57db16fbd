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


EXAMPLES = ("dugong init walking", "dugong run walking/project.toml", "dugong init birds --like audio")


@click.command("init", epilog=example(*EXAMPLES))
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--like",
    type=click.Choice(["sensor", "video", "audio", "text"]),
    default="sensor",
    show_default=True,
    help="What your sequences are; video and audio need the extras of these names.",
)
@json_option
def command(*, folder: Path, like: str, as_json: bool) -> None:
    """Write a working project into DIR: a loader, a few sources, a prior, project.toml and sample data.

    Nothing that exists is overwritten. The project runs at once; then replace its data and sources by your own.
    """
    written = write_project(folder, like)
    lines = [f"Wrote {folder}:", *(f"  {name}" for name in written), f"Next: dugong run {folder / 'project.toml'}"]
    emit({"folder": folder, "files": written, "project": folder / "project.toml"}, "\n".join(lines), as_json=as_json)


def write_project(folder: Path, like: str = "sensor") -> list[str]:
    """Write all files or none; returns what was written."""
    if folder.exists() and any(folder.iterdir()):
        raise ProjectError(f"{folder} must not exist yet, or be empty; nothing was written.\n  Choose another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".dugong-init-") as temporary:
        draft = Path(temporary) / "project"
        draft.mkdir()
        for name in FILES:
            text = files("dugong.cli.template").joinpath(like, name).read_text(encoding="utf-8")
            (draft / name).write_text(text, encoding="utf-8")
        n_sequences = _write_sample(draft, like)
        if folder.exists():
            folder.rmdir()
        shutil.move(draft, folder)
    return [*FILES, f"data/ ({n_sequences} sequences)", "gold.csv"]


def _write_sample(draft: Path, like: str) -> int:
    """Raw data, and known labels of a quarter of it."""
    from dugong.cli.sample import WRITERS, gold_csv

    (draft / "data").mkdir()
    made = WRITERS[like](draft / "data")
    (draft / "gold.csv").write_text(gold_csv(made[: len(made) // 4]), encoding="utf-8")
    return len(made)
