"""Explanations add up, and their parts are what they say they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.exceptions import TaskError
from dugong.infer import engine
from dugong.infer.explain import explain
from dugong.law import Law
from dugong.law.parameters import Conditional, Parameters
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Window
from dugong.types import MISSING
from dugong.votes import SourceInfo, Votes

from . import oracle
from .cases import DEPENDENCIES, random_case


@given(
    seed=st.integers(0, 10**6),
    dependency=st.sampled_from(DEPENDENCIES),
    n_classes=st.sampled_from([2, 3]),
)
def test_parts_add_up(seed, dependency, n_classes) -> None:
    case = random_case(seed, n_classes, "markov", dependency, longest=5)
    rng = np.random.default_rng(seed)
    resolution = case.votes.resolutions[int(rng.integers(len(case.votes.resolutions)))]
    layout = case.votes.layout(resolution)
    sequences = np.flatnonzero(np.diff(layout.offsets))
    if not len(sequences):
        return
    sequence = int(sequences[0])
    task = int(rng.integers(np.diff(layout.offsets)[sequence]))
    found = explain(Law(parameters=case.parameters, prior=case.prior), case.votes, sequence, task, resolution)
    total = found.prior + sum(own.log_odds for own in found.own_votes) + found.neighbours
    place = (case.votes.classes if resolution == Element() else (-1, 1)).index(found.target)
    laws, _ = oracle.marginals(case.votes, case.parameters, case.prior, [resolution])
    law = laws[resolution][layout.offsets[sequence] + task]
    expected = np.log(law[place]) - np.log(law.sum() - law[place])
    assert total == pytest.approx(expected, abs=1e-9)
    assert found.log_odds == pytest.approx(expected, abs=1e-9)


def small() -> tuple[Votes, Law]:
    window = Window(size=2, link="any")
    votes = Votes(
        sources=(SourceInfo(name="a"), SourceInfo(name="b"), SourceInfo(name="w", resolution=window)),
        columns=(
            np.array([1, -1, 0, 1], dtype=np.int8),
            np.array([1, MISSING, -1, -1], dtype=np.int8),
            np.array([1, -1], dtype=np.int8),
        ),
        lengths=np.array([4]),
    )
    tables = {
        "a": [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]],
        "b": [[0.5, 0.2, 0.3], [0.2, 0.6, 0.2]],
        "w": [[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]],
    }
    parameters = Parameters(
        n_classes=2,
        factors=tuple(
            Conditional(source=info.name, resolution=info.resolution, table=np.array(tables[info.name]))
            for info in votes.sources
        ),
    )
    transition = np.array([[0.9, 0.1], [0.3, 0.7]])
    chain = LabelChain(initial=np.array([0.75, 0.25]), transition=transition, labels=np.array([0, 1]), n_classes=2)
    return votes, Law(parameters=parameters, prior=chain)


def test_own_votes_are_log_likelihood_ratios() -> None:
    votes, law = small()
    found = explain(law, votes, 0, 0)
    assert found.prior == pytest.approx(np.log(0.25 / 0.75), abs=1e-12)
    gained = {own.source: own.log_odds for own in found.own_votes}
    assert gained == pytest.approx({"a": np.log(0.8 / 0.2), "b": np.log(0.6 / 0.2)}, abs=1e-12)
    assert found.target == 1
    assert found.resolution == Element()


def test_influence_is_the_fall_without_the_vote() -> None:
    votes, law = small()
    found = explain(law, votes, 0, 1)
    window = next(one for one in found.influences if one.source == "w" and one.task == 0)
    silent = votes.select(sources=["a", "b", "w"])
    column = votes.column("w").copy()
    column[0] = MISSING
    silent = Votes(sources=silent.sources, columns=(*silent.columns[:2], column), lengths=silent.lengths)
    without = engine.posterior(silent, law.parameters, law.prior)["element"][1]
    assert window.log_odds == pytest.approx(found.log_odds - np.log(without[1] / without[0]), abs=1e-9)
    assert window.log_odds > 0
    sizes = [abs(one.log_odds) for one in found.influences]
    assert sizes == sorted(sizes, reverse=True)
    assert found.n_candidates == 8


def test_certain_labels_stay_finite_where_they_can() -> None:
    votes, law = small()
    chain = LabelChain(initial=np.array([1.0, 0.0]), transition=np.eye(2), labels=np.array([0, 1]), n_classes=2)
    found = explain(Law(parameters=law.parameters, prior=chain), votes, 0, 0)
    assert found.prior == -np.inf
    assert found.neighbours == 0.0
    assert all(own.log_odds == 0.0 for own in found.own_votes)


def test_errors_name_the_place() -> None:
    votes, law = small()
    with pytest.raises(TaskError, match="from 0 to 0; found 3"):
        explain(law, votes, 3, 0)
    with pytest.raises(TaskError, match="from 0 to 3; found 9"):
        explain(law, votes, 0, 9)
    with pytest.raises(TaskError, match="one of the classes"):
        explain(law, votes, 0, 0, target=7)
