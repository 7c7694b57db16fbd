"""What the codes of votes mean: as numbers for tables and counts, as classes, and in words.

In: votes, a column, a code or a resolution. Out: class indices and how often each code occurs (a byte at a time, so
that fifty million votes take a fraction of a second and no memory to speak of); the class that counts as positive on
a window, span or sequence; the classes that a code allows; and the background, the one class that no source ever
votes for (O in tagging, "normal" in anomaly detection).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dugong.tasks import Element, Resolution
from dugong.tasks.bio import bio_steps
from dugong.types import ABSTAIN, MISSING, Int8Array, IntArray, read_only

if TYPE_CHECKING:
    from dugong.votes.container import Votes


# --- the records that votes carry beside the codes: who votes, and what went wrong while they were asked -------------
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """Who votes, on what, and with whom it shares its parameters."""

    name: str
    resolution: Resolution = field(default_factory=Element)
    shares: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One source that raised on one task.

    Attributes
    ----------
    source : name of the source
    sequence : id of the sequence
    task : int or None
        Place of the task among the tasks of its sequence; None if the source failed on the whole sequence
        (a vectorised source, or its preprocessing).
    error : type and message of the exception, such as ``"ValueError: no face"``
    traceback : the original traceback as text
    """

    source: str
    sequence: str | int
    task: int | None
    error: str
    traceback: str = ""

    def __str__(self) -> str:
        where = "the whole sequence" if self.task is None else f"task {self.task}"
        return f"{self.source} on {where} of sequence {self.sequence!r}: {self.error}"

    def to_dict(self) -> dict[str, str | int | None]:
        """Plain data that `Fault` turns back into the same value: ``Fault(**plain)``."""
        return asdict(self)


def count_faults(faults: Iterable[Fault]) -> dict[str, int]:
    """Number of faults per source, in order of first appearance."""
    return dict(Counter(fault.source for fault in faults))


MAX_CODE = 120
_BLOCK = 1 << 18


CLASSES_HINT = "If 0 means a class here, use Votes.from_classes(..., abstain=-1)."


def coding_words(n_classes: int, resolution: Resolution) -> str:
    """Our own coding at a resolution, for messages."""
    binary = n_classes == 2 or not isinstance(resolution, Element)
    return "-1, 0 or +1" if binary else f"0 (abstain) or a class from 1 to {n_classes}"


def class_indices(votes: Votes, column: Int8Array, n_classes: int) -> Int8Array:  # noqa: ARG001
    """Codes as table columns: classes 0..K-1, abstain K, underspecified K+1.., not asked -1."""
    found: Int8Array = code_columns(n_classes).take(column.view(np.uint8))  # half the time of an index
    return found


@lru_cache(maxsize=8)
def code_columns(n_classes: int) -> Int8Array:
    """The same of every code by its unsigned byte."""
    lookup: Int8Array
    if n_classes == 2:
        lookup = np.full(256, -1, dtype=np.int8)
        lookup[[255, 1, 0]] = [0, 1, 2]
    else:
        lookup = np.arange(-1, 255).astype(np.int8)
        lookup[0] = n_classes
    lookup[n_classes + 1 : MAX_CODE + 1] = np.arange(n_classes + 1, MAX_CODE + 1)
    lookup[MISSING % 256] = -1
    return read_only(lookup)


def count_codes(column: Int8Array) -> dict[int, int]:
    """How often each code occurs in a column, codes in increasing order."""
    counts: IntArray = np.zeros(256, dtype=np.int64)
    for start in range(0, len(column), _BLOCK):
        block = column[start : start + _BLOCK]
        if block.min() >= -1 and block.max() <= 1:  # most blocks: two comparisons take a tenth of a look-up per vote
            below, silent = np.count_nonzero(block < 0), len(block) - np.count_nonzero(block)
            counts[[255, 0, 1]] += (below, silent, len(block) - below - silent)
        else:
            few = {code: np.count_nonzero(block == code) for code in (-1, 1, ABSTAIN, MISSING)}
            if sum(few.values()) == len(block):
                counts[[code % 256 for code in few]] += list(few.values())
            else:
                counts += np.bincount(block.view(np.uint8), minlength=256)
    seen = np.flatnonzero(counts)
    return {code: int(counts[code % 256]) for code in sorted(seen.astype(np.int8).tolist())}


def spoken(counts: Mapping[int, int]) -> dict[int, int]:
    """Votes that say something: neither abstain nor missing."""
    return {code: counts[code] for code in sorted(counts) if code not in (ABSTAIN, MISSING)}


def positive_class(votes: Votes, resolution: Resolution) -> int:
    """The class that makes an element count as positive: +1, or with K > 2 the class that ``of=`` names."""
    if votes.n_classes == 2 or isinstance(resolution, Element):
        return 1
    names = votes.class_names or tuple(map(str, votes.classes))
    of = resolution.of
    return names.index(of) + 1 if isinstance(of, str) else int(of or 0)


def allowed_classes(votes: Votes, code: int) -> frozenset[int]:
    """The classes that a vote on an element leaves possible; all of them if it says nothing."""
    if code in (ABSTAIN, MISSING):
        return frozenset(votes.classes)
    return frozenset(votes.partial.get(code, (code,)))


def code_name(votes: Votes, code: int, resolution: Resolution) -> str:
    """A vote in words: a class name if there are names, else its number."""
    if code in (ABSTAIN, MISSING):
        return "abstain" if code == ABSTAIN else "missing"
    if code in votes.partial:
        return "|".join(code_name(votes, member, resolution) for member in votes.partial[code])
    if votes.n_classes > 2 and not isinstance(resolution, Element):
        return f"{code:+d}"
    if votes.class_names is not None:
        return votes.class_names[votes.classes.index(code)]
    return f"{code:+d}" if votes.n_classes == 2 else str(code)


def implied_background(votes: Votes, counts: Mapping[str, Mapping[int, int]] | None = None) -> int | None:
    """The background class: the given one, or the only class that is never voted for, or None.

    Of BIO tags it can only be O, whichever others are never voted for.
    A vote on a window, span or sequence counts for the class that it is about; a negative one counts for the other
    class if there are two, and for none if there are more. An underspecified vote counts for all its classes. `counts`
    (codes by source) stand for votes that are not all here.
    """
    if votes.background is not None:
        return votes.background
    voted: set[int] = set()
    for source, column in zip(votes.sources, votes.columns, strict=True):
        codes = {*(count_codes(column) if counts is None else counts[source.name])} - {ABSTAIN, MISSING}
        if isinstance(source.resolution, Element):
            voted = voted.union(*(votes.partial.get(code, (code,)) for code in codes))
        else:
            positive = positive_class(votes, source.resolution)
            voted |= {positive for code in codes if code == 1}
            voted |= {-positive for code in codes if code == -1 and votes.n_classes == 2}
    silent = [value for value in votes.classes if value not in voted]
    names = votes.class_names
    if names is not None and bio_steps(names) is not None:
        silent = [value for value in silent if names[votes.classes.index(value)] == "O"]
    return silent[0] if len(silent) == 1 else None
