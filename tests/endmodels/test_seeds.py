"""Several seeds: every source of randomness differs, scores are averaged as the paper does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dugong.endmodels import EndModelError, SeedScore, predict, train_seeds
from dugong.metrics import evaluate
from endmodels.small import blobs, same_weights, soften

DATA, GOLD = blobs(60, seed=1)
TEST = blobs(50, seed=2)


def factory() -> nn.Module:
    return nn.Linear(3, 2)


def summary(**options):
    return train_seeds(
        factory, DATA, soften(GOLD), **{"test": TEST, "seeds": (0, 1, 2), "epochs": 2, "learning_rate": 0.02, **options}
    )


def test_scores_are_those_of_the_single_runs():
    found = summary()
    assert found.seeds == (0, 1, 2)
    expected = [evaluate(predict(one.model, TEST[0]), TEST[1]).f1 for one in found.trainings]
    assert found["f1"].values == pytest.approx(expected, rel=1e-12)
    assert found["f1"].mean == pytest.approx(np.mean(expected), rel=1e-12)
    assert found["f1"].sd == pytest.approx(np.std(expected, ddof=1), rel=1e-12)
    assert {"accuracy", "precision", "recall", "f1"} <= {score.name for score in found.scores}
    assert [one.seed for one in found.trainings] == [0, 1, 2]


def test_seeds_differ_and_repeat():
    before = torch.random.get_rng_state()
    first, again = summary(), summary()
    assert torch.equal(torch.random.get_rng_state(), before)
    for one, other in zip(first.trainings, again.trainings, strict=True):
        assert same_weights(one.model, other.model)
    assert not same_weights(first.trainings[0].model, first.trainings[1].model)


def test_five_seeds_by_default():
    found = train_seeds(factory, DATA, GOLD, test=TEST, epochs=1)
    assert found.seeds == (0, 1, 2, 3, 4)


def test_other_codings_reach_the_scores():
    ours = summary()
    zero_one = train_seeds(
        factory,
        DATA,
        soften(GOLD),
        test=(TEST[0], (TEST[1] > 0).astype(int)),
        classes=(0, 1),
        seeds=(0, 1, 2),
        epochs=2,
        learning_rate=0.02,
    )
    assert zero_one["f1"].values == ours["f1"].values


def test_undefined_scores_count_as_zero_and_are_counted():
    score = SeedScore(name="precision", values=(float("nan"), 0.5, 1.0))
    assert (score.mean, score.n_undefined) == (0.5, 1)
    assert score.sd == pytest.approx(0.5)
    assert "1 undefined, counted as 0" in str(score)
    assert np.isnan(SeedScore(name="f1", values=(0.5,)).sd)


def test_it_prints_and_finds():
    found = summary()
    assert str(found).startswith("3 seeds, mean ± s.d. on 50 labels")
    assert f"f1 {found['f1'].mean:.4f} ± {found['f1'].sd:.4f}" in str(found)
    with pytest.raises(KeyError, match="no score 'auc'; there are accuracy"):
        _ = found["auc"]


def test_refusals():
    with pytest.raises(EndModelError, match=r"at least one; found \(\)"):
        summary(seeds=())
    with pytest.raises(EndModelError, match=r"different numbers.*found \(1, 1\)"):
        summary(seeds=(1, 1))
    with pytest.raises(EndModelError, match=r"one label per prediction \(50,\); found \(5,\)"):
        summary(test=(TEST[0], TEST[1][:5]))
