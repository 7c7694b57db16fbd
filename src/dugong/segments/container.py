"""`Segments`: intervals with labels, validated once, frozen.

In: columns, one entry per interval, and what is known about the sequences (`Recording`). Out: a value that every file
format reads and writes, and that turns into votes or known labels. Intervals are half open. They count elements,
seconds or characters, one unit for all of them; `to_unit` converts where rates or tokens are known, and says what it
moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isnan
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from dugong.codec import show
from dugong.exceptions import LabelError
from dugong.tasks import Rounding
from dugong.types import AnyArray, FloatArray, IntArray, read_only

if TYPE_CHECKING:
    import pyarrow as pa

    from dugong.segments.gold import Axis
    from dugong.types import Int8Array

Unit = Literal["element", "second", "character"]
UNITS: tuple[Unit, ...] = ("element", "second", "character")
Asked = Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
_WORDS = ("sequence", "label", "source", "resolution")
_NUMBERS = ("start", "end", "probability")
_TOO_LONG = 2**63
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What is known about one sequence beside its intervals; None where nothing is.

    Attributes
    ----------
    length : elements
    rate : elements per second
    start : seconds on the clock at which it begins
    stamps : seconds after `start` of every element, where the elements are not equally far apart
    duration : seconds
    text, tokens : its characters, and the half-open span of characters of every element
    media : path or URL of the video, sound or table that people see
    """

    length: int | None = None
    rate: float | None = None
    start: float = 0.0
    stamps: tuple[float, ...] | None = None
    duration: float | None = None
    text: str | None = None
    tokens: tuple[tuple[int, int], ...] | None = None
    media: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str | None):
            raise LabelError(f"the text of a recording must be text; found {show(self.text)}.")
        for name in ("length", "rate", "start", "duration"):
            value = getattr(self, name)
            if not isinstance(value, Real | None) or (isinstance(value, int) and abs(value) >= _TOO_LONG):
                raise LabelError(f"the {name} of a recording must be a number; found {show(value)}.")

    @property
    def seconds(self) -> float | None:
        """How long it lasts: as given, or from elements and rate."""
        if self.duration is not None or self.rate is None or self.n_elements is None:
            return self.duration
        return self.n_elements / self.rate

    @property
    def n_elements(self) -> int | None:
        """Elements: as given, or as many as there are tokens or time stamps."""
        for known in (self.tokens, self.stamps):
            if self.length is None and known is not None:
                return len(known)
        return self.length

    def size(self, unit: str) -> float | None:
        """Where it ends, in a unit."""
        if unit == "character":
            return None if self.text is None else len(self.text)
        if unit == "element":
            return self.n_elements
        return None if self.seconds is None else self.start + self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One interval, as iterating over `Segments` gives it."""

    sequence: str
    start: float
    end: float
    unit: str
    label: str
    probability: float | None
    source: str
    resolution: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Segments:
    """Intervals with labels.

    Attributes
    ----------
    sequence : tuple of str
        The sequence of each interval; ids of votes are compared as words.
    start, end : (n,) float
        Half open. An interval may be empty (an instant); an infinite end is the end of the sequence.
    label : tuple of str
    probability : (n,) float
        NaN where there is none.
    source : tuple of str
        Who says so; empty where nobody is named. One word stands for all intervals.
    resolution : tuple of str
        What was asked: "element", "sequence", or the name of a window or span. One word stands for all.
    attributes : tuple of mappings of str to str
    unit : {"element", "second", "character"}
    recordings : mapping of sequence to Recording
        Every sequence that was looked at, also those without intervals, in order.
    asked : mapping of (source, sequence) to spans, or None
        What each source looked at, in the unit; None: all of every recording.
    rounding : Rounding or None
        What the last conversion moved (`largest` is in seconds, or in characters).
    """

    sequence: tuple[str, ...]
    start: FloatArray
    end: FloatArray
    label: tuple[str, ...]
    unit: Unit = "element"
    probability: FloatArray = field(default_factory=lambda: np.empty(0))
    source: tuple[str, ...] = ()
    resolution: tuple[str, ...] = ("element",)
    attributes: tuple[Mapping[str, str], ...] = ()
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    asked: Asked | None = None
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        size = np.size(self.start)
        for name in _WORDS:
            object.__setattr__(self, name, _words(getattr(self, name), size, name))
        for name in _NUMBERS:
            object.__setattr__(self, name, _numbers(getattr(self, name), size, name))
        notes = tuple(self.attributes) or (_NOTHING,) * size
        object.__setattr__(self, "attributes", notes)
        known = {str(one): about for one, about in self.recordings.items()}
        known |= {one: Recording() for one in dict.fromkeys(self.sequence) if one not in known}
        object.__setattr__(self, "recordings", MappingProxyType(known))
        _check(self)

    # --- rows --------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Segment]:
        names = (*_WORDS, *_NUMBERS, "attributes")
        for row in zip(*map(self.column, names), strict=True):
            facts = dict(zip(names, row, strict=True))
            facts["probability"] = None if isnan(facts["probability"]) else facts["probability"]
            yield Segment(**facts, unit=self.unit)

    def column(self, name: str) -> list[Any]:
        """One column as a list of plain values."""
        values = getattr(self, name)
        return values.tolist() if isinstance(values, np.ndarray) else list(values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The different labels, in order of first appearance."""
        return tuple(dict.fromkeys(self.label))

    @property
    def sources(self) -> tuple[str, ...]:
        """Who says something, or was asked, in order of first appearance."""
        return tuple(dict.fromkeys([*self.source, *(source for source, _ in self.asked or ())]))

    # --- parts -------------------------------------------------------------------------------------------------
    def take(self, rows: Any) -> Segments:
        """Some intervals (indices or mask), in the given order; the recordings stay."""
        chosen = np.arange(len(self))[np.asarray(rows)].tolist()
        words: dict[str, Any] = {
            name: tuple(getattr(self, name)[row] for row in chosen) for name in (*_WORDS, "attributes")
        }
        numbers = {name: getattr(self, name)[chosen] for name in _NUMBERS}
        return replace(self, **words, **numbers)

    def select(
        self,
        *,
        sequences: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
        resolution: str | None = None,
    ) -> Segments:
        """The intervals of some sequences, with some labels, of some sources, at one resolution."""
        keep = np.ones(len(self), dtype=np.bool_)
        wanted = None if sequences is None else list(map(str, sequences))
        columns = (self.sequence, self.label, self.source, self.resolution)
        chosen = (wanted, labels, sources, None if resolution is None else [resolution])
        for values, allowed in zip(columns, chosen, strict=True):
            if allowed is not None:
                known = set(allowed)
                keep &= np.fromiter((one in known for one in values), dtype=np.bool_, count=len(self))
        part = self.take(keep)
        if wanted is None:
            return part
        asked = None if self.asked is None else {key: one for key, one in self.asked.items() if key[1] in set(wanted)}
        return replace(
            part, recordings={one: self.recordings[one] for one in wanted if one in self.recordings}, asked=asked
        )

    def sort(self) -> Segments:
        """In order of sequence, start and end."""
        order = np.lexsort((self.end, self.start, places_of(self.sequence, self.recordings)))
        # Most segments are in order already, and copying all columns takes longer than looking.
        return self if bool((np.diff(order) > 0).all()) else self.take(order)

    def describe(self, **facts: Any) -> Segments:
        """Say more about the recordings: ``rate=``, ``length=``, ``media=``, ``text=``, ...

        Each is one value for all sequences, or a mapping of sequence to value; None and sequences that a mapping leaves
        out stay as they are.
        """
        known = {one.name for one in fields(Recording)}
        unknown = [name for name in facts if name not in known]
        if unknown:
            raise LabelError(f"a recording has {', '.join(sorted(known))}; found {unknown[0]!r}.")
        tables = {name: _by_sequence(value) for name, value in facts.items()}
        new = {
            one: {name: table(one) for name, table in tables.items() if table(one) is not None}
            for one in self.recordings
        }
        return replace(self, recordings={one: replace(about, **new[one]) for one, about in self.recordings.items()})

    # --- units, gold, tables -----------------------------------------------------------------------------------
    def to_unit(self, unit: Unit, *, rate: Any = None) -> Segments:
        """The same intervals in another unit; `rounding` says what had to move.

        Parameters
        ----------
        unit : {"element", "second", "character"}
            Seconds and elements need a rate or time stamps, characters and elements need tokens. An element belongs to
            an interval in seconds if its centre does, to one in characters if they share a character.
        rate : float or mapping of sequence to float, optional
            Elements per second, where the recordings do not say.
        """
        from dugong.segments.gold import to_unit

        return to_unit(self if rate is None else self.describe(rate=rate), unit)

    def to_gold(
        self, votes: Axis, resolution: str = "element", *, background: Any = None, missing_ok: bool = False
    ) -> Int8Array:
        """Known labels beside votes, in our own coding, 0 where unknown.

        Parameters
        ----------
        votes : Votes
            Says which sequences, lengths and classes there are, and when the elements happen.
        resolution : {"element", "sequence"}
        background : class, optional
            What silence means where somebody looked. By default the other class if there are two and only one is ever
            marked, else the background of the votes, or a class called O; where there is none, silence is unknown.
        missing_ok : bool
            Whether sequences may be named that have no votes.
        """
        from dugong.segments.gold import to_gold

        return to_gold(self, votes, resolution, background=background, missing_ok=missing_ok)

    @classmethod
    def from_gold(cls, gold: AnyArray, votes: Axis, *, source: str = "") -> Segments:
        """Stretches of equal known labels of elements; `to_gold` gives the same labels back."""
        from dugong.segments.gold import from_gold

        return from_gold(gold, votes, source)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], **options: Any) -> Self:
        """Make segments from dictionaries with the names of the columns; further columns are `options`."""
        listed = list(rows)
        defaults: dict[str, Any] = {"probability": None, "source": "", "resolution": "element", "attributes": _NOTHING}
        names = ("sequence", "start", "end", "label", *defaults)
        columns = {name: tuple(row.get(name, defaults.get(name)) for row in listed) for name in names}
        return cls(**columns, **options)  # type: ignore[arg-type]

    def to_arrow(self) -> pa.Table:
        """One row per interval: sequence, start, end, unit, label, probability, source, resolution."""
        import pyarrow as pa

        columns = {name: pa.array(self.column(name), pa.string()) for name in _WORDS}
        columns |= {"start": pa.array(self.start), "end": pa.array(self.end)}
        columns["unit"] = pa.array([self.unit] * len(self), pa.string())
        columns["probability"] = pa.array(self.probability, mask=np.isnan(self.probability))
        names = ("sequence", "start", "end", "unit", "label", "probability", "source", "resolution")
        return pa.table({name: columns[name] for name in names})

    def to_pandas(self) -> Any:
        """The same table as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def equals(self, other: Segments, *, tolerance: float = 0.0) -> bool:
        """Whether the intervals are the same, in the same order; recordings and rounding are no part of it."""
        if self.unit != other.unit or len(self) != len(other):
            return False
        same = all(getattr(self, name) == getattr(other, name) for name in (*_WORDS, "attributes"))
        return same and all(
            np.allclose(getattr(self, name), getattr(other, name), rtol=0, atol=tolerance, equal_nan=True)
            for name in _NUMBERS
        )

    def __repr__(self) -> str:
        names = ", ".join(self.labels[:4]) + (", ..." if len(self.labels) > 4 else "")
        moved = "" if self.rounding is None or not self.rounding.n_moved else f"; {self.rounding}"
        return (
            f"Segments({len(self)} intervals of {names or 'nothing'} in {len(self.recordings)} sequences, in "
            f"{self.unit}s{moved})"
        )


def places_of(names: Collection[str], known: Iterable[str]) -> IntArray:
    """The place of every name among those that are known."""
    place = {one: number for number, one in enumerate(known)}
    return np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names))


def _words(values: Any, size: int, name: str) -> tuple[str, ...]:
    """A column of words; one word, or a column of one, stands for all rows."""
    if isinstance(values, str):
        return (values,) * size
    words = tuple("" if one is None else str(one) for one in values)
    if len(words) != size and len(words) <= 1 and name in ("source", "resolution"):
        return (words or ("",)) * size
    return words


def _numbers(values: Any, size: int, name: str) -> FloatArray:
    if name == "probability" and (values is None or (np.size(values) == 0 and size)):
        return read_only(np.full(size, np.nan))
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        return read_only(values.copy())
    try:
        array = np.array([np.nan if one is None else one for one in np.ravel(values)], dtype=np.float64)
    except (TypeError, ValueError):
        raise LabelError(f"the column {name!r} of segments must hold numbers.") from None
    return read_only(array)


def _check(segments: Segments) -> None:
    if segments.unit not in UNITS:
        raise LabelError(f"the unit of segments is one of {', '.join(UNITS)}; found {segments.unit!r}.")
    lengths = {name: len(getattr(segments, name)) for name in (*_WORDS, *_NUMBERS, "attributes")}
    if len(set(lengths.values())) > 1:
        raise LabelError(f"the columns of segments must be equally long; found {lengths}.")
    found = find_bad(segments.start, segments.end, segments.probability)
    if found is not None:
        row, problem = found
        raise LabelError(f"{problem}, at row {row}, sequence {segments.sequence[row]!r}.")


def find_bad(start: FloatArray, end: FloatArray, probability: FloatArray) -> tuple[int, str] | None:
    """The first interval that is none, and what is wrong with it; None if all are fine."""
    rules = (
        (~np.isfinite(start) | np.isnan(end), "start and end must be numbers; found {start:g} to {end:g}"),
        (start < 0, "an interval must not begin before 0; found {start:g} to {end:g}"),
        (end < start, "an interval must not end before it begins; found {start:g} to {end:g}"),
        ((probability < 0) | (probability > 1), "a probability must lie between 0 and 1; found {probability:g}"),
    )
    for bad, text in rules:
        if bad.any():
            row = int(np.argmax(bad))
            words = text.format(start=start[row], end=end[row], probability=probability[row])
            return row, words + (f" ({int(bad.sum())} such intervals, this is the first)" if bad.sum() > 1 else "")
    return None


def _by_sequence(value: Any) -> Callable[[str], Any]:
    """A fact about every sequence: one value for all, or what a mapping says."""
    if isinstance(value, Mapping):
        return {str(sequence): one for sequence, one in value.items()}.get
    return lambda _: value
