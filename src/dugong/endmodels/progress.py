"""How far a training is: a value for callbacks, and a bar for people who watch.

The trainer only ever calls a function with `TrainingProgress` values, after every epoch and after its checkpoint
is written; the bar is one such function. It writes to the standard error, and only to a terminal or a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dugong.endmodels.result import Epoch

__all__ = ["ProgressCallback", "TrainingProgress", "progress_callback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """What is done so far.

    Attributes
    ----------
    epoch : Epoch
        The one that was finished last.
    done, total : int
        Epochs.
    best_epoch : int
        The best so far.
    seed : int
    seconds : float
        Since the start, or since the run was resumed.
    """

    epoch: Epoch
    done: int
    total: int
    best_epoch: int
    seed: int
    seconds: float


ProgressCallback = Callable[[TrainingProgress], None]


@contextmanager
def progress_callback(progress: bool | ProgressCallback) -> Iterator[ProgressCallback]:  # noqa: FBT001
    """The function to call after every epoch: the given one, a bar, or one that does nothing."""
    if callable(progress):
        yield progress
    elif progress:
        with _bar() as callback:
            yield callback
    else:
        yield _ignore


def _ignore(_: TrainingProgress) -> None:
    return None


@contextmanager
def _bar() -> Iterator[ProgressCallback]:
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _ignore
        return
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("epochs  {task.fields[scores]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("Training", total=None, scores="")

        def show(now: TrainingProgress) -> None:
            dev = "" if now.epoch.dev_f1 is None else f"  dev F1 {now.epoch.dev_f1:.4f}, best in epoch {now.best_epoch}"
            bar.update(task, completed=now.done, total=now.total, scores=f"loss {now.epoch.loss:.4f}{dev}")

        yield show
