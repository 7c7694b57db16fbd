"""Files that say how they came about, and folders that say whether they are complete.

In: a file and what it was made from (plain data). Out: the file, and beside it a small ``.json`` with the same stem:
the *stamp*. A stamp names states by the digest of the file's bytes. It is written before its file is replaced, with
the old and the new state, so that at every moment, whatever crashes, the bytes that are there have their own state or
none. That holds for storage without renaming too: half a file has a digest that no state names.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from dugong.codec import decode, parse
from dugong.exceptions import FileError, VoteError
from dugong.paths import Place, locked, move, write_atomically, written_aside

UNFINISHED = "UNFINISHED"
_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}\.part")  # how `written_aside` calls files that are not complete
_STAMP = re.compile(rb'\s*\{\s*"[0-9a-f]{32}":|$')  # how stamps begin; an empty one is damaged, not foreign
State = dict[str, Any]


def digest_file(path: Place) -> str:
    """A digest of the bytes of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "blake2b").hexdigest()[:32]  # type: ignore[arg-type]


def digest_of(plain: Any) -> str:
    """A digest of plain data."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def stamp_of(path: Place) -> Place:
    """Where the stamp of a file is."""
    return path.with_suffix(".json")


def read_state(path: Place) -> State | None:
    """What the file that is there was made from; None if there is no file, or nothing is known of its bytes."""
    states = _read_states(path)
    return states.get(digest_file(path)) if states and path.is_file() else None


def write_stamped(path: Place, write: Callable[[BinaryIO], object], state: Mapping[str, Any]) -> None:
    """Replace a file and its state; one of the user that has its name is an error."""
    refuse_others([path])
    with written_aside(path, write) as new:
        digest, states = digest_file(new), _read_states(path)
        _write_states(path, {**states, digest: dict(state)})
        move(new, path)
        if states:
            _write_states(path, {digest: dict(state)})


def settle(path: Place, state: Mapping[str, Any]) -> None:
    """Forget states of bytes that are gone, which a crash may have left in the stamp."""
    if len(_read_states(path)) > 1:
        _write_states(path, {digest_file(path): dict(state)})


def _read_states(path: Place) -> dict[str, State]:
    """States by digest; a stamp that is damaged, or no stamp of ours, knows none."""
    try:
        return decode(dict[str, State], parse(stamp_of(path).read_bytes()))
    except (OSError, FileError):
        return {}


def _write_states(path: Place, states: Mapping[str, State]) -> None:
    text = json.dumps(states, sort_keys=True, indent=1).encode()
    write_atomically(stamp_of(path), lambda handle: handle.write(text))


# --- folders -------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def unfinished(folder: Place) -> Iterator[None]:
    """Lock a folder, and mark it as not complete until the block ends well."""
    text = b"Run the same command again to complete this folder.\n"
    with locked(folder):
        marker = folder / UNFINISHED
        write_atomically(marker, lambda handle: handle.write(text))
        drop_unfinished(folder)
        yield
        marker.unlink()


def drop_unfinished(folder: Place) -> None:
    """Remove what runs that died were writing; nobody else writes, because the folder is locked."""
    for left in folder.glob(".*.part"):
        if _ASIDE.fullmatch(left.name) and _is_file(left):
            left.unlink()


def _is_file(file: Place) -> bool:
    """Whether it is a file, and no link: we make none, so that links are the user's."""
    return file.is_file() and not (isinstance(file, Path) and file.is_symlink())


def check_finished(folder: Place) -> None:
    """Refuse a folder that is being written, or whose writer has died."""
    if (folder / UNFINISHED).exists():
        raise VoteError(
            f"{folder} is not complete: the run that writes it is still going, or was interrupted.\n"
            "  Run the same command again: it continues where it stopped."
        )


def refuse_others(files: Iterable[Place]) -> None:
    """Stop before files are replaced, or taken for shards, that no run has put there: they, or their stamps."""
    foreign = [other for file in files if (other := _foreign(file))]
    if foreign:
        more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
        raise VoteError(
            f"{foreign[0].parent} holds {foreign[0].name}{more}, which Dugong did not write there.\n"
            "  Move it, or choose another folder."
        )


def _foreign(file: Place) -> Place | None:
    """The file, if it has no stamp, or what is in the place of its stamp and does not begin like one."""
    stamp = stamp_of(file)
    if stamp.exists():
        return None if _STAMP.match(stamp.read_bytes()) else stamp
    return file if file.exists() else None


def drop_others(folder: Place, kept: set[str], pattern: str = "part-*") -> None:
    """Remove files of an earlier run, with their stamps, whose names are not among the kept ones.

    Only files whose own stamp knows their bytes go: whatever else is in the folder belongs to the user.
    """
    stems = {name.rpartition(".")[0] for name in kept}
    for file in folder.glob(pattern):
        ours = all(map(_is_file, (file, stamp_of(file)))) and read_state(file) is not None
        if file.suffix != ".json" and file.name not in kept and ours:
            file.unlink()
            if file.stem not in stems:  # the stamp may be that of labels in another format, too
                stamp_of(file).unlink()
