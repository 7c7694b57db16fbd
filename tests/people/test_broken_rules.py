"""Somebody with broken rules: `dugong run` names each of them, and one of them does not ruin the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dugong as dg
from command_line import Command
from dugong.cli.findings import findings

BROKEN = """

@dg.source
def never_votes(second: Row) -> int:
    return dg.ABSTAIN


@dg.source
def always_no(second: Row) -> int:
    return dg.NEGATIVE


@dg.source
def moves_again(second: Row) -> int:
    return dg.POSITIVE if second.movement > 0.6 else dg.NEGATIVE


@dg.source
def raises_often(second: Row) -> int:
    if second.movement > 1.2:
        raise ValueError("saturated")
    return dg.POSITIVE if second.movement > 0.5 else dg.NEGATIVE
"""
INVERTED = """

@dg.source
def turned_around(second: Row) -> int:
    return dg.NEGATIVE if second.movement > 0.6 else dg.POSITIVE
"""


def sample_project(cli: Command, folder: Path, more: str) -> Path:
    """The sample project with further rules, and with dependencies left to be learned."""
    assert cli("init", folder).code == 0
    sources, project = folder / "sources.py", folder / "project.toml"
    sources.write_text(sources.read_text() + more)
    project.write_text(project.read_text().replace("dependencies = []\n", ""))
    return project


def test_every_broken_rule_is_named_first(cli: Command, tmp_path: Path) -> None:
    project = sample_project(cli, tmp_path / "walking", BROKEN)
    outcome = cli("run", project, "--on-fault", "abstain", "--json")
    assert outcome.code == 0, outcome.err
    said = outcome.json["findings"]
    for name, words in (
        ("never_votes", "never votes"),
        ("always_no", "always"),
        ("moves_again", "exactly as 'moves'"),
        ("raises_often", "and abstained there; first ValueError: saturated, in sequence 'recording-"),
    ):
        assert any(name in one and words in one for one in said), (name, said)
        assert sum(repr(name) in one for one in said) == 1, (name, said)


def test_a_rule_that_is_turned_around_is_named_and_ruins_nothing(cli: Command, tmp_path: Path) -> None:
    project = sample_project(cli, tmp_path / "walking", INVERTED)
    outcome = cli("run", project, "--json")
    assert outcome.code == 0, outcome.err
    scores = {name: one["scores"]["f1"]["value"] for name, one in outcome.json["comparison"]["methods"].items()}
    assert scores["label model"] >= scores["majority vote"], scores
    assert any("turned_around" in one for one in outcome.json["findings"]), outcome.json["findings"]


def test_elements_that_nobody_votes_on_are_named_with_the_remedy(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    text = sources.read_text().replace("@dg.source\n", '@dg.source(resolution=dg.Window(3, link="majority"))\n')
    sources.write_text(text.replace("return vote(element, ", "return vote(element[0], "))
    small_project.write_text(small_project.read_text() + "rate = 2.0\n")
    outcome = cli("run", small_project, "--json")
    assert outcome.code == 0, outcome.err
    assert any("finest looks at 3 at once" in one and '"1.5s"' in one for one in outcome.json["findings"])


def test_where_the_vote_is_better_in_anything_that_is_said_first() -> None:
    truth = np.repeat([1, -1, -1, -1, -1], 20)
    better_f1, better_accuracy = np.where(np.arange(100) < 40, 1, -1), np.where(np.arange(100) < 8, 1, -1)
    votes = dg.Votes.from_dense(np.stack([better_f1, better_accuracy], axis=1), lengths=[50, 50])
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.2, stay=0.8), dependencies=()).fit(votes)
    compared = dg.compare({"majority vote": better_f1, "label model": better_accuracy}, truth, lengths=[50, 50])
    said = findings(model, votes, compared)
    assert said[0].startswith("On the known labels plain majority vote is better: F1 0.667 against 0.571, which may be")
    other_way = dg.compare({"majority vote": better_accuracy, "label model": better_f1}, truth, lengths=[50, 50])
    assert "accuracy 0.880 against 0.800" in findings(model, votes, other_way)[0]
    same = dg.compare({"majority vote": better_f1, "label model": better_f1}, truth, lengths=[50, 50])
    assert not any("majority vote is better" in one for one in findings(model, votes, same))


def test_a_copy_that_harms_is_named_and_the_harm_is_said(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "walking"
    assert cli("init", folder).code == 0
    first = cli("run", folder, "--json").json
    copy = "\n\n@dg.source\ndef moves_again(second: Row) -> int:\n    return moves(second)\n"
    (folder / "sources.py").write_text((folder / "sources.py").read_text() + copy)
    second = cli("run", folder, "--json").json
    assert any("'moves_again' votes exactly as 'moves'" in one for one in second["findings"])
    before, after = (run["comparison"]["methods"]["label model"]["scores"]["f1"]["value"] for run in (first, second))
    assert after < before
    assert any(f"F1 {after - before:+.3f} on known labels" in one for one in second["changes"]), second["changes"]
