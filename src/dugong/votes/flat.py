"""Votes that arrive as one flat array per source, each at its own resolution, in our own coding.

In: a mapping of source name to votes on all tasks of its resolution, and the lengths of the sequences. Out: `Votes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dugong.contract import typed
from dugong.exceptions import VoteError
from dugong.tasks import Element, Resolution, SpanTable, TimeAxis
from dugong.types import ABSTAIN, MISSING, BoolArray, ClassCount, FloatArray, Int8Array, class_values, read_only
from dugong.votes.codes import CLASSES_HINT, MAX_CODE, SourceInfo, coding_words
from dugong.votes.encode import Codebook, encode_values
from dugong.votes.pieces import as_lengths, normal_ids

if TYPE_CHECKING:
    from dugong.votes.container import Votes

SpanLists = SpanTable | Iterable[Iterable[tuple[int, int]]]


@typed(VoteError)
def from_tasks(
    votes: Mapping[str, ArrayLike],
    lengths: ArrayLike | None = None,
    *,
    resolutions: Mapping[str, Resolution] | None = None,
    n_classes: ClassCount | None = None,
    classes: Iterable[str] | None = None,
    spans: Mapping[str, SpanLists] | None = None,
    background: int | None = None,
    partial: Mapping[int, Iterable[int]] | None = None,
    shares: Mapping[str, str] | None = None,
    ids: ArrayLike | None = None,
    time: TimeAxis | None = None,
) -> Votes:
    """Votes at any resolutions: one flat array per source, in our own coding.

    Parameters
    ----------
    votes : mapping of source name to (n_tasks,) array
        -1, 0, +1 with two classes and for windows, spans and sequences; 0..K on elements with K > 2.
        `dugong.types.MISSING` (-128) stands for "was not asked".
    lengths : (n_sequences,) int
        Elements of each sequence.
    resolutions : mapping of source name to resolution, optional
        Elements unless given.
    n_classes : int, optional
        2, or the number of `classes`.
    classes : iterable of str, optional
    spans : mapping of name to lists of (start, stop) per sequence, optional
        For sources on `Spans`.
    background : int, optional
        A class, in our own coding.
    partial : mapping of code to classes, optional
        Underspecified votes; codes from K + 1 to 120.
    shares : mapping of source name to name, optional
        Sources with the same value share their parameters.
    ids, time
        As in `from_dense`.
    """
    from dugong.votes.container import Votes

    if not votes:
        raise VoteError("votes need at least one source; found none.")
    if lengths is None:
        raise VoteError("flat votes need lengths, the number of elements of each sequence; pass lengths=[...].")
    names = None if classes is None else tuple(classes)
    count = n_classes if n_classes is not None else len(names) if names is not None else 2
    found = read_resolutions(resolutions, tuple(votes))
    tying = dict(shares or {})
    infos = tuple(SourceInfo(name=name, resolution=found[name], shares=tying.get(name)) for name in votes)
    return Votes(
        sources=infos,
        columns=tuple(_column(votes[info.name], info, count) for info in infos),
        lengths=as_lengths(lengths),
        ids=normal_ids(ids),
        n_classes=count,
        class_names=names,
        background=background,
        partial={code: tuple(members) for code, members in (partial or {}).items()},
        spans={name: as_spans(given) for name, given in (spans or {}).items()},
        time=time,
    )


def read_resolutions(resolutions: Mapping[str, Resolution] | None, names: tuple[str, ...]) -> dict[str, Resolution]:
    """The resolution of every source; elements unless given."""
    given = dict(resolutions or {})
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(map(repr, names))
        raise VoteError(f"resolutions= names the unknown source {unknown[0]!r}; known are {known}.")
    return {name: given.get(name, Element()) for name in names}


def as_spans(spans: SpanLists) -> SpanTable:
    """Turn lists of (start, stop) per sequence into a table."""
    if isinstance(spans, SpanTable):
        return spans
    return SpanTable.from_lists([[(int(start), int(stop)) for start, stop in pairs] for pairs in spans])


def _column(values: Any, info: SourceInfo, n_classes: int) -> Int8Array:
    array = np.asarray(values)
    if array.ndim != 1:
        raise VoteError(
            f"the votes of {info.name!r} must be one flat array over all tasks; found shape {array.shape}.\n"
            "  For arrays of elements by sources, use Votes.from_dense or Votes.from_classes."
        )
    if array.dtype == np.int8:
        return array.copy() if array.flags.writeable else array  # votes stay what they are, whatever happens to it
    book = Codebook(
        # Codes that this source may not use are found, with the same words, when the votes are validated.
        codes={code: code for code in (MISSING, *range(-1, MAX_CODE + 1))},
        says=coding_words(n_classes, info.resolution),
        hint=CLASSES_HINT,
    )
    return encode_values(array, book, info.name)


# --- soft votes: what a source says in probabilities, beside the vote that it would have given -----------------------
# One float32 row per task, (n_tasks, K), and the int8 vote for its likeliest class. Everything that reads votes goes on
# reading votes; the label model learns from the rows how far each degree of certainty can be believed.
ScoreArray = NDArray[np.float32]
_ROUNDING = 1e-3  # how far the sum of a row may be from one: half-precision outputs of networks are that far off


def from_scores(
    scores: Mapping[str, ArrayLike],
    lengths: ArrayLike | None = None,
    *,
    votes: Mapping[str, ArrayLike] | None = None,
    resolutions: Mapping[str, Resolution] | None = None,
    n_classes: int | None = None,
    classes: Iterable[str] | None = None,
    spans: Mapping[str, SpanLists] | None = None,
    ids: ArrayLike | None = None,
    time: TimeAxis | None = None,
) -> Votes:
    """Votes of detectors, networks and judges that come as probabilities; no threshold has to be chosen.

    Parameters
    ----------
    scores : mapping of source name to (n_tasks,) P(positive), or to (n_tasks, K) distributions over the classes
        NaN abstains. Distributions are needed on elements with more than two classes.
    lengths : (n_sequences,) int
        Elements of each sequence.
    votes : mapping of source name to (n_tasks,) votes, optional
        Further sources, as in `from_tasks`.
    resolutions, n_classes, classes, spans, ids, time
        As in `from_tasks`.

    Examples
    --------
    >>> import dugong as dg
    >>> votes = dg.Votes.from_scores({"detector": [0.9, 0.2, float("nan")]}, lengths=[3])
    >>> votes.column("detector").tolist()
    [1, -1, 0]
    """
    names = None if classes is None else tuple(classes)
    count = n_classes if n_classes is not None else len(names) if names is not None else 2
    found = read_resolutions(resolutions, (*scores, *(votes or {})))
    rows = {name: _read(name, given, _n_classes(found[name], count)) for name, given in scores.items()}
    columns = {name: votes_of(own, class_values(own.shape[1])) for name, own in rows.items()}
    hard = from_tasks(
        {**columns, **(votes or {})},
        lengths,
        resolutions=resolutions,
        n_classes=count,
        classes=names,
        spans=spans,
        ids=ids,
        time=time,
    )
    return replace(hard, scores=rows)


def rows_of(values: ArrayLike, n_classes: int) -> ScoreArray:
    """P(positive) or distributions as rows over classes, (n, K); NaN in all of a row abstains."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim == 1 and n_classes == 2:
        given = np.stack([1 - given, given], axis=1)  # before rounding, or what is nearly certain would all be one
    return given.astype(np.float32)


