"""What is written comes back: within the precision of a format, and the same intervals."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dugong import Segments, formats
from dugong.exceptions import FormatError
from dugong.segments import Recording
from format_cases import EXTRAS, OPTIONS, SHORT_PROBABILITY, TOLERANCE, WITHOUT_PROBABILITY, segments, truth

NAMES = [name for name in formats.names() if name not in EXTRAS or importlib.util.find_spec(EXTRAS[name]) is not None]


def written(given_segments: Segments, folder: Path, name: str) -> Segments:
    one = formats.of_name(name)
    path = folder / f"{next(iter(given_segments.recordings))}{one.suffixes[0]}"
    formats.write(given_segments, path, name, **OPTIONS.get(name, {}))
    return formats.read(path, name)


def like(found: Segments, expected: Segments) -> Segments:
    """In the unit of what was written: rates and tokens are known there, if not in the file."""
    return replace(found, recordings=expected.recordings).to_unit(expected.unit)


def rows(found: Segments) -> list[tuple[str, str, str]]:
    return list(zip(found.sequence, found.label, found.resolution, strict=True))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_intervals_come_back(name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = data.draw(segments(name))
    found = written(expected, tmp_path_factory.mktemp("formats"), name)
    compared = like(found, expected)
    assert rows(compared) == rows(expected)
    tolerance = TOLERANCE.get(name, 1e-9)
    np.testing.assert_allclose(compared.start, expected.start, rtol=0, atol=tolerance)
    np.testing.assert_allclose(compared.end, expected.end, rtol=0, atol=tolerance)
    shares = np.where(np.isnan(expected.probability), 1.0, expected.probability) if name == "activitynet" else None
    np.testing.assert_allclose(
        compared.probability, expected.probability if shares is None else shares, rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_of_the_samples_comes_back(name: str, tmp_path: Path) -> None:
    expected = truth(name)
    found = like(written(expected, tmp_path, name), expected)
    file = tmp_path / f"r1{formats.of_name(name).suffixes[0]}"
    assert formats.read(file).equals(formats.read(file, name))  # the content says which one it is
    assert rows(found) == rows(expected)
    np.testing.assert_allclose(found.start, expected.start, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.end, expected.end, rtol=0, atol=1e-9)
    if name not in WITHOUT_PROBABILITY:
        decimals = 4 if name in SHORT_PROBABILITY else 7
        np.testing.assert_array_almost_equal(found.probability, expected.probability, decimal=decimals)


@pytest.mark.parametrize("name", NAMES)
def test_several_sequences_are_a_folder_or_one_file(name: str, tmp_path: Path) -> None:
    first, second = truth(name, "r1"), truth(name, "r2")
    both = Segments(
        sequence=first.sequence + second.sequence,
        start=np.concatenate([first.start, second.start]),
        end=np.concatenate([first.end, second.end]),
        label=first.label * 2,
        unit=first.unit,
        recordings={**first.recordings, **second.recordings},
    )
    one = formats.of_name(name)
    if one.single:
        with pytest.raises(FormatError, match="holds one sequence, and there are 2"):
            formats.write(both, tmp_path / f"both{one.suffixes[0]}", name)
        assert not list(tmp_path.iterdir())
    files = formats.write(both, tmp_path / "out", name, **OPTIONS.get(name, {}))
    assert all(Path(str(file)).is_file() for file in files)
    place = tmp_path / "out" if one.single else files[0]
    found = like(formats.read(place, name), both)
    assert sorted(rows(found)) == sorted(rows(both))


def test_json_lines_keep_everything(tmp_path: Path) -> None:
    given_segments = Segments(
        sequence=("a", "a", "b"),
        start=(0, 3.25, 1),
        end=(2, 3.25, float("inf")),
        label=("x", "y, z", '"'),
        probability=(None, 0.1 + 0.2, 1),
        source=("anna", "", "ben"),
        resolution=("element", "element", "sequence"),
        attributes=({"hand": "left"}, {}, {}),
        unit="second",
        recordings={
            "a": Recording(rate=10.0, length=100, media="a.mp4", start=2.5),
            "b": Recording(stamps=(0.0, 1.0, 4.0)),
            "c": Recording(text="ü\n", tokens=((0, 1),)),
        },
        asked={("anna", "a"): ((0.0, 3.0), (4.0, float("inf"))), ("ben", "b"): ()},
    )
    formats.write(given_segments, tmp_path / "all.jsonl")
    found = formats.read(tmp_path / "all.jsonl")
    assert found.equals(given_segments)
    assert dict(found.recordings) == dict(given_segments.recordings)
    assert found.asked == given_segments.asked


@pytest.mark.parametrize(("kind", "unit"), [("video", "element"), ("audio", "second"), ("timeseries", "second")])
def test_label_studio_kinds(kind: str, unit: str, tmp_path: Path) -> None:
    expected = truth("label-studio").describe(media="r1.dat")
    files = formats.write(expected, tmp_path / "tasks.json", "label-studio", kind=kind)
    assert [Path(str(file)).name for file in files] == ["tasks.json", "tasks.xml"]
    found = formats.read(tmp_path / "tasks.json")
    assert found.unit == unit
    assert found.to_unit("second").equals(expected, tolerance=1e-9)
    assert found.recordings["r1"].rate == 10


def test_label_studio_whole_sequences_and_text(tmp_path: Path) -> None:
    whole = Segments(
        sequence=("n1",), start=(0,), end=(np.inf,), label=("pos",), probability=(0.77,), resolution=("sequence",)
    )
    formats.write(whole, tmp_path / "whole.json", "label-studio")
    assert formats.read(tmp_path / "whole.json").resolution == ("sequence",)
    text = truth("brat")
    formats.write(text, tmp_path / "text.json", "label-studio")
    assert formats.read(tmp_path / "text.json").equals(text)


def test_label_studio_does_not_guess_what_to_show(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="kind="):
        formats.write(truth("label-studio").describe(media="r1.dat"), tmp_path / "t.json", "label-studio")
    formats.write(truth("label-studio"), tmp_path / "t.json", "label-studio")  # r1.mp4 is a video
    assert "ranges" in (tmp_path / "t.json").read_text()


def test_bioes_and_iob_tags_are_read(tmp_path: Path) -> None:
    for tags in ("B-X E-X S-Y O I-Z", "B-X L-X U-Y O B-Z", "I-X I-X I-Y O B-Z", "B-X I-X B-Y O I-Z"):
        place = tmp_path / "n.conll"
        place.write_text("".join(f"w{number} {tag}\n" for number, tag in enumerate(tags.split())))
        found = [(one.start, one.end, one.label) for one in formats.read(place)]
        assert found == [(0, 2, "X"), (2, 3, "Y"), (4, 5, "Z")], tags


def test_cvat_tracks_as_cvat_itself_writes_them(tmp_path: Path) -> None:
    """All frames are listed, and a track that lasts to the end has no box outside."""
    boxes = "".join(f'<box frame="{frame}" outside="0" keyframe="0"/>' for frame in (3, *range(3, 10)))
    place = tmp_path / "v.xml"
    place.write_text(
        "<annotations><meta><job><size>10</size><mode>interpolation</mode></job></meta>"
        f'<track id="0" label="walk" source="manual">{boxes}</track></annotations>'
    )
    found = list(formats.read(place))
    assert [(one.start, one.end, one.label, one.source) for one in found] == [(3, 10, "walk", "manual")]


def test_a_note_in_elan_is_a_probability_only_where_it_is_a_number(tmp_path: Path) -> None:
    formats.write(truth("elan"), tmp_path / "r1.eaf")
    text = (tmp_path / "r1.eaf").read_text(encoding="utf-8")
    (tmp_path / "r1.eaf").write_text(text.replace(">0.71<", ">²<"), encoding="utf-8")
    found = list(formats.read(tmp_path / "r1.eaf"))
    assert [one.probability for one in found] == [0.93, None]
    assert [dict(one.attributes) for one in found] == [{}, {"dugong-p": "²"}]
