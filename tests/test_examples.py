"""The examples run, and show what they say they show."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_gait_from_raw_accelerometers(shared_data, capsys) -> None:
    comparison, by_patient = runpy.run_path(str(EXAMPLES / "gait.py"))["main"](shared_data / "gait-daphnet")
    vote, learned = comparison["majority vote"], comparison["learned"]
    # Every source repeats its errors here, and the vote has the better F1; the probabilities of the labels are better.
    assert learned.log_loss < vote.log_loss
    assert learned.f1 > vote.f1 - 0.07
    # Tables by patient, from votes alone: better probabilities, and F1 about level. Wanted are three points above the
    # vote on average and nobody more than three below; balance and votes that are discounted together cost that.
    grouped = comparison["by patient"]
    assert grouped.log_loss < min(vote.log_loss, learned.log_loss)
    assert grouped.brier < min(vote.brier, learned.brier)
    gains = [f1 - by_patient["majority vote"][name] for name, f1 in by_patient["by patient"].items()]
    assert sum(gains) / len(gains) > -0.02
    assert min(gains) > -0.07
    assert "arrhythmic" in capsys.readouterr().out


def test_salads_at_four_frame_rates(shared_data, capsys) -> None:
    comparison = runpy.run_path(str(EXAMPLES / "salads.py"))["main"](shared_data / "salads-mid")
    learned, vote, best = (comparison[name] for name in ("learned", "majority vote", "ED-TCN"))
    assert best.accuracy == pytest.approx(0.643, abs=0.001)
    assert vote.accuracy == pytest.approx(0.651, abs=0.001)
    assert learned.accuracy > vote.accuracy + 0.02
    assert learned.brier < vote.brier
    assert max(map(len, capsys.readouterr().out.splitlines())) < 300  # no matrix of 18 by 18 classes
