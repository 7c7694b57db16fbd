"""The named constructors of `Votes`: one per coding, so that what a 0 means is never guessed.

In: votes as another tool or table has them. Out: `Votes`. This file holds the signatures and what they
promise; the work is done in dense, flat, long and concat. `Votes` inherits it to keep its own file
readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from dugong.segments import Segments
    from dugong.tasks import Resolution, TimeAxis
    from dugong.votes.container import Votes
    from dugong.votes.flat import SpanLists


class NamedConstructors:
    """Every way to make `Votes` from what exists already."""

    __slots__ = ()

    @classmethod
    def from_dense(
        cls,
        votes: Any,
        lengths: ArrayLike | None = None,
        sources: Iterable[str] | None = None,
        *,
        ids: ArrayLike | None = None,
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
            Sequences by elements by sources. With lengths, elements of an (n, T, m) array beyond them are
            padding.
        lengths : (n_sequences,) int, optional
            Elements of each sequence; needed for an (N, m) array, because borders are never guessed.
        sources : iterable of str, optional
            Names; ``s0, s1, ...`` by default.
        ids : (n_sequences,), optional
            Ids of the sequences, strings or integers; 0, 1, 2, ... by default.
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
        from dugong.votes.dense import from_dense

        return from_dense(
            votes,
            lengths=lengths,
            sources=sources,
            ids=ids,
            classes=classes,
            missing=missing,
            background=background,
            time=time,
            coding=coding,
        )

    @classmethod
    def from_classes(
        cls,
        votes: Any,
        n_classes: int | None = None,
        *,
        abstain: int | None = -1,
        missing: float | None = None,
        background: int | None = None,
        lengths: ArrayLike | None = None,
        sources: Iterable[str] | None = None,
        classes: Iterable[str] | None = None,
        partial: Mapping[int, Iterable[int]] | None = None,
        ids: ArrayLike | None = None,
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
        from dugong.votes.dense import from_classes

        return from_classes(
            votes,
            n_classes=n_classes,
            abstain=abstain,
            missing=missing,
            background=background,
            lengths=lengths,
            sources=sources,
            classes=classes,
            partial=partial,
            ids=ids,
            time=time,
        )

    @classmethod
    def from_tasks(
        cls,
        votes: Mapping[str, ArrayLike],
        lengths: ArrayLike | None = None,
        *,
        resolutions: Mapping[str, Resolution] | None = None,
        n_classes: int | None = None,
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
        from dugong.votes.flat import from_tasks

        return from_tasks(
            votes,
            lengths=lengths,
            resolutions=resolutions,
            n_classes=n_classes,
            classes=classes,
            spans=spans,
            background=background,
            partial=partial,
            shares=shares,
            ids=ids,
            time=time,
        )

    @classmethod
    def from_long(  # noqa: PLR0913  (a table says little about itself; each argument is a fact that it lacks)
        cls,
        table: Any,
        lengths: ArrayLike | Mapping[Any, int] | None = None,
        *,
        resolutions: Mapping[str, Resolution] | None = None,
        unit: str = "element",
        rate: float | ArrayLike | Mapping[Any, float] | None = None,
        start: float | ArrayLike | Mapping[Any, float] = 0.0,
        timestamps: Mapping[Any, ArrayLike] | None = None,
        n_classes: int | None = None,
        classes: Iterable[Any] | None = None,
        abstain: Any = None,
        missing: Any = None,
        background: Any = None,
        partial: Mapping[Any, Iterable[Any]] | None = None,
        spans: Mapping[str, SpanLists] | None = None,
        sources: Iterable[str] | None = None,
        ids: Iterable[Any] | None = None,
        ignore: Iterable[str] = (),
    ) -> Votes:
        """Votes from a long table: columns sequence, source, start, end, vote.

        Parameters
        ----------
        table : pandas, polars or arrow table, or a dictionary of columns
            Spans are half-open and counted inside their sequence. A source on elements is spread over its span;
            two rows of one source on one element must agree. A source on windows, spans or sequences must name
            exactly one of its tasks per row. Where no row says anything, a source abstains.
        lengths : mapping of sequence to int, or (n_sequences,) int, optional
            Elements of each sequence; by default up to the last vote. A mapping may list sequences without votes.
        resolutions : mapping of source to resolution, optional
            Elements unless given.
        unit : {"element", "second"}
            What start and end count. Seconds need `rate` or `timestamps`: an element belongs to a span if its
            centre, or its timestamp, does. What was rounded is in ``votes.time.rounding``.
        rate : float or mapping of sequence to float, optional
            Elements per second.
        start : float or mapping of sequence to float
            Seconds on the clock at which a sequence begins; 0 by default.
        timestamps : mapping of sequence to seconds of its elements, optional
        n_classes : int, optional
            2, or the number of `classes`.
        classes : iterable of str or int, optional
            The classes in order. Strings: votes are these names, or integers in our own coding (-1/+1, or 1..K).
            Integers: votes are these values, for instance ``range(18)`` for class indices.
        abstain, missing : optional
            Values of the vote column for "no opinion" (0 in our own coding) and "was not asked".
        background : optional
            The class of elements about which no source speaks, as a value of the vote column.
        partial : mapping, optional
            Underspecified votes, such as ``{"B or I": ("B", "I")}``.
        spans : mapping of name to lists of (start, stop) per sequence, optional
            For sources on `Spans`.
        sources, ids : iterable, optional
            Order of sources and sequences; of first appearance by default.
        ignore : iterable of str
            Columns to leave aside; any other unknown column is an error.

        Raises
        ------
        VoteError
            For unknown or absent columns, nulls, votes outside of the classes or of every sequence, rows that
            contradict each other or are no task.
        TaskError
            For seconds without a rate.
        """
        from dugong.votes.long import from_long

        return from_long(
            table,
            lengths=lengths,
            resolutions=resolutions,
            unit=unit,
            rate=rate,
            start=start,
            timestamps=timestamps,
            n_classes=n_classes,
            classes=classes,
            abstain=abstain,
            missing=missing,
            background=background,
            partial=partial,
            spans=spans,
            sources=sources,
            ids=ids,
            ignore=ignore,
        )

    @classmethod
    def from_flyingsquid(
        cls,
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
        from dugong.votes.dense import from_flyingsquid

        return from_flyingsquid(votes, n_tasks=n_tasks, sources=sources, ids=ids, classes=classes)

    @classmethod
    def from_metal(
        cls,
        votes: Any,
        lengths: ArrayLike | None = None,
        *,
        n_classes: int = 2,
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
        from dugong.votes.dense import from_metal

        return from_metal(votes, lengths=lengths, n_classes=n_classes, sources=sources, ids=ids, classes=classes)

    @classmethod
    def from_segments(
        cls,
        segments: Segments,
        lengths: ArrayLike | Mapping[Any, int] | None = None,
        *,
        rate: float | Mapping[Any, float] | None = None,
        timestamps: Mapping[Any, ArrayLike] | None = None,
        resolutions: Mapping[str, Resolution] | None = None,
        classes: Iterable[str] | None = None,
        background: str | None = None,
        source: str = "annotator",
    ) -> Votes:
        """Intervals that people marked, as votes: one source per annotator.

        Parameters
        ----------
        segments : Segments
            Whole-sequence labels become votes of a source on sequences. Sequences and spans that a source did not look
            at (`Segments.asked`) are missing votes, which are no evidence.
        lengths : mapping of sequence to int, or (n_sequences,) int, optional
            Elements of each sequence, where the segments do not know them.
        rate, timestamps : optional
            Elements per second, or the seconds of the elements by sequence, for intervals in seconds. An element
            belongs to an interval if its centre, or its timestamp, does; ``votes.time.rounding`` says what moved.
        resolutions : mapping of source to resolution, optional
            Where intervals are windows or spans.
        classes : iterable of str, optional
            The classes in order; by default the labels in order of first appearance, after the background; one label
            alone becomes the positive class of two.
        background : str, optional
            The class that silence stands for where somebody looked; by default silence abstains.
        source : str
            The name of those who have none.
        """
        from dugong.votes.segments import from_segments

        return from_segments(
            segments,
            lengths,
            rate=rate,
            timestamps=timestamps,
            resolutions=resolutions,
            classes=classes,
            background=background,
            source=source,
        )

    @classmethod
    def concat(cls, parts: Iterable[Votes], keys: Iterable[str] | None = None) -> Votes:
        """The sequences of several votes, one after the other.

        Sources are matched by name; a source that is absent from a part was not asked there.

        Parameters
        ----------
        parts : iterable of Votes
            With the same classes, and the same resolution for each source.
        keys : iterable of str, optional
            One per part, put before the ids (``"train/0"``) when ids would otherwise repeat.
        """
        from dugong.votes.concat import concat

        return concat(parts, keys)
