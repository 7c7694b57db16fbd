"""Texts with spans: brat, doccano, Prodigy (sounds, too) and spaCy [extra].

brat has an .ann file beside each text. The probability and the source are a note of the annotator (``p=0.88
dugong-0.1.0``); a span in several pieces becomes several intervals with the same ``id`` among their attributes;
relations, events and attributes are left out. doccano and Prodigy are JSON lines; Prodigy's ``token_end`` is the last
token, not one past it, and answers that were rejected or ignored are left out when a file is read back. A DocBin of
spaCy has spans in ``doc.spans["dugong"]`` with their scores, and entities where spans do not overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from dugong.exceptions import FormatError, import_extra
from dugong.formats import Files, Format
from dugong.formats.files import (
    TOOL,
    File,
    Intervals,
    columns,
    forbid,
    grouped,
    json_lines,
    media_stem,
    only,
    placed,
    short,
    split_note,
    written,
)
from dugong.formats.tokens import tokens_of
from dugong.segments import Recording, Segments


def _text(segments: Segments, sequence: str, name: str) -> str:
    """The text of a sequence, which these formats cannot do without."""
    text = segments.recordings[sequence].text
    if text is None:
        raise FormatError(
            f"the format {name!r} holds text, and the text of {sequence!r} is not known.\n"
            "  Say it: segments.describe(text={sequence: ...})."
        )
    return text


# --- brat -------------------------------------------------------------------------------------------------------------
_SPAN = re.compile(r"^(?P<label>\S+) (?P<pieces>\d+ \d+(?:;\d+ \d+)*)$")


def _fits_brat(file: File) -> bool:
    first = next((line for line in file.lines if line.strip()), "T1\t")
    return bool(re.match(r"^[TREAMN#*]\S*\t", first))


def _read_brat(file: File) -> Segments:
    notes: dict[str, tuple[float | None, str]] = {}
    for line in file.lines:
        if line.startswith("#") and line.count("\t") >= 2:
            _, kind, text = line.split("\t", 2)
            if kind.startswith("AnnotatorNotes "):
                _, probability, rest = split_note(text)
                notes[kind.split(" ")[1]] = (probability, rest)
    rows = Intervals(file, "character")
    for number, line in enumerate(file.lines, start=1):
        if line.startswith("T"):
            _add(rows, number, line, notes)
    beside = file.beside(f"{file.stem}.txt")
    return rows.done({file.stem: Recording(text=None if beside is None else beside.text)})


def _add(rows: Intervals, number: int, line: str, notes: Mapping[str, tuple[float | None, str]]) -> None:
    cells = line.split("\t")
    found = _SPAN.match(cells[1]) if len(cells) > 1 else None
    if found is None:
        raise rows.file.error(f"a span must look like T1, tab, LABEL 12 27, tab, text; found {line!r}.", number)
    pieces = [piece.split(" ") for piece in found["pieces"].split(";")]
    probability, source = notes.get(cells[0], (None, ""))
    more: dict[str, Any] = {"source": source, "attributes": {"id": cells[0]} if len(pieces) > 1 else {}}
    for start, end in pieces:
        rows.add(number, rows.file.stem, int(start), int(end), found["label"], probability, **more)


def _write_brat(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "character", "brat").sort()
    forbid(found, r"\s", "brat")
    text, lines = _text(found, only(found), "brat"), []
    rows = columns(found, "start", "end", "label", "probability", "source")
    for number, (start, end, label, p, source) in enumerate(rows, start=1):
        if end > len(text):
            raise FormatError(f"an interval ends at character {end:g} of {only(found)!r}, which has {len(text)}.")
        piece = text[int(start) : int(end)].replace("\n", " ").replace("\r", " ").replace("\t", " ")
        lines.append(f"T{number}\t{label} {int(start)} {int(end)}\t{piece}")
        if p is not None:
            lines.append(f"#{number}\tAnnotatorNotes T{number}\tp={short(p)} {source}".rstrip())
    return {f"{stem}.ann": written(lines), f"{stem}.txt": text.encode()}


# --- doccano ----------------------------------------------------------------------------------------------------------
def _fits_doccano(file: File) -> bool:
    first = file.first_object()
    return "text" in first and isinstance(first.get("label", first.get("entities")), list)


def _read_doccano(file: File) -> Segments:
    rows, recordings = Intervals(file, "character"), {}
    every = file.json_lines()
    for place, (number, one) in enumerate(every, start=1):
        with file.at(number):
            name = str(one.get("sequence") or (file.stem if len(every) == 1 else one.get("id", f"{file.stem}-{place}")))
            recordings[name] = Recording(text=one["text"])
            shares = one.get("p") or []
            for row, (start, end, label) in enumerate(_doccano_spans(one)):
                rows.add(number, name, start, end, str(label), shares[row] if row < len(shares) else None)
    return rows.done(recordings)


def _doccano_spans(one: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Spans as doccano writes them: lists, or in newer exports objects."""
    for span in one.get("label") or []:
        yield span[0], span[1], span[2]
    for span in one.get("entities") or []:
        yield span["start_offset"], span["end_offset"], span["label"]


