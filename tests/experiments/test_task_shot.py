"""Shot boundaries: encoded movies, sources on decoded frames, optical flow, real movies from a folder."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from dugong.exceptions import LoaderError, MissingExtraError
from dugong.experiments import Size, find_recipe
from dugong.experiments.tasks.drawing import read_frames, read_picture, write_video
from dugong.experiments.tasks.shot import block_flow, decode, find_faces
from experiments.task_checks import (
    check_end_model,
    check_seeds,
    check_shape,
    check_sources,
    gold_of,
    label_scores,
    votes_of,
)

RECIPE = find_recipe("shot")
SIZE = Size(train=100, dev=40, test=5, small=True)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return RECIPE.generate(SIZE, 0, tmp_path_factory.mktemp("shot"))


def test_shape_and_balance(material):
    check_shape(RECIPE, material, SIZE)


def test_sources_and_labels(material):
    votes = votes_of(RECIPE, material)
    check_sources(votes, gold_of(material))
    scores = label_scores(RECIPE, material, votes)
    assert scores["dugong"] > scores["majority"] > 0.5


def test_end_model(material):
    check_end_model(RECIPE, material)


def test_seeds(tmp_path):
    check_seeds(RECIPE, tmp_path)


def test_flow_of_a_moving_texture():
    scene = np.sin(np.arange(64) / 4)[:, None] * np.cos(np.arange(64) / 5)[None, :] / 2 + 0.6
    frames = np.stack([scene[10:42, 10 - step : 42 - step] for step in range(4)])  # to the right, one pixel per frame
    flow = block_flow(frames)
    assert flow.shape == (3, 4, 4, 2)
    assert np.median(flow[..., 1]) == pytest.approx(1.0, abs=0.2)
    assert np.median(np.abs(flow[..., 0])) < 0.2


def test_a_face_is_found_where_it_is():
    frames = np.full((5, 16, 40, 40, 3), (60, 90, 120), dtype=np.uint8)
    frames[:, :, 8:16, 24:31] = (217, 153, 122)
    faces = find_faces(frames)
    assert [len(element) for element in faces] == [2, 1, 1, 2, 1]
    np.testing.assert_allclose(faces[0][0], [[12 / 40, 27.5 / 40]], rtol=0, atol=0.02)


def test_frames_from_the_middle_of_a_file_are_the_right_ones(tmp_path):
    levels = np.arange(200, dtype=np.uint8)
    path = tmp_path / "ramp.mp4"
    write_video(path, np.broadcast_to(levels[:, None, None, None], (200, 16, 16, 3)), key_every=30)
    found = read_frames(path, 95, 10)[:, 8, 8, 1].astype(int)
    np.testing.assert_allclose(found, np.arange(95, 105), rtol=0, atol=3)
    with pytest.raises(LoaderError, match="must hold 205 frames or more; found 200"):
        read_frames(path, 195, 10)
    path.write_text("no video")
    with pytest.raises(LoaderError, match="cannot be read as a video"):
        read_frames(path, 0, 1)


def test_a_picture_is_read_from_a_jpeg_and_a_damaged_one_is_named(tmp_path):
    av = pytest.importorskip("av")
    path = tmp_path / "face.jpg"
    with av.open(str(path), "w", format="image2") as file:
        stream = file.add_stream("mjpeg", rate=1)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuvj420p"
        frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 200, dtype=np.uint8), format="rgb24")
        for packet in (*stream.encode(frame), *stream.encode()):
            file.mux(packet)
    found = read_picture(path, 16)
    assert found.shape == (16, 16, 3)
    assert abs(int(found[8, 8, 1]) - 200) < 6
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LoaderError, match=r"face\.jpg"):
        read_picture(path)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores can only be chosen on Linux")
def test_movies_do_not_depend_on_the_number_of_cores(tmp_path):
    frames = np.random.default_rng(0).integers(0, 255, (40, 96, 96, 3), dtype=np.uint8)
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        write_video(tmp_path / "one.mp4", frames)
    finally:
        os.sched_setaffinity(0, cores)
    write_video(tmp_path / "all.mp4", frames)
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "all.mp4").read_bytes()


def test_real_movies(material, tmp_path):
    name = material.ids("dev")[0]
    (tmp_path / "movies").mkdir()
    (tmp_path / "movies" / "one.mp4").write_bytes(material.sequences[name].path.read_bytes())
    (tmp_path / "clips.csv").write_text("movie,start,stop,part\none.mp4,80,250,dev\none.mp4,240,320,train\n")
    (tmp_path / "boundaries.csv").write_text("movie,frame\none.mp4,100\none.mp4,250\n")
    found = RECIPE.load(tmp_path)
    assert {name: labels.tolist() for name, labels in found.gold.items()} == {
        "one-0000080": [-1, 1, -1, -1, -1],
        "one-0000160": [-1, -1, -1, -1, -1],
        "one-0000240": [0, 0, 0, 0, 0],
    }
    np.testing.assert_array_equal(
        decode(found.sequences["one-0000080"])[0], read_frames(material.sequences[name].path, 80, 16)
    )
    (tmp_path / "movies" / "one.mp4").unlink()
    with pytest.raises(LoaderError, match=r"one\.mp4: there must be a video"):
        RECIPE.load(tmp_path)


def test_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dugong-ws\[video\]'"):
        read_frames(tmp_path / "movie.mp4", 0, 1)
