"""Every sample that somebody else's parser accepted is read to the one truth of all of them."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from dugong import formats
from dugong.exceptions import FormatError, MissingExtraError
from format_cases import TEXT, TRUTH, samples_folder

SECONDS = {
    "activitynet/results.json": "activitynet",
    "activitynet/truth.json": "activitynet",
    "audacity/a1.txt": "audacity",
    "bids/sub-01/motion/sub-01_task-walk_events.tsv": "bids",
    "boris/p.boris": "boris",
    "dcase/a1.csv": "dcase",
    "edf/s1.edf": "edf",
    "edf/s1_annotations_only.edf": "edf",
    "edf/s1_annot.txt": "mne",
    "elan/v1.eaf": "elan",
    "jams/a1.jams": "jams",
    "labelstudio/audio.json": "label-studio",
    "labelstudio/timeseries.json": "label-studio",
    "praat/s1.TextGrid": "praat",
    "prodigy/a1.jsonl": "prodigy",
    "rttm/a1.rttm": "rttm",
    "subtitles/v1.srt": "srt",
    "subtitles/v1.vtt": "webvtt",
    "via/p.json": "via",
}
FRAMES = {
    "cvat/images_tags.xml": "cvat-images",
    "cvat/video_tracks.xml": "cvat-video",
    "labelstudio/video.json": "label-studio",
    "labelstudio/video_export_from_server.json": "label-studio",
}
# Samples in which probabilities are not there, because the format has no place for them.
SILENT = ("truth.json", "a1.txt", "a1.csv", "s1_annotations_only.edf", "s1_annot.txt", "s1.TextGrid", "p.json")
CHARACTERS = {"brat/note1.ann": "brat", "doccano/note1.jsonl": "doccano", "prodigy/note1.jsonl": "prodigy"}
TOKENS = {"conll/note1.conll": "conll", "conll/note1.conllu": "conllu", "hf_note1.parquet": "huggingface"}
# `make test-formats` reads these, where the packages are; here their absence is what is tested.
NEEDS = {"spacy_note1.spacy": "spacy", "wfdb/s1.atr": "wfdb"}
if all(importlib.util.find_spec(package) is not None for package in NEEDS.values()):
    TOKENS["spacy_note1.spacy"] = "spacy"


def read(file: str, name: str) -> formats.Segments:
    """Read a sample by its ending and content, and see that this finds the same as its name does."""
    place = samples_folder() / file
    found = formats.read(place)
    assert found.equals(formats.read(place, name))
    return found


@pytest.mark.parametrize(("file", "name"), SECONDS.items())
def test_intervals_in_seconds(file: str, name: str) -> None:
    found = read(file, name)
    assert found.unit == "second"
    assert [(one.start, one.end, one.label) for one in found] == [row[:3] for row in TRUTH]
    expected = [None, None] if file.endswith(SILENT) else [row[3] for row in TRUTH]
    assert [one.probability for one in found] == expected
    elements = found.to_unit("element", rate=10)
    assert [(one.start, one.end) for one in elements] == [(20, 50), (60, 65)]
    assert elements.rounding is not None
    assert elements.rounding.n_moved == 0


@pytest.mark.parametrize(("file", "name"), FRAMES.items())
def test_intervals_in_frames(file: str, name: str) -> None:
    found = read(file, name)
    assert found.unit == "element"
    assert [(one.start, one.end, one.label, one.probability) for one in found] == [
        (20, 50, "walk", 0.93),
        (60, 65, "turn", 0.71),
    ]


@pytest.mark.parametrize(("file", "name"), CHARACTERS.items())
def test_spans_of_characters(file: str, name: str) -> None:
    found = read(file, name)
    assert [(one.start, one.end, one.label, one.probability) for one in found] == [(12, 27, "DISEASE", 0.88)]
    assert found.recordings["note1"].text == TEXT


@pytest.mark.parametrize(("file", "name"), TOKENS.items())
def test_spans_of_tokens(file: str, name: str) -> None:
    found = read(file, name)
    assert [(one.start, one.end, one.label) for one in found] == [(2, 4, "DISEASE")]
    about = next(iter(found.recordings.values()))
    assert about.text is not None
    first, last = (int(bound) for bound in (found.to_unit("character").start[0], found.to_unit("character").end[0]))
    assert about.text[first:last] == "aortic stenosis"


def test_label_studio_text_and_choices() -> None:
    text = formats.read(samples_folder() / "labelstudio" / "ner.json")
    assert [(one.start, one.end, one.label, one.probability) for one in text] == [(12, 27, "DISEASE", 0.88)]
    whole = formats.read(samples_folder() / "labelstudio" / "sequence.json")
    assert [(one.label, one.probability, one.resolution) for one in whole] == [("pos", 0.77, "sequence")]


def test_who_annotated_is_the_source_and_was_asked() -> None:
    found = formats.read(samples_folder() / "labelstudio" / "video_export_from_server.json")
    assert found.sources == ("1",)
    assert found.asked == {("1", "v1"): ((0.0, float("inf")),)}


@pytest.mark.parametrize(("file", "name"), NEEDS.items())
def test_a_missing_package_is_named_with_its_extra(file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"dugong-ws\[{name}\]"):
        formats.read(samples_folder() / file)


def test_the_file_of_mne_that_loses_its_offset_is_refused() -> None:
    with pytest.raises(FormatError, match="none fits"):
        formats.read(samples_folder() / "edf" / "s1_annot.csv")
