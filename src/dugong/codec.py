"""Values to plain data and back: the one codec behind every file of ours.

In: a frozen value; or plain data (what JSON knows) and the type that they should have. Out: the other. The fields and
type hints of a dataclass say what a file must hold, and its own `__post_init__` checks what types cannot say; every
complaint names the place, as in ``parameters.factors[2].table``. Nothing is converted: text is no number, 1.0 is no
count, and numbers that JSON does not know are the texts "nan", "inf" and "-inf" where a field allows them.

- A class with a ``kind`` of its own is marked with it; a union, or an abstract class, is told apart by that mark.
- A class with a constructor of its own is made by it, or by its class method ``rebuild`` if that takes other things
  than the fields.
- A mapping whose keys are no text is a list of rows ``[key, value]``; keys of several parts are spread out.
- A list stands for the fields of a class in their order.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from os import PathLike
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from dugong.exceptions import DugongError, FileError

T = TypeVar("T")
_UNBOUNDED = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LARGEST = 2**63 - 1
_DEEPEST = 64
_DOTTED = re.compile(rb"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){64}")
_LONGEST = 60  # characters of what was found
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What must hold of a number, or of all numbers of an array: the second part of an `Annotated` type.

    Attributes
    ----------
    low, high : smallest and largest value
    finite : whether NaN and infinity are refused
    n_axes : axes of an array, if they are fixed
    sum_to_one : whether the last axis of an array holds probabilities
    """

    low: float = -math.inf
    high: float = math.inf
    finite: bool = True
    n_axes: int | None = None
    sum_to_one: bool = False


_FINITE = Numbers()


# --- from values to plain data -------------------------------------------------------------------------------------
def to_plain(value: Any) -> Any:
    """Plain data for people and other programs: what is no finite number is None, and all keys are text."""
    return encode(value, for_files=False)


