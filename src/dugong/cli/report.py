"""`dugong report`: a fitted model and votes as one page that people can read, share and check."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.gold import read_gold
from dugong.cli.output import Outcome, verb
from dugong.cli.settings import groups_option, in_groups
from dugong.cli.steps import sizes
from dugong.cli.watching import Watch
from dugong.model import LabelModel
from dugong.report import summarize, write_report
from dugong.report.text import check_kind
from dugong.votes import Votes


@verb(
    "report",
    "dugong report model.json votes.parquet --gold gold.parquet -o report.html",
    "dugong report model.json votes.parquet --sequence night-07 --sequences 20 -o report.html",
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("votes", type=click.Path(path_type=Path))
@click.option("--gold", type=click.Path(path_type=Path), help="Known labels (.parquet, .csv or .npy), to compare with.")
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
def command(
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
