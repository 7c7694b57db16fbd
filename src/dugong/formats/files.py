"""One file of another tool, the intervals found in it, and errors that name the file and the line.

In: bytes, as text, lines, JSON or XML; one call of `Intervals.add` per interval. Out: `Segments`, or a `FormatError`.
Nothing in here knows a format. Text is UTF-8 unless a byte order mark or the caller says otherwise. XML is parsed only
if it declares no document type: entities, and with them every known attack by entities, need one.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, isnan
from types import TracebackType
from typing import Any, Literal
from xml.parsers import expat

import numpy as np

from dugong.exceptions import FormatError
from dugong.paths import Place
from dugong.segments import Recording, Segments
from dugong.segments.container import Asked, Unit, find_bad
from dugong.types import FloatArray
from dugong.version import __version__

MAX_BYTES = 1 << 31  # two gigabytes of annotations are a mistake, or more than memory should hold
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, kw_only=True, eq=False)
class File:
    """What is in a file, parsed at most once in each way."""

    place: Place
    data: bytes = field(repr=False)
    encoding: str | None = None

    @classmethod
    def open(cls, place: Place, encoding: str | None = None) -> File:
        """Read a file whole."""
        if not place.is_file():
            raise FormatError(f"there is no file {place}.")
        size = place.stat().st_size if hasattr(place, "stat") else 0
        if size > MAX_BYTES:
            raise FormatError(
                f"{place} has {size / 1e9:.1f} GB, and files of annotations are read up to {MAX_BYTES / 1e9:.1f} GB.\n"
                "  Export it in parts, for instance one file per recording."
            )
        return cls(place=place, data=place.read_bytes(), encoding=encoding)

    def error(self, text: str, line: object = None) -> FormatError:
        """An error that begins with the name of the file and, if known, the line or the path inside it."""
        where = f", line {line}" if isinstance(line, int) else f", {line}" if line else ""
        return FormatError(f"{self.place}{where}: {text}")

    @cached_property
    def stem(self) -> str:
        """The name without its ending: the id of the sequence where a file holds one."""
        return self.place.stem

    def beside(self, name: str) -> File | None:
        """Another file of the same folder, if it is there."""
        place = self.place.with_name(name)
        return File.open(place, self.encoding) if place.is_file() else None

    # --- text --------------------------------------------------------------------------------------------------
    @cached_property
    def text(self) -> str:
        """All characters, without a byte order mark; line ends stay as they are."""
        marked = next((name for mark, name in _MARKS if self.data.startswith(mark)), "utf-8")
        encoding = self.encoding or marked
        try:
            return self.data.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise self.error(
                f"this is no {error.encoding} text: byte {self.data[error.start]:#04x}.\n"
                "  Say which encoding it has (encoding='latin-1', for instance), or save it as UTF-8.",
                line,
            ) from None
        except LookupError:
            raise FormatError(f"there is no encoding {encoding!r}.") from None

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends; only line feeds end a line (a label may hold any other character)."""
        return [line.removesuffix("\r") for line in self.text.split("\n")]

    def number(self, text: Any, what: str, line: object) -> float:
        """A number, or an error that says what should have been one."""
        try:
            return float(text)
        except (TypeError, ValueError, OverflowError):
            raise self.error(f"{what} must be a number; found {text!r}.", line) from None

    def whole(self, text: Any, what: str, line: object) -> int:
        """The same without decimals."""
        value = self.number(text, what, line)
        if not isfinite(value):
            raise self.error(f"{what} must be a number; found {text!r}.", line)
        return int(value)

    # --- JSON --------------------------------------------------------------------------------------------------
    @cached_property
    def json(self) -> Any:
        """The whole file as one JSON value."""
        return self._parsed(self.text)

    def json_lines(self) -> list[tuple[int, dict[str, Any]]]:
        """One JSON object per line, with the numbers of the lines; empty lines are left out."""
        found = []
        for number, line in enumerate(self.lines, start=1):
            if line.strip():
                value = self._parsed(line, number)
                if not isinstance(value, dict):
                    raise self.error(f"every line must be a JSON object; found {type(value).__name__}.", number)
                found.append((number, value))
        return found

    def first_object(self) -> dict[str, Any]:
        """The first line as a JSON object; an empty one if the file has no lines."""
        number, line = next(((number, line) for number, line in enumerate(self.lines, 1) if line.strip()), (1, "{}"))
        value = self._parsed(line, number)
        return value if isinstance(value, dict) else {}

    def _parsed(self, text: str, line: int = 1) -> Any:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise self.error(
                f"this is no JSON: {error.msg}, at column {error.colno}. The file is damaged, or cut off.",
                line + error.lineno - 1,
            ) from None
        except RecursionError:
            raise self.error("the JSON is nested too deeply to be annotations.") from None
        except ValueError:  # Python gives up on numbers of thousands of digits
            raise self.error("the JSON holds a number that is too long to be one.", line) from None

    def at(self, where: object) -> _At:
        """Around the reading of a part: what is absent or of another type becomes an error with this path."""
        return _At(self, where)

    # --- XML ---------------------------------------------------------------------------------------------------
    @cached_property
    def xml(self) -> ET.Element:
        """The root element."""
        try:
            self._refuse_document_type()
            return ET.fromstring(self.data)
        except FormatError:
            raise
        except (expat.ExpatError, ET.ParseError, LookupError, ValueError) as error:  # the latter two: its encoding
            line = error.position[0] if isinstance(error, ET.ParseError) else getattr(error, "lineno", 1)
            raise self.error(f"this is no XML: {error}. The file is damaged, or cut off.", line) from None

    def _refuse_document_type(self) -> None:
        """Look at what comes before the root element; entities can be declared nowhere else."""
        parser = expat.ParserCreate()

        def refuse(*_: object) -> None:
            raise self.error(
                "this XML declares a document type, which annotations never need and attacks do; it is not read.",
                parser.CurrentLineNumber,
            )

        def stop(*_: object) -> None:
            raise StopIteration

        parser.StartDoctypeDeclHandler = refuse
        parser.EntityDeclHandler = refuse
        parser.StartElementHandler = stop
        try:
            parser.Parse(self.data, True)
        except StopIteration:
            return