def encode(value: Any, *, for_files: bool = True) -> Any:
    """Plain data that `decode` turns back into the same value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value)) if for_files else None
    if hasattr(value, "tolist"):  # arrays and their numbers, without importing NumPy
        if for_files and value.size == 0 and value.ndim > 1:  # lists would not say how many axes there are
            return {"shape": list(value.shape)}
        return encode(value.tolist(), for_files=for_files)
    if isinstance(value, PathLike) and not for_files:
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        kind = _kind(type(value))
        found = {name: encode(getattr(value, name), for_files=for_files) for name in _fields(type(value))}
        return found if kind is None else {"kind": kind, **found}
    if isinstance(value, Mapping):
        return _plain_mapping(value, for_files=for_files)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [encode(one, for_files=for_files) for one in value]
    raise FileError(f"{value!r} cannot be saved: files hold plain data only.")


def _plain_mapping(value: Mapping[Any, Any], *, for_files: bool) -> Any:
    plain = {key: encode(one, for_files=for_files) for key, one in value.items()}
    if all(isinstance(key, str) for key in plain):
        return plain
    if for_files:
        return [[*map(encode, key if isinstance(key, tuple) else (key,)), one] for key, one in plain.items()]
    return {",".join(map(str, key)) if isinstance(key, tuple) else str(key): one for key, one in plain.items()}


# --- from text to plain data ---------------------------------------------------------------------------------------
def parse(text: bytes | str) -> Any:
    """Plain data of JSON, neither deeper than any value of ours nor with numbers that JSON does not know."""
    try:
        plain = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise FileError(f"it is nested more than {_DEEPEST} levels deep") from None
    except ValueError as error:
        raise FileError(f"it is no JSON: {error}") from None
    for depth, _ in enumerate(_levels(plain)):
        if depth > _DEEPEST:
            raise FileError(f"it is nested more than {_DEEPEST} levels deep")
    return plain


def parse_toml(text: bytes) -> dict[str, Any]:
    """Plain data of TOML."""
    try:
        if _DOTTED.search(text):  # whose reader takes time in the square of their number
            raise RecursionError
        plain = tomllib.loads(text.decode("utf-8-sig"))  # some editors put a mark before the first letter
    except RecursionError:
        raise FileError(f"it is nested more than {_DEEPEST} levels deep") from None
    except ValueError as error:
        raise FileError(f"it is no TOML: {error}") from None
    # No path, name or word of ours can hold it, and systems cut names there or fail.
    found = [one for level in _levels(plain) for one in level if isinstance(one, str) and "\0" in one]
    if found:
        raise FileError(f"text must not hold NUL; found {show(found[0])}")
    return plain


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _levels(plain: Any) -> Iterator[list[Any]]:
    """All values, those that lie equally deep together."""
    level = [plain]
    while level:
        yield level
        inside = (one.values() if isinstance(one, dict) else one if isinstance(one, list) else () for one in level)
        level = [one for part in inside for one in part]


def check_version(plain: Any, newest: int, what: str, name: str | None = None) -> int:
    """The version of a header, if this Dugong reads it; `name` is the format that the header must state."""
    if not isinstance(plain, dict) or (name is not None and plain.get("format") != name):
        raise FileError(f"it holds something else than {what} of Dugong")
    version = plain.get("version")
    if type(version) is not int or version < 1:
        raise FileError(f"version must be a whole number from 1; found {show(version)}")
    if version > newest:
        raise FileError(
            f"it was written by a newer version of Dugong (file version {version}; this one reads up to version "
            f"{newest}).\n  Upgrade with: pip install --upgrade dugong-ws"
        )
    return version


@contextmanager
def reading(place: object, raises: type[DugongError], advice: str) -> Iterator[None]:
    """Name the file in every complaint about it, and say what to do."""
    try:
        yield
    except DugongError as error:
        reason = str(error).removeprefix(f"{place} cannot be read: ").rstrip(".")
        hint = "" if "\n" in reason else f".\n  {advice}"
        raise raises(f"{place} cannot be read: {reason}{hint}") from error


# --- from plain data to values -------------------------------------------------------------------------------------
class Restorable:
    """A value that knows its plain data, and is made of them again."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` turns back into the same value."""
        return dict(encode(self))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        return decode(cls, plain)


@overload
def decode(kind: type[T], plain: Any, where: str = "") -> T: ...
@overload
def decode(kind: Any, plain: Any, where: str = "") -> Any: ...
def decode(kind: Any, plain: Any, where: str = "") -> Any:
    """The value of a type that plain data describe.

    Parameters
    ----------
    kind : a dataclass, or any type hint made of dataclasses, mappings, tuples, arrays, numbers and text
    where : how errors call the value; the place inside it is added

    Raises
    ------
    FileError
        What must hold, what was found, and where.
    """
    return _decode(kind, plain, where, _FINITE)


def _decode(kind: Any, plain: Any, where: str, numbers: Numbers) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return plain
    if origin is Annotated:
        return _decode(args[0], plain, where, args[1])
    if origin in (Union, UnionType):
        return _decode(_choose(args, plain, where), plain, where, numbers)
    if origin is Literal:
        _require(plain in args, where, f"one of {', '.join(map(repr, args))}", plain)
        return plain
    if origin is tuple:
        return tuple(_decode(one, part, place, numbers) for one, part, place in _rows(args, plain, where))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(args, plain, where, numbers)
    if _is_array(kind):
        return _array(args[1], plain, where, numbers)
    if is_dataclass(kind):
        return _record(kind, plain, where)
    if inspect.isabstract(kind):
        # Users may have classes of their own, which no file holds.
        known = [one for one in kind.__subclasses__() if is_dataclass(one) and _kind(one)]
        return _record(_marked(known, plain, where), plain, where)
    return _scalar(kind, plain, where, numbers)


