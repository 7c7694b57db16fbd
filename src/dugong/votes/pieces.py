"""The shapes in which votes arrive, brought to one: two-dimensional pieces, and the lengths of the sequences.

In: ``(n, T, m)``, a list of ``(T_i, m)``, or ``(N, m)`` with lengths. Out: arrays of rows by sources that
together hold every element once, in order, without a copy. Nothing is assumed about borders between
sequences: rows without lengths are an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.exceptions import VoteError
from dugong.types import AnyArray, IntArray

__all__ = ["as_lengths", "as_pieces"]


def as_lengths(lengths: ArrayLike) -> IntArray:
    """Check that lengths are whole numbers, one per sequence."""
    array = np.asarray(lengths)
    if array.ndim != 1:
        raise VoteError(f"lengths must be a list, one number per sequence; found {lengths!r}.")
    if array.size and (array.dtype.kind not in "iuf" or not np.array_equal(array, np.floor(array))):
        raise VoteError(f"lengths must be whole numbers of elements; found {array.dtype} values.")
    if (array < 0).any():
        raise VoteError(f"lengths must not be negative; found {array.min()} for sequence {int(np.argmin(array))}.")
    return array.astype(np.int64)


def as_pieces(votes: Any, lengths: ArrayLike | None) -> tuple[list[AnyArray], IntArray]:
    """Split votes into pieces of rows by sources.

    Returns
    -------
    pieces : list of (rows, m) arrays
        All elements of all sequences in order.
    lengths : (n_sequences,) int64
    """
    found = None if lengths is None else as_lengths(lengths)
    if hasattr(votes, "toarray"):  # scipy's sparse matrices, in which MeTaL keeps its votes
        votes = votes.toarray()
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
