"""Bicuspid aortic valves: drawn MRI series, sources on the segmented valve, real series from a folder."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError
from dugong.experiments import Size, find_recipe
from dugong.experiments.tasks.bav import segment
from experiments.task_checks import (
    check_end_model,
    check_seeds,
    check_shape,
    check_sources,
    gold_of,
    label_scores,
    votes_of,
)

RECIPE = find_recipe("bav")
SIZE = Size(train=300, dev=30, test=10, small=True)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return RECIPE.generate(SIZE, 0, tmp_path_factory.mktemp("bav"))


def test_shape_and_balance(material):
    check_shape(RECIPE, material, SIZE)
    assert all(len(set(labels.tolist())) == 1 for labels in material.gold.values())


def test_sources_and_labels(material):
    votes = votes_of(RECIPE, material)
    check_sources(votes, gold_of(material))
    scores = label_scores(RECIPE, material, votes, dg.Sequence(link="any"))
    assert scores["dugong"] > scores["majority"] + 0.1


def test_end_model(material):
    check_end_model(RECIPE, material)


def test_seeds(tmp_path):
    check_seeds(RECIPE, tmp_path)


def test_a_segment_is_measured():
    picture = np.full((40, 40), 60, dtype=np.uint8)
    picture[15:25, 10:30] = 220
    valve = segment(picture[np.newaxis])[0]
    assert valve.area == pytest.approx(200 / 1600, abs=0.01)
    assert valve.eccentricity == pytest.approx(np.sqrt(1 - 0.25), abs=0.03)
    assert valve.perimeter == pytest.approx(56 / 40, abs=0.1)
    assert valve.intensity == pytest.approx(220 / 255, abs=0.05)


def test_real_series(tmp_path):
    (tmp_path / "series").mkdir()
    series = np.random.default_rng(0).integers(0, 4000, size=(5, 16, 16)).astype(np.int16)
    np.save(tmp_path / "series" / "p1.npy", series)
    (tmp_path / "labels.csv").write_text("series,part,label\np1,dev,1\n")
    found = RECIPE.load(tmp_path)
    assert found.parts == {"p1": "dev"}
    assert found.gold["p1"].tolist() == [1] * 5
    assert found.sequences["p1"].dtype == np.uint8
    assert len(votes_of(RECIPE, found, "dev").column("area")) == 5
    np.save(tmp_path / "series" / "p1.npy", series[:3])
    with pytest.raises(LoaderError, match=r"p1\.npy: must have the shape \(5, side, side\); found \(3, 16, 16\)"):
        RECIPE.load(tmp_path)


def test_absent_files_are_named(tmp_path):
    with pytest.raises(LoaderError, match=r"labels\.csv: there must be a table"):
        RECIPE.load(tmp_path)
    (tmp_path / "labels.csv").write_text("series,part,label\np1,dev,1\n")
    with pytest.raises(LoaderError, match=r"p1\.npy: must hold an array of 5 frames"):
        RECIPE.load(tmp_path)
