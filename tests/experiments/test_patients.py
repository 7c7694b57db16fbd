"""Splits of real Gait by patient and by time, and what may be fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.experiments import reproduce
from dugong.experiments.recipe import real
from dugong.experiments.resolutions import PATIENT_WAYS, PRIORS, SPLITS
from dugong.experiments.tasks import find_recipe


def test_absent_recordings_are_a_row_that_says_so(tmp_path):
    (table,) = reproduce("patients", data=tmp_path, output=tmp_path / "out").tables
    assert "not measured: the real data must be in" in table.rows[0]["labels"]


@pytest.fixture(scope="module")
def case(shared_data):
    return real(find_recipe("gait"), shared_data, quick=True)


@pytest.mark.parametrize("split", SPLITS)
def test_nobody_is_fitted_on_whom_a_fold_labels(case, split):
    folds = list(SPLITS[split](case))
    assert not any((fitted & test).any() for fitted, test in folds)
    labelled = np.sum([test for _, test in folds], axis=0)
    assert labelled.max() == 1
    if split != "official patients":
        assert labelled.min() == 1


def test_every_way_is_scored_for_every_patient_who_freezes(shared_data, tmp_path):
    table, choices = reproduce("patients", data=shared_data, output=tmp_path).tables
    found = {(row["split"], row["labels"]): row for row in table.records}
    assert len(found) == len(SPLITS) * len(PATIENT_WAYS)
    # Labels without a patient's own votes in the fit are worse than with them: patients differ.
    alone, own = (found["one patient left out", what] for what in ("Dugong", "Dugong by patient, own votes in the fit"))
    assert own["mean"] > alone["mean"]
    # Three points above the vote on average and nobody three below, with the patient's votes and nobody's labels.
    vote, told = (
        found["one patient left out", what] for what in ("majority vote", "the same by patient, own votes in the fit")
    )
    assert told["mean"] >= vote["mean"] + 0.03
    assert all(told[name] > vote[name] - 0.03 for name in ("S01", "S02", "S03", "S07"))
    assert {"S01", "S02", "S03", "S07"} <= set(own)
    # The graph of that way can be chosen without labels: it explains the votes best by far. Its prior matters less.
    graphs = {row["repeat themselves"]: row for row in choices.records if row["prior"] == "published"}
    first, second = sorted(graphs.values(), key=lambda row: -row["log-likelihood"])[:2]
    assert first["log-likelihood"] > second["log-likelihood"] + 50
    assert first["mean"] == pytest.approx(told["mean"] - vote["mean"])
    others = [row for row in choices.records if row["prior"] != "published"]
    assert len(graphs) == 8
    assert len(others) == len(PRIORS) + 1
    assert all(row["mean"] > 0.01 and min(row.values(), key=_number) > -0.03 for row in others)


def _number(value: object) -> float:
    return value if isinstance(value, float) else 1.0
