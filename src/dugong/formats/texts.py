"""What many writers need: numbers as text, probabilities in labels, and segments that a format can hold.

Probabilities inside a text that people read have four decimals; columns and JSON keep every digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from dugong.exceptions import FormatError
from dugong.segments import Recording, Segments
from dugong.segments.container import Unit
from dugong.version import __version__

TOOL = f"dugong-{__version__}"
_NOTE = re.compile(r"^(?P<label>.*?)\s*\bp=(?P<p>0(?:\.\d+)?|1(?:\.0*)?)(?:\s+(?P<rest>.*))?$", re.DOTALL)
_NUMBER = re.compile(r"^(?P<label>.*\S)\s+(?P<p>0\.\d+|1\.0+)$", re.DOTALL)


def short(probability: float) -> str:
    """A probability for people: four decimals at most, always with a point."""
    text = f"{probability:.4f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def with_note(label: str, probability: float | None) -> str:
    """The label and its probability: ``walk p=0.93``."""
    if split_note(label)[1] is not None:
        raise FormatError(f"the label {label!r} ends like a probability, so that it could not be read back; rename it.")
    return label if probability is None else f"{label} p={short(probability)}"


def split_note(text: str) -> tuple[str, float | None, str]:
    """Label, probability and what follows it; the probability is None where there is none."""
    found = _NOTE.match(text)
    if found is None:
        return text, None, ""
    return found["label"], float(found["p"]), found["rest"] or ""


def with_number(label: str, probability: float | None) -> str:
    """The label and its probability as subtitles show it: ``walk 0.93``."""
    if split_number(label)[1] is not None:
        raise FormatError(f"the label {label!r} ends like a probability, so that it could not be read back; rename it.")
    return label if probability is None else f"{label} {short(probability)}"


def split_number(text: str) -> tuple[str, float | None]:
    """Label and probability of a subtitle."""
    found = _NUMBER.match(text)
    return (text, None) if found is None else (found["label"], float(found["p"]))


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON lines, one object each."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def media_name(sequence: str, about: Recording, ending: str) -> str:
    """The name of the media of a sequence, if its stem is the id; else the id with an ending."""
    known = about.media is not None and media_stem(about.media) == sequence
    return about.media if known and about.media is not None else f"{sequence}{ending}"


def media_stem(name: str) -> str:
    """The id of a sequence from the name of its media: without folders and the last ending."""
    last = re.split(r"[/\\]", name)[-1]
    return last.rpartition(".")[0] or last


# --- segments that a format can hold ------------------------------------------------------------------------------
def placed(segments: Segments, unit: Unit, name: str) -> Segments:
    """Segments in the unit of a format, with ends that are numbers; elements are whole and at least one."""
    found = segments.to_unit(unit)
    endless = np.isinf(found.end)
    if endless.any():
        sizes = {one: about.size(unit) for one, about in found.recordings.items()}
        lost = [one for one, last in zip(found.sequence, endless.tolist(), strict=True) if last and sizes[one] is None]
        if lost:
            raise FormatError(
                f"the format {name!r} needs to know where the sequence {lost[0]!r} ends.\n"
                "  Say it: segments.describe(duration=...) in seconds, or length= and rate=."
            )
        ends = np.array([sizes[one] or 0.0 for one in found.sequence], dtype=np.float64)
        found = replace(found, end=np.where(endless, ends, found.end))
    if unit != "second":
        _check_whole(found, name)
    return found


def _check_whole(segments: Segments, name: str) -> None:
    whole = (segments.start == np.floor(segments.start)) & (segments.end == np.floor(segments.end))
    bad = ~whole | (segments.end <= segments.start)
    if bad.any():
        row = int(np.argmax(bad))
        raise FormatError(
            f"the format {name!r} holds intervals of whole {segments.unit}s, at least one; found {int(bad.sum())} that "
            f"are none, the first {segments.start[row]:g} to {segments.end[row]:g} in {segments.sequence[row]!r}.\n"
            "  Leave them out: segments.take(segments.end > segments.start)."
        )


def forbid(segments: Segments, characters: str, name: str, *, sequences: bool = False) -> None:
    """Stop if a label (or the id of a sequence) holds something that this format cannot."""
    bad = re.compile(f"[{characters}]")
    words: Iterable[str] = (*segments.labels, *(segments.recordings if sequences else ()))
    for word in words:
        if bad.search(word) or not word:
            raise FormatError(
                f"the format {name!r} cannot hold {word!r}: names must not be empty or contain any of "
                f"{_spelled(characters)}.\n  Rename it before it is exported."
            )


def _spelled(characters: str) -> str:
    spelled = {"\\s": "white space", "\\t": "tab", "\\n": "line end", "\\r": "line end"}
    parts = re.findall(r"\\.|.", characters)
    return ", ".join(dict.fromkeys(spelled.get(one, one.removeprefix("\\")) for one in parts))


def apart(segments: Segments, name: str, *, of: tuple[str, ...] = ("sequence", "source")) -> Segments:
    """Segments in order of time, after checking that none overlaps another of the same sequence and source."""
    ordered = segments.sort()
    last: dict[tuple[str, ...], tuple[float, float]] = {}
    keys = zip(*(getattr(ordered, one) for one in of), strict=True)
    for key, start, end in zip(keys, ordered.start.tolist(), ordered.end.tolist(), strict=True):
        before = last.get(key)
        if before is not None and start < before[1]:
            raise FormatError(
                f"the format {name!r} does not allow overlaps; in {key[0]!r} the interval {start:g} to {end:g} begins "
                f"before {before[0]:g} to {before[1]:g} has ended.\n"
                "  Export one source or label at a time: segments.select(sources=[...], labels=[...])."
            )
        if before is None or end > before[1]:
            last[key] = (start, end)
    return ordered


def only(segments: Segments) -> str:
    """The one sequence of segments."""
    return next(iter(segments.recordings))


def columns(segments: Segments, *names: str) -> Iterable[tuple[Any, ...]]:
    """Intervals of some columns as plain values; a probability that is not known is None."""
    given = {name: segments.column(name) for name in names}
    if "probability" in given:
        given["probability"] = [None if isnan(p) else p for p in given["probability"]]
    return zip(*given.values(), strict=True)
