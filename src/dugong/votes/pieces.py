"""The shapes in which votes arrive, brought to one: two-dimensional pieces, and the lengths of the sequences.

In: ``(n, T, m)``, a list of ``(T_i, m)``, or ``(N, m)`` with lengths. Out: arrays of rows by sources that
together hold every element once, in order, without a copy. Nothing is assumed about borders between
sequences: rows without lengths are an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.codec import show
from dugong.contract import fits
from dugong.exceptions import VoteError
from dugong.types import AnyArray, IntArray, read_only


def column_names(votes: Any) -> list[str] | None:
    """Names of the sources that a data frame brings along; None for arrays."""
    columns = getattr(votes, "columns", None)
    return None if columns is None or not hasattr(votes, "to_numpy") else [str(name) for name in columns]


def take_ids(votes: Any, ids: Any) -> tuple[Any, Any]:
    """A data frame without the column that `ids` names, and what that holds; both as they are where it names none."""
    if ids is None or fits(ids, AnyArray):
        return votes, ids
    if not isinstance(ids, str) or ids not in list(getattr(votes, "columns", ())):
        known = ", ".join(map(repr, getattr(votes, "columns", ()))) or "no columns with names"
        raise VoteError(
            "ids= is one id per row or per sequence, or the name of a column of a data frame; found "
            f"{ids!r} and {known}."
        )
    return votes[[name for name in votes.columns if name != ids]], np.asarray(votes[ids])


def by_row(votes: Any, lengths: ArrayLike | None, ids: ArrayLike | None) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Lengths and ids of the sequences, where `ids` names the sequence of every row instead.

    Rows of one sequence must be together: their order is time, and it is not guessed.
    """
    if lengths is not None or ids is None or np.ndim(votes) != 2 or len(np.asarray(ids)) != len(votes):
        return lengths, ids
    rows = np.asarray(ids)
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if len(rows) else np.zeros(0, dtype=np.int64)
    names = rows[starts]
    twice = [name for name, count in Counter(names.tolist()).items() if count > 1]
    if twice:
        raise VoteError(
            f"ids= names the sequence of every row, and rows of one must be together; {twice[0]!r} begins twice.\n"
            "  Sort the rows by sequence and time first."
        )
    return np.diff(np.append(starts, len(rows))), names


def normal_ids(ids: ArrayLike | None) -> AnyArray | None:
    """Ids as one array of integers or of strings: what files can hold without pickle."""
    if ids is None:
        return None
    if isinstance(ids, list | tuple):
        check_words((one for one in ids if isinstance(one, str)), "a sequence id", without="\0")
    array = np.asarray(ids)
    if array.dtype.kind == "O" and all(isinstance(one, str) for one in array.flat):
        array = array.astype(np.str_)
    if array.dtype.kind in "iu":
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iU":
        raise VoteError(
            f"sequence ids must be a list of strings or of integers; found {array.dtype}, shape {array.shape}."
        )
    if array.dtype.kind == "U" and not _is_text("".join(array.tolist())):
        raise VoteError("a sequence id must be text without lone surrogates; found some.\n  Rename it.")
    return read_only(array)


def check_words(words: Iterable[str], what: str, *, without: str = "") -> None:
    """Refuse words that some file cannot hold: with half a letter of UTF-16, or one of the letters `without`."""
    for word in words:
        if not isinstance(word, str):
            raise VoteError(f"{what} must be text; found {show(word)}.")
        if not _is_text(word) or any(letter in word for letter in without):
            raise VoteError(f"{what} must be text without NUL and lone surrogates; found {word!r}.\n  Rename it.")


