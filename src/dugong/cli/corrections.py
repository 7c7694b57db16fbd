"""What people corrected in the studio: a journal beside project.toml, one JSON value per line, only ever added to.

In: actions (mark an interval, take one back). Out: the corrections that hold, and, with votes, known labels to fit
with. A line is on disk before anybody is told so. A last line that was cut off by a crash was never confirmed: it is
left out, and the next action begins on a line of its own.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dugong.codec import decode, encode
from dugong.exceptions import DugongError, LabelError
from dugong.paths import sync_folder

if TYPE_CHECKING:
    from dugong.types import Int8Array
    from dugong.votes import Votes

FILE = "corrections.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """One interval that somebody labelled.

    Attributes
    ----------
    id : its name in the journal
    sequence, start, end : elements of a sequence, half open
    label : name of the class; None takes earlier corrections of these elements back
    who, when : the user, and the time in UTC
    shown : what was on the screen: label, probability, number of the fit
    batch : what is undone together
    length : elements of the whole sequence; None if that was not known
    """

    id: str
    sequence: str
    start: int
    end: int
    label: str | None
    who: str
    when: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    batch: str = ""
    length: int | None = None


def new_id() -> str:
    """A name for an action that no other has."""
    return secrets.token_hex(8)


class Journal:
    """The corrections of a project, as they are on disk."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._marks: dict[str, Correction] = {}
        self._undone: frozenset[str] = frozenset()
        self.version = 0  # actions so far: of two answers about corrections, the one with the larger number is newer
        for line in _lines(file):
            self._replay(line)

    # --- reading ---------------------------------------------------------------------------------------------------
    def holding(self, sequence: str | None = None) -> list[Correction]:
        """Corrections that were not undone, oldest first."""
        found = [one for one in self._marks.values() if one.id not in self._undone]
        return found if sequence is None else [one for one in found if one.sequence == sequence]

    def labels(self, votes: Votes, known: Int8Array | None = None) -> Int8Array:
        """Known labels of all elements, 0 where unknown: those that were known before, and what was corrected."""
        import numpy as np

        labels = np.zeros(votes.n_elements, dtype=np.int8) if known is None else known.copy()
        codes = class_codes(votes)
        places = {str(one): place for place, one in enumerate(votes.sequence_ids.tolist())}
        offsets = votes.layout("element").offsets
        for one in self.holding():
            place = places.get(one.sequence)
            if place is None:  # its recording is not among the data of today
                continue
            _check(one, int(votes.lengths[place]), codes, self.file)
            first = int(offsets[place])
            labels[first + one.start : first + one.end] = 0 if one.label is None else codes[one.label]
        return labels

    # --- writing ---------------------------------------------------------------------------------------------------
    def add(self, corrections: Iterable[Correction]) -> None:
        """Write corrections down; they are on disk when this returns."""
        self._append({"marks": [encode(one) for one in corrections]})

    def undo(self, correction: str | None = None) -> Correction | None:
        """Take one correction back, or the last action; None if there is nothing to take back."""
        holding = self.holding()
        wanted = [one for one in holding if correction in (None, one.id)]
        if not wanted:
            return None
        last = wanted[-1]
        together = [one.id for one in holding if one.batch == last.batch] if correction is None else [last.id]
        self._append({"undo": together})
        return last

    def _append(self, action: dict[str, Any]) -> None:
        """Add one line: an action is there as a whole or not at all."""
        text = json.dumps(action, ensure_ascii=False) + "\n"
        new = not self.file.exists()
        with self.file.open("ab+") as handle:
            if handle.tell():
                handle.seek(-1, os.SEEK_END)
                text = text if handle.read(1) == b"\n" else "\n" + text
            handle.write(text.encode("utf-8", "surrogatepass"))
            handle.flush()
            os.fsync(handle.fileno())
        if new:
            sync_folder(self.file.parent)
        self._replay(action)

    def _replay(self, action: Mapping[str, Any]) -> None:
        try:
            marks = [decode(Correction, one) for one in action.get("marks", ())]
            undone = [str(one) for one in action.get("undo", ())]
        except (DugongError, TypeError) as error:
            raise LabelError(f"{self.file} holds a line that is no correction ({error}): {action!r:.200}") from None
        # New values, so that whoever reads in another thread never sees half of an action.
        self._marks = self._marks | {one.id: one for one in marks}
        self._undone = self._undone.union(undone)
        self.version += 1


def class_codes(votes: Votes) -> dict[str, int]:
    """Values of the classes by their names."""
    names = votes.class_names or [f"{value:+d}" if votes.n_classes == 2 else str(value) for value in votes.classes]
    return dict(zip(names, votes.classes, strict=True))


def corrected(folder: Path, votes: Votes, known: Int8Array | None) -> Int8Array | None:
    """Labels to fit with: those of the project, and over them what was corrected in its studio."""
    file = folder / FILE
    return Journal(file).labels(votes, known) if file.is_file() else known


def _check(one: Correction, length: int, codes: Mapping[str, int], file: Path) -> None:
    inside = 0 <= one.start < one.end <= length
    if not inside or one.length not in (None, length):
        raise LabelError(
            f"{file} cannot be used: elements {one.start} to {one.end} of sequence {one.sequence!r} were corrected "
            f"when it had {one.length} elements, and now it has {length}.\n"
            "  Load it as it was, or move the file aside and correct anew."
        )
    if one.label is not None and one.label not in codes:
        raise LabelError(
            f"{file} cannot be used: it corrects to {one.label!r}, and the classes are {', '.join(codes)}."
        )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_bytes().split(b"\n") if file.is_file() else (), start=1):
        try:
            plain = json.loads(line)
        except ValueError:  # empty; or cut off by a crash, so nobody was told that it is kept
            continue
        if plain is None:
            continue
        if not isinstance(plain, dict):
            raise LabelError(f"line {number} of {file} must be a JSON object; found {plain!r:.100}.")
        yield plain
