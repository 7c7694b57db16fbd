"""CoNLL-U: ten columns per token; tags and probabilities in the last one (``NER=B-DISEASE|P=0.9``).

A file holds several sequences where ``# newdoc id`` says so; without it, the file is one sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dugong.formats.conll import segments_of
from dugong.formats.files import File
from dugong.formats.registry import Files, Format
from dugong.formats.texts import forbid
from dugong.formats.tokens import Document, bio_tags, sentences_of, tokens_of
from dugong.segments import Recording, Segments

_COLUMNS = 10


@dataclass(kw_only=True)
class _Draft:
    """A document while its lines are read."""

    name: str
    tokens: list[tuple[int, str, str, bool, float | None]] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)


def parse(file: File) -> list[Document]:
    """The documents of a file."""
    drafts, begins = [_Draft(name=file.stem)], True
    for number, line in enumerate(file.lines, start=1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip() == "newdoc id":
                drafts = [*drafts, _Draft(name=value.strip())] if drafts[-1].tokens else [_Draft(name=value.strip())]
        elif not line.strip():
            begins = True
        else:
            cells = line.split("\t")
            if len(cells) != _COLUMNS:
                raise file.error(f"a line must have {_COLUMNS} columns between tabs; found {len(cells)}.", number)
            if "-" not in cells[0] and "." not in cells[0]:  # those are words of several tokens, and empty nodes
                if begins:
                    drafts[-1].breaks.add(len(drafts[-1].tokens))
                drafts[-1].tokens.append(_token(file, number, cells))
                begins = False
    return [_document(draft) for draft in drafts]


def _token(file: File, number: int, cells: list[str]) -> tuple[int, str, str, bool, float | None]:
    if cells[9] in ("_", "NER=O"):
        return number, cells[1], "O", True, None
    notes = dict(note.partition("=")[::2] for note in cells[9].split("|"))
    share = notes.get("P")
    probability = None if share is None else file.number(share, "P", number)
    return number, cells[1], notes.get("NER", "O"), notes.get("SpaceAfter") != "No", probability


def _document(draft: _Draft) -> Document:
    columns: Any = list(zip(*draft.tokens, strict=True)) or [()] * 5
    return Document(
        name=draft.name,
        tokens=columns[1],
        tags=columns[2],
        breaks=frozenset(draft.breaks),
        spaced=columns[3],
        lines=columns[0],
        notes=columns[4],
    )


def _fits(file: File) -> bool:
    first = next((line for line in file.lines if line.strip() and not line.startswith("#")), "")
    return len(first.split("\t")) == _COLUMNS


def _read(file: File) -> Segments:
    return segments_of(file, parse(file))


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    forbid(segments, r"\s|=", "conllu")
    lines = []
    for name, (tags, shares) in bio_tags(segments, "conllu").items():
        about = segments.recordings[name]
        lines.append(f"# newdoc id = {name}")
        words = tokens_of(about, name, "conllu")
        for number, sentence in enumerate(sentences_of(about), start=1):
            lines += _sentence(about, words, sentence, f"{name}-{number}", tags, shares)
    return {f"{stem}.conllu": ("\n".join(lines) + "\n").encode()}


def _sentence(
    about: Recording, words: list[str], places: list[int], name: str, tags: list[str], shares: list[float | None]
) -> list[str]:
    assert about.text is not None
    assert about.tokens is not None
    text = about.text[about.tokens[places[0]][0] : about.tokens[places[-1]][1]]
    lines = [f"# sent_id = {name}", f"# text = {' '.join(text.split())}"]
    for number, place in enumerate(places, start=1):
        notes = [f"NER={tags[place]}"]
        notes += [] if shares[place] is None else [f"P={shares[place]}"]
        last = number == len(places)
        glued = not last and about.tokens[place][1] == about.tokens[places[number]][0]
        notes += ["SpaceAfter=No"] if glued else []
        word = "".join(words[place].split()) or "_"
        lines.append("\t".join([str(number), word, *["_"] * 7, "|".join(notes)]))
    return [*lines, ""]


FORMATS = (
    Format(
        name="conllu",
        title="CoNLL-U",
        suffixes=(".conllu",),
        unit="elements (tokens), exact",
        keeps="sequence, tokens, sentences, start, end, label, probability",
        loses="source, further annotations; overlaps are refused",
        checked="conllu",
        fits=_fits,
        read=_read,
        write=_write,
        aliases=("conll-u",),
    ),
)
