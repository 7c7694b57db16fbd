"""WebVTT and SRT: labels as subtitles, shown by every player; one sequence per file.

A probability follows the label (``walk 0.93``). Cues are written without identifiers: some readers take an identifier
for a part of the cue before it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals
from dugong.formats.texts import TOOL, columns, forbid, placed, split_number, with_number
from dugong.segments import Recording, Segments

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMES = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?$")
_TAG = re.compile(r"</?[^<>]*>")


def _clock(seconds: float, point: str) -> str:
    whole = round(seconds * 1000)
    minutes, rest = divmod(whole, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _blocks(file: File) -> Iterator[tuple[int, list[str]]]:
    """Blocks between empty lines, with the number of their first line."""
    block: list[str] = []
    for number, line in enumerate([*file.lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _read(file: File, *, plain: Callable[[str], str]) -> Segments:
    rows = Intervals(file, "second")
    for number, block in _blocks(file):
        place = next((place for place, line in enumerate(block) if "-->" in line), None)
        if place is None:
            if block[0].removeprefix("\ufeff").startswith(("WEBVTT", "NOTE", "STYLE", "REGION")):
                continue
            raise file.error(f"a subtitle must have a line with its times; found {block[0]!r}.", number)
        found = _TIMES.match(block[place])
        if found is None:
            raise file.error(f"these are no times of a subtitle: {block[place]!r}.", number + place)
        label, probability = split_number(plain(" ".join(block[place + 1 :])).strip())
        start, end = _seconds(*found.groups()[:4]), _seconds(*found.groups()[4:])
        rows.add(number + place, file.stem, start, end, label, probability)
    return rows.done({file.stem: Recording()})


def _cues(segments: Segments, name: str, point: str, text: Callable[[str], str]) -> Iterator[str]:
    found = placed(segments, "second", name).sort()
    forbid(found, r"\n\r", name)
    for start, end, label, p in columns(found, "start", "end", "label", "probability"):
        yield f"{_clock(start, point)} --> {_clock(end, point)}\n{text(with_number(label, p))}\n"


def _write_vtt(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    cues = _cues(segments, "webvtt", ".", partial(html.escape, quote=False))
    return {f"{stem}.vtt": "\n".join([f"WEBVTT\n\nNOTE {TOOL}\n", *cues]).encode()}


def _write_srt(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    cues = enumerate(_cues(segments, "srt", ",", str), start=1)
    return {f"{stem}.srt": "\n".join(f"{number}\n{cue}" for number, cue in cues).encode()}


FORMATS = (
    Format(
        name="webvtt",
        title="WebVTT subtitles",
        suffixes=(".vtt",),
        unit="seconds, 1 ms",
        keeps="start, end, label, probability (4 decimals); instants",
        loses="source",
        checked="webvtt-py",
        fits=lambda file: file.text.removeprefix("\ufeff").startswith("WEBVTT"),
        read=partial(_read, plain=lambda text: html.unescape(_TAG.sub("", text))),
        write=_write_vtt,
        single=True,
        aliases=("vtt",),
    ),
    Format(
        name="srt",
        title="SRT subtitles",
        suffixes=(".srt",),
        unit="seconds, 1 ms",
        keeps="start, end, label, probability (4 decimals); instants",
        loses="source",
        checked="srt",
        fits=lambda file: "-->" in file.text[:10_000],
        read=partial(_read, plain=str),
        write=_write_srt,
        single=True,
    ),
)
