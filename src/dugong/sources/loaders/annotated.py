"""Texts, and recordings in formats that also carry annotations: CoNLL, plain text with offsets or by line, EDF.

In: files. Out: sequences of `Token` (a word that knows where it stands) or of epochs (the samples of all channels).
The files are parsed where their annotations are, in `dugong.formats`, so that ids and places agree with these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from dugong.contract import typed
from dugong.exceptions import LoaderError
from dugong.paths import place_of
from dugong.sources.inputs import Deferred
from dugong.sources.loaders.arrow import in_file
from dugong.sources.loaders.blocks import read_duration
from dugong.sources.loaders.folders import Folder, find_files
from dugong.types import FloatArray, IntArray

CONLL_ENDINGS = (".conll", ".conllu")
_WORDS = re.compile(r"\w+|[^\w\s]")


class Token(str):
    """A word of a text.

    Attributes
    ----------
    start, end : its characters in the text, half open
    """

    __slots__ = ("end", "start")
    start: int
    end: int

    def __new__(cls, text: str, start: int, end: int) -> Token:
        """Make a word that stands at [start, end)."""
        made = super().__new__(cls, text)
        made.start, made.end = start, end
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Token, (str(self), self.start, self.end)


@typed(LoaderError)
def conll(path: str | Path, *, by: Literal["document", "sentence"] = "document") -> dict[str, list[Token]]:
    """Load a CoNLL-2003 or CoNLL-U file, or a folder of them: one sequence of words per document, or per sentence.

    Parameters
    ----------
    path : file, or a folder of .conll or .conllu files
    by : {"document", "sentence"}
        Documents have the ids that `dugong.formats.read` gives to their annotations; sentence 2 of document ``a`` is
        ``a:2``.
    """
    from dugong.formats.files import File
    from dugong.formats.tokens import parse_conll, parse_conllu

    if by not in ("document", "sentence"):
        raise LoaderError(f"by= must be 'document' or 'sentence'; found {by!r}.")
    if Path(path).is_dir():
        files = find_files(path, "*", CONLL_ENDINGS).values()
        return {name: words for one in files for name, words in conll(one, by=by).items()}
    file = File.open(place_of(path))
    documents = (parse_conllu if Path(path).suffix == ".conllu" else parse_conll)(file)
    found: dict[str, list[Token]] = {}
    for one in documents:
        about = one.recording()
        words = [Token(token.word, *span) for token, span in zip(one.tokens, about.tokens or (), strict=True)]
        if by == "document":
            found[one.name] = words
            continue
        borders = [*sorted(one.breaks), len(words)]
        found |= {f"{one.name}:{number}": words[a:b] for number, (a, b) in enumerate(pairwise(borders), start=1)}
    return found


@typed(LoaderError)
def text_folder(path: str | Path, *, pattern: str = "*.txt", encoding: str = "utf-8") -> Folder:
    """Load a folder of plain texts, one sequence of words each; every word knows its characters."""
    read = partial(_read_text, encoding=encoding)
    return Folder(files=find_files(path, pattern), read=read, settings=[encoding])


def _read_text(path: Path, *, encoding: str) -> list[Token]:
    try:
        text = path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise in_file(path, f"must be {encoding} text: {error}.\n  Pass encoding='...'.") from error
    return [Token(found[0], found.start(), found.end()) for found in _WORDS.finditer(text)]


class Epochs:
    """A recording of several channels, cut into epochs; ``epochs[3]["EEG"]`` are the samples of the fourth one.

    Attributes
    ----------
    channels : samples by channel
    rates : samples per second by channel
    clock : (start in seconds, epochs per second)
    """

    def __init__(
        self, channels: Mapping[str, FloatArray], rates: Mapping[str, float], clock: tuple[float, float], length: int
    ) -> None:
        self.channels = channels
        self.rates = rates
        self.clock = clock
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, key: int) -> dict[str, FloatArray]: ...
    @overload
    def __getitem__(self, key: slice) -> Epochs: ...
    def __getitem__(self, key: int | slice) -> dict[str, FloatArray] | Epochs:
        if isinstance(key, slice):
            first, last, step = key.indices(self._length)
            if step != 1:
                raise IndexError("epochs are cut in steps of 1")
            last = max(first, last)
            start = self.clock[0] + first / self.clock[1]
            return Epochs(self._samples(first, last), self.rates, (start, self.clock[1]), last - first)
        if not -self._length <= key < self._length:
            raise IndexError(f"epoch {key} of a recording with {self._length}")
        place = int(key) % self._length
        return self._samples(place, place + 1)

    def _samples(self, first: int, last: int) -> dict[str, FloatArray]:
        seconds = 1 / self.clock[1]
        return {
            name: samples[round(first * seconds * self.rates[name]) : round(last * seconds * self.rates[name])]
            for name, samples in self.channels.items()
        }

    def __iter__(self) -> Iterator[dict[str, FloatArray]]:
        return map(self.__getitem__, range(self._length))

    def __repr__(self) -> str:
        return f"Epochs({self._length} epochs of {1 / self.clock[1]:g} s; {', '.join(self.channels)})"


@typed(LoaderError)
def edf_folder(
    path: str | Path, *, every: str | float = "30s", channels: Sequence[str] | None = None, pattern: str = "*.edf"
) -> Folder:
    """Load a folder of EDF or EDF+ recordings (extra `edf`), one sequence of epochs each.

    Parameters
    ----------
    path : folder
    every : str or float
        Length of an epoch. A last one that is not full is left out, as scorers do.
    channels : list of str, optional
        Which channels; all by default.
    pattern : str
        Which files.
    """
    seconds = read_duration(every)
    read = partial(_read_edf, seconds=seconds, wanted=None if channels is None else tuple(channels))
    return Folder(files=find_files(path, pattern), read=read, rate=1 / seconds, settings=[seconds, channels])


def _read_edf(path: Path, *, seconds: float, wanted: tuple[str, ...] | None) -> Epochs:
    from dugong.formats.files import File
    from dugong.formats.signals import parse_edf

    recording = parse_edf(File.open(path))
    signals = {signal.label: signal for signal in recording.signals}
    absent = [name for name in wanted or () if name not in signals]
    if absent:
        raise in_file(path, f"there is no channel {absent[0]!r}; known are {', '.join(map(repr, signals))}.")
    chosen = {name: signals[name] for name in (wanted or signals)}
    return Epochs(
        {name: np.asarray(one.data, dtype=np.float64) for name, one in chosen.items()},
        {name: float(one.sampling_frequency) for name, one in chosen.items()},
        (0.0, 1 / seconds),
        int(recording.duration / seconds + 1e-9),
    )


# --- text by line: every line is a sequence of tokens, its id is its number, counted from 0 --------------------------
Tokenizer = Callable[[str], Any]


class TextLines(Mapping[int, Any]):
    """Lines of a text file as sequences of tokens, read on access; make it with `text_lines`.

    Empty lines are empty sequences, so that numbers of sequences are numbers of lines.
    """

    def __init__(self, path: Path, tokenize: Tokenizer, encoding: str) -> None:
        self.path = path
        self.settings = tokenize, encoding
        self._tokenize, self._encoding = self.settings
        with path.open("rb") as file:
            lengths = np.fromiter(map(len, file), dtype=np.int64)
        self._offsets: IntArray = np.concatenate([[0], np.cumsum(lengths)])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __getitem__(self, key: int) -> Any:
        if not 0 <= key < len(self):
            raise KeyError(key)
        with self.path.open("rb") as file:
            file.seek(int(self._offsets[key]))
            return self._tokenize(self._decode(file.readline(), key))

    def __repr__(self) -> str:
        return f"TextLines({self.path.name}, {len(self)} lines)"

    def deferred(self) -> Iterator[tuple[int, Deferred]]:
        """Line numbers with lines that are taken into tokens later, where they are needed."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                yield number, Deferred(self._tokenize, self._decode(line, number))

    def _decode(self, line: bytes, number: int) -> str:
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise in_file(
                self.path, f"line {number} must be {self._encoding} text: {error}.\n  Pass encoding='...'."
            ) from error
        return text.removeprefix("\ufeff").rstrip("\r\n")


@typed(LoaderError)
def text_lines(path: str | Path, *, tokenize: Tokenizer = str.split, encoding: str = "utf-8") -> TextLines:
    """Load a text file, one sequence of tokens per line.

    Parameters
    ----------
    path : file
    tokenize : function
        From a line to its tokens; words between white space by default.
    encoding : str
    """
    place = Path(path)
    if not place.is_file():
        raise LoaderError(f"{place}: is not a file.")
    return TextLines(place, tokenize, encoding)
