"""The examples run, and show what they say they show."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_gait_from_raw_accelerometers(shared_data, capsys) -> None:
    comparison = runpy.run_path(str(EXAMPLES / "gait.py"))["main"](shared_data / "gait-daphnet")
    vote, learned = comparison["majority vote"], comparison["learned"]
    assert learned.brier < vote.brier
    assert learned.f1 > vote.f1
    assert "arrhythmic" in capsys.readouterr().out
