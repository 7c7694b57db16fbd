"""Where files are: paths of this machine, and URLs (``s3://bucket/votes``) through fsspec.

In: what a user names. Out: a `Place`, which is a `pathlib.Path` or a `Url` with the same few methods. Files are written
aside first and appear under their name when they are complete: on this machine by renaming, elsewhere by one upload.
Keys, endpoints and the like are fsspec's own settings (its configuration files and environment variables).
A folder of this machine is `locked` while a run writes into it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from dugong.codec import show
from dugong.exceptions import DugongError, VoteError, import_extra

_LOCAL = "file://"
_LOCK = ".dugong.lock"
_LONGEST_NAME = 255  # bytes that file systems give a name
_HELD: ContextVar[frozenset[Path]] = ContextVar("folders that are locked here", default=frozenset())

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class PlaceError(DugongError, ValueError):
    """A URL that cannot be reached, or a folder that cannot be locked."""


class FolderBusyError(DugongError, OSError):
    """Another run, or a studio, is writing into a folder."""


class DiskFullError(DugongError, OSError):
    """There is no room for a file."""


class DeniedError(DugongError, PermissionError):
    """Nobody may write there, or not this user."""


@dataclass(frozen=True, slots=True, order=True)
class Url:
    """A file or folder at a URL; travels to workers as its text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> Url:
        return Url(f"{self.text}/{name}")

    # --- names -----------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The last part."""
        return self.text.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The suffix, with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Url:
        """The folder around it."""
        return Url(self.text.rpartition("/")[0])

    def with_name(self, name: str) -> Url:
        """Another file of the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> Url:
        """The same name with another suffix."""
        return self.with_name(self.stem + suffix)

    def absolute(self) -> Url:
        """A URL does not depend on where we are."""
        return self

    # --- files -----------------------------------------------------------------------------------------------------
    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading."""
        system, path = _system(self.text)
        return _Reached(system.open(path, mode), self.text)  # type: ignore[return-value]

    def read_bytes(self) -> bytes:
        """All bytes of the file."""
        with self.open() as handle:
            return handle.read()

    def is_file(self) -> bool:
        """Whether there is a file."""
        system, path = _fresh(self.text)
        return bool(system.isfile(path))

    def is_dir(self) -> bool:
        """Whether there is a folder, or anything under this name."""
        system, path = _fresh(self.text)
        return bool(system.isdir(path))

    def exists(self) -> bool:
        """Whether there is anything."""
        system, path = _fresh(self.text)
        return bool(system.exists(path))

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:  # noqa: ARG002 (as for a Path)
        """Make the folder, where folders exist."""
        system, path = _system(self.text)
        system.makedirs(path, exist_ok=exist_ok)

    def glob(self, pattern: str) -> Iterator[Url]:
        """Entries of the folder whose names match."""
        system, path = _fresh(self.text)
        try:
            entries = system.ls(path, detail=False)
        except FileNotFoundError:
            return
        for name in sorted(str(entry).rstrip("/").rpartition("/")[2] for entry in entries):
            if fnmatch(name, pattern):
                yield self / name

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file."""
        system, path = _system(self.text)
        try:
            system.rm_file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def upload(self, file: Path) -> None:
        """Put a file of this machine here."""
        system, path = _system(self.text)
        system.makedirs(_system(self.parent.text)[1], exist_ok=True)
        system.put_file(str(file), path)


Place = Path | Url


def place_of(name: str | PathLike[str]) -> Place:
    """The place that a path or URL names; ``file://`` is this machine."""
    try:
        text = os.fspath(name)
        longest = max(map(len, os.fsencode(text).split(b"/")))
    except (TypeError, UnicodeEncodeError):
        raise PlaceError(f"a path or URL must be text that file systems know; found {show(name)}.") from None
    if not isinstance(text, str) or "\0" in text or (longest > _LONGEST_NAME and "://" not in text):
        raise PlaceError(
            f"a path must be text without NUL, and no name in it longer than {_LONGEST_NAME} bytes; found {show(text)}."
        )
    if text.startswith(_LOCAL):
        return Path(text.removeprefix(_LOCAL))
    return Url(text.rstrip("/")) if "://" in text else Path(text)


