"""spaCy DocBin: spans in ``doc.spans["dugong"]`` with their scores, and entities where spans do not overlap [extra]."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dugong.exceptions import FormatError, import_extra
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, placed
from dugong.formats.tokens import tokens_of
from dugong.segments import Recording, Segments

_KEY = "dugong"


def _spacy() -> Any:
    import_extra("spacy.tokens", "spacy", "reading and writing DocBin files")
    return import_module("spacy")


def _read(file: File) -> Segments:
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
        for span, score in _spans(doc):
            rows.add(
                f"document {place}", name, span.start, span.end, span.label_, score, source=about.get("source", "")
            )
    return rows.done(recordings)


def _spans(doc: Any) -> list[tuple[Any, float | None]]:
    """Spans of our own group with scores; else of every group; else the entities."""
    if _KEY in doc.spans:
        group = doc.spans[_KEY]
        scores = list(group.attrs.get("scores") or [None] * len(group))
        return list(zip(group, scores, strict=True))
    groups = [span for group in doc.spans.values() for span in group]
    return [(span, None) for span in groups or doc.ents]


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    spacy = _spacy()
    found = placed(segments, "element", "spacy").sort()
    vocab = spacy.blank("xx").vocab
    bin_ = spacy.tokens.DocBin(store_user_data=True)
    by_name: dict[str, list[tuple[int, int, str, float | None, str]]] = {name: [] for name in found.recordings}
    for name, start, end, label, p, source in columns(
        found, "sequence", "start", "end", "label", "probability", "source"
    ):
        by_name[name].append((int(start), int(end), label, p, source))
    for name, spans in by_name.items():
        bin_.add(_doc(spacy, vocab, name, found.recordings[name], spans))
    return {f"{stem}.spacy": bin_.to_bytes()}


def _doc(
    spacy: Any, vocab: Any, name: str, about: Recording, spans: list[tuple[int, int, str, float | None, str]]
) -> Any:
    words = tokens_of(about, name, "spacy")
    assert about.text is not None
    assert about.tokens is not None
    borders = [*(start for start, _ in about.tokens[1:]), len(about.text)]
    gaps = [about.text[end:begin] for (_, end), begin in zip(about.tokens, borders, strict=True)]
    if any(gap not in ("", " ") for gap in gaps[:-1]):
        raise FormatError(
            f"a DocBin has at most one space between tokens; the text of {name!r} has more.\n"
            "  Make tokens of the white space too, or write brat, which keeps texts as they are."
        )
    doc = spacy.tokens.Doc(vocab, words=words, spaces=[gap == " " for gap in gaps])
    made = [spacy.tokens.Span(doc, start, end, label=label) for start, end, label, _, _ in spans]
    doc.spans[_KEY] = made
    doc.spans[_KEY].attrs["scores"] = [p for _, _, _, p, _ in spans]
    doc.ents = spacy.util.filter_spans(made)
    source = next((one for *_, one in spans if one), "")
    doc.user_data[_KEY] = {"sequence": name, "source": source, "model_version": TOOL}
    return doc


FORMATS = (
    Format(
        name="spacy",
        title="spaCy DocBin",
        suffixes=(".spacy",),
        unit="elements (tokens), exact",
        keeps="sequence, text, tokens, start, end, label, probability; one source per sequence",
        loses="attributes; overlapping spans are no entities",
        checked="spacy",
        fits=lambda file: file.data[:2] in (b"\x78\x9c", b"\x78\x01", b"\x78\xda", b"\x78\x5e"),
        read=_read,
        write=_write,
        extra="spacy",
        aliases=("docbin",),
    ),
)
