"""Trying sources while they are written."""

from __future__ import annotations

from pathlib import Path

import dugong as dg
from command_line import Command


def test_limit_and_only_write_nothing(cli: Command, small_project: Path) -> None:
    outcome = cli("apply", small_project, "--limit", 5, "--only", "two")
    assert outcome.code == 0, outcome.err
    assert "1 source, 5 sequences, 30 elements" in outcome.out
    assert "Nothing was written" in outcome.out
    assert not (small_project.parent / "out").exists()


def test_limit_with_output_writes(cli: Command, small_project: Path, tmp_path: Path) -> None:
    outcome = cli("apply", small_project, "--limit", 5, "-o", tmp_path / "few.npz", "--json")
    assert outcome.code == 0, outcome.err
    assert dg.Votes.read(tmp_path / "few.npz").n_sequences == 5
    assert outcome.json["votes"] == str(tmp_path / "few.npz")


def test_everything_goes_to_the_output_folder(cli: Command, small_project: Path) -> None:
    outcome = cli("apply", small_project, "--json")
    assert outcome.code == 0, outcome.err
    votes = dg.Votes.read(small_project.parent / "out" / "votes.parquet")
    assert votes.source_names == ("one", "two", "three")
    assert outcome.json["summary"]["source"] == ["one", "two", "three"]
    assert outcome.json["report"]["n_sequences"] == 60


def test_gold_of_more_sequences_than_were_voted_on(cli: Command, small_project: Path) -> None:
    rows = [f"q{name:02d},0,6,{1 if name % 2 else -1}" for name in range(60)]
    (small_project.parent / "gold.csv").write_text("\n".join(["sequence,start,end,label", *rows]))
    small_project.write_text(small_project.read_text() + 'gold = "gold.csv"\n')
    outcome = cli("apply", small_project, "--limit", 4)
    assert outcome.code == 0, outcome.err
    assert "Emp. Acc." in outcome.out


def test_an_unknown_source_is_named(cli: Command, small_project: Path) -> None:
    outcome = cli("apply", small_project, "--only", "four")
    assert outcome.code == 1
    assert "'four', which is not there; known are 'one', 'two', 'three'" in outcome.err