def _is_text(word: str) -> bool:
    """Whether UTF-8 knows all letters; it does not know surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_lengths(lengths: ArrayLike) -> IntArray:
    """Check that lengths are whole numbers, one per sequence."""
    array = np.asarray(lengths)
    if array.ndim != 1:
        raise VoteError(f"lengths must be a list, one number per sequence; found {lengths!r}.")
    whole = array.dtype.kind in "iuf" and np.isfinite(array).all() and np.array_equal(array, np.floor(array))
    if array.size and not whole:
        raise VoteError(f"lengths must be whole numbers of elements; found {array.dtype} values.")
    if (array < 0).any():
        raise VoteError(f"lengths must not be negative; found {array.min()} for sequence {int(np.argmin(array))}.")
    return array.astype(np.int64)


def as_pieces(votes: Any, lengths: ArrayLike | None) -> tuple[list[AnyArray], IntArray]:
    """Split votes into pieces of rows by sources, (rows, m), in the order of the elements; and lengths of sequences."""
    found = None if lengths is None else as_lengths(lengths)
    if isinstance(votes, list | tuple) and votes and all(_array(piece).ndim == 2 for piece in votes):
        return _from_list([_array(piece) for piece in votes], found)
    array = _array(votes)
    if array.ndim == 3:
        return _from_block(array, found)
    if array.ndim == 2:
        return _from_rows(array, found)
    raise VoteError(
        "votes must be (n, T, m), a list of (T_i, m), or (N, m) with lengths; "
        f"found {'nothing' if array.size == 0 else f'shape {array.shape}'}."
    )


def _array(votes: Any) -> AnyArray:
    try:
        return np.asarray(votes)
    except ValueError as error:
        raise VoteError(f"votes must be rectangular, one row per element and one column per source: {error}") from None


def _from_list(pieces: list[AnyArray], lengths: IntArray | None) -> tuple[list[AnyArray], IntArray]:
    widths = {piece.shape[1] for piece in pieces}
    if len(widths) > 1:
        raise VoteError(
            f"every sequence must have votes of the same sources; found {sorted(widths)} columns.\n"
            "  Give a source that was not asked a column of its missing code."
        )
    counts = np.array([len(piece) for piece in pieces], dtype=np.int64)
    if lengths is not None and not np.array_equal(lengths, counts):
        raise VoteError(
            f"lengths must be those of the given sequences; found {_short(lengths)} for arrays of "
            f"{_short(counts)} rows.\n  A list of arrays needs no lengths."
        )
    return pieces, counts


def _from_rows(array: AnyArray, lengths: IntArray | None) -> tuple[list[AnyArray], IntArray]:
    if lengths is None:
        raise VoteError(
            f"an array of rows by sources needs lengths, the number of rows of each sequence; found shape "
            f"{array.shape} and no lengths.\n"
            f"  Pass lengths=[...]; if all rows are one sequence, lengths=[{len(array)}]."
        )
    if int(lengths.sum()) != len(array):
        raise VoteError(
            f"lengths must add up to the number of rows; found {len(lengths)} lengths that add up to "
            f"{int(lengths.sum())} for {len(array)} rows."
        )
    return [array], lengths


def _from_block(array: AnyArray, lengths: IntArray | None) -> tuple[list[AnyArray], IntArray]:
    n_sequences, n_elements, n_sources = array.shape
    if lengths is None:
        flat = array.reshape(n_sequences * n_elements, n_sources)
        return [flat], np.full(n_sequences, n_elements, dtype=np.int64)
    if len(lengths) != n_sequences or (lengths > n_elements).any():
        raise VoteError(
            f"lengths of an (n, T, m) array must be n numbers of at most T; found {_short(lengths)} "
            f"for shape {array.shape}."
        )
    return [sequence[:length] for sequence, length in zip(array, lengths.tolist(), strict=True)], lengths


def _short(values: IntArray) -> str:
    listing = values.tolist()
    return str(listing) if len(listing) <= 6 else f"[{', '.join(map(str, listing[:5]))}, ... {len(listing)} in all]"


def not_votes(found: Any) -> VoteError:
    """What to say to somebody who gives something else where votes are expected: which constructor to use."""
    shape: tuple[int, ...] = getattr(found, "shape", ())
    kind = f"{type(found).__name__} of shape {shape}" if shape else type(found).__name__
    remedy = "  Make them with Votes.from_classes, from_dense, from_long or from_tasks, or Votes.read(path)."
    if len(shape) == 2:
        remedy = (
            f"  {shape[0]:,} rows of {shape[1]} sources: Votes.from_classes(votes, n_classes=K, lengths=[...]) if "
            "classes are 0..K-1 and -1 abstains (Snorkel), Votes.from_dense(votes, lengths=[...]) if -1, 0, +1.\n"
            f"  lengths= (or ids=, one per row) say where sequences end; single rows: lengths=[1] * {shape[0]}."
        )
    return VoteError(f"votes must be a dugong.Votes value, which knows its coding; found {kind}.\n{remedy}")
