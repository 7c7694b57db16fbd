"""What the tests of formats share: where the samples are, their one truth, and intervals that a format can hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from dugong import Segments, formats
from dugong.segments import Recording

ROOT = Path(__file__).resolve().parent.parent
TRUTH = [(2.0, 5.0, "walk", 0.93), (6.0, 6.5, "turn", 0.71)]
TEXT = "Patient has aortic stenosis today."
TOKENS = ((0, 7), (8, 11), (12, 18), (19, 27), (28, 33), (33, 34))

# Formats that hold text, and the packages that some formats need.
TEXTS = ("brat", "conll", "conllu", "doccano", "prodigy", "spacy")
FRAMES = ("cvat-images", "cvat-video", "wfdb")
EXTRAS = {"edf": "edfio", "spacy": "spacy", "wfdb": "wfdb"}
WITHOUT_PROBABILITY = ("audacity", "dcase", "mne", "praat", "wfdb", "conll")
SHORT_PROBABILITY = ("boris", "brat", "edf", "srt", "webvtt")
NO_INSTANTS = ("praat", *TEXTS, *FRAMES)
NO_OVERLAPS = ("boris", "conll", "conllu", "cvat-images", "elan", "praat", "wfdb", "spacy")
OPTIONS = {"label-studio": {"kind": "timeseries"}}
TOLERANCE = {"elan": 5.1e-4, "webvtt": 5.1e-4, "srt": 5.1e-4} | dict.fromkeys(
    ("audacity", "rttm", "dcase", "bids", "mne"), 1.1e-6
)


def samples_folder() -> Path:
    """The folder with one sample per format; without it, skip and say so, but fail where CI=true."""
    data = os.environ.get("DUGONG_DATA")
    folder = Path(data).parent / "formats" if data else ROOT.parent / "shared" / "formats"
    if not folder.is_dir():
        message = f"the samples of formats are not here: looked in {folder}."
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(message)
        pytest.skip(message)
    return folder


def truth(name: str, sequence: str = "r1") -> Segments:
    """The truth of the samples, as segments that a format can write."""
    about = Recording(length=100, rate=10.0, media=f"{sequence}.mp4")
    columns = list(zip(*TRUTH, strict=True))
    if name in TEXTS:
        about = Recording(text=TEXT, tokens=TOKENS, length=len(TOKENS))
        columns = [(12.0,), (27.0,), ("DISEASE",), (0.88,)]
    start, end, label, probability = columns
    return Segments(
        sequence=(sequence,) * len(start),
        start=start,
        end=end,
        label=label,
        probability=probability,
        source=("dugong",),
        unit="character" if name in TEXTS else "second",
        recordings={sequence: about},
    )


@st.composite
def segments(draw: st.DrawFn, name: str) -> Segments:
    """Intervals of one or several sequences, as far as a format allows them."""
    single = formats.of_name(name).single
    n_sequences = 1 if single else draw(st.integers(1, 3))
    text = name in TEXTS
    labels = st.sampled_from(["DISEASE", "drug", "x_1"] if text else ["walk", "turn", "é√∂", "sit-down"])
    rows, recordings = [], {}
    for number in range(n_sequences):
        sequence = f"r{number}"
        length = 60
        tokens = tuple((4 * place, 4 * place + 3) for place in range(length))
        recordings[sequence] = (
            Recording(text=" ".join(["abc"] * length), tokens=tokens, length=length)
            if text
            else Recording(length=length, rate=8.0, media=f"{sequence}.csv", duration=7.5)
        )
        borders = sorted(draw(st.sets(st.integers(0, length), max_size=12)))
        for start, end in zip(borders[::2], borders[1::2], strict=False):
            rows.append((sequence, start, end, draw(labels), draw(probabilities(name))))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    made = Segments(
        sequence=columns[0],
        start=columns[1],
        end=columns[2],
        label=columns[3],
        probability=columns[4],
        source=("dugong",),
        recordings=recordings,
    )
    return made if text or name in FRAMES else made.to_unit("second")


def probabilities(name: str) -> st.SearchStrategy[float | None]:
    """Probabilities that survive a format."""
    if name in WITHOUT_PROBABILITY:
        return st.none()
    if name in SHORT_PROBABILITY:
        return st.none() | st.integers(0, 10_000).map(lambda number: number / 10_000)
    return st.none() | st.floats(0, 1)