@dataclass(frozen=True, slots=True)
class _At(AbstractContextManager[Any]):
    """Turns errors about the shape of JSON into errors about the file."""

    file: File
    where: object

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or isinstance(error, FormatError):
            return
        if isinstance(error, KeyError):
            raise self.file.error(f"there must be a key {error}.", self.where) from None
        if isinstance(error, TypeError | AttributeError | IndexError | ValueError | OverflowError):
            raise self.file.error(f"this has another shape than it should ({error}).", self.where) from None


_SLACK = {"second": 1e-3, "element": 0.0, "character": 0.0}  # clocks of media and annotations differ by a millisecond
_NOTHING: Mapping[str, str] = {}
_COLUMNS = ("where", "sequence", "start", "end", "label", "probability", "source", "resolution", "attributes")


class Intervals:
    """Collects the intervals of one file."""

    def __init__(self, file: File, unit: Unit) -> None:
        self.file = file
        self.unit: Unit = unit
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self,
        where: object,
        sequence: str,
        start: float,
        end: float,
        label: str,
        probability: float | None = None,
        *,
        source: str = "",
        resolution: str = "element",
        attributes: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Note one interval; `where` is a line number, or a path inside the file."""
        self._rows.append((where, sequence, start, end, label, probability, source, resolution, attributes))

    def done(self, recordings: Mapping[str, Recording] | None = None, asked: Asked | None = None) -> Segments:
        """The segments, once all of them are known to be intervals inside their recordings."""
        given: Any = zip(*self._rows, strict=True) if self._rows else [()] * len(_COLUMNS)
        columns: dict[str, Any] = dict(zip(_COLUMNS, given, strict=True))
        where = columns.pop("where")
        for name in ("start", "end", "probability"):
            columns[name] = self._numbers(columns[name], name, where)
        bad = find_bad(columns["start"], columns["end"], columns["probability"])
        if bad is not None:
            raise self.file.error(f"{bad[1]}.", where[bad[0]])
        known = dict(recordings or {})
        self._check_ends(columns, known, where)
        return Segments(**columns, unit=self.unit, recordings=known, asked=asked)

    def _numbers(self, values: tuple[Any, ...], name: str, where: tuple[Any, ...]) -> FloatArray:
        try:
            return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            for value, place in zip(values, where, strict=True):
                self.file.number(np.nan if value is None else value, f"the {name}", place)
            raise

    def _check_ends(self, columns: dict[str, Any], recordings: Mapping[str, Recording], where: tuple[Any, ...]) -> None:
        start, end, names = columns["start"], columns["end"], columns["sequence"]
        limits = _limits(names, recordings, self.unit)
        late = np.where(np.isinf(end), start, end) > limits + _SLACK[self.unit]
        if late.any():
            row = int(np.argmax(late))
            raise self.file.error(
                f"an interval must not reach beyond the end of its recording; found {start[row]:g} to {end[row]:g} in "
                f"{names[row]!r}, which ends at {limits[row]:g} ({self.unit}s).",
                where[row],
            )


def _limits(names: Iterable[str], recordings: Mapping[str, Recording], unit: Unit) -> FloatArray:
    """Where the sequence of every interval ends; infinity where that is not known."""
    sizes = {name: about.size(unit) for name, about in recordings.items()}
    known = {name: size for name, size in sizes.items() if size is not None}
    return np.array([known.get(name, np.inf) for name in names], dtype=np.float64)


# --- What many writers need: numbers as text, probabilities in labels, and segments that a format can hold ------------
# Probabilities inside a text that people read have four decimals; columns and JSON keep every digit.
TOOL = f"dugong-{__version__}"
_NOTES = {
    "p=": re.compile(r"^(?P<label>.*?)\s*\bp=(?P<p>0(?:\.\d+)?|1(?:\.0*)?)(?:\s+(?P<rest>.*))?$", re.DOTALL),
    "": re.compile(r"^(?P<label>.*\S)\s+(?P<p>0\.\d+|1\.0+)(?P<rest>)$", re.DOTALL),
}


def short(probability: float) -> str:
    """A probability for people: four decimals at most, always with a point."""
    text = f"{probability:.4f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def with_note(label: str, probability: float | None, mark: str = "p=") -> str:
    """The label and its probability: ``walk p=0.93``, or with the mark of subtitles, which is none, ``walk 0.93``."""
    if split_note(label, mark)[1] is not None:
        raise FormatError(f"the label {label!r} ends like a probability, so that it could not be read back; rename it.")
    return label if probability is None else f"{label} {mark}{short(probability)}"


def split_note(text: str, mark: str = "p=") -> tuple[str, float | None, str]:
    """Label, probability and what follows it; the probability is None where there is none."""
    found = _NOTES[mark].match(text)
    return (text, None, "") if found is None else (found["label"], float(found["p"]), found["rest"] or "")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON lines, one object each."""
    return written(json.dumps(row, ensure_ascii=False) for row in rows)