def _scalar(kind: Any, plain: Any, where: str, numbers: Numbers) -> Any:
    if kind is float:
        return _number(plain, where, numbers)
    if kind is int:
        _require(type(plain) is int and abs(plain) <= _LARGEST, where, "a whole number", plain)
        _require(numbers.low <= plain <= numbers.high, where, describe_range(numbers), plain)
    elif kind is NoneType:
        _require(plain is None, where, "null", plain)
    else:
        _require(isinstance(plain, kind), where, "text" if kind is str else f"a {kind.__name__}", plain)
    return plain


def _number(plain: Any, where: str, numbers: Numbers) -> float:
    if not numbers.finite and isinstance(plain, str) and plain in _UNBOUNDED:
        return _UNBOUNDED[plain]
    fine = isinstance(plain, float | int) and not isinstance(plain, bool) and abs(plain) <= 1e308
    _require(fine, where, "a number", plain)
    _require(numbers.low <= plain <= numbers.high, where, describe_range(numbers), plain)
    return float(plain)


def _array(kind: Any, plain: Any, where: str, numbers: Numbers) -> Any:
    """An array of nested lists, all of one shape."""
    import numpy as np

    dtype = np.dtype(get_args(kind)[0])
    if isinstance(plain, Mapping):
        sizes = _decode(tuple[int, ...], plain.get("shape"), _join(where, "shape"), Numbers(low=0, high=_LARGEST))
        _require(0 in sizes, where, "a list of numbers", plain)
        return np.zeros(sizes, dtype=dtype)
    _require(isinstance(plain, list), where, "a list of numbers", plain)
    table = np.array(plain, dtype=object)
    cells = table.reshape(-1).tolist()
    _require(not any(isinstance(one, list) for one in cells), where, "a table whose rows have one length", plain)
    _require(numbers.n_axes in (None, table.ndim), where, f"a table of {numbers.n_axes} axes", plain)
    if dtype.kind == "f":
        values = [_number(one, where, numbers) for one in cells]
    else:
        values = [_scalar(bool if dtype.kind == "b" else int, one, where, numbers) for one in cells]
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        _require(all(low <= one <= high for one in values), where, f"numbers from {low} to {high}", plain)
    array = np.array(values, dtype=dtype).reshape(table.shape)
    if numbers.sum_to_one and array.size:
        worst = float(np.abs(array.sum(axis=-1) - 1).max())
        _require(worst <= _ROUNDING, where, "probabilities that sum to one over the last axis", plain)
    array.flags.writeable = False
    return array


def _rows(args: tuple[Any, ...], plain: Any, where: str) -> Iterator[tuple[Any, Any, str]]:
    """Type, plain value and name of every member of a tuple."""
    _require(isinstance(plain, list | tuple), where, "a list", plain)
    kinds = [args[0]] * len(plain) if len(args) == 2 and args[1] is Ellipsis else list(args)
    _require(len(kinds) == len(plain), where, f"a list of {len(kinds)}", plain)
    return ((kind, part, f"{where}[{i}]") for i, (kind, part) in enumerate(zip(kinds, plain, strict=True)))


def _mapping(args: tuple[Any, ...], plain: Any, where: str, numbers: Numbers) -> dict[Any, Any]:
    key, value = args
    if isinstance(plain, Mapping):
        _require(key is str or not plain, where, "a list of rows", plain)
        _require(all(isinstance(name, str) for name in plain), where, "an object whose keys are text", plain)
        return {name: _decode(value, one, _join(where, name), numbers) for name, one in plain.items()}
    _require(key is not str and isinstance(plain, list), where, "an object" if key is str else "a list of rows", plain)
    parts = get_args(key) if get_origin(key) is tuple else (key,)
    found = {}
    for i, row in enumerate(plain):
        members = _rows((*parts, value), row, f"{where}[{i}]")
        *name, one = (_decode(kind, part, place, numbers) for kind, part, place in members)
        found[tuple(name) if len(parts) > 1 else name[0]] = one
    return found


