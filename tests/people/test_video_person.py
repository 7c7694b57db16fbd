"""A video person: a project of videos to begin with, one rule changed, and the same command again."""

from __future__ import annotations

from pathlib import Path

import pytest

import dugong as dg
from command_line import Command

pytest.importorskip("av", reason="the extra dugong-ws[video] is not installed")


def test_a_rule_is_changed_and_the_run_says_what_that_changed(cli: Command, tmp_path: Path) -> None:
    # 1. A working project of videos, and labels in every fourth of a second.
    folder = tmp_path / "clips"
    assert cli("init", folder, "--like", "video").code == 0
    first = cli("run", folder, "--json")
    assert first.code == 0, first.err
    assert first.json["changes"] == []
    labels = dg.Labels.read(folder / "output" / "labels.parquet").at("element")
    assert labels.seconds is not None
    assert labels.seconds[0].tolist() == [0.0, 0.25]

    # 2. She makes one rule stricter and runs again: what changed is said.
    sources = folder / "sources.py"
    sources.write_text(sources.read_text().replace("> 75 else", "> 115 else").replace("> 55 else", "> 105 else"))
    second = cli("run", folder, "--json")
    assert second.code == 0, second.err
    assert any(one.startswith("something_red: accuracy") for one in second.json["changes"])
    votes = dg.Votes.read(folder / "output" / "votes.parquet")
    assert "window" in {info.resolution.kind for info in votes.sources}
