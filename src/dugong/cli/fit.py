"""`dugong fit`: from a file of votes to a file with a label model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from dugong import formats
from dugong.cli.gold import read_gold
from dugong.cli.job import OpenedVotes, open_votes, refuse_folder_options
from dugong.cli.output import PATH, PLACE, Outcome, Watch, log_option, verb
from dugong.cli.settings import groups_option, in_groups, model_options, read_dependencies, read_prior
from dugong.cli.steps import folder_options, sizes
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.report import summarize, write_report
from dugong.report.text import check_kind
from dugong.votes import Votes

_NEEDS_ALL = "--gold, and --groups without --sharing group, need all votes in one file, and VOTES is a folder."


@verb("fit", "dugong fit votes.parquet -o model.json --prior markov:positive=0.1,stay=0.9 --dependencies none")
@click.argument("votes", type=PLACE)
@click.option("--output", "-o", type=PLACE, default="model.json", help="Default: model.json.")
@model_options
@click.option(
    "--sharing",
    type=click.Choice(["tied", "group", "task", "full"]),
    default="tied",
    help="One table per source, per source and group (see --groups), per task, or over all labels of a sequence.",
)
@click.option("--estimator", default="centred", help="centred (the default) or another name of dugong.estimators.")
@click.option("--signs", type=click.Choice(["group", "positive"]), default="group", help="How signs are chosen.")
@click.option("--gold", type=PLACE, help="Known labels to fit with: .csv, .parquet, .npy, or a file of another tool.")
@groups_option
@folder_options
@log_option
def command(
    *,
    votes: Place,
    output: Place,
    prior: str,
    dependencies: str,
    sharing: str,
    estimator: str,
    signs: str,
    gold: Place | None,
    groups: str | None,
    log_json: bool,
    **folder: Any,
) -> Outcome:
    """Estimate how accurate the sources of VOTES (.parquet or .npz) are, and write the label model.

    VOTES may be a folder of .parquet files, here or at a URL such as s3://bucket/votes: they are read one after the
    other, and counted by --engine. The sums of every file stay in a folder beside the model (model.parts), so that the
    same command continues after a crash and counts only files that are new. What cannot be added up (dependencies to
    be learned) is learned on a sample of about two million elements, which a hash of the sequence ids chooses; the
    remarks of the model say so.
    """
    watch = Watch(log_json=log_json)
    model = LabelModel(
        prior=read_prior(prior),
        dependencies=read_dependencies(dependencies),
        sharing=sharing,  # type: ignore[arg-type]
        estimator=estimator,
        signs=signs,
    )
    whole = gold is not None or (groups is not None and sharing != "group")
    found = open_votes(votes, groups, gold, needs_all=_NEEDS_ALL if whole else None, tell=watch.done, **folder)
    found.fit(model, output, watch.fitting)
    model.save(output)
    watch.done("fit", "how far each source can be trusted")
    summary = model.summary()
    result = {"model": output, "summary": summary.to_dict(), "seconds": watch.steps}
    return result, f"{summary}\n\nThe model is in {output}."


# --- `dugong label`: probabilities of labels, at the resolutions that are asked for -----------------------------------
@verb("label", "dugong label model.json votes.parquet -o labels.csv --resolution element")
@click.argument("model", type=PLACE)
@click.argument("votes", type=PLACE)
@click.option(
    "--output",
    "-o",
    type=PLACE,
    help="A .parquet or .csv file; default: labels.parquet. With a folder of votes, a folder; default: labels.",
)
@click.option(
    "--resolution",
    "resolutions",
    metavar="NAME",
    multiple=True,
    help="element, sequence, or the name of a window or span; may be given several times. Default: all.",
)
@click.option(
    "--intervals",
    is_flag=True,
    help="Write intervals of the best path in place of single tasks: .csv, .jsonl, or any ending of `dugong formats`.",
)
@groups_option
@click.option("--known", type=PLACE, help="Labels that people have looked at, as for `fit --gold`: they are certain.")
@click.option("--restart", is_flag=True, help="Label all shards of a folder anew, also those that are done already.")
@folder_options
@log_option
def label(
    *,
    model: Place,
    votes: Place,
    output: Place | None,
    resolutions: tuple[str, ...],
    intervals: bool,
    groups: str | None,
    known: Place | None,
    restart: bool,
    log_json: bool,
    **folder: Any,
) -> Outcome:
    """Write the probability of every label of VOTES under MODEL, one row per task.

    Columns: sequence, start and end (half open, in elements), resolution, one probability per class, and seconds if
    the votes know them. VOTES may be a folder of .parquet files, here or at a URL: each gets a file of labels of its
    own, and after a crash the same label continues where it stopped.
    """
    needs_all = None if known is None else "--known works on one file of votes, without --intervals."
    if intervals and needs_all:
        raise click.UsageError(needs_all)
    folder["restart"] = restart
    if intervals:
        refuse_folder_options(folder, "does not go with --intervals, which one process writes.")
    watch = Watch(log_json=log_json)
    fitted = LabelModel.load(model)
    if intervals:
        place = output or place_of("labels.csv")
        return _write_intervals(fitted, open_votes(votes, groups), votes, place, resolutions, watch)
    found = open_votes(votes, groups, known, needs_all=needs_all, tell=watch.done, **folder)
    place = output or place_of(found.labels_name)
    n_rows, _ = found.label(fitted, place, resolutions or None, partial(watch.steps_done, "label"))
    watch.done("label", f"{n_rows:,} tasks")
    names = list(resolutions) or [resolution.name for resolution in found.whole.resolutions]
    result = {"labels": place, "rows": n_rows, "resolutions": names, "seconds": watch.steps}
    return result, f"{n_rows:,} rows at {', '.join(names)} are in {place}."


def _write_intervals(
    model: LabelModel, votes: OpenedVotes, place: Place, output: Place, resolutions: tuple[str, ...], watch: Watch
) -> Outcome:
    """Intervals of one resolution, in a format that the ending says."""
    if len(resolutions) > 1:
        raise click.UsageError(f"--intervals are of one --resolution; found {' and '.join(resolutions)}.")
    name = next(iter(resolutions), "element")
    found = formats.joined(place, [model.labels(one, [name]).segments(name) for one in votes])
    files = formats.write(found, output)
    watch.done("label", f"{len(found):,} intervals")
    result = {"labels": list(files), "intervals": len(found), "resolution": name, "seconds": watch.steps}
    return result, f"{len(found):,} intervals at {name} are in {output}."


# --- `dugong report`: a model and its labels as one page --------------------------------------------------------------
@verb(
    "report",
    "dugong report model.json votes.parquet --gold gold.parquet -o report.html",
    "dugong report model.json votes.parquet --sequence night-07 --sequences 20 -o report.html",
)
@click.argument("model", type=PATH)
@click.argument("votes", type=PATH)
@click.option("--gold", type=PATH, help="Known labels (.parquet, .csv or .npy), to compare with.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="report.html",
    help="An .html, .txt or .json file; default: report.html.",
)
@click.option("--title", default="Label report", show_default=True, help="What stands at the top.")
@click.option("--sequences", type=click.IntRange(min=0), help="How many to show in full; default: 100, within 5 MB.")
@click.option("--sequence", "wanted", metavar="ID", multiple=True, help="Show this one in any case; may be repeated.")
@groups_option
def report(
    *,
    model: Path,
    votes: Path,
    gold: Path | None,
    output: Path,
    title: str,
    sequences: int | None,
    wanted: tuple[str, ...],
    groups: str | None,
) -> Outcome:
    """Write what MODEL says about VOTES as one self-contained page: it needs no network and no other file.

    The page shows the sources and how good they are, their dependencies, the prior, the labels over time with an
    explanation of each, the comparison with majority vote, diagnostics, and what a methods section needs.
    """
    check_kind(output)
    clock = Watch()
    fitted, found = LabelModel.load(model), in_groups(Votes.read(votes), groups)
    labels = None if gold is None else read_gold(gold, found)
    clock.done("read", sizes(found))
    report = summarize(fitted, found, labels, title=title, n_sequences=sequences, sequences=wanted)
    clock.done("summarize", report.versus.sentence)
    write_report(report, output)
    size = output.stat().st_size
    clock.done("write", f"{size / 1e6:.2f} MB, {len(report.sequences.tracks)} sequences in full")
    result = {
        "report": output,
        "bytes": size,
        "sequences": len(report.sequences.tracks),
        "better": report.versus.better,
        "verdict": report.versus.sentence,
        "warnings": [one.text for one in report.findings if one.level == "warning"],
        "seconds": clock.steps,
    }
    return result, f"{report.versus.sentence}\nThe report is in {output}."
