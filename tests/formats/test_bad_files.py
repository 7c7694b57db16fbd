# ruff: noqa: E501  (the table of wrong files has one line per case)
"""Files that are damaged, hostile or wrong get an error with the file and the place; nothing is half-written."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dugong import Segments, formats
from dugong.exceptions import DugongError, FormatError
from dugong.formats import files
from dugong.segments import Recording
from format_cases import EXTRAS, OPTIONS, truth

HERE_NOW = [name for name in formats.names() if name not in EXTRAS or name == "edf"]
BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<ANNOTATION_DOCUMENT>&c;</ANNOTATION_DOCUMENT>
"""
OUTSIDE = """<?xml version="1.0"?>
<!DOCTYPE annotations [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<annotations><meta/><version>&x;</version></annotations>
"""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    place = folder / name
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def refusal(place: Path, name: str | None) -> str | None:
    """The words with which a file is refused; None if it is read."""
    try:
        formats.read(place, name)
    except FormatError as error:
        return str(error)
    return None


# --- damaged -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", HERE_NOW)
def test_files_that_are_cut_off_never_crash(name: str, tmp_path: Path) -> None:
    """Every cut gives intervals or an error that names the file, never anything else."""
    one = formats.of_name(name)
    whole = formats.write(truth(name), tmp_path / f"r1{one.suffixes[0]}", name, **OPTIONS.get(name, {}))[0]
    data = Path(str(whole)).read_bytes()
    place = tmp_path / f"cut{one.suffixes[0]}"
    for size in np.linspace(0, len(data) - 1, 25).astype(int).tolist():
        place.write_bytes(data[:size])
        assert str(place) in (refusal(place, name) or str(place))