def written(lines: Iterable[str]) -> bytes:
    """Lines as the bytes of a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def media_name(sequence: str, about: Recording, ending: str) -> str:
    """The name of the media of a sequence, if its stem is the id; else the id with an ending."""
    known = about.media is not None and media_stem(about.media) == sequence
    return about.media if known and about.media is not None else f"{sequence}{ending}"


def media_stem(name: str) -> str:
    """The id of a sequence from the name of its media: without folders and the last ending."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return last.rpartition(".")[0] or last


# --- segments that a format can hold ------------------------------------------------------------------------------
def placed(segments: Segments, unit: Unit, name: str) -> Segments:
    """Segments in the unit of a format, with ends that are numbers; elements are whole and at least one."""
    found = segments.to_unit(unit)
    if np.isinf(found.end).any():
        limits = _limits(found.sequence, found.recordings, unit)
        found = replace(found, end=np.where(np.isinf(found.end), limits, found.end))
        unknown = np.isinf(found.end)
        if unknown.any():
            raise FormatError(
                f"the format {name!r} needs to know where the sequence {found.sequence[int(np.argmax(unknown))]!r} "
                "ends.\n  Say it: segments.describe(duration=...) in seconds, or length= and rate=."
            )
    if unit != "second":
        _check_whole(found, name)
    return found


