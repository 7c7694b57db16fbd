"""`dugong label`: probabilities of labels, at the resolutions that are asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from dugong import formats
from dugong.cli.gold import read_gold
from dugong.cli.output import PLACE, Outcome, verb
from dugong.cli.settings import groups_by_id, groups_option, in_groups
from dugong.cli.sharded import folder_engine, folder_options, refuse_folder_options, shard_sizes
from dugong.cli.steps import sizes
from dugong.cli.watching import Watch, log_option
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.shards import VoteShards, label_shards
from dugong.votes import Votes


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
def command(
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
    own, and after a crash the same command continues where it stopped.
    """
    if known is not None and (votes.is_dir() or intervals):
        raise click.UsageError("--known works on one file of votes, without --intervals.")
    if intervals or not votes.is_dir():
        refuse_folder_options({**folder, "restart": restart})
    watch = Watch(log_json=log_json)
    fitted = LabelModel.load(model)
    if intervals:
        return _write_intervals(fitted, votes, output or place_of("labels.csv"), resolutions, groups, watch)
    if votes.is_dir():
        shards, place = VoteShards.open(votes), output or place_of("labels")
        watch.done("read", shard_sizes(shards))
        done = label_shards(
            fitted,
            shards,
            place,
            resolutions=resolutions or None,
            engine=folder_engine(shards, **folder),
            restart=restart,
            groups=groups_by_id(shards, groups),
            memory=folder["memory"],
            progress=partial(watch.steps_done, "label"),
        )
        n_rows, voted = done.n_rows, shards.specimen().resolutions
    else:
        found, place = in_groups(Votes.read(votes), groups), output or place_of("labels.parquet")
        watch.done("read", sizes(found))
        sure = None if known is None else read_gold(known, found, missing_ok=True)
        labels = fitted.labels(found, list(resolutions) or None, known=sure)
        labels.write(place)
        n_rows, voted = len(labels), found.resolutions
    watch.done("label", f"{n_rows:,} tasks")
    names = list(resolutions) or [resolution.name for resolution in voted]
    result = {"labels": place, "rows": n_rows, "resolutions": names, "seconds": watch.steps}
    return result, f"{n_rows:,} rows at {', '.join(names)} are in {place}."


def _write_intervals(
    model: LabelModel, votes: Place, output: Place, resolutions: tuple[str, ...], groups: str | None, watch: Watch
) -> Outcome:
    """Intervals of one resolution, in a format that the ending says."""
    if len(resolutions) > 1:
        raise click.UsageError(f"--intervals are of one --resolution; found {' and '.join(resolutions)}.")
    name = next(iter(resolutions), "element")
    parts = VoteShards.open(votes) if votes.is_dir() else [Votes.read(votes)]
    found = formats.joined(votes, [model.labels(in_groups(one, groups), [name]).segments(name) for one in parts])
    files = formats.write(found, output)
    watch.done("label", f"{len(found):,} intervals")
    result = {"labels": list(files), "intervals": len(found), "resolution": name, "seconds": watch.steps}
    return result, f"{len(found):,} intervals at {name} are in {output}."
