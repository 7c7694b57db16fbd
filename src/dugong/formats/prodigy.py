"""Prodigy JSON lines: one task per line, spans of characters in a text or of seconds in a sound.

Tokens are written where they are known; ``token_end`` is the last token, not one past it. Answers that were rejected
or ignored are left out when a file is read back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, media_stem, placed
from dugong.segments import Recording, Segments


def _fits(file: File) -> bool:
    first = file.first_object()
    return "audio_spans" in first or ("text" in first and "spans" in first)


def _read(file: File) -> Segments:
    every = file.json_lines()
    sounds = {"audio_spans" in one or "audio" in one for _, one in every}
    if len(sounds) > 1:
        raise file.error("texts and sounds must not be mixed in one file.")
    rows = Intervals(file, "second" if sounds == {True} else "character")
    recordings: dict[str, Recording] = {}
    asked: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    for place, (number, one) in enumerate(every, start=1):
        if one.get("answer", "accept") != "accept":
            continue
        with file.at(number):
            name = _name(file, one, place, len(every))
            source = str(one.get("_annotator_id") or (one.get("meta") or {}).get("source") or "")
            recordings[name] = _recording(one)
            asked[source, name] = ((0.0, float("inf")),)
            for span in one.get("audio_spans" if "audio_spans" in one else "spans") or []:
                score = span.get("score")
                rows.add(number, name, span["start"], span["end"], str(span["label"]), score, source=source)
    return rows.done(recordings, asked)


def _name(file: File, one: dict[str, Any], place: int, size: int) -> str:
    known = (one.get("meta") or {}).get("sequence")
    media = one.get("path") or one.get("audio")
    if known is not None:
        return str(known)
    if isinstance(media, str) and not media.startswith("data:"):
        return media_stem(media)
    return file.stem if size == 1 else f"{file.stem}-{place}"


def _recording(one: dict[str, Any]) -> Recording:
    tokens = tuple((int(token["start"]), int(token["end"])) for token in one.get("tokens") or []) or None
    media = one.get("path") or one.get("audio")
    return Recording(text=one.get("text"), tokens=tokens, media=media if isinstance(media, str) else None)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    sound = segments.unit == "second"
    found = placed(segments, "second" if sound else "character", "prodigy").sort()
    spans: dict[str, list[dict[str, Any]]] = {name: [] for name in found.recordings}
    tokens = {name: _TokenFinder(about) for name, about in found.recordings.items()}
    for name, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        span: dict[str, Any] = {"start": start, "end": end, "label": label}
        if not sound:
            span = {"start": int(start), "end": int(end), "label": label, **tokens[name].around(int(start), int(end))}
        spans[name].append(span | ({} if p is None else {"score": p}))
    sources = dict(zip(found.sequence, found.source, strict=True))
    tasks = [
        _task(name, about, spans[name], sources.get(name) or TOOL, sound=sound)
        for name, about in found.recordings.items()
    ]
    return {f"{stem}.jsonl": "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks).encode()}


class _TokenFinder:
    """Finds the tokens of a span, where there are any."""

    def __init__(self, about: Recording) -> None:
        self.first = {start: place for place, (start, _) in enumerate(about.tokens or ())}
        self.last = {end: place for place, (_, end) in enumerate(about.tokens or ())}

    def around(self, start: int, end: int) -> dict[str, int]:
        if start not in self.first or end not in self.last:
            return {}
        return {"token_start": self.first[start], "token_end": self.last[end]}


def _task(name: str, about: Recording, spans: list[dict[str, Any]], source: str, *, sound: bool) -> dict[str, Any]:
    meta = {"source": source, "sequence": name}
    if sound:
        media = about.media or f"{name}.wav"
        return {"audio": media, "path": media, "audio_spans": spans, "meta": meta}
    if about.text is None:
        raise FormatError(f"the format 'prodigy' holds text, and the text of {name!r} is not known.")
    text, tokens = about.text, []
    for place, (start, end) in enumerate(about.tokens or ()):
        tokens.append(
            {"text": text[start:end], "start": start, "end": end, "id": place, "ws": text[end : end + 1] == " "}
        )
    return {"text": text, **({"tokens": tokens} if tokens else {}), "spans": spans, "meta": meta}


FORMATS = (
    Format(
        name="prodigy",
        title="Prodigy JSON lines",
        suffixes=(".jsonl",),
        unit="characters, or seconds for sound; exact",
        keeps="sequence, text, tokens, start, end, label, probability, media; one source per sequence",
        loses="resolution, attributes, durations",
        checked="structure of the sample (a closed product)",
        fits=_fits,
        read=_read,
        write=_write,
    ),
)
