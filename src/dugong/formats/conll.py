"""CoNLL-2003: one token per line, its tag in the last column, an empty line between sentences; one sequence per file.

A file with several documents (``-DOCSTART-``) gives several sequences when it is read: ``name-1``, ``name-2``, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import forbid, only
from dugong.formats.tokens import Document, bio_tags, sentences_of, spans_of_tags, tokens_of
from dugong.segments import Segments

_START = "-DOCSTART-"


def parse(file: File) -> list[Document]:
    """The documents of a file: tokens, tags and where sentences begin."""
    parts: list[list[tuple[int, str, str, bool]]] = [[]]
    begins = True
    for number, line in enumerate(file.lines, start=1):
        cells = line.removeprefix("\ufeff").split()
        if not cells:
            begins = True
        elif cells[0] == _START:
            parts += [[]] if parts[-1] else []
            begins = True
        else:
            if len(cells) < 2:
                raise file.error(f"a line must have a token and a tag; found {line!r}.", number)
            parts[-1].append((number, cells[0], cells[-1], begins))
            begins = False
    parts = [part for part in parts if part] or [[]]
    names = [file.stem] if len(parts) == 1 else [f"{file.stem}-{place}" for place in range(1, len(parts) + 1)]
    return [_document(file, name, part) for name, part in zip(names, parts, strict=True)]


def _document(file: File, name: str, part: list[tuple[int, str, str, bool]]) -> Document:
    for number, _, tag, _ in part:
        if tag != "O" and (tag[1:2] != "-" or tag[0] not in "BIESUL"):
            raise file.error(f"the last column must hold O or a tag such as B-DISEASE; found {tag!r}.", number)
    return Document(
        name=name,
        tokens=tuple(token for _, token, _, _ in part),
        tags=tuple(tag for _, _, tag, _ in part),
        breaks=frozenset(place for place, one in enumerate(part) if one[3]),
        spaced=(True,) * len(part),
        lines=tuple(number for number, _, _, _ in part),
    )


def segments_of(file: File, documents: list[Document]) -> Segments:
    """The spans of documents, in elements; the probability of a span is the mean over its tokens."""
    rows = Intervals(file, "element")
    for one in documents:
        for start, end, label in spans_of_tags(one.tags, one.breaks):
            given = [share for share in one.notes[start:end] if share is not None]
            rows.add(one.lines[start], one.name, start, end, label, sum(given) / len(given) if given else None)
    return rows.done({one.name: one.recording() for one in documents})


def _read(file: File) -> Segments:
    return segments_of(file, parse(file))


def _fits(file: File) -> bool:
    first = next((line.split() for line in file.lines if line.strip() and not line.startswith(_START)), [])
    return len(first) in (2, 3, 4) and (first[-1] == "O" or first[-1][1:2] == "-") and "\t#" not in file.text[:200]


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    forbid(segments, r"\s", "conll")
    name = only(segments)
    tags, about = bio_tags(segments, "conll")[name][0], segments.recordings[name]
    words = tokens_of(about, name, "conll")
    sentences = [
        "".join(f"{_word(words[place])} -X- -X- {tags[place]}\n" for place in sentence)
        for sentence in sentences_of(about)
    ]
    return {f"{stem}.conll": "\n".join([f"{_START} -X- -X- O\n", *sentences, ""]).encode()}


def _word(token: str) -> str:
    """A token as one word: white space inside it would make two columns of it."""
    return "".join(token.split()) or "_"


FORMATS = (
    Format(
        name="conll",
        title="CoNLL-2003",
        suffixes=(".conll", ".conll03", ".bio", ".iob"),
        unit="elements (tokens), exact",
        keeps="tokens, sentences, start, end, label",
        loses="probability, source, spaces between tokens; overlaps are refused",
        checked="spacy",
        fits=_fits,
        read=_read,
        write=_write,
        single=True,
        aliases=("conll-2003", "conll2003"),
    ),
)
