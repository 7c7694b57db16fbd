"""What a source computes, as a digest that changes with its code alone; and stamps of the data that it was computed on.

In: a source. Out: a digest of its bytecode, its defaults, what it closes over, and the globals that it names,
followed through the user's own functions, classes and modules. Comments, line numbers and places in a file do not
count. Installed packages count by name and version. An object whose content cannot be read counts by its type alone:
after a change there, use ``restart``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dugong.codec import encode
from dugong.sources import Source

_END = 1 << 20  # bytes of a file that are looked into at each end: all of a table, enough of a video
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))


def digest_source(source: Source) -> str:
    """A digest of all that decides about the votes of a source."""
    return digest_code(_parts(source))


def digest_code(value: Any) -> str:
    """A digest of functions and plain data."""
    state = hashlib.blake2b(digest_size=16)
    for piece in _Reader().pieces(value):
        state.update(str(len(piece)).encode() + b":" + piece)
    return state.hexdigest()


class Stamp(NamedTuple):
    """What tells whether a file or a text is still the same.

    Attributes
    ----------
    size : bytes of a file, characters of a text
    changed : when a file was written last, in nanoseconds
    digest : of the beginning and the end of a file, of all of a text
    """

    size: int
    changed: int
    digest: str


def stamp_data(behind: Path | str) -> Stamp | None:
    """The stamp of a file or a text; None where there is none: a folder, or a file that only the loader can open."""
    path = Path(behind)
    try:
        about = path.stat()
        with path.open("rb") as file:
            digest = hashlib.blake2b(file.read(_END), digest_size=16)
            file.seek(max(_END, about.st_size - _END))
            digest.update(file.read(_END))
    except (OSError, ValueError):  # words that name no file are a text
        return Stamp(len(behind), 0, digest_code(behind)) if isinstance(behind, str) else None
    return Stamp(about.st_size, about.st_mtime_ns, digest.hexdigest())


def same_data(behind: Path | str, before: Stamp) -> bool:
    """Whether a stamp is that of this file or text; one with a new time is looked into, as copies have new times."""
    with contextlib.suppress(OSError, ValueError):
        about = Path(behind).stat()
        if (about.st_size, about.st_mtime_ns) == (before.size, before.changed):
            return True
    now = stamp_data(behind)
    return now is None or (now.size, now.digest) == (before.size, before.digest)


def _parts(source: Source) -> list[Any]:
    parts = [source.function, source.pre, source.vectorized, source.wants_tasks, encode(source.resolution)]
    parts += [] if source.short == "give" else [source.short]
    return [*parts, "soft"] if source.soft else parts


class _Reader:
    """Walks through values; what is met again counts by the number it had, so that cycles end."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # ids stay unique only while their objects live

    def pieces(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode("utf-8", errors="surrogateescape")
            return
        if id(value) in self._seen:
            yield f"seen {self._seen[id(value)]}".encode()
            return
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        yield type(value).__name__.encode()
        yield from self._inside(value)

    def _inside(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, Mapping):
            for key in sorted(value, key=repr):
                yield from self.pieces(key)
                yield from self.pieces(value[key])
        elif isinstance(value, set | frozenset):
            for one in sorted(value, key=repr):
                yield from self.pieces(one)
        elif isinstance(value, list | tuple):
            for one in value:
                yield from self.pieces(one)
        elif isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            yield f"{array.dtype} {array.shape}".encode()
            yield repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif isinstance(value, ModuleType):
            yield from self._module(value)
        else:
            yield from self._object(value)

    def _code(self, code: CodeType) -> Iterator[bytes]:
        yield code.co_code
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        yield repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags, *names)).encode()
        for constant in code.co_consts:
            yield from self.pieces(constant)

    def _module(self, module: ModuleType) -> Iterator[bytes]:
        yield module.__name__.encode()
        file = getattr(module, "__file__", None)
        if _is_users(module) and file is not None:
            yield Path(file).read_bytes()
        else:
            yield _version(module.__name__).encode()

    def _object(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, MethodType):
            yield from self.pieces(value.__func__)
            yield from self.pieces(value.__self__)
        elif isinstance(value, functools.partial):
            yield from self.pieces([value.func, value.args, value.keywords])
        elif isinstance(value, Source):
            yield from self.pieces(_parts(value))
        elif isinstance(value, BuiltinFunctionType):
            yield f"{value.__module__}.{value.__qualname__}".encode()
        elif isinstance(value, type):
            yield from self._class(value)
        else:
            yield from self._class(type(value))
            if hasattr(value, "pattern") and hasattr(value, "flags"):  # a compiled regular expression
                yield repr((value.pattern, value.flags)).encode()
            named = {one.name: getattr(value, one.name, None) for one in fields(value)} if is_dataclass(value) else {}
            yield from self.pieces(dict(getattr(value, "__dict__", {})) | named)

    def _function(self, function: FunctionType) -> Iterator[bytes]:
        yield function.__qualname__.encode()
        module = sys.modules.get(function.__module__ or "")
        if module is not None and not _is_users(module):
            yield f"{function.__module__} {_version(function.__module__)}".encode()
            return
        yield from self.pieces(function.__code__)
        yield from self.pieces([function.__defaults__, function.__kwdefaults__])
        for cell in function.__closure__ or ():
            yield from self.pieces(_content(cell))
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            yield name.encode()
            yield from self.pieces(function.__globals__[name])

    def _class(self, kind: type) -> Iterator[bytes]:
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        module = sys.modules.get(kind.__module__)
        if module is not None and not _is_users(module):
            yield _version(kind.__module__).encode()
            return
        for base in kind.__bases__:
            yield from self.pieces(base)
        for name, member in sorted(vars(kind).items()):
            if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__"):
                yield name.encode()
                yield from self.pieces(getattr(member, "__func__", getattr(member, "fget", member)))


def _names(code: CodeType) -> set[str]:
    """Global names of a function and of the functions inside it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _is_users(module: ModuleType) -> bool:
    """Whether a module is the user's own: a file that is neither installed nor part of Python."""
    if module.__name__ == "__main__":
        return True
    file, known = getattr(module, "__file__", None), sys.stdlib_module_names | {"builtins"}
    if file is None:  # made by hand: a notebook, a document
        return module.__name__ not in known
    if not str(file).endswith(".py"):
        return Path(file).suffix not in (".so", ".pyd", ".pyc") and module.__name__ not in known
    installed = (sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    top = module.__name__.partition(".")[0]
    return top != "dugong" and not any(Path(file).is_relative_to(place) for place in installed)


def _version(module: str) -> str:
    top = module.partition(".")[0]
    return f"{top} {getattr(sys.modules.get(top), '__version__', '')}"
