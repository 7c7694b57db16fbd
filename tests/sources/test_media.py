"""Video and audio files as sequences: the frames that were written come back, in any order of asking."""

import pickle
import wave

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError
from dugong.experiments.tasks.drawing import write_video
from dugong.sources.loaders import audio_folder, folder, video_folder


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Two videos whose brightness says which frame it is."""
    place = tmp_path_factory.mktemp("videos")
    for name, n_frames in (("a", 100), ("b", 60)):
        frames = np.repeat(np.arange(n_frames, dtype=np.uint8) * 2, 32 * 32 * 3).reshape(n_frames, 32, 32, 3)
        write_video(place / f"{name}.mp4", frames, rate=25, key_every=20)
    return place


def number(frame):
    return round(float(frame.mean()) / 2)


def travelled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 (our own bytes)


def test_frames_come_back_in_any_order(videos):
    video = video_folder(videos)["a"]
    assert len(video) == 100
    assert video.clock == (0.0, 25.0)
    for place in (0, 1, 2, 50, 51, 3, 99, 98, 0):
        assert abs(number(video[place]) - place) <= 2
    assert abs(number(video[-1]) - 99) <= 2


def test_elements_by_time_and_windows_are_lazy_pieces(videos):
    found = video_folder(videos, every="0.2s", size=16)
    video = found["a"]
    assert found.rate == 5.0
    assert (len(video), video[3].shape) == (20, (16, 16, 3))
    part = video[4:8]
    assert part.clock == (0.8, 5.0)
    assert [abs(number(frame) - 5 * place) <= 2 for place, frame in zip(range(4, 8), part, strict=True)] == [True] * 4


def test_a_video_travels_to_another_process_by_its_path(videos):
    video = video_folder(videos)["b"]
    number(video[5])
    again = travelled(video[10:20])
    assert abs(number(again[0]) - 10) <= 2


def test_elements_are_kept_when_asked_for_up_to_a_bound(videos, monkeypatch):
    video, decoded = video_folder(videos)["a"], []
    expected = [video[place] for place in range(4)]
    video.keep(3 * expected[0].nbytes)
    for frame in video[1:4]:
        frame[:] = 0  # a rule may write into what it is given
    monkeypatch.setattr(type(video), "_element", lambda _, place: decoded.append(place) or expected[place])
    for place in (1, 2, 3, 0, 0):
        np.testing.assert_array_equal(video[place], expected[place])
    assert decoded == [0, 0]  # there was no room for it


def test_sources_vote_on_windows_of_seconds_of_video(videos):
    @dg.source(resolution=dg.Window(seconds=1, link="majority"))
    def bright(window):
        return 1 if np.mean([frame.mean() for frame in window]) > 100 else -1

    votes = dg.apply([bright], folder(videos, every="0.2s"), progress=False)
    assert votes.column("bright").tolist() == [-1, -1, 1, 1, -1, -1, 1]


def test_sound_is_cut_into_pieces(tmp_path):
    tone = (np.sin(np.arange(8000 * 2 + 4000) / 5) * 20000).astype(np.int16)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(tone.tobytes())
    found = audio_folder(tmp_path, every="500ms")
    sound = found["a"]
    assert (len(sound), found.rate, sound.sample_rate) == (5, 2.0, 8000)
    np.testing.assert_allclose(sound[1], tone[4000:8000] / 32768, rtol=0, atol=1e-6)
    np.testing.assert_allclose(sound[1:3].samples, tone[4000:12000] / 32768, rtol=0, atol=1e-6)
    peaks = sound.peaks(10)
    assert peaks.shape == (10, 2)
    np.testing.assert_allclose(peaks, np.tile([-0.61, 0.61], (10, 1)), rtol=0, atol=0.01)
    assert len(travelled(sound)) == 5


def test_files_that_are_none_are_named(tmp_path):
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(LoaderError, match=r"a\.mp4: cannot be read as a video"):
        video_folder(tmp_path)
    (tmp_path / "a.wav").write_text("no sound")
    with pytest.raises(LoaderError, match=r"a\.wav: cannot be read as sound"):
        audio_folder(tmp_path)["a"]
    with pytest.raises(LoaderError, match=r"one kind.*found 1 \.mp4, 1 \.wav"):
        folder(tmp_path)
