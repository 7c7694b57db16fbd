"""What every public door keeps to: settings as in scikit-learn, and arguments that are what their hints say.

`Configured` gives a class `get_params`, `set_params`, a readable `repr` and equality of settings through `clone`,
read off its own constructor. No dependency on scikit-learn.

`typed` compares the arguments of a function, or of a class's constructor, with its type hints before anything is done
with them, so that a wrong kind of value is one error in words at the door and not a foreign one far inside. Ranges are
written as in files: ``Annotated[int, Numbers(low=1)]``.
"""

from __future__ import annotations

import builtins
import inspect
import math
import numbers
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, wraps
from itertools import chain
from os import PathLike
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from dugong.codec import Numbers, describe_range, show
from dugong.exceptions import DugongError, NotFittedError

DoorT = TypeVar("DoorT", bound=Callable[..., Any])
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False", NoneType: "None"}
_BITS = 2**63
_LIKE = (bool, int, float, complex, str, bytes)  # what NumPy's ArrayLike takes beside arrays and lists
_ARRAYS = ("_SupportsArray", "_NestedSequence", "Buffer", "_Buffer")  # how it calls these


class SettingError(DugongError, ValueError):
    """A model has no such setting."""


class Configured:
    """A class whose constructor stores its keyword arguments under their own names."""

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters
        return sorted(name for name in parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001  scikit-learn's signature
        """Settings by name; `deep` is accepted for scikit-learn's sake."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; returns self."""
        unknown = sorted(set(params) - set(self._names()))
        if unknown:
            raise SettingError(
                f"{type(self).__name__} has no setting {unknown[0]!r}; known are {', '.join(self._names())}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") and not name.startswith("_") for name in vars(self)):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(votes) first.")


# --- arguments -----------------------------------------------------------------------------------------------------
def typed(raises: type[DugongError]) -> Callable[[DoorT], DoorT]:
    """Let a function, or the constructor of a class, refuse arguments that are not what its type hints say."""

    def decorate(door: DoorT) -> DoorT:
        function: Any = getattr(door, "__init__") if isinstance(door, type) else door  # noqa: B009 (for mypy)
        parameters = inspect.signature(function).parameters.values()
        placed = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        hints: dict[str, Any] = {}

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if not hints:
                hints.update(_hints(function))
            # Arguments that are too many or missing are for the function itself to refuse.
            for name, value in chain(zip(placed, args, strict=False), options.items()):
                hint = hints.get(name, Any)
                if not fits(value, hint):
                    raise _misfit(name, value, hint, raises)
            return function(*args, **options)

        if not isinstance(door, type):
            return typing.cast("DoorT", checked)
        door.__init__ = checked  # type: ignore[misc]
        return door

    return decorate


class _Anything:
    """What a name stands for that only the type checker imports, whatever is made of it."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls


class _Names(dict[str, Any]):
    """The names of a module, and those that it does not know at run time."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Anything)


