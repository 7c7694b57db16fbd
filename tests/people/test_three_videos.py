"""Somebody with three videos: figures that he can believe, and sentences that say what to do."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg


def three_videos(seed: int, n_elements: int = 300) -> tuple[dg.Votes, np.ndarray]:
    """A perfect rule, a noisy one, a lazy one and one that never says yes."""
    rng = np.random.default_rng(seed)
    truth = [np.repeat(rng.random(n_elements // 30) < 0.3, 30) * 2 - 1 for _ in range(3)]
    noisy = [np.where(rng.random(n_elements) < 0.3, -one, one) for one in truth]
    lazy = [np.where(rng.random(n_elements) < 0.5, 0, np.where(rng.random(n_elements) < 0.2, -y, y)) for y in truth]
    never = [np.where((y < 0) & (rng.random(n_elements) < 0.6), -1, 0) for y in truth]
    stacked = [np.stack(columns, axis=1) for columns in zip(truth, noisy, lazy, never, strict=True)]
    names = ["perfect", "noisy", "lazy", "never_yes"]
    return dg.Votes.from_dense(stacked, sources=names), np.concatenate(truth)


MODELS = {
    "defaults": {},
    "given": {"prior": dg.priors.Markov(positive=0.3, stay=0.95), "dependencies": ()},
    "wrong prior": {"prior": dg.priors.Markov(positive=0.03, stay=0.5), "dependencies": ()},
    "em": {"prior": dg.priors.Markov(positive=0.3, stay=0.95), "dependencies": (), "estimator": "em"},
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_an_estimate_lies_in_its_interval_and_is_never_certain(kind: str, seed: int) -> None:
    votes, gold = three_videos(seed)
    summary = dg.LabelModel(**MODELS[kind]).fit(votes).summary(votes, gold)
    for source in summary.sources:
        for one in source.classes:
            low, high = one.interval
            assert 0 <= low <= one.right <= high <= 1, (source.name, one)
            assert high - low > 0.002, (source.name, one)  # 900 elements are not all elements
    assert "moved by" not in str(summary)


def test_what_is_known_is_certain() -> None:
    votes, _ = three_videos(0)
    table = np.array([[0.7, 0.3, 0.0], [0.3, 0.7, 0.0]])
    prior = dg.priors.Markov(positive=0.3, stay=0.95)
    summary = dg.LabelModel(prior=prior, dependencies=(), accuracies={"noisy": table}).fit(votes).summary()
    assert [one.interval for one in summary["noisy"].classes] == [(0.7, 0.7), (0.7, 0.7)]


def test_intervals_cover_what_they_are_about() -> None:
    """Known accuracies, only ten recordings of 40 elements: 91 % of the 95 % intervals hold the truth."""
    truths, covered, n_intervals = (0.9, 0.75, 0.65), 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        prior = dg.priors.Markov(positive=0.4, stay=0.8)
        world = dg.worlds.World(
            prior=prior,
            blocks=tuple(dg.worlds.Block(names=(f"s{k}",), table=dg.worlds.accurate(p)) for k, p in enumerate(truths)),
            lengths=40,
        )
        votes, _ = world.sample(10, rng=rng)
        summary = dg.LabelModel(prior=prior, dependencies=()).fit(votes).summary()
        for source, truth in zip(summary.sources, truths, strict=True):
            for one in source.classes:
                covered += one.interval[0] <= truth <= one.interval[1]
                n_intervals += 1
    assert covered / n_intervals > 0.89


def test_differences_of_shares_stay_below_one() -> None:
    """With three videos of which one is easy, recall varies so much that a plain interval leaves the possible."""
    gold = np.array([1, -1, -1, -1] * 3)
    ours, vote = gold.copy(), gold.copy()
    ours[[0]], vote[[4, 8]] = -1, -1
    compared = dg.compare({"vote": vote, "ours": ours}, gold, lengths=[4, 4, 4])
    intervals = {one.name: one.interval for one in compared.differences if one.interval is not None}
    assert intervals["recall"] == (-1.0, 1.0)
    assert all(-1 <= low <= high <= 1 for name, (low, high) in intervals.items() if name not in ("brier", "log_loss"))