def certainty(rows: ScoreArray, place: int) -> FloatArray:
    """Probability of one class, (n,); with two classes to the precision of the smaller one."""
    own = rows[:, place].astype(np.float64)
    return own if rows.shape[1] > 2 else np.where(own < 0.5, own, 1 - rows[:, 1 - place].astype(np.float64))


def bad_rows(rows: ScoreArray) -> BoolArray:
    """Rows that are neither a distribution nor an abstention."""
    silent = np.isnan(rows).all(axis=1)
    with np.errstate(invalid="ignore"):
        fine = (rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) <= _ROUNDING)
    return np.asarray(~(silent | fine))


def votes_of(rows: ScoreArray, classes: tuple[int, ...]) -> Int8Array:
    """The likeliest class of every row; 0 where the source abstains or prefers none."""
    top = rows.max(axis=1, initial=0)
    ties = (rows == top[:, np.newaxis]).sum(axis=1) != 1
    best = np.array(classes, dtype=np.int8)[np.where(ties, 0, rows.argmax(axis=1) if rows.size else 0)]
    return np.where(ties | np.isnan(top), np.int8(ABSTAIN), best).astype(np.int8)


def check_scores(votes: Votes) -> None:
    """Raise unless every row of scores belongs to a task of a known source."""
    for name, rows in votes.scores.items():
        column, resolution = votes.column(name), votes.sources[votes.index(name)].resolution
        shape = (len(column), _n_classes(resolution, votes.n_classes))
        if rows.shape != shape or rows.dtype != np.float32:
            raise VoteError(
                f"the scores of {name!r} must be float32 of shape {shape}; found {rows.dtype}, {rows.shape}."
            )
        _check_rows(name, rows)


def _check_rows(name: str, rows: ScoreArray) -> None:
    bad = bad_rows(rows)
    if bad.any():
        first = int(np.argmax(bad))
        raise VoteError(
            f"scores must be probabilities, those of all classes summing to one, or NaN (abstain); found {bad.sum()} "
            f"other rows, the first at row {first}, source {name!r} ({np.round(rows[first], 4).tolist()}).\n"
            "  Squash unbounded scores first: 1 / (1 + exp(-score)); any increasing function of them will do."
        )


def _read(name: str, values: Any, n_classes: int) -> ScoreArray:
    rows = rows_of(values, n_classes)
    if rows.ndim != 2 or rows.shape[1] != n_classes:
        wanted = "(n_tasks,) or (n_tasks, 2)" if n_classes == 2 else f"(n_tasks, {n_classes})"
        raise VoteError(f"the scores of {name!r} must have the shape {wanted}; found {np.shape(values)}.")
    _check_rows(name, rows)
    return read_only(rows)


def _n_classes(resolution: Resolution, n_classes: int) -> int:
    return n_classes if isinstance(resolution, Element) else 2
