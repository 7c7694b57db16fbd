"""`dugong import`: what people marked in another tool, as known labels or as votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.places import PLACE
from dugong.exceptions import LabelError
from dugong.paths import Place
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.segments import Segments
    from dugong.votes import Votes


@click.command(
    "import",
    epilog=example(
        "dugong import annotations.eaf --as gold --votes output/votes.parquet -o known.csv",
        "dugong import export.json --as source --votes output/votes.parquet -o votes.parquet",
    ),
)
@click.argument("file", type=PLACE)
@click.option("--as", "kind", type=click.Choice(["gold", "source"]), required=True, help="Known labels, or votes.")
@click.option("--output", "-o", type=PLACE, required=True, help="gold: .csv or .parquet; source: .parquet or .npz.")
@click.option("--format", "name", metavar="FORMAT", help="See `dugong formats`. Default: by ending and content.")
@click.option("--votes", type=PLACE, help="The votes they belong to: ids, lengths, classes and the clock.")
@click.option("--rate", type=float, help="Elements per second, without --votes.")
@click.option("--background", metavar="LABEL", help="What silence means where somebody looked.")
@click.option("--encoding", help="Of the text; default: UTF-8.")
@json_option
def command(
    *,
    file: Place,
    kind: str,
    output: Place,
    name: str | None,
    votes: Place | None,
    rate: float | None,
    background: str | None,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Read FILE (or a folder of files) of another tool, and write what people marked.

    As gold: one row per stretch of known labels, for `gold` and `train_gold` of a project. Where somebody looked and
    marked nothing, the label is the other class (or --background). As source: votes of one source per annotator; with
    --votes the output holds those votes too, so that it can be fitted at once.
    """
    from dugong import formats
    from dugong.votes import Votes

    found = formats.read(file, name, encoding=encoding)
    base = None if votes is None else Votes.read(votes)
    if rate is not None:
        found = found.describe(rate=rate)
    try:
        (_as_gold if kind == "gold" else _as_source)(found, base, output, background)
    except LabelError as error:
        raise LabelError(f"{file} cannot be used: {error}") from None
    what = "known labels" if kind == "gold" else f"votes of {', '.join(found.sources) or 'annotator'}"
    text = f"{counted(len(found), 'interval')} in {counted(len(found.recordings), 'sequence')}, as {what}: {output}"
    result = {"output": output, "intervals": len(found), "sequences": list(found.recordings), "labels": found.labels}
    emit(result, text, as_json=as_json)


def _as_gold(segments: Segments, votes: Votes | None, output: Place, background: str | None) -> None:
    from dugong.cli.gold import write_gold, write_segments

    if votes is not None:
        write_gold(segments.to_gold(votes, background=background), votes, output)
        return
    known = all(about.rate is not None for about in segments.recordings.values())
    write_segments(segments.to_unit("element") if segments.unit == "second" and known else segments, output)


def _as_source(segments: Segments, votes: Votes | None, output: Place, background: str | None) -> None:
    from dugong.votes import Votes

    if votes is not None:
        votes.with_segments(segments, background=background).write(output)
        return
    rates = {name: about.rate for name, about in segments.recordings.items() if about.rate is not None}
    lengths = {
        name: round(about.seconds * about.rate)
        for name, about in segments.recordings.items()
        if about.n_elements is None and about.seconds is not None and about.rate is not None
    }
    Votes.from_segments(segments, lengths or None, rate=rates or None, background=background).write(output)
