"""`dugong export`: labels as files of the tools in which people look at them and correct them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.places import PLACE
from dugong.paths import Place
from dugong.texts import counted

if TYPE_CHECKING:
    from dugong.segments import Segments


@click.command(
    "export",
    epilog=example(
        "dugong export labels.parquet --to label-studio --media 'https://lab.example/{}.mp4' -o tasks.json",
        "dugong export output/labels.parquet --to elan --review 20 -o to-check",
    ),
)
@click.argument("labels", type=PLACE)
@click.option("--to", "to", metavar="FORMAT", help="See `dugong formats`. Default: what the ending of --output says.")
@click.option("--output", "-o", type=PLACE, required=True, help="A file; or a folder, with one file per sequence.")
@click.option("--media", metavar="PLACE", help="Folder of files named by sequence, or a pattern with {} for the id.")
@click.option("--element", type=click.Choice(["word", "line"]), help="What an element of a .txt file in --media is.")
@click.option("--resolution", metavar="NAME", default="element", help="Default: element.")
@click.option("--threshold", type=float, help="Mark what is likelier than this, in place of the best path.")
@click.option("--min-length", type=int, help="Leave out intervals of fewer elements.")
@click.option("--merge-gap", type=int, help="Join intervals of one label with at most so many elements between them.")
@click.option("--unit", type=click.Choice(["element", "second", "character"]), help="Default: what the format takes.")
@click.option("--rate", type=float, help="Elements per second, where the labels do not know.")
@click.option("--kind", metavar="NAME", help="What Label Studio shows: video, timeseries, audio, text or sequence.")
@click.option("--set", "options", metavar="NAME=VALUE", multiple=True, help="Further options of the format.")
@click.option("--review", metavar="N", type=click.IntRange(min=1), help="Only the N sequences that teach most.")
@click.option("--model", type=PLACE, help="For --review. Default: model.json beside LABELS.")
@click.option("--votes", type=PLACE, help="For --review. Default: votes.parquet beside LABELS.")
@json_option
def command(
    *,
    labels: Place,
    to: str | None,
    output: Place,
    media: str | None,
    element: str | None,
    rate: float | None,
    kind: str | None,
    options: tuple[str, ...],
    review: int | None,
    model: Place | None,
    votes: Place | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """Write LABELS (a file or folder of labels, or a file of another tool) in another format.

    Intervals are those of the best path, without the background. With --review, only the sequences that a person should
    look at first: the most uncertain ones, and not the same thing twice.
    """
    from dugong import formats
    from dugong.cli.media import with_media

    unit = choice.pop("unit")
    found = read_segments(labels, **choice)
    chosen = None
    if review is not None:
        chosen = choose_sequences(labels, review, model, votes)
        found = found.select(sequences=[one for one in chosen if str(one) in found.recordings])
    if rate is not None:
        found = found.describe(rate=rate)
    if unit is not None:
        found = found.to_unit(unit)
    more = _options(options) | ({} if kind is None else {"kind": kind})
    files = formats.write(with_media(found, media, element), output, to, **more)
    name = to or formats.find(output).name
    lines = [f"{counted(len(found), 'interval')} in {counted(len(found.recordings), 'sequence')}, written as {name}:"]
    lines += [f"  {file}" for file in files[:5]] + ([f"  and {len(files) - 5:,} more"] if len(files) > 5 else [])
    result = {"files": list(files), "intervals": len(found), "sequences": list(found.recordings), "format": name}
    emit(result, "\n".join(lines), as_json=as_json)


def read_segments(place: Place, *, resolution: str = "element", **choice: Any) -> Segments:
    """Intervals of a file or folder of labels, or of a file of another tool."""
    from dugong import formats
    from dugong.labels import Labels, holds_labels

    if holds_labels(place):
        return Labels.read(place).segments(resolution, **choice)
    return formats.read(place)


def choose_sequences(labels: Place, budget: int, model: Place | None, votes: Place | None) -> tuple[Any, ...]:
    """The sequences that a person should look at first."""
    from dugong.model import LabelModel
    from dugong.votes import Votes

    model, votes = model or labels.with_name("model.json"), votes or labels.with_name("votes.parquet")
    for place, option in ((model, "--model"), (votes, "--votes")):
        if not place.is_file():
            raise click.UsageError(f"--review needs the model and the votes; there is no {place}. Name it: {option}.")
    return LabelModel.load(model).review(Votes.read(votes), budget).ids


def _options(given: tuple[str, ...]) -> dict[str, Any]:
    """Options as ``name=value``; a value is read as JSON where it is some."""
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"--set takes NAME=VALUE; found {one!r}.")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found
