"""`dugong demo`: from raw frames to labels, with nothing to prepare.

Simulated TV news: eight functions look at frames, at captions over five frames and at whole broadcasts, and vote on
whether an interview is on, which is so for 3 % of the frames. The truth is known, so the last lines can say how well
the model did without having seen it.
"""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from dugong.cli.gold import write_gold
from dugong.cli.output import Outcome, say, verb
from dugong.cli.steps import compare_with_majority, declared, file_lines, sizes
from dugong.cli.watching import Watch
from dugong.metrics import Comparison
from dugong.model import LabelModel
from dugong.paths import locked, write_atomically
from dugong.priors import Prior
from dugong.sources import apply
from dugong.texts import text_table
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes
from dugong.worlds import tv_news
from dugong.worlds.tvnews import Broadcasts, broadcasts
from dugong.worlds.tvnews_sources import SOURCES

DEFAULT_FOLDER = "dugong-demo"
N_BROADCASTS = 2000


@verb("demo", "dugong demo", "dugong demo my-folder --broadcasts 500 --json")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=DEFAULT_FOLDER)
@click.option("--broadcasts", type=click.IntRange(min=50), default=N_BROADCASTS, show_default=True, help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same broadcasts.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes for the sources.")
def command(*, folder: Path, broadcasts: int, seed: int, jobs: int) -> Outcome:
    """Do the whole job on simulated raw data: sources, votes, label model, labels, scores, report.

    Files go to FOLDER (./dugong-demo by default; a temporary folder if that cannot be written).
    """
    clock = Watch()
    folder = writable(folder)
    with locked(folder):
        return _demo(folder, broadcasts, seed, jobs, clock)


def _demo(folder: Path, broadcasts: int, seed: int, jobs: int, clock: Watch) -> Outcome:
    """The whole job; what is printed for machines and for people."""
    clock.done("start", f"files go to {folder}")
    shows, votes = watch(broadcasts, seed, jobs, clock)
    world, gold = tv_news(), shows.labels["element"]
    model = fit(votes, world.prior, clock)
    files = write_files(folder, model, votes, gold, clock)
    comparison = compare_with_majority(votes, gold, model)
    clock.done("compare", "with the truth, which nothing above has seen")
    files["report"] = folder / "report.html"
    model.report(votes, files["report"], gold, title="Interviews in TV news (simulated)")
    clock.done("report", f"{files['report'].stat().st_size / 1e6:.1f} MB")
    rows = accuracy_rows(model, world.accuracies())
    result = {
        "folder": folder,
        "files": files,
        "sources": rows,
        "scores": {name: scores(comparison, name) for name in comparison.names},
        "verdict": comparison.verdict,
        "seconds": clock.steps,
    }
    parts = [accuracy_table(rows), score_table(comparison), f"Files in {folder}:\n{file_lines(files)}"]
    parts.append(f"See all of it in a browser: {files['report']}")
    return result, "\n" + "\n\n".join(parts)


def watch(n_broadcasts: int, seed: int, jobs: int, clock: Watch) -> tuple[Broadcasts, Votes]:
    """Make raw broadcasts, and let the sources vote on them."""
    shows = broadcasts(n_broadcasts, rng=seed)
    clock.done("simulate", f"{len(shows.frames):,} broadcasts, {sum(map(len, shows.frames.values())):,} raw frames")
    votes = apply(SOURCES, shows.frames, n_jobs=jobs)
    clock.done("apply", sizes(votes))
    return shows, votes


def fit(votes: Votes, prior: Prior, clock: Watch) -> LabelModel:
    """Estimate how good the sources are, with what a user would say about the labels and the sources."""
    say("fitting ...            (the first run compiles for some seconds; later ones do not)")
    model = LabelModel(prior=prior, dependencies=declared(SOURCES)).fit(votes)
    clock.done("fit", f"prior {prior!r}")
    return model


def write_files(folder: Path, model: LabelModel, votes: Votes, gold: Int8Array, clock: Watch) -> dict[str, Path]:
    """Write everything that was made."""
    files = {
        "votes": folder / "votes.parquet",
        "label model": folder / "model.json",
        "probabilities of labels": folder / "labels.parquet",
        "true labels": folder / "gold.parquet",
        "the eight sources": folder / "sources.py",
    }
    votes.write(files["votes"])
    model.save(files["label model"])
    write_gold(gold, votes, files["true labels"])
    write_source_code(files["the eight sources"])
    labels = model.labels(votes)
    labels.write(files["probabilities of labels"])
    clock.done("label", f"{len(labels):,} tasks at {len(votes.resolutions)} resolutions")
    return files


def writable(folder: Path) -> Path:
    """The folder, made if need be; a temporary one if files cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="dugong-demo-"))
        say(f"{folder} cannot be written ({error.strerror}); using {other}.")
        return other


def write_source_code(path: Path) -> None:
    """Put the functions that voted beside their votes, to be read."""
    code = files("dugong.worlds").joinpath("tvnews_sources.py").read_bytes()
    write_atomically(path, lambda handle: handle.write(code))


def accuracy_rows(model: LabelModel, truth: dict[str, FloatArray]) -> list[dict[str, Any]]:
    """Estimated and true accuracy of every source, by class."""
    rows = []
    for one in model.summary().sources:
        true = truth[one.name]
        rows.append(
            {
                "source": one.name,
                "resolution": one.resolution,
                "coverage": one.coverage,
                "classes": {
                    part.label: {"estimated": part.right, "interval": part.interval, "true": float(true[k, k])}
                    for k, part in enumerate(one.classes)
                },
            }
        )
    return rows


def accuracy_table(rows: list[dict[str, Any]]) -> str:
    """The sources as a table: what was estimated without labels beside what is true."""
    head = ("source", "votes on", "coverage", "P(+1 | +1)", "true", "P(-1 | -1)", "true")
    cells = [
        (
            row["source"],
            row["resolution"],
            f"{row['coverage']:.3f}",
            *(f"{row['classes'][label][key]:.3f}" for label in ("+1", "-1") for key in ("estimated", "true")),
        )
        for row in rows
    ]
    return text_table(head, cells, left=(0, 1), rule=True)


SCORES = ("f1", "precision", "recall", "accuracy", "brier", "log_loss", "event_f1")


def scores(comparison: Comparison, method: str) -> dict[str, Any]:
    """The scores of one method."""
    return {name: comparison[method].value(name) for name in SCORES}


def score_table(comparison: Comparison) -> str:
    """Majority vote and the model side by side, and one sentence."""
    names = {"f1": "F1", "brier": "Brier", "log_loss": "log loss", "event_f1": "event F1"}
    head = ("labels of frames", *(names.get(name, name) for name in SCORES))
    rows = [
        (method, *("-" if value is None else f"{value:.3f}" for value in scores(comparison, method).values()))
        for method in comparison.names
    ]
    return f"{text_table(head, rows, rule=True)}\n\n{comparison.verdict[0].upper()}{comparison.verdict[1:]}"
