"""`dugong fit`: from a file of votes to a file with a label model."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.settings import model_options, read_dependencies, read_prior
from dugong.cli.sharded import engine_option, shard_sizes


@click.command(
    "fit",
    epilog=example("dugong fit votes.parquet -o model.json --prior markov:positive=0.1,stay=0.9 --dependencies none"),
)
@click.argument("votes", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), default="model.json", help="Default: model.json."
)
@model_options
@click.option(
    "--sharing", type=click.Choice(["tied", "task", "full"]), default="tied", help="One table per source, or per task."
)
@click.option("--estimator", default="centred", help="centred (the default) or another name of dugong.estimators.")
@click.option("--signs", type=click.Choice(["group", "positive"]), default="group", help="How signs are chosen.")
@click.option("--jobs", type=int, default=1, help="Processes for a folder of votes; -1 for one per core. Default: 1.")
@engine_option
@json_option
def command(
    *,
    votes: Path,
    output: Path,
    prior: str,
    dependencies: str,
    sharing: str,
    estimator: str,
    signs: str,
    jobs: int,
    engine: str,
    as_json: bool,
) -> None:
    """Estimate how accurate the sources of VOTES (.parquet or .npz) are, and write the label model.

    VOTES may be a folder of .parquet files: they are read one after the other, and counted by --engine. What cannot be
    added up (a prior or dependencies to be learned, more than two classes) is then learned on a sample.
    """
    from dugong.cli.steps import Clock, sizes
    from dugong.model import LabelModel
    from dugong.votes import Votes

    clock = Clock()
    model = LabelModel(
        prior=read_prior(prior),
        dependencies=read_dependencies(dependencies),
        sharing=sharing,  # type: ignore[arg-type]
        estimator=estimator,
        signs=signs,
    )
    if votes.is_dir():
        from dugong.engines import named_engine
        from dugong.shards import VoteShards, fit_shards

        shards = VoteShards.open(votes)
        clock.done("read", shard_sizes(shards))
        fit_shards(model, shards, engine=named_engine(engine, n_jobs=jobs))
    else:
        found = Votes.read(votes)
        clock.done("read", sizes(found))
        model.fit(found)
    model.save(output)
    clock.done("fit", f"prior {model.prior_!r}")
    summary = model.summary()
    result = {"model": output, "summary": summary.to_dict(), "seconds": clock.steps}
    emit(result, f"{summary}\n\nThe model is in {output}.", as_json=as_json)
