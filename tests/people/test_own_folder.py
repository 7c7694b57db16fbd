"""Somebody with a folder of CSV files and the tutorial: from `pip install` to labels, in few steps, with the wheel."""

from __future__ import annotations

import re
from pathlib import Path

from snippets import read_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial" / "own-folder.md"


def test_ten_commands_and_edits_are_enough() -> None:
    """Every install, every file that is written or changed, every command; the stand-in for a sensor aside."""
    _, *blocks = read_blocks(PAGE)
    edits = sum(block.text.count(".write_text(") for block in blocks if block.language == "python")
    commands = sum(block.text.count("$ ") for block in blocks if block.language == "console")
    installs = PAGE.read_text(encoding="utf-8").count("`pip install dugong-ws`")
    steps = re.findall(r"\*\*(\d+)\.\*\*", PAGE.read_text(encoding="utf-8"))
    assert installs == 1
    assert steps == [str(number) for number in range(1, installs + edits + commands + 1)]
    assert len(steps) <= 10


def test_the_tutorial_works_with_the_wheel(installed, tmp_path: Path) -> None:
    follow = (
        f"import sys; sys.path.append({str(ROOT / 'tests')!r})\n"
        "from pathlib import Path\nfrom snippets import run_page\nimport dugong\n"
        f"run_page(Path({str(PAGE)!r}), 'own_folder')\nprint(dugong.__file__)\n"
    )
    where = installed.python("-c", follow, folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.home)
    intervals = (tmp_path / "labels.csv").read_text().splitlines()
    assert intervals[0].startswith("sequence,start,end,unit,label")
    assert any(line.startswith("day") and ",second," in line for line in intervals[1:])
    assert '"kind":"signals"' in (tmp_path / "output" / "report.html").read_text()


def test_every_sample_project_works_with_the_wheel(installed, tmp_path: Path) -> None:
    for kind in ("sensor", "text"):
        installed.dugong("init", kind, "--like", kind, folder=tmp_path)
        installed.dugong("run", kind, folder=tmp_path)
        assert (tmp_path / kind / "output" / "report.html").exists()


def test_a_project_can_begin_in_the_folder_one_is_in(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("init", ".").code == 0
    assert (tmp_path / "project.toml").is_file()
    assert "must not exist yet, or be empty" in cli("init", ".").err
    assert cli("run").code == 0
    assert "label model is better than majority vote" in cli("check").out.replace("\n", " ")


def test_the_sample_of_notes_agrees_with_what_it_says(cli, tmp_path: Path) -> None:
    assert cli("init", tmp_path / "notes", "--like", "text").code == 0
    outcome = cli("run", tmp_path / "notes", "--json").json
    assert outcome["findings"] == []
    assert not any("is not used" in note for one in outcome["model"]["sources"] for note in one["notes"])
