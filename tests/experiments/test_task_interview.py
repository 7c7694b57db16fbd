"""Interviews: drawn broadcasts, sources on faces and captions, real frames from a folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dugong.exceptions import LoaderError
from dugong.experiments import Size, find_recipe
from dugong.experiments.tasks.examples import Box, DrawnFrame
from experiments.task_checks import (
    check_end_model,
    check_seeds,
    check_shape,
    check_sources,
    gold_of,
    label_scores,
    votes_of,
)

RECIPE = find_recipe("interview")
SIZE = Size(train=500, dev=80, test=8, small=True)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return RECIPE.generate(SIZE, 0, tmp_path_factory.mktemp("interview"))


def test_shape_and_balance(material):
    check_shape(RECIPE, material, SIZE)


def test_sources_and_labels(material):
    votes = votes_of(RECIPE, material)
    check_sources(votes, gold_of(material))
    scores = label_scores(RECIPE, material, votes)
    assert scores["dugong"] > scores["majority"] > 0.4


def test_end_model(material):
    check_end_model(RECIPE, material)


def test_seeds(tmp_path):
    check_seeds(RECIPE, tmp_path)


def test_sources_read_names_counts_and_captions():
    sources = {one.name: one for one in RECIPE.sources}
    picture = np.zeros((8, 8, 3), dtype=np.uint8)
    host, guest = Box("host", 0.9, 0.1, 0.1, 0.3, 0.3), Box("guest", 0.9, 0.6, 0.1, 0.8, 0.3)
    both = DrawnFrame(picture=picture, boxes=(host, guest), caption="well thank you")
    alone = DrawnFrame(picture=picture, boxes=(host,), caption="good evening")
    doubtful = DrawnFrame(picture=picture, boxes=(guest._replace(score=0.2),), caption="")
    assert [sources["guest_seen"](frame) for frame in (both, alone, doubtful)] == [1, -1, -1]
    assert [sources["host_seen"](frame) for frame in (both, alone, doubtful)] == [1, 1, -1]
    assert sources["says_thank_you"]([alone, both, alone]) == 1
    assert sources["says_thank_you"]([alone, alone]) == -1
    assert sources["same_number_of_faces"]([both, both]) == 1
    assert sources["same_number_of_faces"]([both, alone]) == -1


def test_absent_pictures_and_wrong_detections_are_named(tmp_path):
    (tmp_path / "detections").mkdir()
    (tmp_path / "frames.csv").write_text("video,frame,part,label\n" + "news,1.jpg,test,-1\n" * 5)
    with pytest.raises(LoaderError, match=r"news\.json: must hold detections by frame"):
        RECIPE.load(tmp_path)
    (tmp_path / "detections" / "news.json").write_text(json.dumps([1]))
    with pytest.raises(LoaderError, match="must hold a mapping of frame to detections; found list"):
        RECIPE.load(tmp_path)
    (tmp_path / "detections" / "news.json").write_text(json.dumps({"1.jpg": {"boxes": [], "caption": "thank you"}}))
    with pytest.raises(LoaderError, match=r"1\.jpg: there must be a picture"):
        RECIPE.load(tmp_path)
    (tmp_path / "frames" / "news").mkdir(parents=True)
    (tmp_path / "frames" / "news" / "1.jpg").touch()
    found = RECIPE.load(tmp_path)
    assert votes_of(RECIPE, found, "test").column("says_thank_you").tolist() == [1, 1]
