"""Fitted models in files: save then load is the same model, and nothing else is ever read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import FileError
from dugong.worlds import STANDARD, World, multiresolution, self_dependent


def fitted(world: World, n_sequences: int = 2000, **settings: Any) -> tuple[dg.LabelModel, dg.Votes]:
    votes, _ = world.sample(n_sequences, rng=2)
    return dg.LabelModel(prior=world.prior, dependencies=world.dependencies, **settings).fit(votes), votes


@pytest.mark.parametrize("name", STANDARD)
def test_save_then_load_is_the_same_model(name: str, tmp_path: Path) -> None:
    model, votes = fitted(STANDARD[name](), 4000)
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    assert again.sources_ == model.sources_
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.class_names_ == model.class_names_
    assert again.prior_.to_dict() == model.prior_.to_dict()
    assert again.parameters_.to_dict() == model.parameters_.to_dict()
    for source, table in model.accuracies_.items():
        np.testing.assert_array_equal(again.accuracies_[source], table)
        np.testing.assert_array_equal(
            again.standard_errors_.accuracies[source], model.standard_errors_.accuracies[source]
        )
    assert list(again.correlations_) == list(model.correlations_)
    for edge, table in model.correlations_.items():
        np.testing.assert_array_equal(again.correlations_[edge], table)
    np.testing.assert_array_equal(again.predict_proba(votes), model.predict_proba(votes))
    assert str(again.summary()) == str(model.summary())
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


def test_diagnostics_and_settings_come_back(tmp_path: Path) -> None:
    model, _ = fitted(self_dependent(), signs="positive", sharing={"s7": "task"}, seed=5)
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    assert again.diagnostics_.notes == model.diagnostics_.notes
    assert dict(again.diagnostics_.residuals) == dict(model.diagnostics_.residuals)
    assert dict(again.diagnostics_.support) == dict(model.diagnostics_.support)
    assert dict(again.diagnostics_.projections) == dict(model.diagnostics_.projections)
    assert (again.signs, again.sharing, again.seed) == ("positive", {"s7": "task"}, 5)
    assert list(again.dependencies) == list(model.dependencies)
    assert again.prior.to_dict() == model.prior.to_dict()


def test_known_accuracies_and_an_estimator_with_options_come_back(tmp_path: Path) -> None:
    world = multiresolution()
    table = world.accuracies()["frame0"]
    model, _ = fitted(world, accuracies={"frame0": table}, estimator=dg.estimators.EM(max_iter=3))
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.accuracies["frame0"], table)
    assert repr(again.estimator) == repr(model.estimator)


def test_a_learned_model_of_several_classes_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    gold = np.repeat(rng.integers(0, 3, size=400), 5)
    flat = np.stack([np.where(rng.random(2000) < 0.8, gold, rng.integers(0, 3, size=2000)) for _ in range(4)], axis=1)
    votes = dg.Votes.from_classes(flat, n_classes=3, lengths=[50] * 40, classes=["wake", "light", "deep"])
    model = dg.LabelModel().fit(votes)
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(votes), model.predict_proba(votes))
    assert again.class_names_ == ("wake", "light", "deep")
    assert str(again.summary()) == str(model.summary())
    assert "P(deep | deep)" in str(again.summary())


def test_a_setting_that_is_code_cannot_be_saved(tmp_path: Path) -> None:
    model, _ = fitted(STANDARD["lopsided"]())
    model.set_params(seed=object())
    with pytest.raises(FileError, match="files hold plain data only"):
        model.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_an_unfitted_model_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(dg.NotFittedError):
        dg.LabelModel().save(tmp_path / "model.json")


def test_files_that_hold_no_model(tmp_path: Path) -> None:
    model, _ = fitted(STANDARD["lopsided"]())
    file = tmp_path / "model.json"
    model.save(file)
    whole = file.read_text()
    lacking = json.dumps({key: value for key, value in json.loads(whole).items() if key != "law"})
    foreign = '"estimator": {"estimator": "os.system", "settings": {"mapping": {}}}'
    broken = {
        "": "truncated, damaged, or no model",
        whole[: len(whole) // 2]: "truncated, damaged, or no model",
        "[]": "something else than a model of Dugong",
        '{"format": "dugong-votes"}': "something else than a model of Dugong",
        whole.replace('"version": 2', '"version": 99'): "newer version of Dugong (file version 99",
        lacking: "lacks 'law'",
        whole.replace('"estimator": "centred"', foreign): "'os.system', which this version of Dugong does not have",
    }
    for text, message in broken.items():
        file.write_text(text)
        with pytest.raises(FileError) as caught:
            dg.LabelModel.load(file)
        assert message in str(caught.value)
    with pytest.raises(FileError, match="there is no file"):
        dg.LabelModel.load(tmp_path / "absent.json")
