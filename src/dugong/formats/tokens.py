"""Text as tokens: CoNLL-2003 and CoNLL-U files, and what they share with others: BIO tags to spans and back.

CoNLL-2003 has one token per line, its tag in the last column, an empty line between sentences. A file with several
documents (``-DOCSTART-``) gives several sequences when it is read: ``name-1``, ``name-2``, ... CoNLL-U has ten columns
per token, with tags and probabilities in the last one (``NER=B-DISEASE|P=0.9``); it holds several sequences where
``# newdoc id`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dugong.exceptions import FormatError
from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals, apart, columns, forbid, only, placed, written
from dugong.segments import Recording, Segments

_OPENS, _CLOSES = "BSU", "ESUL"  # S and U are spans of one token; E and L are last tokens
_START = "-DOCSTART-"
_N_COLUMNS = 10


class TaggedToken(NamedTuple):
    """One token of a file: its line, its tag, whether a space follows it, and how probable the tag is."""

    line: int
    word: str
    tag: str
    spaced: bool = True
    share: float | None = None


@dataclass(kw_only=True)
class Document:
    """One text as a file of tokens has it; `breaks` are places of tokens that begin a sentence."""

    name: str
    tokens: list[TaggedToken] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)

    def add(self, token: TaggedToken, *, begins: bool) -> None:
        """Put a token at the end; whether it begins a sentence."""
        if begins:
            self.breaks.add(len(self.tokens))
        self.tokens.append(token)

    def recording(self) -> Recording:
        """The text with one line per sentence, and where its tokens are."""
        text = ""
        spans: list[tuple[int, int]] = []
        gap = ""
        for place, token in enumerate(self.tokens):
            text += "\n" if place and place in self.breaks else gap
            spans.append((len(text), len(text) + len(token.word)))
            text += token.word
            gap = " " if token.spaced else ""
        return Recording(text=text, tokens=tuple(spans), length=len(self.tokens))


# --- tags, tokens, sentences -------------------------------------------------------------------------------------
def spans_of_tags(tags: Sequence[str], breaks: Iterable[int] = ()) -> Iterator[tuple[int, int, str]]:
    """Spans that tags mark: (first token, one past the last, label); BIO, IOB and BIOES alike.

    An I- tag that continues nothing opens a span; no span crosses a break.
    """
    start, label = 0, ""
    begins = set(breaks)
    closed = False
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-") if tag != "O" else ("O", "", "")
        goes_on = bool(label) and kind == label and prefix not in _OPENS and place not in begins
        if label and (not goes_on or closed):
            yield start, place, label
            label = ""
        if kind and not label:
            start, label = place, kind
        closed = prefix in _CLOSES


def segments_of(file: File, documents: Iterable[Document]) -> Segments:
    """The spans of documents, in elements; the probability of a span is the mean over its tokens."""
    rows, recordings = Intervals(file, "element"), {}
    for one in documents:
        recordings[one.name] = one.recording()
        for start, end, label in spans_of_tags([token.tag for token in one.tokens], one.breaks):
            given = [token.share for token in one.tokens[start:end] if token.share is not None]
            mean = sum(given) / len(given) if given else None
            rows.add(one.tokens[start].line, one.name, start, end, label, mean)
    return rows.done(recordings)


class TaggedText(NamedTuple):
    """The words of a sequence as they are written: a tag and a probability each."""

    words: list[str]
    tags: list[str]
    shares: list[float | None]


def bio_tags(segments: Segments, name: str) -> dict[str, TaggedText]:
    """Words, BIO tags and probabilities of all tokens, by sequence."""
    found = apart(placed(segments, "element", name), name, of=("sequence",))
    every: dict[str, TaggedText] = {}
    for sequence, about in found.recordings.items():
        words = tokens_of(about, sequence, name)
        every[sequence] = TaggedText(words, ["O"] * len(words), [None] * len(words))
    for sequence, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        words, tags, shares = every[sequence]
        if end > len(words):
            raise FormatError(f"an interval ends at token {end:g} of {sequence!r}, which has {len(words)}.")
        for place in range(int(start), int(end)):
            tags[place] = f"{'B' if place == start else 'I'}-{label}"
            shares[place] = p
    return every


def tokens_of(about: Recording, sequence: str, name: str) -> list[str]:
    """The words of a recording."""
    if about.text is None or about.tokens is None:
        raise FormatError(
            f"the format {name!r} holds text, and the text and tokens of {sequence!r} are not known.\n"
            "  Say them: segments.describe(text=..., tokens=...), or on the command line --media with the folder of "
            "the texts."
        )
    return [about.text[start:end] for start, end in about.tokens]


def sentences_of(about: Recording) -> list[list[int]]:
    """Places of tokens, sentence by sentence: a line end between two tokens ends a sentence."""
    text, tokens = about.text or "", about.tokens or ()
    sentences: list[list[int]] = []
    last = 0
    for place, (start, end) in enumerate(tokens):
        if not sentences or "\n" in text[last:start]:
            sentences.append([])
        sentences[-1].append(place)
        last = end
    return sentences


def _one_word(token: str) -> str:
    """A token as one word: white space inside it would make two columns of it."""
    return "".join(token.split()) or "_"


# --- CoNLL-2003 --------------------------------------------------------------------------------------------------
def parse_conll(file: File) -> list[Document]:
    """The documents of a CoNLL-2003 file."""
    parts, begins = [Document(name=file.stem)], True
    for number, line in enumerate(file.lines, start=1):
        cells = line.removeprefix("\ufeff").split()
        if not cells:
            begins = True
        elif cells[0] == _START:
            parts += [Document(name=file.stem)] if parts[-1].tokens else []
            begins = True
        elif len(cells) < 2:
            raise file.error(f"a line must have a token and a tag; found {line!r}.", number)
        else:
            tag = cells[-1]
            if tag != "O" and (tag[1:2] != "-" or tag[0] not in "BIESUL"):
                raise file.error(f"the last column must hold O or a tag such as B-DISEASE; found {tag!r}.", number)
            parts[-1].add(TaggedToken(number, cells[0], tag), begins=begins)
            begins = False
    found = [part for part in parts if part.tokens] or parts
    if len(found) == 1:
        return found
    return [replace(part, name=f"{file.stem}-{place}") for place, part in enumerate(found, start=1)]


def _fits_conll(file: File) -> bool:
    first = next((line.split() for line in file.lines if line.strip() and not line.startswith(_START)), [])
    return len(first) in (2, 3, 4) and (first[-1] == "O" or first[-1][1:2] == "-") and "\t#" not in file.text[:200]


def _write_conll(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    forbid(segments, r"\s", "conll")
    name = only(segments)
    text = bio_tags(segments, "conll")[name]
    sentences = [
        "".join(f"{_one_word(text.words[place])} -X- -X- {text.tags[place]}\n" for place in sentence)
        for sentence in sentences_of(segments.recordings[name])
    ]
    return {f"{stem}.conll": "\n".join([f"{_START} -X- -X- O\n", *sentences, ""]).encode()}


# --- CoNLL-U -----------------------------------------------------------------------------------------------------
def parse_conllu(file: File) -> list[Document]:
    """The documents of a CoNLL-U file."""
    parts, begins = [Document(name=file.stem)], True
    for number, line in enumerate(file.lines, start=1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip() == "newdoc id":
                parts = [*(part for part in parts if part.tokens), Document(name=value.strip())]
        elif not line.strip():
            begins = True
        else:
            cells = line.split("\t")
            if len(cells) != _N_COLUMNS:
                raise file.error(f"a line must have {_N_COLUMNS} columns between tabs; found {len(cells)}.", number)
            if "-" not in cells[0] and "." not in cells[0]:  # those are words of several tokens, and empty nodes
                parts[-1].add(_conllu_token(file, number, cells), begins=begins)
                begins = False
    return parts


def _conllu_token(file: File, number: int, cells: list[str]) -> TaggedToken:
    if cells[9] in ("_", "NER=O"):
        return TaggedToken(number, cells[1], "O")
    notes = dict(note.partition("=")[::2] for note in cells[9].split("|"))
    share = notes.get("P")
    probability = None if share is None else file.number(share, "P", number)
    return TaggedToken(number, cells[1], notes.get("NER", "O"), notes.get("SpaceAfter") != "No", probability)


def _fits_conllu(file: File) -> bool:
    first = next((line for line in file.lines if line.strip() and not line.startswith("#")), "")
    return len(first.split("\t")) == _N_COLUMNS


def _write_conllu(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    forbid(segments, r"\s|=", "conllu")
    lines = []
    for name, text in bio_tags(segments, "conllu").items():
        about = segments.recordings[name]
        lines.append(f"# newdoc id = {name}")
        for number, sentence in enumerate(sentences_of(about), start=1):
            lines += _conllu_sentence(about, text, sentence, f"{name}-{number}")
    return {f"{stem}.conllu": written(lines)}


def _conllu_sentence(about: Recording, tagged: TaggedText, places: list[int], name: str) -> list[str]:
    text, tokens = about.text or "", about.tokens or ()
    shown = text[tokens[places[0]][0] : tokens[places[-1]][1]]
    lines = [f"# sent_id = {name}", f"# text = {' '.join(shown.split())}"]
    for number, place in enumerate(places, start=1):
        notes = [f"NER={tagged.tags[place]}"]
        notes += [] if tagged.shares[place] is None else [f"P={tagged.shares[place]}"]
        glued = number < len(places) and tokens[place][1] == tokens[places[number]][0]
        notes += ["SpaceAfter=No"] if glued else []
        lines.append("\t".join([str(number), _one_word(tagged.words[place]), *["_"] * 7, "|".join(notes)]))
    return [*lines, ""]


def _reader(parse: Callable[[File], list[Document]]) -> Callable[[File], Segments]:
    return lambda file: segments_of(file, parse(file))


FORMATS = (
    Format(
        name="conll",
        title="CoNLL-2003",
        suffixes=(".conll", ".conll03", ".bio", ".iob"),
        unit="elements (tokens), exact",
        keeps="tokens, sentences, start, end, label",
        loses="probability, source, spaces between tokens; overlaps are refused",
        checked="spacy",
        fits=_fits_conll,
        read=_reader(parse_conll),
        write=_write_conll,
        single=True,
        aliases=("conll-2003", "conll2003"),
    ),
    Format(
        name="conllu",
        title="CoNLL-U",
        suffixes=(".conllu",),
        unit="elements (tokens), exact",
        keeps="sequence, tokens, sentences, start, end, label, probability",
        loses="source, further annotations; overlaps are refused",
        checked="conllu",
        fits=_fits_conllu,
        read=_reader(parse_conllu),
        write=_write_conllu,
        aliases=("conll-u",),
    ),
)
