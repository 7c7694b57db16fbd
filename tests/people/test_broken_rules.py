"""Somebody with broken rules: `dugong run` names each of them, and one of them does not ruin the labels."""

from __future__ import annotations

from pathlib import Path

from command_line import Command

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
        ("raises_often", "raised on"),
    ):
        assert any(name in one and words in one for one in said), (name, said)


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