def _check_whole(segments: Segments, name: str) -> None:
    whole = (segments.start == np.floor(segments.start)) & (segments.end == np.floor(segments.end))
    bad = ~whole | (segments.end <= segments.start)
    if bad.any():
        row = int(np.argmax(bad))
        raise FormatError(
            f"the format {name!r} holds intervals of whole {segments.unit}s, at least one; found {int(bad.sum())} that "
            f"are none, the first {segments.start[row]:g} to {segments.end[row]:g} in {segments.sequence[row]!r}.\n"
            "  Leave them out: segments.take(segments.end > segments.start)."
        )


def forbid(segments: Segments, characters: str, name: str, *, sequences: bool = False) -> None:
    """Stop if a label (or the id of a sequence) holds something that this format cannot."""
    forbid_in([*segments.labels, *(segments.recordings if sequences else ())], characters, name)


def forbid_in(words: Iterable[str], characters: str, name: str) -> None:
    """Stop if a word that is about to be written holds something that this format cannot."""
    bad = re.compile(f"[{characters}]")
    for word in words:
        if bad.search(word) or not word:
            raise FormatError(
                f"the format {name!r} cannot hold {word!r}: names must not be empty or contain any of "
                f"{_spelled(characters)}.\n  Rename it before it is exported."
            )


def _spelled(characters: str) -> str:
    spelled = {"\\s": "white space", "\\t": "tab", "\\n": "line end", "\\r": "line end"}
    parts = re.findall(r"\\.|.", characters)
    return ", ".join(dict.fromkeys(spelled.get(one, one.removeprefix("\\")) for one in parts))


def apart(segments: Segments, name: str, *, of: tuple[str, ...] = ("sequence", "source")) -> Segments:
    """Segments in order of time, after checking that none overlaps another of the same sequence and source."""
    ordered = segments.sort()
    last: dict[tuple[str, ...], tuple[float, float]] = {}
    keys = zip(*(getattr(ordered, one) for one in of), strict=True)
    for key, start, end in zip(keys, ordered.start.tolist(), ordered.end.tolist(), strict=True):
        before = last.get(key)
        if before is not None and start < before[1]:
            raise FormatError(
                f"the format {name!r} does not allow overlaps; in {key[0]!r} the interval {start:g} to {end:g} begins "
                f"before {before[0]:g} to {before[1]:g} has ended.\n"
                "  Export one source or label at a time: segments.select(sources=[...], labels=[...])."
            )
        if before is None or end > before[1]:
            last[key] = (start, end)
    return ordered


def only(segments: Segments) -> str:
    """The one sequence of segments."""
    return next(iter(segments.recordings))


def columns(segments: Segments, *names: str) -> Iterable[tuple[Any, ...]]:
    """Intervals of some columns as plain values; a probability that is not known is None."""
    given = {name: segments.column(name) for name in names}
    if "probability" in given:
        given["probability"] = [None if isnan(p) else p for p in given["probability"]]
    return zip(*given.values(), strict=True)


def grouped(segments: Segments, by: Literal["sequence", "source"], *names: str) -> dict[str, list[tuple[Any, ...]]]:
    """The same, by sequence or by source; those without intervals have none, and nobody is a source too."""
    keys = segments.recordings if by == "sequence" else segments.sources or ("",)
    found: dict[str, list[tuple[Any, ...]]] = {key: [] for key in keys}
    for key, *row in columns(segments, by, *names):
        found[key].append(tuple(row))
    return found
