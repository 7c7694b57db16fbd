"""From somebody's vote codes to ours, with every value accounted for.

In: pieces of votes and a `Codebook` (their value -> our code). Out: one int8 row per source. A value that the
codebook does not name is never repaired: the error says how many there are, where the first is, and which
constructor may have been meant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dugong.exceptions import VoteError
from dugong.tasks import Element, Resolution
from dugong.types import MISSING, AnyArray, Int8Array, class_values

_INVALID = 127
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebook:
    """What the values of a foreign coding mean.

    Attributes
    ----------
    codes : mapping of their value to our code
    says : the allowed values in words, for messages: "-1, 0 or +1"
    hint : what to do about other values
    nan : our code for NaN, if NaN means something
    """

    codes: Mapping[int, int]
    says: str
    hint: str
    nan: int | None = None

    def encode(self, block: AnyArray) -> Int8Array:
        """Our codes, 127 where a value is not in the book; the block itself if they are the same."""
        if block.dtype.kind == "f" and (empty := np.isnan(block)).any():
            codes = np.array(self.encode(np.where(empty, 0, block)))
            codes[empty] = _INVALID if self.nan is None else self.nan
            return codes
        with np.errstate(invalid="ignore"):  # infinity, which the comparison finds
            small = block.astype(np.int8, copy=False)
        if not np.array_equal(small, block):
            return self._look_up(block)
        table = self._look_up(np.arange(256, dtype=np.uint8).view(np.int8))
        seen = np.arange(int(small.min(initial=0)), int(small.max(initial=0)) + 1)
        if np.array_equal(table[seen], seen):
            return small
        # Twice as fast as to index the table.
        translated = np.frombuffer(small.tobytes().translate(table.tobytes()), dtype=np.int8)
        return translated.reshape(small.shape)

    def _look_up(self, values: AnyArray) -> Int8Array:
        keys = np.array(sorted(self.codes), dtype=np.int64)
        ours = np.array([self.codes[key] for key in keys.tolist()], dtype=np.int8)
        place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[place] == values, ours[place], np.int8(_INVALID))


def add_missing(codes: Mapping[int, int], missing: float | None) -> tuple[dict[int, int], int | None]:
    """Codes with the user's code for "was not asked", and our code for NaN if it is NaN."""
    if missing is None:
        return dict(codes), None
    if math.isnan(missing):
        return dict(codes), MISSING
    whole = abs(missing) < 2**63 and missing == int(missing)
    if not whole or int(missing) in codes:
        meaning = "already means something else" if whole else "is no whole number"
        raise VoteError(f"the code for a missing vote must be a free whole number or NaN; {missing} {meaning}.")
    return {**codes, int(missing): MISSING}, None


def encode_pieces(pieces: list[AnyArray], book: Codebook, names: tuple[str, ...]) -> Int8Array:
    """Encode pieces of rows by sources: one contiguous row per source, (n_sources, n_rows)."""
    codes = np.empty((len(names), sum(len(piece) for piece in pieces)), dtype=np.int8)
    for piece in pieces:
        if piece.dtype.kind not in "iufb":
            where = f" of source {names[0]!r}" if len(names) == 1 else ""
            first = piece.flat[0] if piece.size else None
            raise VoteError(
                f"votes{where} must be numbers; found {piece.dtype} values such as {first!r}.\n"
                "  For votes by class name, use Votes.from_long(..., classes=[...])."
            )
    for begin, rows in _blocks(pieces, len(names)):
        block = book.encode(rows)
        if (block == _INVALID).any():
            _report(pieces, book, names)
        codes[:, begin : begin + len(block)] = block.T
    return codes


def encode_values(values: AnyArray, book: Codebook, name: str) -> Int8Array:
    """Encode the flat votes of one source."""
    codes: Int8Array = encode_pieces([values.reshape(-1, 1)], book, (name,))[0]
    return codes


def _blocks(pieces: list[AnyArray], n_sources: int) -> Iterator[tuple[int, AnyArray]]:
    """Small blocks of rows and where they begin, so that nothing as large as the votes is made on the way."""
    begin, step = 0, max(1, _BLOCK // max(1, n_sources))
    for piece in pieces:
        for start in range(0, len(piece), step):
            yield begin + start, piece[start : start + step]
        begin += len(piece)


def _report(pieces: list[AnyArray], book: Codebook, names: tuple[str, ...]) -> None:
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, float]] = {}
    for begin, block in _blocks(pieces, len(names)):
        bad = book.encode(block) == _INVALID
        empty = bad & np.isnan(block) if block.dtype.kind == "f" else np.zeros_like(bad)
        for kind, found in (("nan", empty), ("other", bad & ~empty)):
            counts[kind] += int(np.count_nonzero(found))
            if kind not in first and found.any():
                row, source = divmod(int(np.argmax(found)), len(names))
                first[kind] = f"the first at row {begin + row}, source {names[source]!r}", block[row, source].item()
    if "nan" in first:
        raise VoteError(
            f"votes must not be NaN; found {counts['nan']}, {first['nan'][0]}.\n"
            "  If NaN means that a source was not asked, pass missing=float('nan')."
        )
    where, value = first["other"]
    fraction = math.isfinite(value) and value != math.floor(value)
    hint = "Probabilities are no votes: compare them with a threshold first." if fraction else book.hint
    raise VoteError(
        f"votes must be {book.says}; found {counts['other']} other values, {where} (value {value}).\n  {hint}"
    )


