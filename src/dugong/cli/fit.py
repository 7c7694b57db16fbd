"""`dugong fit`: from a file of votes to a file with a label model."""

from __future__ import annotations

from typing import Any

import click

from dugong.cli.gold import read_gold
from dugong.cli.output import PLACE, Outcome, verb
from dugong.cli.settings import groups_by_id, groups_option, model_options, read_dependencies, read_groups, read_prior
from dugong.cli.sharded import folder_engine, folder_options, refuse_folder_options, shard_sizes
from dugong.cli.steps import sizes
from dugong.cli.watching import Watch, log_option
from dugong.model import LabelModel
from dugong.paths import Place, parts_of
from dugong.shards import VoteShards, fit_shards
from dugong.votes import Votes


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
    if votes.is_dir():
        if gold is not None or (groups is not None and sharing != "group"):
            raise click.UsageError(
                "--gold, and --groups without --sharing group, need all votes in one file, and VOTES is a folder."
            )
        shards = VoteShards.open(votes)
        watch.done("read", shard_sizes(shards))
        fit_shards(
            model,
            shards,
            engine=folder_engine(shards, **folder),
            keep=parts_of(output),
            memory=folder["memory"],
            groups=groups_by_id(shards, groups),
            progress=watch.fitting,
        )
    else:
        refuse_folder_options(folder)
        found = Votes.read(votes)
        watch.done("read", sizes(found))
        labels = None if gold is None else read_gold(gold, found, missing_ok=True)
        members = None if groups is None else read_groups(groups, found)
        model.fit(found, labels, members, progress=watch.fitting)
    model.save(output)
    watch.done("fit", "how far each source can be trusted")
    summary = model.summary()
    result = {"model": output, "summary": summary.to_dict(), "seconds": watch.steps}
    return result, f"{summary}\n\nThe model is in {output}."