def _write_doccano(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "character", "doccano").sort()
    texts = []
    for name, rows in grouped(found, "sequence", "start", "end", "label", "probability").items():
        spans = [[int(start), int(end), label] for start, end, label, _ in rows]
        shares = [p for *_, p in rows]
        texts.append({"text": _text(found, name, "doccano"), "label": spans, "p": shares, "sequence": name})
    return {f"{stem}.jsonl": json_lines(texts)}


# --- Prodigy ----------------------------------------------------------------------------------------------------------
def _fits_prodigy(file: File) -> bool:
    first = file.first_object()
    return "audio_spans" in first or ("text" in first and "spans" in first)


def _read_prodigy(file: File) -> Segments:
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


def _write_prodigy(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    sound = segments.unit == "second"
    found = placed(segments, "second" if sound else "character", "prodigy").sort()
    sources, tasks = dict(zip(found.sequence, found.source, strict=True)), []
    for name, rows in grouped(found, "sequence", "start", "end", "label", "probability").items():
        spans = list(_prodigy_spans(rows, found.recordings[name], sound=sound))
        tasks.append(_task(found, name, spans, sources.get(name) or TOOL, sound=sound))
    return {f"{stem}.jsonl": json_lines(tasks)}


def _prodigy_spans(rows: list[tuple[Any, ...]], about: Recording, *, sound: bool) -> Iterator[dict[str, Any]]:
    """Spans of a sequence: seconds of a sound, or characters of a text and the tokens that begin and end there."""
    first = {start: place for place, (start, _) in enumerate(about.tokens or ())}
    last = {end: place for place, (_, end) in enumerate(about.tokens or ())}
    for start, end, label, p in rows:
        span: dict[str, Any] = {"start": start, "end": end, "label": label}
        if not sound:
            span |= {"start": int(start), "end": int(end)}
            if start in first and end in last:
                span |= {"token_start": first[start], "token_end": last[end]}
        yield span | ({} if p is None else {"score": p})


def _task(found: Segments, name: str, spans: list[dict[str, Any]], source: str, *, sound: bool) -> dict[str, Any]:
    about, meta = found.recordings[name], {"source": source, "sequence": name}
    if sound:
        media = about.media or f"{name}.wav"
        return {"audio": media, "path": media, "audio_spans": spans, "meta": meta}
    text = _text(found, name, "prodigy")
    tokens = [
        {"text": text[start:end], "start": start, "end": end, "id": place, "ws": text[end : end + 1] == " "}
        for place, (start, end) in enumerate(about.tokens or ())
    ]
    return {"text": text, **({"tokens": tokens} if tokens else {}), "spans": spans, "meta": meta}


# --- spaCy ------------------------------------------------------------------------------------------------------------
_KEY = "dugong"


def _spacy() -> Any:
    import_extra("spacy.tokens", "spacy", "reading and writing DocBin files")
    return import_module("spacy")


def _read_spacy(file: File) -> Segments:
    spacy = _spacy()
    rows, recordings = Intervals(file, "element"), {}
    try:
        docs = list(spacy.tokens.DocBin().from_bytes(file.data).get_docs(spacy.blank("xx").vocab))
    except Exception as error:  # noqa: BLE001  (msgpack and zlib raise many kinds on damaged bytes)
        raise file.error(f"this is no DocBin, or it is damaged: {error}.") from None
    for place, doc in enumerate(docs, start=1):
        about = doc.user_data.get(_KEY) or {}
        name = str(about.get("sequence") or (file.stem if len(docs) == 1 else f"{file.stem}-{place}"))
        tokens = tuple((token.idx, token.idx + len(token)) for token in doc)
        recordings[name] = Recording(text=doc.text, tokens=tokens, length=len(doc))
        for span, score in _spacy_spans(doc):
            rows.add(
                f"document {place}", name, span.start, span.end, span.label_, score, source=about.get("source", "")
            )
    return rows.done(recordings)


def _spacy_spans(doc: Any) -> list[tuple[Any, float | None]]:
    """Spans of our own group with scores; else of every group; else the entities."""
    if _KEY in doc.spans:
        group = doc.spans[_KEY]
        scores = list(group.attrs.get("scores") or [None] * len(group))
        return list(zip(group, scores, strict=True))
    groups = [span for group in doc.spans.values() for span in group]
    return [(span, None) for span in groups or doc.ents]


def _write_spacy(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    spacy = _spacy()
    found = placed(segments, "element", "spacy").sort()
    vocab = spacy.blank("xx").vocab
    bin_ = spacy.tokens.DocBin(store_user_data=True)
    for name, spans in grouped(found, "sequence", "start", "end", "label", "probability", "source").items():
        bin_.add(_doc(spacy, vocab, name, found.recordings[name], spans))
    return {f"{stem}.spacy": bin_.to_bytes()}


def _doc(spacy: Any, vocab: Any, name: str, about: Recording, spans: list[tuple[Any, ...]]) -> Any:
    words = tokens_of(about, name, "spacy")
    text, tokens = about.text or "", about.tokens or ()
    borders = [*(start for start, _ in tokens[1:]), len(text)]
    gaps = [text[end:begin] for (_, end), begin in zip(tokens, borders, strict=True)]
    if any(gap not in ("", " ") for gap in gaps[:-1]):
        raise FormatError(
            f"a DocBin has at most one space between tokens; the text of {name!r} has more.\n"
            "  Make tokens of the white space too, or write brat, which keeps texts as they are."
        )
    doc = spacy.tokens.Doc(vocab, words=words, spaces=[gap == " " for gap in gaps])
    made = [spacy.tokens.Span(doc, int(start), int(end), label=label) for start, end, label, _, _ in spans]
    doc.spans[_KEY] = made
    doc.spans[_KEY].attrs["scores"] = [p for _, _, _, p, _ in spans]
    doc.ents = spacy.util.filter_spans(made)
    source = next((one for *_, one in spans if one), "")
    doc.user_data[_KEY] = {"sequence": name, "source": source, "model_version": TOOL}
    return doc


FORMATS = (
    Format(
        name="brat",
        title="brat standoff",
        suffixes=(".ann",),
        unit="characters, exact",
        keeps="text, start, end, label; with a probability (4 decimals) also the source",
        loses="tokens; the source of intervals without a probability",
        checked="structure of the sample (brat's own tools)",
        fits=_fits_brat,
        read=_read_brat,
        write=_write_brat,
        single=True,
        shared=lambda segments: {
            "annotation.conf": written(["[entities]", *segments.labels, "[relations]", "[events]", "[attributes]"])
        },
    ),
    Format(
        name="doccano",
        title="doccano JSON lines",
        suffixes=(".jsonl",),
        unit="characters, exact",
        keeps="sequence, text, start, end, label; probability (a column of its own, which doccano keeps as it is)",
        loses="source, tokens",
        checked="structure of the sample (datasets reads it)",
        fits=_fits_doccano,
        read=_read_doccano,
        write=_write_doccano,
    ),
    Format(
        name="prodigy",
        title="Prodigy JSON lines",
        suffixes=(".jsonl",),
        unit="characters, or seconds for sound; exact",
        keeps="sequence, text, tokens, start, end, label, probability, media; one source per sequence",
        loses="resolution, attributes, durations",
        checked="structure of the sample (a closed product)",
        fits=_fits_prodigy,
        read=_read_prodigy,
        write=_write_prodigy,
    ),
    Format(
        name="spacy",
        title="spaCy DocBin",
        suffixes=(".spacy",),
        unit="elements (tokens), exact",
        keeps="sequence, text, tokens, start, end, label, probability; one source per sequence",
        loses="attributes; overlapping spans are no entities",
        checked="spacy",
        fits=lambda file: file.data[:2] in (b"\x78\x9c", b"\x78\x01", b"\x78\xda", b"\x78\x5e"),
        read=_read_spacy,
        write=_write_spacy,
        extra="spacy",
        aliases=("docbin",),
    ),
)
