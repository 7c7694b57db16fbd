"""The examples run, and show what they say they show."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_gait_from_raw_accelerometers(shared_data, capsys) -> None:
    comparison = runpy.run_path(str(EXAMPLES / "gait.py"))["main"](shared_data / "gait-daphnet")
    vote, given = comparison["majority vote"], comparison["prior given"]
    assert given.brier < vote.brier
    assert given.f1 > vote.f1
    assert "strides_alike" in capsys.readouterr().out
