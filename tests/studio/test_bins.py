"""Bins against plain loops: nothing that a screen could show is lost, however long the array is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.report.media import Raw, Signal, look_at, peaks
from dugong.sources.judge import png
from dugong.studio.tracks import CodeCounts, Curve, RawTracks, Stretch, dominant, largest, packed, smallest, step_for
from studio_client import unpacked

SIZES = st.integers(1, 300)
STEPS = st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 512])


def pieces(n: int, first: int, last: int, step: int) -> list[range]:
    return [range(a, min(a + step, n, last)) for a in range(first, last, step)]


@given(SIZES, STEPS, st.data())
def test_curves_and_codes_are_those_of_loops(n: int, step: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(n)
    values, codes = rng.normal(size=n), rng.integers(0, 3, n)
    a = data.draw(st.integers(0, n - 1)) // step * step
    b = min(-(-data.draw(st.integers(a + 1, n)) // step) * step, n)
    rows = pieces(n, a, b, step)
    curve = Curve(values)
    np.testing.assert_allclose(curve.low.cut(a, b, step), [values[list(one)].min() for one in rows], rtol=0, atol=0)
    np.testing.assert_allclose(curve.high.cut(a, b, step), [values[list(one)].max() for one in rows], rtol=0, atol=0)
    np.testing.assert_allclose(
        curve.mean(a, b, step), [values[list(one)].mean() for one in rows], rtol=1e-9, atol=1e-12
    )
    counts = CodeCounts(codes, 3).cut(a, b, step)
    assert counts.tolist() == [np.bincount(codes[list(one)], minlength=3).tolist() for one in rows]


@given(st.integers(0, 10**9), st.integers(50, 8000))
def test_there_are_about_as_many_bins_as_pixels(n: int, px: int) -> None:
    step = step_for(n, px)
    assert n / step <= px
    assert step == 1 or n / step > px / 2


def test_missing_values_hide_nothing() -> None:
    values = np.array([np.nan, 3.0, np.nan, np.nan], dtype=np.float32)
    assert smallest(values).cut(0, 4, 2).tolist()[0] == 3.0
    assert np.isnan(largest(values).cut(0, 4, 2)[1])
    low, high = peaks(np.array([1.0, np.nan, 5.0], dtype=np.float32), 2)
    assert (low.tolist(), high.tolist()) == ([1.0, 5.0], [1.0, 5.0])


def test_a_vote_stands_out_among_abstentions() -> None:
    counts = np.array([[0, 1, 9], [3, 2, 9], [0, 0, 9]])
    assert dominant(counts, (2,)).tolist() == [1, 0, 2]


def test_a_spike_is_seen_from_far_away() -> None:
    values = np.zeros(2_764_800, dtype=np.float32)
    values[1_234_567] = 9.0
    raw = Raw(kind="signals", length=len(values), signals=(Signal(name="x", low=values, high=values, per=1.0),))
    plain = RawTracks(raw).cut(Stretch(begin=0, end=len(values), px=1000))["signals"][0]
    high = unpacked(plain["max"])
    assert high.max() == 9.0
    assert plain["first"] + int(high.argmax()) * plain["step"] == 1_234_567 // plain["step"] * plain["step"]


@pytest.mark.parametrize("kind", ["u1", "u2", "f4"])
def test_packed_arrays_come_back(kind: str) -> None:
    values = np.array([0, 1, 255])
    assert unpacked(packed(values, kind)).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("sequence", "kind"),
    [
        ([1.0, 2.0], "signals"),
        (np.zeros(3), "signals"),
        (np.zeros((3, 2)), "signals"),
        (["He", "slept"], "tokens"),
        (np.zeros((2, 20, 30, 3), dtype=np.uint8), "video"),
        ([np.zeros((20, 30))], "video"),
        ([object()], "tokens"),
        ([], "tokens"),
    ],
)
def test_what_a_sequence_is(sequence: object, kind: str) -> None:
    assert look_at(sequence).kind == kind


def test_a_picture_is_a_png() -> None:
    frame = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    content = png(frame)
    assert content.startswith(b"\x89PNG")
    av = pytest.importorskip("av")
    from io import BytesIO

    with av.open(BytesIO(content)) as file:
        found = next(file.decode(video=0)).to_ndarray(format="rgb24")
    assert found.tolist() == frame.tolist()
