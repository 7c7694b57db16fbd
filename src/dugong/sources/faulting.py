"""Words for what went wrong: which source, on what, and the original traceback.

In: an exception, or a value that is no vote. Out: a `Fault` for the result or a `SourceError` that stops the
run.
"""

from __future__ import annotations

import textwrap
import traceback
from pathlib import Path
from types import TracebackType

from dugong.exceptions import SourceError
from dugong.sources.coding import Coding, WrongVote, hint_for, short
from dugong.sources.decorator import Source
from dugong.sources.items import SequenceId
from dugong.sources.views import TaskBounds
from dugong.tasks import Element, Sequence
from dugong.votes import Fault

_HOME = Path(__file__).parent
_OWN_FILES = {str(path) for path in _HOME.glob("*.py")}


def place(source: Source, sequence: SequenceId, task: int | None, bounds: TaskBounds) -> str:
    """Where something happened, in words: ``element 17 of sequence 'v3'``."""
    if task is None or isinstance(source.resolution, Sequence):
        return f"sequence {sequence!r}"
    if isinstance(source.resolution, Element):
        return f"element {task} of sequence {sequence!r}"
    start, stop = int(bounds.starts[task]), int(bounds.stops[task])
    return f"{source.resolution.name} {task} (elements {start} to {stop - 1}) of sequence {sequence!r}"


def fault_of(source: Source, sequence: SequenceId, task: int | None, error: BaseException) -> Fault:
    """The plain value that a result keeps of an exception."""
    text = "".join(traceback.format_exception(type(error), error, _user_frames(error.__traceback__)))
    last = "".join(traceback.format_exception_only(error)).strip()
    return Fault(source=source.name, sequence=sequence, task=task, error=last, traceback=text.rstrip())


def _user_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is not ours."""
    while frames is not None and frames.tb_frame.f_code.co_filename in _OWN_FILES:
        frames = frames.tb_next
    return frames


def raised(source: Source, fault: Fault, where: str) -> SourceError:
    """The error that stops a run because a source raised."""
    return SourceError(
        f"source {source.name!r} raised {fault.error} on {where}.\n"
        '  Correct it, or use on_fault="abstain": it then abstains there, and votes.faults lists it.\n'
        f"{textwrap.indent(fault.traceback, '  ')}"
    )


def wrong_vote(
    source: Source, sequence: SequenceId, bounds: TaskBounds, coding: Coding, wrong: WrongVote
) -> SourceError:
    """The error for a returned value that is no vote."""
    where = place(source, sequence, wrong.task, bounds)
    others = f" and {wrong.count - 1} more such values" if wrong.count > 1 else ""
    return SourceError(
        f"source {source.name!r} must return {coding.allowed}; "
        f"found {short(wrong.value)} on {where}{others}.\n"
        f"  {hint_for(wrong.value, vectorized=source.vectorized)}"
    )


def wrong_number(source: Source, sequence: SequenceId, bounds: TaskBounds, shape: tuple[int, ...]) -> SourceError:
    """The error for a vectorised source that did not return one vote per task."""
    found = f"{shape[0]} votes" if len(shape) == 1 else f"something of shape {shape}"
    kind = "elements" if isinstance(source.resolution, Element) else f"tasks ({source.resolution.name})"
    return SourceError(
        f"source {source.name!r} is vectorised and must return one vote for each of the {len(bounds)} {kind} "
        f"of sequence {sequence!r}; found {found}."
    )
