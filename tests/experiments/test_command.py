"""`dugong reproduce` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_task as tiny
from dugong.cli import exit_code
from dugong.experiments import reproducing
from dugong.experiments.methods import TABLE1


def test_it_prints_the_table_and_tells_how_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproducing, "TASKS", (tiny.LABELS_ONLY,))
    monkeypatch.setitem(reproducing._METHODS, "table1", TABLE1[1:2])
    words = ["reproduce", "table1", "--quick", "--seeds", "1", "--jobs", "1", "--output", str(tmp_path)]
    assert exit_code(words) == 0
    out, err = capsys.readouterr()
    assert "| tiny | simulated | MV |" in out
    assert "[1/1] tiny (simulated data), seed 0" in err
    assert exit_code([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["table1"][0]
    assert (record["method"], record["seeds"]) == ("MV", 1)


def test_an_unknown_task_is_an_error_that_names_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["reproduce", "table1", "--task", "chess", "--output", str(tmp_path)]) == 1
    assert "there is no task 'chess'; the paper's tasks are bav, interview" in capsys.readouterr().err


def test_an_unknown_table_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["reproduce", "table9"]) == 2
    assert "'table1', 'ablations'" in capsys.readouterr().err
