"""`dugong suggest`: rules that would complement the sources of a project, as code to paste."""

from __future__ import annotations

from pathlib import Path

import click

from dugong.cli.output import emit, example, json_option, user_code
from dugong.cli.places import PLACE
from dugong.cli.project import DEFAULT, last_run, read_project
from dugong.paths import Place


@click.command("suggest", epilog=example("dugong run project.toml", "dugong suggest project.toml --budget 3"))
@click.argument("project", type=click.Path(path_type=Path), default=DEFAULT)
@click.option("--budget", type=click.IntRange(min=1), default=5, help="How many rules. Default: 5.")
@click.option("--known", type=PLACE, help="Labels that people have looked at, as for `fit --gold`. Default: none.")
@json_option
def command(*, project: Path, budget: int, known: Place | None, as_json: bool) -> None:
    """Propose thresholds on numbers, or lists of words, that would add to what the sources of PROJECT say.

    The project must have been run: its votes and its model are read from the output folder. Everything rests on the
    labels of that model; its gold is not looked at.
    A project is code: its loader is executed.
    """
    from dugong.cli.gold import read_gold
    from dugong.cli.loading import load_sequences
    from dugong.model import LabelModel
    from dugong.votes import Votes

    found = read_project(project)
    model, votes = last_run(found)
    with user_code():
        sequences = load_sequences(found.data, found.folder, **found.timing)
        seen = Votes.read(votes)
        labels = None if known is None else read_gold(known, seen, missing_ok=True)
        rules = LabelModel.load(model).suggest(seen, sequences, budget, known=labels)
    emit(rules.to_dict(), str(rules), as_json=as_json)
