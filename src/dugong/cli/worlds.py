"""Known worlds: `dugong simulate` draws votes and the truth about them, `dugong plan` says how many are needed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import click
import numpy as np

from dugong.cli.findings import compare_with_majority
from dugong.cli.gold import write_gold
from dugong.cli.job import declared
from dugong.cli.output import FOLDER, PATH, SOME, Outcome, Watch, say, seconds, verb
from dugong.cli.steps import file_lines, sizes
from dugong.exceptions import TaskError
from dugong.graph import Dependency, TemporalDependency
from dugong.law.parameters import Temporal
from dugong.model import LabelModel
from dugong.paths import locked, write_atomically
from dugong.priors import Prior
from dugong.sources import apply
from dugong.tasks import Spans
from dugong.texts import text_table
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.votes import Votes
from dugong.worlds import STANDARD, World, tv_news
from dugong.worlds.planner import plan
from dugong.worlds.standard import Broadcasts, broadcasts
from dugong.worlds.tvnews_sources import SOURCES
from dugong.worlds.world import blocks_of

DEFAULT_WORLD = "tv_news"


@verb(
    "simulate",
    "dugong simulate tv_news --sequences 500 --folder simulated",
    "dugong check simulated/votes.parquet --gold simulated/gold.parquet",
)
@click.argument("world", default=DEFAULT_WORLD)
@click.option("--sequences", type=SOME, default=1000, show_default=True, help="How many.")
@click.option("--length", type=SOME, help="Elements of each; default: what the world says.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same votes.")
@click.option(
    "--folder",
    type=FOLDER,
    default=".",
    help="Where votes.parquet, gold.parquet and prior.json are written; default: this folder.",
)
@click.option("--list", "listing", is_flag=True, help="Name the worlds, and do nothing else.")
def simulate(*, world: str, sequences: int, length: int | None, seed: int, folder: Path, listing: bool) -> Outcome:
    """Draw votes and their true labels from WORLD, a standard world of which everything is known.

    Writes votes.parquet, gold.parquet (the labels of the elements) and prior.json (the law of the labels, for --prior).
    """
    about = {name: (make.__doc__ or "").strip().splitlines()[0] for name, make in STANDARD.items()}
    if listing:
        width = max(map(len, about))
        return {"worlds": about}, "\n".join(f"{name:<{width}}  {text}" for name, text in about.items())
    if world not in STANDARD:
        raise click.BadParameter(f"there is no world {world!r}; known are {', '.join(STANDARD)}.", param_hint="WORLD")
    made = cast("Callable[[], World]", STANDARD[world])()
    votes, labels = made.sample(sequences, length, seed)
    files = write_sample(folder, made, votes, labels["element"])
    dependencies = [list(one) if isinstance(one, tuple) else f"{one.source}@{one.lag}" for one in made.dependencies]
    declared = ",".join("+".join(one) if isinstance(one, list) else one for one in dependencies) or "none"
    lines = [
        f"{world}: {about[world]}",
        sizes(votes),
        file_lines(files),
        f"Next: dugong fit {files['votes']} --prior {files['prior']} --dependencies {declared}",
    ]
    result = {"world": world, "files": files, "accuracies": made.accuracies(), "dependencies": dependencies}
    return result, "\n".join(lines)


def write_sample(folder: Path, world: World, votes: Votes, gold: Int8Array) -> dict[str, Path]:
    """Write votes, true labels and the prior; returns where they are."""
    files = {
        "votes": folder / "votes.parquet",
        "true labels": folder / "gold.parquet",
        "prior": folder / "prior.json",
    }
    folder.mkdir(parents=True, exist_ok=True)
    votes.write(files["votes"])
    write_gold(gold, votes, files["true labels"])
    prior = json.dumps(world.prior.to_dict()).encode()
    write_atomically(files["prior"], lambda handle: handle.write(prior))
    return files


# --- plan -------------------------------------------------------------------------------------------------------------
@verb("plan", "dugong plan model.json --votes votes.parquet --width 0.05", "dugong plan tv_news")
@click.argument("what", metavar="MODEL")
@click.option("--votes", type=PATH, help="Votes whose sequence lengths are to be simulated.")
@click.option(
    "--width",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.05,
    show_default=True,
    help="Wanted half-width of 95 % intervals.",
)
@click.option(
    "--sequences", type=click.IntRange(min=2), help="How many to simulate; default: sizes until simulation agrees."
)
@click.option("--repeats", type=click.IntRange(min=3), default=10, show_default=True, help="How often.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan.")
def plan_sizes(
    *, what: str, votes: Path | None, width: float, sequences: int | None, repeats: int, seed: int
) -> Outcome:
    """Say how many sequences are needed until every accuracy is known to plus or minus WIDTH.

    MODEL is a fitted model (model.json, from a first sample) or the name of a standard world (`dugong simulate
    --list`). It is simulated and estimated again and again; Theorem 1 of the paper, a worst case, stands beside that.
    """
    world, model = _configuration(what, votes)
    begin = perf_counter()

    def fit(votes: Votes) -> Mapping[str, FloatArray]:
        return LabelModel(**model.get_params()).fit(votes).standard_errors_.raw

    made = plan(world, width=width, n_sequences=sequences, repeats=repeats, fit=fit, seed=seed)
    drawn = ", ".join(f"{step.n_sequences:,}" for step in made.steps)
    say(f"simulated {drawn} sequences {made.repeats} times in {seconds(perf_counter() - begin)}")
    return made.to_dict(), str(made)


def _configuration(what: str, votes: Path | None) -> tuple[World, LabelModel]:
    """What is simulated, and how it is estimated."""
    if what in STANDARD:
        world = cast("Callable[[], World]", STANDARD[what])()
        return world, LabelModel(prior=world.prior, dependencies=world.dependencies)
    if not what.endswith(".json"):
        known = ", ".join(STANDARD)
        raise click.BadParameter(f"give a model.json or one of the worlds {known}; found {what!r}.", param_hint="MODEL")
    fitted = LabelModel.load(what)
    seen = fitted.seen_
    lengths = round(seen.n_elements / max(seen.n_sequences, 1)) if votes is None else Votes.read(votes).lengths
    return world_of(fitted, lengths), settings_of(fitted)


# --- from a fitted model to a world --------------------------------------------------------------------------------
def world_of(model: LabelModel, lengths: IntArray | int) -> World:
    """The world in which a fitted model is true; sequences are as long as the given ones, drawn at random."""
    if any(isinstance(info.resolution, Spans) for info in model.sources_):
        raise TaskError(
            "spans cannot be simulated: where they lie is not in the model.\n"
            "  Fit a model of the sources that vote on elements, windows and sequences, and plan with that one."
        )
    law: Any = lengths if isinstance(lengths, int) else lambda n, rng: rng.choice(lengths, size=n)
    blocks = blocks_of(model.law_.parameters)
    return World(prior=model.prior_, blocks=blocks, lengths=law, class_names=model.class_names_, name="fitted")


def settings_of(model: LabelModel) -> LabelModel:
    """A model with the settings under which the given one can be estimated again."""
    repeating = [TemporalDependency(f.source, f.lag) for f in model.law_.parameters.factors if isinstance(f, Temporal)]
    dependencies: list[Dependency] = [*model.correlations_, *repeating]
    settings = model.get_params() | {"prior": model.prior_, "dependencies": dependencies}
    return LabelModel(**settings)


# --- `dugong demo`: from raw frames to labels, with nothing to prepare ------------------------------------------------
# Simulated TV news: eight functions look at frames, at captions over five frames and at whole broadcasts, and vote on
# whether an interview is on, which is so for 3 % of the frames. The truth is known, so the last lines can say how well
# the model did without having seen it.
DEFAULT_FOLDER = "dugong-demo"
N_BROADCASTS = 2000


@verb("demo", "dugong demo", "dugong demo my-folder --broadcasts 500 --json")
@click.argument("folder", type=FOLDER, default=DEFAULT_FOLDER)
@click.option("--broadcasts", type=click.IntRange(min=50), default=N_BROADCASTS, show_default=True, help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same broadcasts.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes for the sources.")
def demo(*, folder: Path, broadcasts: int, seed: int, jobs: int) -> Outcome:
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
    scores = {method: {name: comparison[method].value(name) for name in SCORES} for method in comparison.names}
    result = {
        "folder": folder,
        "files": files,
        "sources": rows,
        "scores": scores,
        "verdict": comparison.verdict,
        "seconds": clock.steps,
    }
    parts = [accuracy_table(rows), score_table(scores, comparison.verdict), f"Files in {folder}:\n{file_lines(files)}"]
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
    code = resources.files("dugong.worlds").joinpath("tvnews_sources.py").read_bytes()
    write_atomically(files["the eight sources"], lambda handle: handle.write(code))
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


def accuracy_rows(model: LabelModel, truth: dict[str, FloatArray]) -> list[dict[str, Any]]:
    """Estimated and true accuracy of every source, by class."""
    return [
        {
            "source": one.name,
            "resolution": one.resolution,
            "coverage": one.coverage,
            "classes": {
                part.label: {"estimated": part.right, "interval": part.interval, "true": float(true)}
                for part, true in zip(one.classes, np.diagonal(truth[one.name]), strict=False)
            },
        }
        for one in model.summary().sources
    ]


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


SCORES = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "brier": "Brier",
    "log_loss": "log loss",
    "event_f1": "event F1",
}


def score_table(scores: Mapping[str, Mapping[str, float | None]], verdict: str) -> str:
    """Majority vote and the model side by side, and one sentence."""
    head = ("labels of frames", *SCORES.values())
    rows = [(one, *("-" if value is None else f"{value:.3f}" for value in scores[one].values())) for one in scores]
    return f"{text_table(head, rows, rule=True)}\n\n{verdict[0].upper()}{verdict[1:]}"


# --- `dugong reproduce`: the paper's tables and figures ---------------------------------------------------------------
WHAT = ("table1", "ablations", "priors", "patients", "resolutions", "simulations", "scaling", "timeline")


@verb(
    "reproduce",
    "dugong reproduce table1 --quick",
    "dugong reproduce table1 --task gait --task ehr --data DIR --quick",
    "dugong reproduce simulations --quick",
)
@click.argument("what", type=click.Choice(WHAT))
@click.option("--task", "tasks", multiple=True, help="Only this task; may be repeated. Default: all of the table.")
@click.option("--quick", is_flag=True, help="Little data and small networks: minutes instead of days.")
@click.option(
    "--estimator",
    type=click.Choice(["centred", "paper", "sgd"]),
    default="centred",
    show_default=True,
    help="Closed form, the paper's Algorithm 1, or its gradient descent (extra torch).",
)
@click.option("--seeds", type=SOME, help="How often all is repeated; default: 5.")
@click.option(
    "--data",
    type=PATH,
    help="Folder with real data; default: what DUGONG_DATA names. Absent data is a row that says so.",
)
@click.option(
    "--output",
    type=FOLDER,
    default="dugong-paper",
    show_default=True,
    help="Where tables, figures and finished cells are written.",
)
@click.option("--restart", is_flag=True, help="Compute everything anew instead of going on with what is there.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1 for one per core.")
@click.option("--labels-only", is_flag=True, help="Score the labels and train no end models: seconds, not minutes.")
@click.option("--device", help="Of the networks, such as cuda; default: the processor.")
def reproduce(*, what: Any, tasks: tuple[str, ...], **options: Any) -> Outcome:
    """Reproduce a table or figure of the paper: precision, recall and F1 beside the published figures.

    Every finished number is kept in OUTPUT/cells, so an interrupted run goes on where it was. The paper's data is
    restricted: tasks run on generated data of the same shape, and on real data where it is found.
    """
    from dugong.experiments import reproduce as make

    made = make(what, tasks=tasks, progress=say, **options)
    return {table.name: table.records for table in made.tables}, str(made)
