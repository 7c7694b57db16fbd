"""Votes that arrive as arrays of elements by sources, in one of four named codings.

In: an array and its coding: the paper's (-1/0/+1), class indices (Snorkel, WRENCH), FlyingSquid's flattened rows, or
MeTaL's. Out: `Votes`. The coding is in the name of the constructor, because 0 means abstain in some tools and a class
in others; an array that two codings could mean is an error until the caller says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.tasks import TimeAxis
from dugong.types import MISSING, AnyArray, ClassCount, Int8Array
from dugong.votes.codes import CLASSES_HINT, MAX_CODE, SourceInfo, count_codes
from dugong.votes.encode import Codebook, add_missing, encode_pieces
from dugong.votes.pieces import as_pieces, by_row, column_names, normal_ids, take_ids

if TYPE_CHECKING:
    from dugong.votes.container import Votes


@typed(VoteError)
def from_dense(
    votes: Any,
    lengths: ArrayLike | None = None,
    sources: Iterable[str] | None = None,
    *,
    ids: Any = None,
    classes: Iterable[str] | None = None,
    missing: float | None = None,
    background: int | None = None,
    time: TimeAxis | None = None,
    coding: str | None = None,
) -> Votes:
    """Votes on elements in the coding of the paper: -1, +1, and 0 for abstain.

    Parameters
    ----------
    votes : (n, T, m), a list of (T_i, m), or (N, m) with lengths
        Sequences by elements by sources. With lengths, elements of an (n, T, m) array beyond them are padding.
    lengths : (n_sequences,) int, optional
        Elements of each sequence; needed for an (N, m) array, because borders are never guessed.
    sources : iterable of str, optional
        Names; those of the columns of a data frame, else ``s0, s1, ...``.
    ids : (n_sequences,) or, for (N, m) without lengths, (N,); optional
        Ids of the sequences, strings or integers; 0, 1, 2, ... by default. One id per row, or the name of a column of a
        data frame, says where sequences end.
    classes : two str, optional
        What -1 and +1 are called.
    missing : number, optional
        The code, or NaN, of a vote that was never asked for.
    background : {-1, 1}, optional
        The class of elements about which no source speaks.
    time : TimeAxis, optional
    coding : "paper", optional
        Confirms the coding. Needed only for an array of nothing but 0 and 1, which may as well be Snorkel's
        two classes: such an array is an error until the caller says what it means.

    Returns
    -------
    Votes

    Raises
    ------
    VoteError
        For a value outside the coding, NaN, rows without lengths, lengths that do not add up, repeated names
        or ids, and an ambiguous coding.
    """
    if coding not in (None, "paper"):
        raise VoteError(f"coding must be 'paper' or left out; found {coding!r}.\n  {CLASSES_HINT}")
    codes, nan = add_missing({-1: -1, 0: 0, 1: 1}, missing)
    book = Codebook(codes=codes, says="-1, 0 or +1", hint=CLASSES_HINT, nan=nan)
    unclear = coding is None
    return _read(votes, book, lengths, ids, sources, classes, unclear=unclear, background=background, time=time)


@typed(VoteError)
def from_classes(
    votes: Any,
    n_classes: ClassCount | None = None,
    *,
    abstain: int | None = -1,
    missing: float | None = None,
    background: int | None = None,
    lengths: ArrayLike | None = None,
    sources: Iterable[str] | None = None,
    classes: Iterable[str] | None = None,
    partial: Mapping[int, Iterable[int]] | None = None,
    ids: Any = None,
    time: TimeAxis | None = None,
) -> Votes:
    """Votes on elements as class indices 0..K-1, the coding of Snorkel and WRENCH.

    Class c becomes column c of `predict_proba`: with two classes, 0 becomes -1 and 1 becomes +1; with more,
    c becomes c + 1.

    Parameters
    ----------
    votes : (n, T, m), a list of (T_i, m), or (N, m) with lengths
    n_classes : int
        K; may be left out if `classes` are given.
    abstain : int or None
        The code for "no opinion", -1 by default; None if sources always vote.
    missing : number, optional
        The code, or NaN, for "was not asked", which is no evidence.
    background : int, optional
        Index of the class of elements about which no source speaks.
    lengths, sources, ids, time
        As in `from_dense`.
    classes : K str, optional
        Names of the classes.
    partial : mapping of int to class indices, optional
        Underspecified votes, such as ``{6: (1, 2)}``: the code 6 says "class 1 or class 2".
    """
    names = None if classes is None else tuple(classes)
    count = n_classes if n_classes is not None else len(names or ())
    if not count:
        raise VoteError(
            "the number of classes must be known, as some may have no votes.\n"
            "  Pass n_classes=2 if the classes are 0 and 1, or their names: classes=[...]."
        )
    book, codebook = class_book(count, abstain=abstain, missing=missing, partial=partial)
    return _read(
        votes,
        book,
        lengths,
        ids,
        sources,
        names,
        given=tuple(range(count)),
        n_classes=count,
        background=None if background is None else _our_class(background, count, "the background"),
        partial=codebook,
        time=time,
    )


@typed(VoteError)
def from_flyingsquid(
    votes: ArrayLike,
    n_tasks: int,
    *,
    sources: Iterable[str] | None = None,
    ids: ArrayLike | None = None,
    classes: Iterable[str] | None = None,
) -> Votes:
    """Votes as FlyingSquid wants them: one row per sequence, (n, m * n_tasks), coded -1, 0, +1.

    The columns run task by task: first all m sources on the first element, then all on the second, and so on
    (column i belongs to element ``i // m``), as in FlyingSquid's example for video.

    Parameters
    ----------
    votes : (n, m * n_tasks) array
    n_tasks : int
        Elements of each sequence, FlyingSquid's v.
    sources, ids, classes
        As in `from_dense`.
    """
    array = np.asarray(votes)
    if array.ndim != 2 or n_tasks < 1 or array.shape[1] % n_tasks:
        raise VoteError(
            f"FlyingSquid's votes must be (n, m * n_tasks), one row per sequence; found shape {array.shape} "
            f"and n_tasks={n_tasks}."
        )
    block = array.reshape(len(array), n_tasks, array.shape[1] // n_tasks)
    return from_dense(block, sources=sources, ids=ids, classes=classes, coding="paper")


@typed(VoteError)
def from_metal(
    votes: Any,
    lengths: ArrayLike | None = None,
    *,
    n_classes: ClassCount = 2,
    sources: Iterable[str] | None = None,
    ids: ArrayLike | None = None,
    classes: Iterable[str] | None = None,
) -> Votes:
    """Votes in the coding of MeTaL: 0 for abstain, classes 1..K; with two classes 1 is +1 and 2 is -1.

    Parameters
    ----------
    votes : (n, T, m), a list of (T_i, m), or (N, m) with lengths; scipy's sparse matrices too
    lengths, sources, ids
        As in `from_dense`.
    n_classes : int
        K, 2 by default as in MeTaL.
    classes : K str, optional
        Names of our classes in order: with two classes, of -1 (MeTaL's 2) and of +1 (MeTaL's 1).
    """
    codes = {0: 0, 1: 1, 2: -1} if n_classes == 2 else {code: code for code in range(n_classes + 1)}
    book = Codebook(
        codes=codes,
        says=f"0 (abstain) or a class from 1 to {n_classes}",
        hint="If -1 means abstain, use Votes.from_classes(..., abstain=-1); with more classes, pass n_classes=.",
    )
    return _read(votes, book, lengths, ids, sources, classes, n_classes=n_classes)


def _read(
    votes: Any,
    book: Codebook,
    lengths: ArrayLike | None,
    ids: Any,
    sources: Iterable[str] | None,
    classes: Iterable[str] | None,
    *,
    unclear: bool = False,
    **about: Any,
) -> Votes:
    """Votes of an array of elements by sources; `unclear`: the same numbers could be of another coding."""
    from dugong.votes.container import Votes

    # Of scipy's sparse matrices, in which MeTaL keeps its votes, nobody can ask how long they are.
    votes, ids = take_ids(votes.toarray() if hasattr(votes, "toarray") else votes, ids)
    lengths, ids = by_row(votes, lengths, ids)
    pieces, found = as_pieces(votes, lengths)
    infos = _element_sources(pieces, column_names(votes) if sources is None else sources)
    columns = encode_pieces(pieces, book, tuple(info.name for info in infos))
    if unclear:
        _check_ambiguous(pieces, columns)
    about["class_names"] = None if classes is None else tuple(classes)
    return Votes(sources=infos, columns=tuple(columns), lengths=found, ids=normal_ids(ids), **about)


def class_book(
    n_classes: int,
    *,
    abstain: int | None,
    missing: float | None,
    partial: Mapping[int, Iterable[int]] | None,
) -> tuple[Codebook, dict[int, tuple[int, ...]]]:
    """The codebook of class indices 0..K-1, and the meaning of our codes for underspecified votes."""
    codes = {index: _our_class(index, n_classes, "a class") for index in range(n_classes)}
    if abstain is not None:
        if abstain in codes:
            raise VoteError(
                f"the abstain code must not be a class; found abstain={abstain} and classes 0 to {n_classes - 1}.\n"
                "  If 0 means abstain and classes begin at 1, use Votes.from_metal or Votes.from_tasks."
            )
        codes[abstain] = 0
    ours: dict[int, tuple[int, ...]] = {}
    for code, (theirs, indices) in enumerate((partial or {}).items(), start=n_classes + 1):
        if theirs in codes or code > MAX_CODE:
            raise VoteError(f"the code {theirs} of an underspecified vote already has a meaning; choose a free one.")
        codes[theirs] = code
        ours[code] = tuple(_our_class(index, n_classes, f"partial[{theirs}]") for index in indices)
    silent = "" if abstain is None else f", or {abstain} for abstain"
    codes, nan = add_missing(codes, missing)
    book = Codebook(
        codes=codes,
        says=f"a class from 0 to {n_classes - 1}{silent}",
        hint="If another value means abstain or not asked, pass abstain= or missing=; check n_classes= too.",
        nan=nan,
    )
    return book, ours


def _our_class(index: int, n_classes: int, what: str) -> int:
    if not 0 <= index < n_classes:
        raise VoteError(f"{what} must be a class index from 0 to {n_classes - 1}; found {index}.")
    return 2 * index - 1 if n_classes == 2 else index + 1


def _element_sources(pieces: list[AnyArray], names: Iterable[str] | None) -> tuple[SourceInfo, ...]:
    width = pieces[0].shape[1]
    given = tuple(f"s{place}" for place in range(width)) if names is None else tuple(names)
    if len(given) != width:
        raise VoteError(f"found {len(given)} source names for {width} columns of votes.")
    return tuple(SourceInfo(name=name) for name in given)


def _check_ambiguous(pieces: list[AnyArray], columns: Int8Array) -> None:
    """Refuse arrays of 0 and 1 alone: the paper's positive-or-abstain looks like Snorkel's two classes."""
    negative = any((column == -1).any() for column in columns)
    seen = {-1} if negative else {code for column in columns for code in count_codes(column)} - {MISSING}
    if any(piece.dtype == np.bool_ for piece in pieces) or seen == {0, 1}:
        raise VoteError(
            "the coding of these votes is ambiguous: they hold only 0 and 1, and 0 may mean abstain or a class.\n"
            "  If 0 and 1 are two classes, use Votes.from_classes(..., n_classes=2).\n"
            "  If 0 means abstain and no source ever votes -1, use Votes.from_dense(..., coding='paper')."
        )