def _system(text: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    fsspec = import_extra("fsspec", "cloud", f"reading and writing {text}")
    try:
        system, path = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError) as error:
        raise PlaceError(
            f"{text} cannot be reached: {error}.\n  fsspec needs a package for every kind of storage, such as s3fs for "
            "s3:// and gcsfs for gs://."
        ) from None
    return _Reached(system, text), path


class _Reached:
    """A file system, or a file there, whose own errors (no keys, no network, half an answer) become ours."""

    def __init__(self, system: Any, text: str) -> None:
        self._system, self._text = system, text

    def __enter__(self) -> _Reached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._system, name)
        if not callable(function):
            return function

        def call(*words: Any, **options: Any) -> Any:
            try:
                return function(*words, **options)
            except (DugongError, FileNotFoundError):
                raise
            except Exception as error:
                raise PlaceError(f"{self._text} cannot be reached: {type(error).__name__}: {error}.") from error

        return call


def _fresh(text: str) -> tuple[Any, str]:
    """The same, without what was remembered of folders: workers write into them."""
    system, path = _system(text)
    system.invalidate_cache()
    return system, path


def parts_of(file: Place) -> Place:
    """The folder beside a file that keeps the parts of which it is made."""
    if isinstance(file, Path) and file.is_dir():
        raise PlaceError(f"{file} is a folder; name a file to write.")
    return file.with_suffix(".parts")


# --- writing -------------------------------------------------------------------------------------------------------
def write_atomically(path: str | PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file so that it appears under its name only when it is complete; `write` fills it while it is open."""
    target = place_of(path)
    with written_aside(target, write) as new:
        move(new, target)


@contextlib.contextmanager
def written_aside(target: Place, write: Callable[[BinaryIO], object]) -> Iterator[Path]:
    """A complete new file, not yet under its name; it is gone after the block if that does not `move` it."""
    if isinstance(target, Path) and not target.parent.is_dir():
        raise VoteError(f"there is no folder {target.parent}; make it first.")
    # A rename would put a file in the place of a device such as /dev/null, for everybody on the machine.
    if isinstance(target, Path) and target.exists() and not (target.is_file() or target.is_dir()):
        raise VoteError(f"{target} must be a file; it is a device or a pipe. Name a file to write to.")
    folder = target.parent if isinstance(target, Path) else Path(tempfile.gettempdir())
    new = folder / f".{target.name}.{secrets.token_hex(4)}.part"
    try:
        try:
            with new.open("xb") as handle:
                write(handle)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise _explained(error, target) from error
        yield new
    finally:
        new.unlink(missing_ok=True)


def _explained(error: OSError, target: Place) -> OSError:
    if error.errno in _DENIED:
        return DeniedError(
            f"{target} cannot be written: {error.strerror}.\n"
            "  Choose another folder, or get the right to write to this one."
        )
    if error.errno not in _FULL:
        return error
    return DiskFullError(
        f"there is no room for {target}: {error.strerror}.\n"
        "  What was complete before is still complete: make room, and run the same again."
    )


def move(new: Path, target: Place) -> None:
    """Put a file that was written aside under its name."""
    if isinstance(target, Url):
        target.upload(new)
        return
    new.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- one run at a time ---------------------------------------------------------------------------------------------
@contextlib.contextmanager
def locked(folder: Place) -> Iterator[None]:
    """Make a folder, and keep other runs out of it until the block ends.

    The system holds the lock for the process: one that dies may leave the file ``.dugong.lock``, but it locks nothing.
    Blocks may be nested. Storage at a URL knows no locks: there it is for the user to run one at a time.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise PlaceError(f"{folder} must be a folder; a file is there, or above it. Choose another name.") from None
    except OSError as error:
        raise _explained(error, folder) from error
    if isinstance(folder, Url) or folder.resolve() in _HELD.get():
        yield
        return
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(folder / _LOCK)
        lock.acquire(timeout=0)
    except Timeout:
        raise FolderBusyError(
            f"{folder} is in use by another run or by a studio: wait until that has ended, or choose another folder."
        ) from None
    except OSError as error:
        raise PlaceError(f"{folder} cannot be locked: {error.strerror or error} ({folder / _LOCK}).") from error
    held = _HELD.set(_HELD.get() | {folder.resolve()})
    try:
        yield
    finally:
        _HELD.reset(held)
        # Before the release: who waits for a file that is gone notices, and starts anew. (Windows keeps open files.)
        with contextlib.suppress(OSError):
            (folder / _LOCK).unlink(missing_ok=True)
        lock.release()