# --- what the vote column of a long table means: names, integers of our own coding, or integers of the user's --------
_SIGNS = {"+1": 1, "1": 1, "-1": -1, 1: 1, -1: -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCoding:
    """The classes of a long table and the codes of its values.

    Attributes
    ----------
    classes : mapping of the user's value to our class
    others : mapping of the user's value to our code for abstain and missing
    partial : mapping of the user's value to our code of an underspecified vote
    codebook : mapping of our code to our classes, as `Votes.partial` wants it
    """

    n_classes: int
    class_names: tuple[str, ...] | None
    classes: Mapping[Any, int]
    others: Mapping[Any, int]
    partial: Mapping[Any, int] = field(default_factory=dict)
    codebook: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def class_of(self, value: Any, what: str) -> int:
        """Our class for one of the user's values."""
        if value not in self.classes:
            known = ", ".join(map(repr, self.classes))
            raise VoteError(f"{what} must be one of the classes {known}; found {value!r}.")
        return self.classes[value]

    def codes_for(self, resolution: Resolution) -> dict[Any, int]:
        """Our codes for the votes of a source at a resolution."""
        if isinstance(resolution, Element):
            return {**self.classes, **self.partial, **self.others}
        if self.n_classes == 2:
            return {**_SIGNS, **self.classes, **self.others}
        names = {name: 1 for name in (resolution.of,) if name is not None}
        return {**names, **_SIGNS, **self.others}


def read_values(
    values: Iterable[Any],
    *,
    n_classes: int | None,
    classes: Iterable[Any] | None,
    abstain: Any,
    missing: Any,
    partial: Mapping[Any, Iterable[Any]] | None,
) -> ValueCoding:
    """Decide what the values of the vote column mean, or say what is unclear."""
    given = None if classes is None else tuple(classes)
    count = _count(n_classes, given)
    ours = class_values(count)
    textual = any(isinstance(value, str) for value in values)
    if textual and given is None:
        raise VoteError(
            "votes by name need the names of the classes in order; pass classes=[...]. "
            f"Found votes such as {next(iter(values))!r}."
        )
    own = not textual and (given is None or any(isinstance(name, str) for name in given))
    table = dict(zip(ours, ours, strict=True)) if own else dict(zip(given or (), ours, strict=True))
    if own and abstain is None:
        _check_ambiguous({*values}, count)
    others = _others(table, abstain, missing, own=own)
    codes, codebook = _partial(partial, table, others, count, own=own)
    return ValueCoding(
        n_classes=count,
        class_names=None if given is None else tuple(map(str, given)),
        classes=table,
        others=others,
        partial=codes,
        codebook=codebook,
    )


def _count(n_classes: int | None, given: tuple[Any, ...] | None) -> int:
    if given is None:
        return 2 if n_classes is None else n_classes
    if len(set(given)) != len(given):
        raise VoteError(f"classes must be different from each other; found {list(given)}.")
    if n_classes not in (None, len(given)):
        raise VoteError(f"found {len(given)} classes and n_classes={n_classes}; leave one of them out.")
    return len(given)


def _check_ambiguous(values: set[Any], n_classes: int) -> None:
    if n_classes == 2 and values == {0, 1}:
        raise VoteError(
            "the coding of these votes is ambiguous: they hold only 0 and 1, and 0 may mean abstain or a class.\n"
            "  If 0 and 1 are two classes, pass classes=[0, 1]; if 0 means abstain, pass abstain=0."
        )


def _others(table: Mapping[Any, int], abstain: Any, missing: Any, *, own: bool) -> dict[Any, int]:
    silent = 0 if abstain is None and own else abstain
    others: dict[Any, int] = {}
    for value, code, what in ((silent, 0, "abstain"), (missing, MISSING, "missing")):
        if value is None:
            continue
        if value in table or value in others:
            raise VoteError(f"the {what} value must not have another meaning; found {value!r}, which has one.")
        others[value] = code
    return others


def _partial(
    partial: Mapping[Any, Iterable[Any]] | None,
    table: Mapping[Any, int],
    others: Mapping[Any, int],
    n_classes: int,
    *,
    own: bool,
) -> tuple[dict[Any, int], dict[int, tuple[int, ...]]]:
    codes: dict[Any, int] = {}
    codebook: dict[int, tuple[int, ...]] = {}
    for place, (value, members) in enumerate((partial or {}).items()):
        wanted = tuple(members)
        strange = [member for member in wanted if member not in table]
        if strange or value in table or value in others:
            raise VoteError(
                f"an underspecified vote must have a value of its own and stand for some of the classes "
                f"{list(table)}; found {value!r}: {wanted}."
            )
        codes[value] = value if own else n_classes + 1 + place
        codebook[codes[value]] = tuple(table[member] for member in wanted)
    return codes, codebook
