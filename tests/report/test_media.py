"""The data beside the labels: what is drawn of words, pictures and signals, and what a page may hold of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dugong.exceptions import SourceError
from dugong.report import render_html, summarize
from dugong.report.html import payload
from dugong.report.media import MISSING_BIN, Frames, Signals, Words, show
from dugong.sources.loaders import Blocks, Rows
from reports import HOSTILE, binary_case

PLENTY = 1_000_000


def shown(sequence, size=PLENTY, part=slice(None)):
    return show(sequence, "one", len(sequence), part, size)


def media_of(case, make):
    names, lengths = case.votes.sequence_ids.tolist(), case.votes.lengths.tolist()
    return {name: make(length) for name, length in zip(names, lengths, strict=True)}


# --- kinds ---------------------------------------------------------------------------------------------------------
def test_words_are_those_of_the_elements():
    found = shown(["Fever", "x" * 60, "today"], part=slice(0, 2))
    assert isinstance(found, Words)
    assert found.words == ("Fever", "x" * 39 + "…")
    assert shown(["Fever"] * 100, size=100) is None


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
def test_a_picture_keeps_its_colours_and_its_sides(scale):
    red_left = np.zeros((90, 160, 3))
    red_left[:, :80] = 200, 40, 40
    red_left[:, 80:] = 30, 30, 220
    found = shown([red_left * scale] * 3)
    assert isinstance(found, Frames)
    assert (found.width, found.height, found.places.tolist()) == (64, 36, [0, 1, 2])
    light, blueness, redness = np.split(found.images[0].astype(float) * 4 + 2, [64 * 36, 64 * 36 + 32 * 18])
    red, blue = light.reshape(36, 64)[::2, ::2] + (redness.reshape(18, 32) - 128) / 0.713, blueness.reshape(18, 32)
    np.testing.assert_allclose(red[:, :16], 200, rtol=0, atol=6)
    np.testing.assert_allclose(red[:, 16:], 30, rtol=0, atol=6)
    assert (blue[:, 16:] > 128).all()
    assert (blue[:, :16] < 128).all()


def test_pictures_are_spread_over_a_video_that_is_too_long():
    grey = np.arange(100, dtype=np.uint8)[:, None, None] * np.ones((1, 16, 16), dtype=np.uint8)
    found = shown(grey, size=16 * 16 * 1.5 * 10)
    assert found.places.tolist() == list(range(0, 100, 10))
    assert (np.abs(found.images[:, 0] * 4.0 - found.places) <= 4).all()
    assert shown(grey, size=100) is None


def test_signals_keep_their_extremes_whatever_the_number_of_bins():
    values = np.sin(np.arange(5000) / 40)
    values[1234], values[4321] = 9.0, np.nan
    (channel,) = shown(values, size=400).channels
    assert (channel.name, channel.top, len(channel.low)) == ("signal", 9.0, 200)
    assert channel.high.max() == MISSING_BIN - 1
    assert channel.high.argmax() == 1234 // 25
    assert (channel.low <= channel.high).all()


def test_tables_show_their_numbers_but_neither_clocks_nor_words():
    rows = Rows({"t": np.arange(6) / 2, "force": np.array([0, 1, 0, 1, 0, 2]), "who": np.array(list("abcdef"))})
    assert [one.name for one in shown(rows).channels] == ["force"]
    blocks = Blocks(rows, np.array([0, 2, 2, 6]), (0.0, 1.0))
    (force,) = shown(blocks).channels
    assert len(force.low) == 6
    assert MISSING_BIN in force.low.tolist()  # the second block is empty
    (later,) = shown(blocks, part=slice(2, 3)).channels
    assert later.high.tolist() == [0, 31, 0, 62]


def test_data_frames_go_by_position_whatever_their_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"force": [3.0, 1.0, 4.0, 1.0, 5.0], "word": list("abcde")}, index=range(7, 12))
    found = show(frame, "a", 5, slice(1, 4), 1000)
    assert isinstance(found, Signals)
    assert [(one.name, one.bottom, one.top) for one in found.channels] == [("force", 1.0, 4.0)]


def test_arrays_of_few_numbers_are_channels_and_long_ones_samples():
    rng = np.random.default_rng(0)
    assert [one.name for one in shown(rng.normal(size=(20, 3))).channels] == ["0", "1", "2"]
    assert [one.name for one in shown([{"x": 1.0, "y": 2.0}, {"x": 0.5, "y": 4.0}]).channels] == ["x", "y"]
    (samples,) = shown(list(rng.normal(size=(20, 50)))).channels
    assert len(samples.low) == 1000
    assert shown([object(), object()]) is None


@example([0.0, np.inf, np.inf])
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=60))
def test_any_numbers_can_be_drawn(values):
    found = shown(values)
    if isinstance(found, Signals):
        codes = np.concatenate([found.channels[0].low, found.channels[0].high])
        assert ((codes >= 0) & (codes <= MISSING_BIN)).all()


# --- pages ---------------------------------------------------------------------------------------------------------
def test_a_report_holds_the_words_of_its_tracks_and_cannot_be_left_by_them():
    case = binary_case()
    media = media_of(case, lambda n: [HOSTILE[place % len(HOSTILE)] for place in range(n)])
    page = render_html(summarize(case.model, case.votes, media=media))
    assert "<script>window.broken" not in page
    assert "</script></style>" not in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["tracks"][0]["media"]["words"][0] == HOSTILE[0]


def test_media_stay_within_their_bytes_and_the_first_sequences_are_shown_best():
    case = binary_case()
    frames = np.random.default_rng(0).integers(0, 255, (40, 32, 32, 3), dtype=np.uint8)
    plain = summarize(case.model, case.votes)
    found = summarize(case.model, case.votes, media=media_of(case, lambda n: frames[:n]), media_bytes=100_000)
    assert len(found.sequences.tracks) == len(plain.sequences.tracks)
    counts = [0 if one.media is None else len(one.media.places) for one in found.sequences.tracks]
    assert counts[0] >= counts[5] > 0
    n_shown = sum(count > 0 for count in counts)
    assert f"Data are drawn beside {n_shown} of them" in found.sequences.how
    extra = len(payload(found.sequences)) - len(payload(plain.sequences))
    assert 70_000 < extra < 130_000


def test_a_timeline_shows_its_media():
    case = binary_case()
    name = case.votes.sequence_ids.tolist()[3]
    timeline = case.model.timeline(case.votes, name, media=media_of(case, lambda n: ["fever"] * n))
    assert timeline.sequences.tracks[0].media.words[0] == "fever"
    assert "fever" in timeline.to_html()


def test_other_sequences_than_those_of_the_votes_are_refused():
    case = binary_case()
    with pytest.raises(SourceError, match="by id; there is none of"):
        summarize(case.model, case.votes, media={"nobody": [1, 2]})
    with pytest.raises(SourceError, match=r"has 5 elements, and .* in the votes"):
        summarize(case.model, case.votes, media=media_of(case, lambda _: ["a"] * 5))


def test_a_sequence_without_media_has_none():
    case = binary_case()
    media = media_of(case, lambda n: ["a"] * n)
    missing = str(next(iter(media)))
    tracks = summarize(case.model, case.votes, media={k: v for k, v in media.items() if str(k) != missing}).sequences
    assert {one.name for one in tracks.tracks if one.media is None} == {missing}
    assert replace(tracks.tracks[0], media=None).media is None
