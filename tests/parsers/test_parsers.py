"""Somebody else's parsers, each in an environment of its own, read what we write (`make test-formats`).

DUGONG_PARSERS names the environments: folders with a Python that has the packages of ``<name>.txt``. Each script of
this folder prints what its parsers found in the files that we wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dugong import Segments, formats
from format_cases import ROOT, TEXT, TOKENS, TRUTH, samples_folder, truth

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = {Path(place).name: Path(place) for place in os.environ.get("DUGONG_PARSERS", "").split()}
INTERVALS = [list(row[:3]) for row in TRUTH]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all formats that need no further package, with the truth of the samples."""
    place = tmp_path_factory.mktemp("parsers")
    video, text = truth("elan"), truth("brat", "n1")
    for name in ("elan", "praat", "webvtt", "srt", "edf", "jams", "dcase", "huggingface"):
        formats.write(video, place / f"r1{formats.of_name(name).suffixes[0]}", name)
    for name in ("brat", "conll", "conllu", "huggingface"):
        formats.write(text, place / f"n1{formats.of_name(name).suffixes[0]}", name)
    formats.write(text, place / "n1.doccano.jsonl", "doccano")
    formats.write(video, place / "all.jsonl")
    for kind in ("video", "audio", "timeseries"):
        formats.write(video, place / f"ls-{kind}.json", "label-studio", kind=kind)
    formats.write(text, place / "ls-text.json", "label-studio")
    whole = Segments(sequence=("n1",), start=(0,), end=(34,), label=("pos",), probability=(0.8,), resolution="sequence")
    formats.write(whole, place / "ls-sequence.json", "label-studio", labels=["pos", "neg"])
    for kind in ("images", "video"):
        (place / f"cvat-{kind}").mkdir()
        formats.write(video, place / f"cvat-{kind}" / "annotations.xml", f"cvat-{kind}", size=(64, 48))
    return place


def ask(name: str, folder: Path) -> dict[str, Any]:
    """What the parsers of an environment found."""
    if name not in ENVIRONMENTS:
        pytest.skip(f"the parsers {name!r} were not asked for; make test-formats asks them all")
    python = ENVIRONMENTS[name] / "bin" / "python"
    words = [python, HERE / f"{name}.py", folder, samples_folder(), json.dumps(TOKENS)]
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_light(folder: Path) -> None:
    found = ask("light", folder)
    assert found["elan"] == INTERVALS
    assert found["elan-p"] == [0.93, 0.71]
    assert found["praat"] == INTERVALS
    assert all(found["praat-gaps"])
    shown = [[start, end, f"{label} {p}"] for start, end, label, p in TRUTH]
    assert found["srt"] == shown
    assert [row[2] for row in found["webvtt"]] == [row[2] for row in shown]
    assert [row[:2] for row in found["webvtt"]] == [pytest.approx(row[:2]) for row in shown]
    assert [row[0] for row in found["conllu"]] == [TEXT[start:end] for start, end in TOKENS]
    assert [row[1] for row in found["conllu"]] == ["O", "O", "B-DISEASE", "I-DISEASE", "O", "O"]
    assert found["edf"] == [[start, end, f"{label} p={p}"] for start, end, label, p in TRUTH]
    assert found["wfdb"] == [[20, "(walk"], [50, "(N"], [60, "(turn"], [65, "(N"]]
    assert found["wfdb-back"] == [[20, 50, "walk"], [60, 65, "turn"]]
    assert found["wfdb-sample"] == INTERVALS


def test_label_studio(folder: Path) -> None:
    found = ask("label_studio", folder)
    kinds = ("video", "audio", "timeseries", "text", "sequence")
    for kind in kinds:
        assert found[f"ls-{kind}"] == [True], kind
        assert found[f"ls-{kind}-broken"] == [False], kind


def test_audio(folder: Path) -> None:
    found = ask("audio", folder)
    assert found["jams"] == [list(row) for row in TRUTH]
    assert found["dcase"] == [[*row[:3], "r1.mp4"] for row in TRUTH]
    assert found["sed_eval"] == 1.0


def test_spacy(folder: Path) -> None:
    found = ask("spacy", folder)
    entity = [["aortic stenosis", "DISEASE"]]
    assert found["spacy"] == found["spacy-entities"] == found["conll"] == entity
    assert found["spacy-scores"] == [0.88]
    assert found["spacy-back"] == [[2, 4, "DISEASE"]]
    assert found["spacy-sample"] == [[2, 4, "DISEASE", 0.88]]


def test_datumaro(folder: Path) -> None:
    found = ask("datumaro", folder)
    frames = [(frame, "walk", 0.93) for frame in range(20, 50)] + [(frame, "turn", 0.71) for frame in range(60, 65)]
    assert [(row[0], row[1], float(row[2])) for row in found["cvat-images"]] == frames
    assert [(row[0], row[1], row[3]) for row in found["cvat-video"]] == [
        (20, "walk", True),
        (50, "walk", False),
        (60, "turn", True),
        (65, "turn", False),
    ]


def test_datasets(folder: Path) -> None:
    found = ask("datasets", folder)
    names = found["r1-names"]
    assert [[row["start"], row["end"], names[row["label"]]] for row in found["r1"]] == INTERVALS
    assert found["n1-names"] == ["O", "B-DISEASE", "I-DISEASE"]
    assert found["n1"][0]["ner_tags"] == [0, 0, 1, 2, 0, 0]
    assert found["n1"][0]["soft_labels"][2] == pytest.approx([0.12, 0.88, 0])
    assert found["doccano"] == [TEXT]