def _record(kind: Any, plain: Any, where: str) -> Any:
    """A dataclass of its fields; its own complaints are passed on with their place."""
    known = _inputs(kind)
    if isinstance(plain, list) and len(plain) <= len(known):
        plain = dict(zip(known, plain, strict=False))
    _require(isinstance(plain, Mapping), where, "an object", plain)
    given = {name: one for name, one in plain.items() if name != "kind" or not _kind(kind)}
    for name in given:
        _require(name in known, where, f"an object with {', '.join(known)}", name)
    for name, (_, needed) in known.items():
        if needed and name not in given:
            raise FileError(f"{where or 'it'} lacks {name!r}")
    values = {name: _decode(known[name][0], one, _join(where, name), _FINITE) for name, one in given.items()}
    try:
        return getattr(kind, "rebuild", kind)(**values)
    except FileError:
        raise
    except (DugongError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where}: {error}" if where else str(error)) from error


@cache
def _fields(kind: Any) -> list[str]:
    """Names of the fields that make a value."""
    return [one.name for one in fields(kind) if one.init]


@cache
def _inputs(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of everything that makes a value, and whether it must be given."""
    maker = getattr(kind, "rebuild", None) or (None if kind.__dataclass_params__.init else kind.__init__)
    if maker is None:
        hints = get_type_hints(kind, include_extras=True)
        own = [one for one in fields(kind) if one.init]
        given = {one.name: one.default is MISSING and one.default_factory is MISSING for one in own}
    else:
        hints = get_type_hints(maker, include_extras=True)
        options = inspect.signature(maker).parameters.values()
        given = {one.name: one.default is one.empty for one in options if one.name != "self"}
    return {name: (hints[name], needed) for name, needed in given.items()}


def _kind(kind: Any) -> str | None:
    """The mark of a class, unless that is one of its fields."""
    return None if "kind" in _fields(kind) else getattr(kind, "kind", None)


def _choose(args: tuple[Any, ...], plain: Any, where: str) -> Any:
    """The member of a union that plain data are."""
    if plain is None and NoneType in args:
        return NoneType
    for kind in (str, bool, int):
        if kind in args and type(plain) is kind:
            return kind
    rest = [one for one in args if one not in (NoneType, str, bool, int)]
    rest = [one for one in rest if _is_array(one)] or rest
    if len(rest) > 1:
        return _marked(rest, plain, where)
    return rest[0] if rest else next(one for one in args if one is not NoneType)


def _is_array(kind: Any) -> bool:
    return getattr(get_origin(kind), "__name__", "") == "ndarray"


def _marked(kinds: list[Any], plain: Any, where: str) -> Any:
    known = {_kind(one): one for one in kinds}
    _require(isinstance(plain, Mapping), where, "an object", plain)
    mark = plain.get("kind")
    name = _join(where, "kind")
    _require(isinstance(mark, str) and mark in known, name, f"one of {', '.join(map(repr, known))}", mark)
    return known[mark]


def _require(holds: bool, where: str, what: str, found: Any) -> None:  # noqa: FBT001
    if not holds:
        raise FileError(f"{where or 'it'} must be {what}; found {show(found)}")


def describe_range(numbers: Numbers) -> str:
    """The range of a number, in words."""
    return f"a number from {numbers.low:g} to {numbers.high:g}"


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def show(found: Any) -> str:
    """What was found, in a few words."""
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) > _LARGEST:
        return "a number beyond 64 bits"
    if isinstance(found, str):
        found = found[:_LONGEST]
    if hasattr(found, "dtype") and hasattr(found, "shape"):
        return f"an array of {found.dtype}, shape {found.shape}"
    if isinstance(found, list):
        return f"a list of {len(found)}"
    if isinstance(found, dict):
        return f"an object with {len(found)} entries"
    return repr(found)[:_LONGEST]
