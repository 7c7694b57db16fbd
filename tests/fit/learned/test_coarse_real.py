"""Coarse votes on real sets: they never cost much, shuffled ones change nothing, a harmful one is named."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.fit.learned.coarse import learn_coarse
from dugong.metrics import evaluate
from dugong.model import LabelModel
from dugong.tasks import Element
from dugong.votes import Votes
from learned_cases import RealVotes, real_votes

pytestmark = pytest.mark.data

SETS = ("sed-speech", "occupancy", "sentiment")
LOWER_IS_BETTER = ("brier", "log_loss")


def scores(case: RealVotes, labels: np.ndarray) -> dict[str, float]:
    found = evaluate(labels, case.gold, lengths=case.votes.lengths, classes=case.votes.class_names)
    names = ("accuracy", "brier", "log_loss") + (("f1",) if case.votes.n_classes == 2 else ())
    return {name: found.value(name) for name in names}


def gains(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: (before[name] - after[name]) * (1 if name in LOWER_IS_BETTER else -1) for name in before}


@pytest.mark.parametrize("name", SETS)
def test_coarse_votes_on_real_sets(shared_data, name):
    case = real_votes(shared_data, name, coarse=True)
    votes = case.votes
    model = LabelModel(n_threads=1).fit(votes)
    tempering = model.law_.tempering
    labels = tempering.without_coarse(votes)
    before, after = scores(case, labels), scores(case, model.predict_proba(votes))
    found = gains(before, after)
    assert min(found.values()) > -0.003
    if name == "sentiment":
        assert found["accuracy"] > 0.02
        assert found["brier"] > 0.05
    if name == "sed-speech":
        assert found["f1"] > 0
        assert found["log_loss"] > 0.005
    if name == "occupancy":
        note = next(note for note in model.diagnostics_.notes if note.where == "hour_light_moves")
        assert "is not used" in note.text
    for seed in range(3):
        shuffled = shuffle(votes, np.random.default_rng(seed))
        moved = learn_coarse(labels, shuffled, shuffled.sources).move(labels, shuffled)
        assert max(map(abs, gains(before, scores(case, moved)).values())) < 0.001


def shuffle(votes: Votes, rng: np.random.Generator) -> Votes:
    """The same votes, those on windows and sequences in random order."""
    columns = {
        info.name: votes.column(info.name)
        if isinstance(info.resolution, Element)
        else rng.permutation(votes.column(info.name))
        for info in votes.sources
    }
    resolutions = {info.name: info.resolution for info in votes.sources if not isinstance(info.resolution, Element)}
    return Votes.from_tasks(columns, votes.lengths, resolutions=resolutions, classes=votes.class_names)