def _hints(function: Any) -> dict[str, Any]:
    """The type hints of the arguments, without those of ``*args`` and ``**options``."""
    # A function that travels to a worker has only the globals with it that its own lines use.
    names = _Names(vars(sys.modules.get(function.__module__, builtins)) | function.__globals__)
    found: dict[str, Any] = {}
    for name, one in inspect.signature(function).parameters.items():
        if one.annotation is not one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            # A hint is text of our own source code, never of a caller.
            found[name] = eval(one.annotation, {}, names) if isinstance(one.annotation, str) else one.annotation
    return found


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a hint says; members of collections are looked at, those of iterators are not."""
    if type(value) is hint and hint is not int:  # most calls; an int may be too large
        return True
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object, _Anything) or isinstance(hint, TypeVar | str):
        return True
    if origin is Annotated:
        if not isinstance(args[1], Numbers) or not isinstance(value, numbers.Real):
            return fits(value, args[0])
        inside = args[1].low <= float(value) <= args[1].high and (math.isfinite(value) or not args[1].finite)
        return fits(value, args[0]) and inside
    if origin in (Union, UnionType):
        if type(value) in args and type(value) is not int:
            return True
        if _is_like(args):
            args = tuple(one for one in args if one not in _LIKE and not _supports_array(one))
            return isinstance(value, numbers.Real) or _is_array(value) or any(fits(value, one) for one in args)
        return any(fits(value, one) for one in args)
    if origin is Literal:
        return isinstance(value, str | int) and value in args
    if hint is None or hint is NoneType:
        return value is None
    if hint in (int, float, bool):
        return _is_number(value, hint)
    return _is_kind(value, origin or hint, args)


def _is_number(value: Any, kind: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's, without importing it
        return kind is bool
    if isinstance(value, numbers.Integral):
        return kind is not bool and -_BITS <= int(value) < _BITS
    return kind is float and isinstance(value, numbers.Real)


def _is_kind(value: Any, kind: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(kind, type):
        return True
    if kind.__name__ == "ndarray":
        numeric = bool(args) and getattr((*get_args(args[-1]), Any)[0], "__name__", "Any") != "Any"
        return _is_array(value, "biuf" if numeric else "biufUO")
    if kind in (Iterable, Collection) or (issubclass(kind, Collection) and kind is not str):
        return _is_collection(value, kind, args)
    if getattr(kind, "_is_protocol", False):
        return kind is not PathLike or isinstance(value, PathLike)
    return callable(value) if kind is Callable else isinstance(value, kind)


@cache
def _is_like(args: tuple[Any, ...]) -> bool:
    """Whether the members of a union are those of NumPy's ArrayLike."""
    return any(map(_supports_array, args))


def _supports_array(hint: Any) -> bool:
    return getattr(get_origin(hint) or hint, "__name__", "") in _ARRAYS


def _is_array(value: Any, kinds: str = "biufUO") -> bool:
    """Whether NumPy makes an array of numbers or words of it; a mapping, or rows of several lengths, are none."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        return False
    known = array.dtype.kind != "O" or all(one is None or isinstance(one, str | numbers.Real) for one in array.flat)
    return array.ndim > 0 and array.dtype.kind in kinds and known


def _is_collection(value: Any, kind: type, args: tuple[Any, ...]) -> bool:
    if isinstance(value, bytes) or getattr(value, "ndim", 1) == 0:
        return False
    if hasattr(value, "__array__") and not issubclass(kind, Mapping):
        value = list(value)
    # A list is as good as a tuple.
    if not isinstance(value, (kind, list) if kind is tuple else kind):
        return False
    if isinstance(value, Mapping) and len(args) == 2:
        return all(fits(key, args[0]) and fits(one, args[1]) for key, one in value.items())
    if not args or isinstance(value, Iterator):
        return True
    members: list[Any] = list(typing.cast("Iterable[Any]", value))
    if kind is tuple and Ellipsis not in args:
        return len(members) == len(args) and all(fits(one, part) for one, part in zip(members, args, strict=True))
    return all(fits(one, args[0]) for one in members)


def _misfit(name: str, value: Any, hint: Any, raises: type[DugongError]) -> DugongError:
    explain = getattr(hint, "explain_misfit", None)
    if explain is not None:
        found: DugongError = explain(value)
        return found
    return raises(f"{name}= must be {_words(hint)}; found {show(value)}.")


def _words(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe_range(args[1]) if isinstance(args[1], Numbers) else _words(args[0])
    if origin in (Union, UnionType):
        return "an array" if _is_like(args) else " or ".join(dict.fromkeys(map(_words, args)))
    if origin is Literal:
        return " or ".join(map(repr, args))
    kind = origin or hint
    if kind in _WORDS or kind is None:
        return _WORDS[kind or NoneType]
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return f"a mapping to {_words(args[1])}" if len(args) > 1 else "a mapping"
    if getattr(kind, "__name__", "") == "ndarray":
        return "an array"
    if kind in (Iterable, list, tuple) or (isinstance(kind, type) and issubclass(kind, Collection)):
        return f"a list of {' or '.join(getattr(one, '__name__', 'values') for one in args[:1])}" if args else "a list"
    name = str(getattr(kind, "__name__", kind))
    return "a path" if name == "PathLike" else name
