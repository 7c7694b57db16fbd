"""The seven worlds of `benchmarks.audit`, smaller: what the right options reach, and what nothing may fall below."""

from __future__ import annotations

import pytest
from benchmarks.audit import WORLDS, brier

import dugong as dg


@pytest.mark.parametrize("name", WORLDS)
def test_the_right_options_reach_what_can_be_known(name) -> None:
    """Within 1.03 at full size; a third of the votes leave a little more to chance."""
    draw = WORLDS[name](0.35, 7)
    model = dg.LabelModel(**draw.options).fit(draw.votes, groups=draw.groups)
    found = brier(model.predict_proba(draw.votes, groups=draw.groups), draw)
    assert found < 1.06 * brier(draw.best, draw)
    assert found < brier(dg.MajorityVote().fit(draw.votes).predict_proba(draw.votes), draw)


@pytest.mark.parametrize("name", ["three resolutions", "shared detector", "by position", "four patients"])
def test_the_defaults_are_near(name) -> None:
    draw = WORLDS[name](0.35, 7)
    found = brier(dg.LabelModel().fit(draw.votes).predict_proba(draw.votes), draw)
    assert found < draw.limit * brier(draw.best, draw)
    assert found < brier(dg.MajorityVote().fit(draw.votes).predict_proba(draw.votes), draw)
