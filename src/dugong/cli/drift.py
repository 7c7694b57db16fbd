"""`dugong drift`: whether new votes still look like those that a model was fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dugong.cli.output import emit, example, fit_width, json_option
from dugong.cli.places import PLACE
from dugong.paths import Place

if TYPE_CHECKING:
    from dugong.model import LabelModel
    from dugong.votes import Votes


@click.command("drift", epilog=example("dugong drift model.json new-votes.parquet --strict"))
@click.argument("model", type=PLACE)
@click.argument("votes", type=PLACE)
@click.option("--level", type=float, default=0.01, help="Probability of any false alarm. Default: 0.01.")
@click.option("--strict", is_flag=True, help="Leave with exit code 1 if something changed, so that scripts stop.")
@json_option
def command(*, model: Place, votes: Place, level: float, strict: bool, as_json: bool) -> None:
    """Compare VOTES (a file, or a folder of shards) with those that MODEL was fitted on.

    By source: how often it votes, how well it agrees with the labels that the others imply, how predictable it is; for
    all together: the balance of the labels and the likelihood. Sequences are the units of chance, and the number of
    things that are compared is taken into account.
    """
    from dugong.drift import REFERENCE
    from dugong.model import LabelModel
    from dugong.votes import Votes

    if votes.is_dir():
        from dugong.shards import VoteShards, read_sample

        found = read_sample(VoteShards.open(votes), REFERENCE)
    else:
        found = Votes.read(votes)
    drift = LabelModel.load(model).drift(found, level=level)
    emit(drift.to_dict(), fit_width(str(drift)), as_json=as_json)
    if strict and drift:
        raise click.exceptions.Exit(1)


def drift_lines(model: LabelModel, new: Votes | None) -> list[str]:
    """What new sequences of a project say about an earlier model of it; nothing if too few are new to tell."""
    from dugong.drift import FEW_UNITS
    from dugong.exceptions import DugongError

    if new is None or new.n_sequences < FEW_UNITS:
        return []
    known = [info.name for info in model.sources_ if info.name in new.source_names]
    try:
        alarms = model.drift(new.select(sources=known)).alarms
    except DugongError:  # sources at other resolutions, or a model that does not know what its votes looked like
        return []
    return [f"In {new.n_sequences:,} new sequences, {one} (chance {one.chance:.2g})." for one in alarms]
