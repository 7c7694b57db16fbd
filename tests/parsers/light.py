"""What pympi-ling, praatio, webvtt-py, srt, conllu, pyedflib and wfdb read in the files that we wrote."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import conllu
import pyedflib
import pympi
import srt
import webvtt
import wfdb
from praatio import textgrid

from dugong import formats

folder = Path(sys.argv[1])
found: dict[str, object] = {}

eaf = pympi.Eaf(str(folder / "r1.eaf"))
found["elan"] = [[start / 1000, end / 1000, label] for start, end, label in eaf.get_annotation_data_for_tier("dugong")]
found["elan-p"] = [float(row[2]) for row in eaf.get_ref_annotation_data_for_tier("dugong-p")]
grid = textgrid.openTextgrid(str(folder / "r1.TextGrid"), includeEmptyIntervals=True)
entries = grid.getTier("dugong").entries
found["praat"] = [[one.start, one.end, one.label] for one in entries if one.label]
found["praat-gaps"] = [first.end == second.start for first, second in pairwise(entries)]
found["webvtt"] = [
    [
        one.start_in_seconds + one.start_time.milliseconds / 1000,
        one.end_in_seconds + one.end_time.milliseconds / 1000,
        one.text,
    ]
    for one in webvtt.read(str(folder / "r1.vtt"))
]
found["srt"] = [
    [one.start.total_seconds(), one.end.total_seconds(), one.content]
    for one in srt.parse((folder / "r1.srt").read_text(encoding="utf-8"))
]
sentences = conllu.parse((folder / "n1.conllu").read_text(encoding="utf-8"))
found["conllu"] = [[token["form"], token["misc"]["NER"]] for sentence in sentences for token in sentence]
with pyedflib.EdfReader(str(folder / "r1.edf")) as reader:
    onsets, durations, texts = reader.readAnnotations()
found["edf"] = [
    [a, a + b, text] for a, b, text in zip(onsets.tolist(), durations.tolist(), texts.tolist(), strict=True)
]

# Our own reader and writer need wfdb, which is here.
formats.write(formats.read(folder / "all.jsonl").to_unit("element"), folder / "r1.atr")
marks = wfdb.rdann(str(folder / "r1"), "atr")
found["wfdb"] = [[int(sample), note] for sample, note in zip(marks.sample, marks.aux_note, strict=True)]
found["wfdb-back"] = [[one.start, one.end, one.label] for one in formats.read(folder / "r1.atr")]
if len(sys.argv) > 2:
    sample = formats.read(Path(sys.argv[2]) / "wfdb" / "s1.atr").to_unit("second")
    found["wfdb-sample"] = [[one.start, one.end, one.label] for one in sample]

print(json.dumps(found))
