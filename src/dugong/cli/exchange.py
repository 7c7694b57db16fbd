"""Labels out to the tools in which people look at them, and back: `dugong export`, `import` and `formats`.

``--media`` says what people see beside the labels: a folder of files named by the ids of the sequences, or a pattern
such as ``https://host/{}.mp4``. Texts are read, and cut into the elements that were voted on.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import click

from dugong import formats
from dugong.cli.gold import write_gold, write_segments
from dugong.cli.output import PLACE, SOME, Outcome, verb
from dugong.cli.project import Project
from dugong.exceptions import FormatError, LabelError
from dugong.labels import Labels, holds_labels
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.segments import Recording, Segments
from dugong.texts import counted
from dugong.votes import Votes


@verb(
    "export",
    "dugong export labels.parquet --to label-studio --media 'https://lab.example/{}.mp4' -o tasks.json",
    "dugong export output/labels.parquet --to elan --review 20 -o to-check",
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
@click.option("--review", metavar="N", type=SOME, help="Only the N sequences that teach most.")
@click.option("--model", type=PLACE, help="For --review. Default: model.json beside LABELS.")
@click.option("--votes", type=PLACE, help="For --review. Default: votes.parquet beside LABELS.")
def export(
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
    **choice: Any,
) -> Outcome:
    """Write LABELS (a file or folder of labels, or a file of another tool) in another format.

    Intervals are those of the best path, without the background. With --review, only the sequences that a person should
    look at first: the most uncertain ones, and not the same thing twice.
    """
    unit = choice.pop("unit")
    found = read_segments(labels, **choice)
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
    return result, "\n".join(lines)


def read_segments(place: Place, *, resolution: str = "element", **choice: Any) -> Segments:
    """Intervals of a file or folder of labels, or of a file of another tool."""
    if holds_labels(place):
        return Labels.read(place).segments(resolution, **choice)
    return formats.read(place)


def choose_sequences(labels: Place, budget: int, model: Place | None, votes: Place | None) -> tuple[Any, ...]:
    """The sequences that a person should look at first."""
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


# --- media ------------------------------------------------------------------------------------------------------------
_TEXTS = (".txt", ".conll", ".conllu")
_CUTS = {"word": r"\S+", "line": r"[^\n]*\S[^\n]*"}


def with_media(segments: Segments, media: str | None, element: str | None = None) -> Segments:
    """Say where the media of all sequences are; texts are read, and cut into the elements that were voted on."""
    if media is None:
        return segments
    if "{}" in media:
        return segments.describe(media={name: media.replace("{}", name) for name in segments.recordings})
    folder = place_of(media)
    if not folder.is_dir():
        raise FormatError(f"--media names a folder, or a pattern with {{}} in place of the id; found {media!r}.")
    listed: list[Place] = list(folder.glob("*"))
    files = {place.stem: place for place in sorted(listed, key=str, reverse=True)}  # the first of each name
    absent = [name for name in segments.recordings if name not in files]
    if absent:
        raise FormatError(
            f"{folder} must hold a file for every sequence; there is none for {absent[0]!r}, and {len(absent)} are "
            "like this."
        )
    found = {name: (files[name], about) for name, about in segments.recordings.items()}
    facts = {name: _text(place, about, element) for name, (place, about) in found.items() if place.suffix in _TEXTS}
    return segments.describe(
        media={name: str(place) for name, (place, _) in found.items()},
        text={name: text for name, (text, _) in facts.items()},
        tokens={name: tokens for name, (_, tokens) in facts.items()},
    )


def _text(place: Place, about: Recording, element: str | None) -> tuple[Any, Any]:
    """The text of a file and the tokens that were its elements."""
    if place.suffix != ".txt":
        known = next(iter(formats.read(place).recordings.values()))
        return known.text, known.tokens
    text = formats.File.open(place).text
    cuts = {name: tuple(found.span() for found in re.finditer(cut, text)) for name, cut in _CUTS.items()}
    n_words, n_lines = map(len, cuts.values())
    fitting = [element] if element else [name for name, cut in cuts.items() if about.length in (None, len(cut))]
    if len(fitting) != 1:
        raise FormatError(
            f"{place} has {n_words} words and {n_lines} lines, and the sequence {about.length} elements.\n"
            "  Say what an element is: --element word or --element line."
        )
    return text, cuts[fitting[0]]


def export_labels(project: Project, parts: Iterable[Labels]) -> dict[str, Place]:
    """Write labels, of one file or shard by shard, in all formats that the project names, each into its own folder."""
    found = [one.segments("element" if "element" in one.resolutions else one.resolutions[0]) for one in parts]
    segments = with_media(formats.joined(project.output, found), project.media)
    files: dict[str, Place] = {}
    for name in project.export:
        folder = project.output / "export" / formats.of_name(name).name
        formats.write(segments, folder, name)
        files[f"labels for {formats.of_name(name).title}"] = folder
    return files


# --- import -----------------------------------------------------------------------------------------------------------
@verb(
    "import",
    "dugong import annotations.eaf --as gold --votes output/votes.parquet -o known.csv",
    "dugong import export.json --as source --votes output/votes.parquet -o votes.parquet",
)
@click.argument("file", type=PLACE)
@click.option("--as", "kind", type=click.Choice(["gold", "source"]), required=True, help="Known labels, or votes.")
@click.option("--output", "-o", type=PLACE, required=True, help="gold: .csv or .parquet; source: .parquet or .npz.")
@click.option("--format", "name", metavar="FORMAT", help="See `dugong formats`. Default: by ending and content.")
@click.option("--votes", type=PLACE, help="The votes they belong to: ids, lengths, classes and the clock.")
@click.option("--rate", type=float, help="Elements per second, without --votes.")
@click.option("--background", metavar="LABEL", help="What silence means where somebody looked.")
@click.option("--encoding", help="Of the text; default: UTF-8.")
def take_in(
    *,
    file: Place,
    kind: str,
    output: Place,
    name: str | None,
    votes: Place | None,
    rate: float | None,
    background: str | None,
    encoding: str | None,
) -> Outcome:
    """Read FILE (or a folder of files) of another tool, and write what people marked.

    As gold: one row per stretch of known labels, for `gold` and `train_gold` of a project. Where somebody looked and
    marked nothing, the label is the other class (or --background). As source: votes of one source per annotator; with
    --votes the output holds those votes too, so that it can be fitted at once.
    """
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
    return result, text


def _as_gold(segments: Segments, votes: Votes | None, output: Place, background: str | None) -> None:
    if votes is not None:
        write_gold(segments.to_gold(votes, background=background), votes, output)
        return
    known = all(about.rate is not None for about in segments.recordings.values())
    write_segments(segments.to_unit("element") if segments.unit == "second" and known else segments, output)


def _as_source(segments: Segments, votes: Votes | None, output: Place, background: str | None) -> None:
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


# --- formats ----------------------------------------------------------------------------------------------------------
@verb("formats", "dugong formats", "dugong formats elan")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def list_formats(*, names: tuple[str, ...]) -> Outcome:
    """List the formats of `export` and `import`: endings, units, what is kept, what is lost, who checked it."""
    found = [formats.of_name(name) for name in names or formats.names()]
    result, lines = {}, []
    for one in found:
        facts = {"unit": one.unit, "keeps": one.keeps, "loses": one.loses, "checked by": one.checked}
        more = {"extra": one.extra, "options": one.options}
        result[one.name] = {"title": one.title, "endings": one.suffixes, **facts, **more}
        needs = f"; needs dugong-ws[{one.extra}]" if one.extra else ""
        lines.append(f"{one.name:<14}{one.title} ({', '.join(one.suffixes)}{needs})")
        facts |= {"options": ", ".join(one.options)} if one.options else {}
        for word, text in facts.items():
            lines += textwrap.wrap(f"{word}: {text}", 100, initial_indent=" " * 14, subsequent_indent=" " * 16)
    return {"formats": result}, "\n".join(lines)
