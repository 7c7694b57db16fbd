"""The paper's general P(Y): an arbitrary joint table over a small set of tasks of several resolutions.

Nothing ties a window to its elements but the table, so a window of the link "joint" may disagree with
them. Tasks that the table does not name but whose elements it does (through any, all or majority) follow
from it. Every question is answered by enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dugong.contract import typed
from dugong.exceptions import PriorError
from dugong.priors.base import Prior
from dugong.priors.chain import (
    GivenSpans,
    LabelChain,
    Task,
    automaton,
    class_index,
    distribution,
    piece_of,
)
from dugong.tasks import Resolution
from dugong.types import FloatArray, Int8Array, IntArray

Named = tuple[Resolution | str, int]
MOST_TASKS = 20


@dataclass(frozen=True, slots=True, init=False)
class Joint(Prior):
    """A joint law over the labels of some tasks of a sequence with a fixed number of elements.

    Parameters
    ----------
    tasks : sequence of (resolution or its name, index)
        The elements must be among them, from index 0 on. Further tasks may have any resolution and link.
    table : array with one axis per task, in class order (-1 then +1, or 1..K); sums to one

    Examples
    --------
    >>> Joint([("element", 0), ("element", 1)], [[0.6, 0.1], [0.1, 0.2]]).n_elements
    2
    """

    tasks: tuple[Named, ...]
    shape: tuple[int, ...]
    cells: tuple[float, ...]
    kind: ClassVar[str] = "joint"

    @typed(PriorError)
    def __init__(self, tasks: Sequence[Named], table: FloatArray | Sequence[Any]) -> None:
        law = np.asarray(table, dtype=np.float64)
        named = tuple((_plain(resolution), int(index)) for resolution, index in tasks)
        _check_tasks(named, law)
        cells = distribution(law.reshape(-1), "the joint table")
        object.__setattr__(self, "tasks", named)
        object.__setattr__(self, "shape", law.shape)
        object.__setattr__(self, "cells", tuple(cells.tolist()))

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Classes of the elements."""
        return self.shape[self.tasks.index(("element", 0))]

    @property
    def n_elements(self) -> int:
        """Elements of every sequence under this prior."""
        return sum(resolution == "element" for resolution, _ in self.tasks)

    def table(self) -> FloatArray:
        """The joint law, one axis per task."""
        return np.array(self.cells).reshape(self.shape)

    def chain(self) -> LabelChain:
        """A joint table has no chain: raises a `PriorError`."""
        raise PriorError(
            "a joint table is no chain over elements: it serves sequences of exactly "
            f"{self.n_elements} elements, by enumeration.\n  Use Markov or Patterns for other lengths."
        )

    def place(self, resolution: Resolution | str, index: int) -> int | None:
        """Axis of a task in the table, by object, name or kind; None if the table does not name it."""
        for name in (
            _plain(resolution),
            getattr(resolution, "name", None),
            getattr(resolution, "kind", None),
        ):
            if (name, index) in self.tasks:
                return self.tasks.index((name, index))
        return None

    def joint_law(
        self,
        tasks: tuple[Task, ...] | list[Task],
        length: int,
        spans: GivenSpans | None = None,
        class_names: tuple[str, ...] | None = None,
    ) -> FloatArray:
        """Joint law of the labels of some tasks, one axis each; see `Prior.joint_law`."""
        self.check_length(length)
        columns = [self._labels(task, spans, class_names) for task in tasks]
        law = np.zeros([size for _, size in columns])
        np.add.at(law, tuple(labels for labels, _ in columns), np.array(self.cells))
        return law

    def check_length(self, length: int) -> None:
        """Raise a `PriorError` unless a sequence has the table's number of elements."""
        if length != self.n_elements:
            raise PriorError(
                f"this joint table is over sequences of {self.n_elements} elements; found one of {length}.\n"
                "  Use Markov or Patterns for sequences of other lengths."
            )

    def probability(self, pattern: tuple[int, ...] | list[int] | Int8Array) -> float:
        """Probability that the elements of a sequence begin with this pattern of class values."""
        places = [class_index(label, self.n_classes, "a pattern") for label in pattern]
        if len(places) > self.n_elements:
            self.check_length(len(places))
        law = self.joint_law([("element", i) for i in range(len(places))], self.n_elements)
        return float(law[tuple(places)])

    def count_moments(self, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
        """E[n_c] and E[n_c n_d] of the numbers of elements of each class; see `Prior.count_moments`."""
        for length in lengths:
            self.check_length(int(length))
        law = self.joint_law([("element", i) for i in range(self.n_elements)], self.n_elements)
        labels = np.indices(law.shape).reshape(self.n_elements, -1)
        numbers = np.stack([(labels == c).sum(axis=0) for c in range(self.n_classes)], axis=1).astype(np.float64)
        first = law.reshape(-1) @ numbers
        second = numbers.T @ (law.reshape(-1)[:, None] * numbers)
        return np.tile(first, (len(lengths), 1)), np.tile(second, (len(lengths), 1, 1))

    def sample_tasks(self, n_sequences: int, rng: np.random.Generator) -> IntArray:
        """Class indices of all named tasks, shape (n_sequences, n_tasks)."""
        cells = rng.choice(len(self.cells), size=n_sequences, p=np.array(self.cells))
        return np.stack(np.unravel_index(cells, self.shape), axis=1).astype(np.int64)

    def sample_lengths(self, lengths: IntArray, rng: np.random.Generator) -> Int8Array:
        """Class values of the elements of many sequences, flat."""
        for length in np.unique(lengths):
            self.check_length(int(length))
        labels = self.sample_tasks(len(lengths), rng)
        axes = [self.tasks.index(("element", i)) for i in range(self.n_elements)]
        return np.array(self.classes, dtype=np.int8)[labels[:, axes].reshape(-1)]

    @classmethod
    def rebuild(cls, *, tasks: tuple[Named, ...], shape: tuple[int, ...], cells: tuple[float, ...]) -> Joint:
        """The prior of its fields."""
        if min(shape, default=0) < 1 or math.prod(shape) != len(cells):
            raise PriorError(f"a table of the shape {shape} must have as many cells; found {len(cells)}.")
        return cls(tasks, np.array(cells).reshape(shape))

    def __repr__(self) -> str:
        others = len(self.tasks) - self.n_elements
        return f"Joint({self.n_elements} elements, {others} other tasks, n_classes={self.n_classes})"

    def _labels(
        self, task: Task, spans: GivenSpans | None, class_names: tuple[str, ...] | None
    ) -> tuple[IntArray, int]:
        """Label of a task in every cell of the table, and how many classes the task has."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        axis = self.place(task[0], int(task[1]))
        if axis is not None:
            return grid[axis], self.shape[axis]
        piece = piece_of(task, self.n_elements, self.n_classes, spans, class_names)
        machine = automaton(piece.rule, self.n_classes, piece.stop - piece.start)
        state = np.zeros(grid.shape[1], dtype=np.int64)
        for element in range(piece.start, piece.stop):
            state = machine.following[state, grid[self.tasks.index(("element", element))]]
        return machine.outputs[state], machine.n_outputs


def _plain(resolution: Resolution | str) -> Resolution | str:
    return "element" if getattr(resolution, "kind", resolution) == "element" else resolution


def _check_tasks(tasks: tuple[Named, ...], law: FloatArray) -> None:
    if len(set(tasks)) < len(tasks):
        raise PriorError("every task of a joint table must be named once; found one twice.")
    if law.ndim != len(tasks) or law.ndim > MOST_TASKS:
        raise PriorError(
            f"a joint table needs one axis per task, at most {MOST_TASKS}; "
            f"found {len(tasks)} tasks and shape {law.shape}."
        )
    elements = sorted(index for resolution, index in tasks if resolution == "element")
    if not elements or elements != list(range(len(elements))):
        raise PriorError(f"the tasks must include the elements 0, 1, 2, ...; found elements {elements}.")
    sizes = {law.shape[axis] for axis, (resolution, _) in enumerate(tasks) if resolution == "element"}
    others = {law.shape[axis] for axis, (resolution, _) in enumerate(tasks) if resolution != "element"}
    if len(sizes) > 1 or min(sizes) < 2 or not others <= {2}:
        raise PriorError(
            "the axes of elements must all have one place per class, the axes of other tasks two; "
            f"found shape {law.shape}."
        )
