"""A folder as sequences: one file each, the id is its name, loaded when needed.

In: a folder of CSV, Parquet or npy files. Out: a mapping of id to sequence, sorted by id, that reads a file
when it is asked for and keeps nothing. All files must have the columns of the first one.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dugong.archives import check_array
from dugong.contract import typed
from dugong.exceptions import LoaderError
from dugong.paths import place_of
from dugong.sources.inputs import Deferred
from dugong.sources.loaders.arrow import (
    Columns,
    Dialect,
    Rows,
    check_encoding,
    in_file,
    is_number,
    is_table,
    read_csv,
    read_parquet,
)
from dugong.sources.loaders.blocks import Blocks, Reduce, Timing
from dugong.types import AnyArray

_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "M": "times", "m": "times"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Folder(Mapping[str, Any]):
    """Sequences by id, each in its own file; reading happens on access.

    Attributes
    ----------
    files : mapping of id to Path
    read : function from Path to sequence
    rate : elements per second of every sequence, where that is known
    settings : what decides how a file becomes a sequence, as plain data and functions of the user. Where it has
        changed, votes of an earlier run are not kept.
    """

    files: Mapping[str, Path]
    read: Callable[[Path], Any]
    rate: float | None = None
    settings: Any = None

    def __getitem__(self, key: str) -> Any:
        return self.read(self.files[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"Folder({len(self)} files, {next(iter(self.files))!r} to {list(self.files)[-1]!r})"

    def deferred(self) -> Iterator[tuple[str, Deferred]]:
        """Ids with sequences that are read later, where they are needed."""
        return ((key, Deferred(self.read, path)) for key, path in self.files.items())


@typed(LoaderError)
def csv_folder(  # noqa: PLR0913 (one argument per property of files)
    path: str | Path,
    *,
    pattern: str = "*.csv",
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    skip: int = 0,
    names: Iterable[str] | None = None,
    time: str | None = None,
    rate: float | None = None,
    time_unit: str = "s",
    tolerance: float = 0.25,
    every: str | float | None = None,
    reduce: Reduce = "mean",
) -> Folder:
    """Load a folder of CSV files, one sequence of `Rows` each.

    Parameters
    ----------
    path : folder
    pattern : str
        Which files; ``"**/*.csv"`` looks into subfolders too, as happens by itself where the folder holds none.
    delimiter, decimal, encoding : str, optional
        What parts the cells (comma, semicolon, tab), the sign of decimals (``","`` in much of Europe), and how letters
        are written. By default each file shows that: UTF-16 by its mark, else UTF-8.
    skip : int
        Lines before the names of the columns; those that begin with ``#`` are left out anyway.
    names : list of str, optional
        Names of the columns, if the first line of a file is not a header.
    time, rate : str and float, optional
        The column that holds the time, and the known number of rows per second. Gaps then become rows of NaN.
    time_unit : {"s", "ms", "us", "ns"}
        What the time column counts, if it holds numbers.
    tolerance : float
        How far a row may be from its place on the grid, in rows.
    every : str or float, optional
        How long an element is: ``"1s"``, ``"250ms"``. Rows are cut into blocks of that time, by the time column or, in
        files without one, by `rate`; files of different rates then have the same elements.
    reduce : {"mean", "median", "min", "max", "std", "sum"}, function, or None
        What a block becomes: a row with that summary of its numbers (and the first of its words), or, with None, the
        block of rows itself.
    """
    for word, value in (("delimiter", delimiter), ("decimal", decimal)):
        if value is not None and len(value) != 1:
            raise LoaderError(f"{word}= must be one sign; found {value!r}.")
    if encoding is not None:
        check_encoding(encoding)
    if skip < 0:
        raise LoaderError(f"skip= must be a number of lines; found {skip}.")
    dialect = Dialect(delimiter=delimiter or "", decimal=decimal or "", encoding=encoding or "", skip=skip)
    names = None if names is None else tuple(names)
    read = partial(read_csv, dialect=dialect, names=names)
    told = [delimiter, decimal, encoding, skip, names]
    return _tables(path, pattern, read, Timing(time, rate, time_unit, tolerance, every, reduce), told)


@typed(LoaderError)
def parquet_folder(
    path: str | Path,
    *,
    pattern: str = "*.parquet",
    time: str | None = None,
    rate: float | None = None,
    time_unit: str = "s",
    tolerance: float = 0.25,
    every: str | float | None = None,
    reduce: Reduce = "mean",
) -> Folder:
    """Load a folder of Parquet files, one sequence of `Rows` each; the options are those of `csv_folder`."""
    return _tables(path, pattern, read_parquet, Timing(time, rate, time_unit, tolerance, every, reduce))


@typed(LoaderError)
def npy_folder(path: str | Path, *, pattern: str = "*.npy") -> Folder:
    """Load a folder of npy files: arrays whose first axis is the sequence, or structured arrays as `Rows`."""
    files = find_files(path, pattern)
    first = next(iter(files.values()))
    return Folder(files=files, read=partial(_read_array, like=(first, _shape_of(_load_array(first)))))


@typed(LoaderError)
def folder(path: str | Path, **options: Any) -> Mapping[Any, Any]:
    """Load a folder of files of one kind, which their endings tell; options go to the loader of that kind.

    Files of subfolders count where the folder itself holds none. Files ``.txt`` that are tables (parted by tabs or
    semicolons) are read as tables.
    """
    from dugong.sources.loaders import annotated, media

    kinds: dict[str, Callable[..., Mapping[Any, Any]]] = {
        ".csv": csv_folder,
        ".tsv": csv_folder,
        ".parquet": parquet_folder,
        ".npy": npy_folder,
        **dict.fromkeys(media.VIDEO_ENDINGS, media.video_folder),
        **dict.fromkeys(media.AUDIO_ENDINGS, media.audio_folder),
        ".edf": annotated.edf_folder,
        ".txt": annotated.text_folder,
        **dict.fromkeys(annotated.CONLL_ENDINGS, annotated.conll),
    }
    place = _existing(path)
    files = _inside(place, "*", lambda file: file.suffix.lower() in kinds)
    found = Counter(file.suffix.lower() for file in files)
    if list(found) == [".txt"] and is_table(files[0]):
        kinds[".txt"] = csv_folder
    loaders = {kinds[ending] for ending in found}
    if len(loaders) != 1:
        others = Counter(file.suffix.lower() or "without ending" for file in _inside(place, "*"))
        listing = ", ".join(f"{count} {ending}" for ending, count in sorted((found or others).items())) or "none"
        raise LoaderError(
            f"{place}: must hold files of one kind (.csv, .tsv, .parquet, .npy, .txt, .conll, .edf, video, sound); "
            f"found {listing}.\n  Say which in a loader: csv_folder, parquet_folder, npy_folder, text_folder, conll, "
            "edf_folder, video_folder or audio_folder. Sheets (.xlsx) are saved as CSV; anything else is a function of "
            "yours that returns sequences by id."
        )
    loader = loaders.pop()
    if loader is csv_folder:
        options = {"pattern": f"*{next(iter(found))}" if len(found) == 1 else "*.[ct]sv", **options}
    unknown = [name for name in options if name not in inspect.signature(loader).parameters]
    if unknown:
        raise LoaderError(f"{place}: files {', '.join(sorted(found))} are loaded without {unknown[0]}=; leave it out.")
    return loader(place, **options)


def find_files(path: str | Path, pattern: str, endings: tuple[str, ...] = ()) -> dict[str, Path]:
    """Files of a folder by name without ending, sorted; hidden files and endings not asked for are left out."""
    place = _existing(path)
    found = _inside(place, pattern, lambda file: not endings or file.suffix.lower() in endings)
    if not found:
        kinds = f" ({', '.join(endings)})" if endings else ""
        raise LoaderError(f"{place}: there are no files {pattern}{kinds} in this folder.")
    # p1/walk.csv and p2/walk.csv are the sequences p1-walk and p2-walk.
    apart = len({file.stem for file in found}) < len(found)
    files: dict[str, Path] = {}
    names = ["-".join(file.relative_to(place).with_suffix("").parts) if apart else file.stem for file in found]
    for name, file in sorted(zip(names, found, strict=True)):
        if name in files:
            raise LoaderError(f"{place}: sequence ids are file names; found {name!r} twice, the second is {file}.")
        files[name] = file
    return files


def _inside(place: Path, pattern: str, fits: Callable[[Path], bool] = lambda _: True) -> list[Path]:
    """Files of a folder or, where there are none, of its subfolders; .CSV is .csv, and hidden files are left out."""
    head, dot, ending = pattern.rpartition(".")
    either = re.sub("[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", ending)
    pattern = head + dot + (either if dot and "[" not in ending and "/" not in ending else ending)
    for reach in (pattern, f"**/{pattern}"):
        files = (file for file in sorted(place.glob(reach)) if file.is_file() and fits(file))
        found = [file for file in files if not any(part.startswith(".") for part in file.relative_to(place).parts)]
        if found:
            return found
    return []


def _existing(path: str | Path) -> Path:
    place = Path(place_of(path))  # which refuses what no file system can name
    if not place.is_dir():
        raise LoaderError(f"{place}: is not a folder.")
    return place


def _tables(
    path: str | Path, pattern: str, read: Callable[[Path], Columns], timing: Timing, told: Iterable[object] = ()
) -> Folder:
    files = find_files(path, pattern)
    first = next(iter(files.values()))
    kinds = {name: _kind(column) for name, column in read(first).items()}
    read_rows = partial(_read_rows, read=read, timing=timing, like=(first, kinds))
    settings = [*told, *(getattr(timing, one.name) for one in fields(timing))]
    return Folder(files=files, read=read_rows, rate=timing.element_rate, settings=settings)


def _read_rows(
    path: Path,
    *,
    read: Callable[[Path], Columns],
    timing: Timing,
    like: tuple[Path, dict[str, str | None]],
) -> Rows | Blocks:
    columns = read(path)
    first, kinds = like
    _check_names(path, list(columns), first, list(kinds))
    for name, column in columns.items():
        known, found = kinds[name], _kind(column)
        if known and found and known != found:
            raise in_file(
                path,
                f"column {name!r} must hold {known}, as in {first.name}; found {_example(column, found)}.",
            )
    return timing.elements({name: columns[name] for name in kinds}, path)


def _check_names(path: Path, names: list[str], first: Path, expected: list[str]) -> None:
    absent, extra = sorted(set(expected) - set(names)), sorted(set(names) - set(expected))
    if absent or extra:
        lacks = f" lacks {', '.join(map(repr, absent))}" if absent else ""
        has = f" has {', '.join(map(repr, extra))} in addition" if extra else ""
        raise in_file(path, f"must have the columns of {first.name}; it{lacks}{' and' if lacks and has else ''}{has}.")


def _kind(column: AnyArray) -> str | None:
    """What a column holds, in a word; None if it holds nothing at all."""
    if column.dtype.kind == "f" and np.isnan(column).all():
        return None
    return _KINDS.get(column.dtype.kind, "words")


def _example(column: AnyArray, kind: str) -> str:
    words = [value for value in column.tolist() if isinstance(value, str) and not is_number(value)]
    return f"{kind}, the first is {words[0]!r} in row {column.tolist().index(words[0])}" if words else kind


def _load_array(path: Path) -> AnyArray:
    try:
        check_array(path)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError) as error:  # FileError is a ValueError
        raise in_file(path, f"cannot be read as an array: {error}") from error
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        raise in_file(path, "must hold an array whose first axis is the sequence.")
    return array


def _shape_of(array: AnyArray) -> str:
    """What must be the same in all files, in words."""
    if array.dtype.names:
        return f"columns {', '.join(array.dtype.names)}"
    return f"elements of shape {array.shape[1:]} and kind {_KINDS.get(array.dtype.kind, 'words')}"


def _read_array(path: Path, *, like: tuple[Path, str]) -> AnyArray | Rows:
    array = _load_array(path)
    first, expected = like
    if _shape_of(array) != expected:
        raise in_file(path, f"must hold {expected}, as {first.name} does; found {_shape_of(array)}.")
    if array.dtype.names:
        return Rows({name: np.array(array[name]) for name in array.dtype.names})
    return array
