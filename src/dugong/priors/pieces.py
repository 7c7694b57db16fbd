"""A task as a piece of its sequence and an automaton over element classes.

In: a resolution and an index. Out: where the piece lies (`Piece`) and how its label follows from its
elements (`Automaton`: the links of `dugong.tasks.links` as tables that the kernels can read). An
element is the automaton that keeps the class it has read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dugong.exceptions import PriorError, TaskError
from dugong.tasks import Element, Resolution, Spans, Window, count_tasks, describe, links
from dugong.types import IntArray, Link, class_values, read_only

Task = tuple[Resolution | str, int] | tuple[Resolution | str, int, int]
GivenSpans = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a label follows from its elements: a link (None: it is an element) and the class that counts."""

    link: Link | None
    positive: int

    @classmethod
    def of(cls, resolution: Resolution, n_classes: int, class_names: tuple[str, ...] | None = None) -> Rule:
        """The rule of a resolution."""
        return cls(link=resolution.link, positive=positive_class(resolution, n_classes, class_names))

    def n_outputs(self, n_classes: int) -> int:
        """Number of classes that the task itself has."""
        return n_classes if self.link is None else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Elements ``[start, stop)`` of a sequence and the rule that turns their classes into one label."""

    start: int
    stop: int
    rule: Rule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Automaton:
    """A rule as tables: `following` (states, classes) and `outputs` (states,); state 0 has read nothing."""

    following: IntArray
    outputs: IntArray
    n_outputs: int


def resolve(resolution: Resolution | str) -> Resolution:
    """The resolution that a task names; of names only ``"element"`` says everything."""
    if resolution == "element":
        return Element()
    if isinstance(resolution, str):
        raise TaskError(
            f"a task of a prior needs its resolution as an object, such as Window(size=3, link='any'); "
            f"found the name {resolution!r}."
        )
    return resolution


def piece_of(
    task: Task,
    length: int,
    n_classes: int,
    spans: GivenSpans | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Piece:
    """Where a task lies in a sequence of `length` elements."""
    resolution, index = resolve(task[0]), int(task[1])
    rule = Rule.of(resolution, n_classes, class_names)
    bounds = _bounds(resolution, index, length, spans)
    if bounds is None:
        raise TaskError(
            f"there is no task {index} at {describe(resolution)} in a sequence of {length} elements; "
            "tasks count from 0."
        )
    return Piece(start=bounds[0], stop=bounds[1], rule=rule)


def _bounds(resolution: Resolution, index: int, length: int, spans: GivenSpans | None) -> tuple[int, int] | None:
    if isinstance(resolution, Spans):
        given = (spans or {}).get(resolution.name, ())
        return (int(given[index][0]), int(given[index][1])) if 0 <= index < len(given) else None
    if not 0 <= index < int(count_tasks(resolution, np.array([length]))[0]):
        return None
    if isinstance(resolution, Element):
        return index, index + 1
    if isinstance(resolution, Window):
        return index * resolution.stride, min(index * resolution.stride + resolution.size, length)
    return 0, length


@lru_cache(maxsize=256)
def automaton(rule: Rule, n_classes: int, size: int) -> Automaton:
    """Tables of a rule, with every state that can be reached within `size` elements, in order of reaching."""
    if rule.link is None:
        same = np.tile(np.arange(n_classes, dtype=np.int64), (n_classes, 1))
        return Automaton(following=read_only(same), outputs=read_only(np.arange(n_classes)), n_outputs=n_classes)
    link = rule.link
    first = links.start(link)
    places = {first: 0}
    newest = [first]
    for _ in range(size):
        reached = {links.step(link, state, positive) for state in newest for positive in (True, False)}
        newest = sorted(reached - places.keys())
        if not newest:
            break
        places |= {state: len(places) + rank for rank, state in enumerate(newest)}
    following = np.empty((len(places), n_classes), dtype=np.int64)
    for state, place in places.items():
        for label in range(n_classes):
            # Beyond `size` elements nothing is asked: the last states stay where they are.
            following[place, label] = places.get(links.step(link, state, label == rule.positive), place)
    outputs = np.array([links.accept(link, state) for state in places], dtype=np.int64)
    return Automaton(following=read_only(following), outputs=read_only(outputs), n_outputs=2)


def class_index(value: int, n_classes: int, where: str) -> int:
    """Table column of a class value."""
    values = class_values(n_classes)
    if value not in values:
        coding = "-1 or +1" if n_classes == 2 else f"a class from 1 to {n_classes}"
        raise PriorError(f"labels in {where} must be {coding}; found {value!r}.")
    return values.index(value)


def positive_class(resolution: Resolution, n_classes: int, class_names: tuple[str, ...] | None = None) -> int:
    """Class index that counts as positive at a window, span or sequence resolution.

    Two classes: +1. More: the class that `of` names, by value or by name.
    """
    if n_classes == 2 or isinstance(resolution, Element):
        return 1
    if class_names is not None and resolution.of in class_names:
        return class_names.index(str(resolution.of))
    if resolution.of not in class_values(n_classes):
        raise TaskError(
            f"with {n_classes} classes, {describe(resolution)} must say which class counts; "
            f"found of={resolution.of!r}.\n  Give a class from 1 to {n_classes}"
            f"{'' if class_names is None else f' or one of {class_names}'}."
        )
    return class_values(n_classes).index(int(resolution.of))
