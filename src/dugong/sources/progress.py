"""How far a run is: the values that callbacks get after every sequence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dugong.progress import Shown
from dugong.progress import progress_callback as callback_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is done so far.

    Attributes
    ----------
    done, total : int
        Sequences; the total is None if it is not known.
    sequence : str or int
        The one that was finished last.
    elements : int
        Elements of all sequences that were voted on now.
    faults : int
        Faults so far.
    seconds : float
        Since the start.
    kept : int
        Finished sequences that were not voted on now, because an earlier run did it.
    """

    done: int
    total: int | None
    sequence: str | int
    elements: int
    faults: int
    seconds: float
    kept: int = 0

    @property
    def rate(self) -> float:
        """Elements per second."""
        return self.elements / max(self.seconds, 1e-9)


ProgressCallback = Callable[[Progress], None]


def progress_callback(progress: bool | ProgressCallback) -> AbstractContextManager[ProgressCallback]:  # noqa: FBT001
    """The function to call after every sequence: the given one, a bar, or one that does nothing."""
    return callback_for(progress, "Applying sources", "sequences", _show)


def _show(now: Progress) -> Shown:
    return Shown(done=now.done, total=now.total, words=f"{now.faults} faults  " if now.faults else "")
