"""The examples run, and show what they say they show."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def _gains(by_patient: dict[str, dict[str, float]], what: str) -> list[float]:
    """F1 of every patient over that of the vote."""
    return [f1 - by_patient["majority vote"][name] for name, f1 in by_patient[what].items()]


def test_gait_from_raw_accelerometers(shared_data, capsys) -> None:
    comparison, by_patient = runpy.run_path(str(EXAMPLES / "gait.py"))["main"](shared_data / "gait-daphnet")
    vote, learned = comparison["majority vote"], comparison["learned"]
    # Every source repeats its errors here, and the vote has the better F1; the probabilities of the labels are better.
    assert learned.log_loss < vote.log_loss
    assert learned.f1 > vote.f1 - 0.07
    # Tables by patient, from votes alone: better probabilities, and F1 about level.
    grouped = comparison["by patient"]
    assert grouped.log_loss < min(vote.log_loss, learned.log_loss)
    assert grouped.brier < min(vote.brier, learned.brier)
    assert np.mean(_gains(by_patient, "by patient")) > -0.02
    # Told that sources repeat themselves, and a prior that is not from anybody's labels here: three points above the
    # vote on average, and nobody three below. One second of freezing is more than a point of F1 of most patients.
    told = _gains(by_patient, "told and by patient")
    assert np.mean(told) >= 0.03
    assert min(told) > -0.03
    assert comparison["told and by patient"].brier < vote.brier
    assert "arrhythmic" in capsys.readouterr().out


def test_salads_at_four_frame_rates(shared_data, capsys) -> None:
    comparison = runpy.run_path(str(EXAMPLES / "salads.py"))["main"](shared_data / "salads-mid")
    learned, vote, best = (comparison[name] for name in ("learned", "majority vote", "ED-TCN"))
    assert best.accuracy == pytest.approx(0.643, abs=0.001)
    assert vote.accuracy == pytest.approx(0.651, abs=0.001)
    assert learned.accuracy > vote.accuracy + 0.02
    assert learned.brier < vote.brier
    assert max(map(len, capsys.readouterr().out.splitlines())) < 300  # no matrix of 18 by 18 classes
