"""Text as tokens: BIO tags to spans and back, and tokens to characters; what CoNLL files and their like share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dugong.exceptions import FormatError
from dugong.formats.texts import apart, columns, placed
from dugong.segments import Recording, Segments

_OPENS, _CLOSES = "BSU", "ESUL"  # S and U are spans of one token; E and L are last tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text as a file of tokens has it.

    Attributes
    ----------
    name : id of the sequence
    tokens : words in order
    tags : one per token, or empty where the file has none
    breaks : places of tokens that begin a sentence
    spaced : whether a space follows each token
    lines : line of the file of each token
    notes : further facts by token, such as a probability
    """

    name: str
    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    breaks: frozenset[int]
    spaced: tuple[bool, ...]
    lines: tuple[int, ...]
    notes: tuple[float | None, ...] = ()

    def recording(self) -> Recording:
        """The text with one line per sentence, and where its tokens are."""
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        place = 0
        for number, token in enumerate(self.tokens):
            gap = "" if number == 0 else "\n" if number in self.breaks else " " if self.spaced[number - 1] else ""
            parts += [gap, token]
            place += len(gap)
            spans.append((place, place + len(token)))
            place += len(token)
        return Recording(text="".join(parts), tokens=tuple(spans), length=len(self.tokens))


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


def bio_tags(segments: Segments, name: str) -> dict[str, tuple[list[str], list[float | None]]]:
    """BIO tags and probabilities of all tokens, by sequence."""
    found = apart(placed(segments, "element", name), name, of=("sequence",))
    every: dict[str, tuple[list[str], list[float | None]]] = {}
    for sequence, about in found.recordings.items():
        size = len(tokens_of(about, sequence, name))
        every[sequence] = (["O"] * size, [None] * size)
    for sequence, start, end, label, p in columns(found, "sequence", "start", "end", "label", "probability"):
        tags, shares = every[sequence]
        if end > len(tags):
            raise FormatError(f"an interval ends at token {end:g} of {sequence!r}, which has {len(tags)}.")
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
    assert about.text is not None
    assert about.tokens is not None
    sentences: list[list[int]] = []
    last = 0
    for place, (start, end) in enumerate(about.tokens):
        if not sentences or "\n" in about.text[last:start]:
            sentences.append([])
        sentences[-1].append(place)
        last = end
    return sentences
