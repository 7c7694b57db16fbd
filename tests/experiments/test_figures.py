"""Simulations, scaling and the classifier of tokens: what they measure is what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny_task as tiny
from dugong.experiments import TaskMaterial, reproduce, simulations
from dugong.experiments.recipe import prepare
from dugong.experiments.training import classify_tokens, has_end_model, token_features
from dugong.worlds import lopsided


def test_error_of_tables_is_a_sum_of_squares_averaged_over_positions() -> None:
    world = lopsided(2)
    truth = world.accuracies(5)
    off = {name: table + np.array([[0.1, -0.1, 0], [0, 0, 0]]) for name, table in truth.items()}
    assert simulations.squared_error(truth, world) == 0
    assert np.isclose(simulations.squared_error(off, world), 2 * 0.02, rtol=1e-12, atol=0)
    by_position = {name: np.stack([truth[name], off[name]]) for name in truth}
    assert np.isclose(simulations.squared_error(by_position, world), 0.02, rtol=1e-12, atol=0)


def test_the_simulations_have_three_tables_and_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "QUICK_SIZES", (100, 1000))
    monkeypatch.setattr(simulations, "REPEATS", (0.9,))
    made = reproduce("simulations", quick=True, seeds=1, output=tmp_path)
    errors, gains, times = made.tables
    assert [r["tied"] < r["by position"] for r in errors.records] == [True, True]
    assert errors.records[1]["tied"] < errors.records[0]["tied"]
    assert gains.records[0]["modelled"] > gains.records[0]["ignored"]
    assert times.records[1]["ours"] < times.records[1]["Gibbs sampling"]
    assert (tmp_path / "simulations.png").stat().st_size > 5000
    monkeypatch.setattr(simulations, "estimation_errors", None)  # everything is in the store now
    assert str(reproduce("simulations", quick=True, seeds=1, output=tmp_path)) == str(made)


def test_the_exact_error_of_a_linear_classifier(rng: np.random.Generator) -> None:
    gold = np.where(rng.random(200_000) < simulations.POSITIVE, 1, -1)
    features = simulations.DISTANCE / 2 * gold[:, None] + rng.normal(size=(len(gold), simulations.N_FEATURES))
    weights = rng.normal(1, 0.5, simulations.N_FEATURES)
    said = np.where(features @ weights - 0.7 > 0, 1, -1)
    assert np.isclose((said != gold).mean(), simulations.error_rate(weights, -0.7), rtol=0, atol=0.004)


def test_errors_lie_below_their_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "GROWTH", (100, 3000))
    monkeypatch.setattr(simulations, "SHARES", (0.25, 1.0))
    made = reproduce("scaling", tasks=[tiny.LABELS_ONLY], quick=True, seeds=1, jobs=1, output=tmp_path)
    by_share, by_n = made.tables
    assert [record["train"] for record in by_share.records] == [30, 120]
    few, many = by_n.records
    assert many["tables: norm of the error"] < few["tables: norm of the error"]
    for record in by_n.records:
        assert 0 <= record["end model: excess error"] < record["8 x that norm"] < record["8 x Theorem 1 (tied)"]
        assert record["8 x Theorem 1 (tied)"] < record["8 x Theorem 2 (untied)"]
    assert (tmp_path / "scaling.svg").is_file()


def test_tokens_are_classified_by_word_and_context(tmp_path: Path) -> None:
    words = {f"d{i}": ["the", "Fever" if i % 2 else "chair", "of", "Smith"] for i in range(40)}
    gold = {
        name: np.array([-1, 1 if text[1] == "Fever" else -1, -1, -1], dtype=np.int8) for name, text in words.items()
    }
    parts = {name: ("train", "dev", "test")[i % 3] for i, name in enumerate(words)}
    material = TaskMaterial(sequences=words, gold=gold, parts=parts, groups=dict.fromkeys(words, "d"), origin="notes")
    recipe = replace(tiny.LABELS_ONLY, sources=())
    case = replace(prepare(tiny.RECIPE, tiny.generate(tiny.SIZE, 0, tmp_path), small=True), recipe=recipe)
    case = replace(case, material=material, all_votes=_silent(words))
    assert has_end_model(case)
    assert not has_end_model(replace(case, material=replace(material, origin="simulated")))
    soft = np.where(case.gold("train")[:, None] == [-1, 1], 0.9, 0.1)
    for labels in (None, soft):
        said = classify_tokens(case, labels, 0)
        assert ((said[:, 1] > 0.5) == (case.gold("test") == 1)).all()
    assert token_features([["a"], ["a"]]).shape[0] == 2


def _silent(words):
    import dugong as dg

    return dg.Votes.from_dense([np.zeros((len(text), 1), dtype=np.int8) for text in words.values()])
