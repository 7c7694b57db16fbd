"""Text by line: every line is a sequence of tokens, its id is its number, counted from 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dugong.contract import typed
from dugong.sources.inputs import Deferred
from dugong.sources.loaders.errors import LoaderError, in_file
from dugong.types import IntArray

Tokenizer = Callable[[str], Any]


class TextLines(Mapping[int, Any]):
    """Lines of a text file as sequences of tokens, read on access; make it with `text_lines`.

    Empty lines are empty sequences, so that numbers of sequences are numbers of lines.
    """

    def __init__(self, path: Path, tokenize: Tokenizer, encoding: str) -> None:
        self.path = path
        self._tokenize = tokenize
        self._encoding = encoding
        self._offsets = _line_offsets(path)

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


def _line_offsets(path: Path) -> IntArray:
    """Where every line begins, and where the last one ends."""
    with path.open("rb") as file:
        lengths = np.fromiter(map(len, file), dtype=np.int64)
    return np.concatenate([[0], np.cumsum(lengths)])
