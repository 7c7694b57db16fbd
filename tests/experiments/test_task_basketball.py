"""Basketball: drawn videos, sources on detections, and real frames from a folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dugong as dg
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

RECIPE = find_recipe("basketball")
SIZE = Size(train=300, dev=48, test=10, small=True)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return RECIPE.generate(SIZE, 0, tmp_path_factory.mktemp("basketball"))


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


def test_the_colour_of_the_ball_is_read_from_pixels():
    ball = Box("ball", 0.9, 0.25, 0.25, 0.75, 0.75)
    source = next(one for one in RECIPE.sources if one.name == "orange_ball")
    for colour, vote in (((216, 115, 38), 1), ((230, 230, 230), -1)):
        picture = np.zeros((16, 16, 3), dtype=np.uint8)
        picture[4:12, 4:12] = colour
        assert source(DrawnFrame(picture=picture, boxes=(ball,))) == vote
    assert source(DrawnFrame(picture=picture, boxes=())) == dg.ABSTAIN


def write_frames(folder, label="1"):
    av = pytest.importorskip("av")
    (folder / "frames" / "v1").mkdir(parents=True)
    (folder / "detections").mkdir()
    names = [f"{number:04d}.png" for number in range(11)]
    for number, name in enumerate(names):
        picture = np.full((20, 30, 3), 20 * number, dtype=np.uint8)
        with av.open(str(folder / "frames" / "v1" / name), "w") as file:
            stream = file.add_stream("png", rate=1)
            stream.width, stream.height, stream.pix_fmt = 30, 20, "rgb24"
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            file.mux(stream.encode())
    rows = "".join(f"v1,{name},train,{label}\n" for name in names)
    (folder / "frames.csv").write_text("video,frame,part,label\n" + rows)
    seen = {names[0]: {"boxes": [["ball", 0.9, 0.4, 0.4, 0.6, 0.6], ["person", 0.8, 0.3, 0.3, 0.7, 0.9]]}}
    (folder / "detections" / "v1.json").write_text(json.dumps(seen))


def test_real_frames(tmp_path):
    write_frames(tmp_path)
    found = RECIPE.load(tmp_path)
    assert list(found.sequences) == ["v1-0000.png", "v1-0005.png"]
    assert found.gold["v1-0000.png"].tolist() == [1] * 5
    first = found.sequences["v1-0000.png"]
    assert first[2].pixels()[0, 0].tolist() == [40, 40, 40]
    assert RECIPE.end_model.inputs(first, True).shape == (5, 3, 32, 32)
    assert votes_of(RECIPE, found).column("person_and_ball").tolist() == [1] + [-1] * 9


def test_absent_and_wrong_files_are_named(tmp_path):
    with pytest.raises(LoaderError, match=r"frames\.csv: there must be a table with the columns video, frame"):
        RECIPE.load(tmp_path)
    write_frames(tmp_path, label="yes")
    with pytest.raises(LoaderError, match="label must be -1, 1, or 0 for unknown; found 'yes'"):
        RECIPE.load(tmp_path)