@pytest.mark.parametrize("name", HERE_NOW)
def test_noise_is_refused(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    place = tmp_path / f"noise{formats.of_name(name).suffixes[0]}"
    for data in (
        rng.bytes(300),
        b"\xff\xfe\x00",
        b"[[[[",
        b"{}",
        b"[]",
        b'{"a": 1}\n',
        b"<a/>",
        b"\n\n",
        b"1\t2\n",
        b"3",
    ):
        place.write_bytes(data)
        for wanted in (name, None):
            assert str(place) in (refusal(place, wanted) or str(place))


def test_the_wrong_encoding_is_said_with_its_line(tmp_path: Path) -> None:
    place = write(tmp_path, "a.txt", "0\t1\tok\n1\t2\tgr\xfcn\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"a\.txt, line 2: this is no utf-8 text: byte 0xfc.*\n.*encoding='latin-1'"):
        formats.read(place, "audacity")
    assert formats.read(place, "audacity", encoding="latin-1").label == ("ok", "grün")
    with pytest.raises(FormatError, match="no encoding 'klingon'"):
        formats.read(place, "audacity", encoding="klingon")


def test_byte_order_marks_are_understood(tmp_path: Path) -> None:
    formats.write(truth("praat"), tmp_path / "r1.TextGrid")
    text = (tmp_path / "r1.TextGrid").read_text()
    for encoding in ("utf-16", "utf-8-sig"):
        (tmp_path / "r1.TextGrid").write_bytes(text.encode(encoding))
        assert formats.read(tmp_path / "r1.TextGrid").label == ("walk", "turn")


@pytest.mark.parametrize(("text", "name"), [(BOMB, "b.eaf"), (OUTSIDE, "o.xml")])
def test_hostile_xml_is_not_parsed(text: str, name: str, tmp_path: Path) -> None:
    place = write(tmp_path, name, text)
    with pytest.raises(FormatError, match="line 2: this XML declares a document type"):
        formats.read(place, "elan" if name.endswith("eaf") else "cvat-video")
    with pytest.raises(FormatError):
        formats.read(place)


@pytest.mark.parametrize("encoding", ["ttf-8", "utf-7", "rot13"])
def test_an_encoding_that_xml_does_not_know_is_said(encoding: str, tmp_path: Path) -> None:
    place = write(tmp_path, "a.eaf", f'<?xml version="1.0" encoding="{encoding}"?>\n<ANNOTATION_DOCUMENT/>')
    with pytest.raises(FormatError, match=r"a\.eaf, line 1: this is no XML: .*encoding"):
        formats.read(place, "elan")


def test_deep_json_and_huge_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path, "deep.json", "[" * 200_000)
    with pytest.raises(FormatError, match=r"deep\.json"):
        formats.read(place, "label-studio")
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    with pytest.raises(FormatError, match=r"deep\.json has 0\.0 GB, and files of annotations are read up to"):
        formats.read(place, "label-studio")
    with pytest.raises(FormatError, match="there is no file"):
        formats.read(tmp_path / "none.eaf")


# --- wrong -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("a.rttm", "SPEAKER a 1 -2 1 <NA> <NA> x <NA> <NA>\n", r"a\.rttm, line 1: .*begin before 0; found -2 to -1"),
        ("a.tsv", "filename\tonset\toffset\tevent_label\na.wav\t5\t2\tx\n", r"line 2: .*end before it begins; found 5 to 2"),
        ("a.tsv", "filename\tonset\toffset\tevent_label\na.wav\tsoon\t2\tx\n", r"line 2: the start must be a number; found 'soon'"),
        ("a.tsv", "filename\tonset\toffset\tevent_label\na.wav\t5\n", r"line 2: a line must have 4 columns; found 2"),
        ("a.csv", "sequence,start,end,label,probability\ns,0,1,x,1.5\n", r"line 2: a probability must lie between 0 and 1"),
        ("a.csv", "sequence,start,end,unit,label\ns,0,1,hours,x\n", r"'unit' must hold one of element, second, character"),
        ("a.csv", 'sequence,start,end,label\ns,0,1,"x\n', r"line 2: this is no CSV"),
        ("a_events.tsv", "onset\tduration\n1\t2\n", r"there must be a column 'trial_type'; found onset, duration"),
        ("a_events.tsv", "onset\ttrial_type\n1\tx\n", r"there must be a column 'duration'; found onset, trial_type"),
        ("a.srt", "1\n00:00:xx --> 00:00:02,000\nx\n", r"line 2: these are no times of a subtitle"),
        ("a.vtt", "WEBVTT\n\n00:00:03.000 --> 00:00:02.000\nx\n", r"line 3: .*end before it begins; found 3 to 2"),
        ("a.conll", "word\n\n", r"line 1: a line must have a token and a tag"),
        ("a.conll", "word DISEASE\n", r"line 1: the last column must hold O or a tag"),
        ("a.conllu", "1\tword\tx\n", r"line 1: a line must have 10 columns between tabs; found 3"),
        ("a.ann", "T1\tDISEASE twelve 27\tx\n", r"line 1: a span must look like T1"),
        ("a.jsonl", '{"sequence": "a", "start": 1, "label": "x"}\n', r"line 1: there must be a key 'end'"),
        ("a.jsonl", '{"recording": "a"}\n{"text": \n', r"line 2: this is no JSON"),
        ("a.jsonl", '{"text": -1, "label": [[1, 2, "x"]]}\n', r"line 1: .*the text of a recording must be text; found -1"),
        ("a.jsonl", '{"text": 3, "spans": [], "_input_hash": 1}\n', r"line 1: .*the text of a recording must be text; found 3"),
        ("a.jams", '{"annotations": [{"data": [{"time": 1}]}], "file_metadata": {}}', r"annotations\[0\]\.data\[0\]: .*key 'duration'"),
        ("a.jams", f'{{"annotations": [{{"data": [{{"time": {"9" * 400}}}]}}], "file_metadata": {{}}}}', r"data\[0\]: the time must be a number; found 999"),
        ("a.jsonl", f'{{"text": "a", "label": [[0, {"9" * 400}, "x"]]}}', r"line 1: the end must be a number; found 999"),
        ("a.jsonl", '{"recording": "a", "rate": {}}', r"line 1: .*the rate of a recording must be a number; found an object"),
        ("a.jsonl", f'{{"recording": "a", "length": {"9" * 400}}}', r"line 1: .*the length of a recording must be a number; found a number beyond 64 bits"),
        ("a.csv", 'sequence,start,end,unit,label\ns,0,1,second\r,x\n', r"line 2: this is no CSV"),
        ("a.srt", f'1\n{"9" * 400}:00:00,000 --> 00:00:02,000\nx\n', r"line 2: these are no times of a subtitle"),
        ("a.xml", '<annotations><meta/><image id="1e999"><tag label="x"/></image></annotations>', r"image 1e999: the id of an image must be a number; found '1e999'"),
        ("a.TextGrid", '"ooTextFile" "TextGrid" 0 3 <exists> 1e999', r"line 1: the number of tiers must be a number; found '1e999'"),
        ("a.boris", '{"behaviors_conf": {}, "observations": {"v": {"events": [[1, "", "walk", "", ""]]}}}', r"'walk' starts at 1 s and never stops"),
        ("a.json", '[{"data": {}, "annotations": [{"result": [{"value": {"start": "x", "end": 1, "labels": ["a"]}}]}]}]', r"region 0: the start must be a number; found 'x'"),
        ("a.json", '{"results": {"v": [{"label": "x", "segment": [1]}]}}', r"results\.v\[0\]: this has another shape"),
        ("a.eaf", "<ANNOTATION_DOCUMENT><TIER TIER_ID='t'><ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID='a1'/></ANNOTATION></TIER></ANNOTATION_DOCUMENT>", r"annotation a1: .*one of its time slots has no time"),
        ("a.TextGrid", 'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 3\ntiers? <exists>\nsize = 1\nitem []:\n item [1]:\n class = "IntervalTier"\n', r"a\.TextGrid, line \d+: the file ends where the name of a tier should be"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(file: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        formats.read(write(tmp_path, file, text))


def test_times_beyond_the_end_of_the_recording(tmp_path: Path) -> None:
    text = '{"database": {"v": {"duration": 10, "annotations": [{"label": "x", "segment": [8, 12]}]}}}'
    with pytest.raises(FormatError, match=r"database\.v\[0\]: .*beyond the end.*8 to 12 in 'v', which ends at 10"):
        formats.read(write(tmp_path, "a.json", text))
    late = write(tmp_path, "n.ann", "T1\tX 5 90\tx\n")
    write(tmp_path, "n.txt", "short text")
    with pytest.raises(FormatError, match=r"n\.ann, line 1: .*ends at 10 \(characters\)"):
        formats.read(late)


# --- what a format cannot hold -----------------------------------------------------------------------------------
def twice(name: str) -> Segments:
    """Two intervals that overlap."""
    one = truth(name)
    return replace(
        one,
        sequence=one.sequence[:1] * 2,
        start=one.start[:1].repeat(2),
        end=one.end[:1].repeat(2),
        label=(one.label[0],) * 2,
        probability=one.probability[:1].repeat(2),
        source=("dugong",) * 2,
        resolution=("element",) * 2,
        attributes=({},) * 2,
    )


@pytest.mark.parametrize("name", ["boris", "conll", "conllu", "elan", "praat"])
def test_overlaps_are_refused_where_a_format_forbids_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"'{name}' does not allow overlaps"):
        formats.write(twice(name), tmp_path / f"a{formats.of_name(name).suffixes[0]}", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("audacity", "a\tb"),
        ("rttm", "sit down"),
        ("mne", "a,b"),
        ("webvtt", "a\nb"),
        ("srt", "zone 0.5"),
        ("elan", "a\x01"),
    ],
)
def test_labels_that_a_format_cannot_hold(name: str, label: str, tmp_path: Path) -> None:
    made = Segments(sequence=("a",), start=(0,), end=(1,), label=(label,), unit="second")
    with pytest.raises(FormatError, match=r"cannot hold|could not be read back"):
        formats.write(made, tmp_path / f"a{formats.of_name(name).suffixes[0]}", name)
    assert not list(tmp_path.iterdir())


def test_what_is_not_known_is_asked_for(tmp_path: Path) -> None:
    made = Segments(sequence=("a",), start=(0,), end=(2,), label=("x",))
    with pytest.raises(DugongError, match="only at a known rate"):
        formats.write(made, tmp_path / "a.eaf")
    with pytest.raises(FormatError, match="text and tokens of 'a' are not known"):
        formats.write(made, tmp_path / "a.conll")
    whole = Segments(sequence=("a",), start=(0,), end=(np.inf,), label=("x",), unit="second")
    with pytest.raises(FormatError, match="needs to know where the sequence 'a' ends"):
        formats.write(whole, tmp_path / "a.eaf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sequence", ["../../evil", "a/b", "..", "", "a\\b"])
def test_ids_are_no_way_out_of_the_folder(sequence: str, tmp_path: Path) -> None:
    made = Segments(sequence=(sequence, "ok"), start=(0, 0), end=(1, 1), label=("x", "x"), unit="second")
    with pytest.raises(FormatError, match="cannot be the name of a file"):
        formats.write(made, tmp_path / "out", "elan")
    assert not list(tmp_path.iterdir())


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails while a folder is filled leaves neither the folder nor parts of it."""
    real, calls = Path.write_bytes, []

    def fail(self: Path, data: bytes) -> int:
        calls.append(self)
        if len(calls) == 2:
            raise OSError("no room")
        return real(self, data)

    both = Segments(sequence=("a", "b"), start=(0, 0), end=(1, 1), label=("x", "x"), unit="second")
    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="no room"):
        formats.write(both, tmp_path / "out", "elan")
    assert not list(tmp_path.iterdir())


# --- which format ------------------------------------------------------------------------------------------------
def test_a_format_is_never_guessed_where_two_fit(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"'activitynet' or 'label-studio' or 'via'.*\n.*format='activitynet'"):
        formats.write(truth("elan"), tmp_path / "out.json")
    with pytest.raises(FormatError, match="there is no format 'nonsense'; known are activitynet"):
        formats.write(truth("elan"), tmp_path / "out.json", "nonsense")
    with pytest.raises(FormatError, match="'elan' has no option 'colour'"):
        formats.write(truth("elan"), tmp_path / "out.eaf", colour="red")
    with pytest.raises(FormatError, match="none fits"):
        formats.read(write(tmp_path, "a.json", '{"nothing": "known"}'))


def test_names_are_sorted_and_all_can_be_found() -> None:
    assert list(formats.names()) == sorted(formats.names())
    assert len(formats.names()) == 27
    assert formats.of_name("TextGrid").name == "praat"


def test_a_package_can_bring_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = formats.Format(
        name="words",
        title="one word per line",
        suffixes=(".words",),
        unit="elements",
        keeps="label",
        loses="everything else",
        checked="itself",
        fits=lambda file: file.text.startswith("words"),
        read=lambda file: Segments(
            sequence=(file.stem,) * len(file.lines[1:]),
            start=range(len(file.lines[1:])),
            end=range(1, len(file.lines)),
            label=tuple(file.lines[1:]),
            recordings={file.stem: Recording()},
        ),
        write=lambda segments, stem, _: {f"{stem}.words": "\n".join(["words", *segments.label]).encode()},
    )

    class Entry:
        name, value = "words", "somewhere:mine"

        def load(self) -> object:
            return mine

    monkeypatch.setattr(formats, "entry_points", lambda group: [Entry()] if group == formats.GROUP else [])
    formats.every.cache_clear()
    try:
        formats.write(Segments(sequence=("a",), start=(0,), end=(1,), label=("x",)), tmp_path / "a.words")
        assert formats.read(tmp_path / "a.words").label == ("x",)
    finally:
        formats.every.cache_clear()
    assert importlib.metadata.entry_points(group="dugong.formats") is not None
