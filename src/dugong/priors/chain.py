"""The common form of every prior over element labels: a homogeneous Markov chain over hidden states.

A state stands for a short history of labels; `labels` says which class the newest element has. The law of
the first t labels is the same for every sequence length, so nothing depends on where a sequence ends.
Inference, exact moments and sampling all read this one value.

`chain_law` is the joint law of a few tasks of one sequence, exact at any length: the automata of the tasks run side by
side along the chain, from the first element that any of them reads, started at the marginal of the state there. Two
tasks go through the compiled loop, more through a dictionary of reached states. A task is a `Piece` of its sequence and
an `Automaton` over the classes in it: the links of `dugong.tasks.links` as tables that the kernels can read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from dugong.exceptions import PriorError, TaskError
from dugong.priors._kernels import pair_laws, state_marginals
from dugong.tasks import Element, Resolution, Spans, Window, count_tasks, describe, links
from dugong.types import FloatArray, IntArray, Link, class_values, read_only

_TOLERANCE = 1e-6
# Below this the law of the state has stopped moving as far as float64 can tell.
STILL = 1e-16
MOST_STATES = 4096

StateT = TypeVar("StateT", bound=Hashable)


class TooManyStatesError(TaskError):
    """Labels that have to be remembered need more states per element than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelChain:
    """A chain over label states.

    Attributes
    ----------
    initial : (n_states,) law of the state of the first element
    transition : (n_states, n_states) rows sum to one
    labels : (n_states,) class index (0..K-1) of the newest element in each state
    n_classes : int
    """

    initial: FloatArray
    transition: FloatArray
    labels: IntArray
    n_classes: int
    n_states: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_states", len(self.initial))
        for name, dtype in (("initial", np.float64), ("transition", np.float64), ("labels", np.int64)):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(getattr(self, name), dtype=dtype)))
        distribution(self.initial, "the initial law")
        # Checked here, once for all kinds of priors, because inference multiplies thousands of these rows.
        for row in self.transition:
            distribution(row, "every row of the transition matrix")

    def with_memory(self, order: int) -> tuple[LabelChain, IntArray]:
        """The same law with states that remember the labels of the `order` elements before the newest; and these.

        The remembered labels are (n_states, order); positions before the first element are remembered as -1.
        """
        if order > MOST_STATES:
            raise TooManyStatesError(f"at most {MOST_STATES} labels can be remembered; found a lag of {order}.")

        def step(key: tuple[int, tuple[int, ...]]) -> Iterator[tuple[tuple[int, tuple[int, ...]], float]]:
            state, past = key
            past = (int(self.labels[state]), *past)[:order]
            row = self.transition[state]
            return (((target, past), float(row[target])) for target in np.flatnonzero(row).tolist())

        first = {(state, (-1,) * order): chance for state, chance in enumerate(self.initial.tolist())}
        found = explore(first, step)
        if found is None:  # they double with every label that is remembered
            raise TooManyStatesError(
                f"exact inference takes at most {MOST_STATES} states per element; remembering the labels of "
                f"{order} elements needs more.\n  Use a smaller lag, or a Markov prior."
            )
        keys, initial, transition = found
        labels = np.array([self.labels[state] for state, _ in keys])
        expanded = LabelChain(initial=initial, transition=transition, labels=labels, n_classes=self.n_classes)
        return expanded, np.array([past for _, past in keys], dtype=np.int64).reshape(len(keys), order)


def explore(
    first: Mapping[StateT, float], step: Callable[[StateT], Iterable[tuple[StateT, float]]]
) -> tuple[list[StateT], FloatArray, FloatArray] | None:
    """States that can be reached, the law of the first one, and their transitions; None if there are too many.

    Parameters
    ----------
    step : from a state to those that may follow, with their probabilities
    """
    states = {state: place for place, state in enumerate(first)}
    edges, queue = list[tuple[int, int, float]](), list(first)
    for state in queue:
        for target, chance in step(state):
            if target not in states:
                states[target] = len(states)
                queue.append(target)
            edges.append((states[state], states[target], chance))
        if len(states) > MOST_STATES:
            return None
    initial, transition = np.zeros(len(states)), np.zeros((len(states), len(states)))
    initial[: len(first)] = list(first.values())
    for origin, place, chance in edges:
        transition[origin, place] += chance
    return queue, initial, transition


def distribution(values: FloatArray, what: str) -> FloatArray:
    """Probabilities that sum to one, divided by their sum unless rounding is all that is wrong with it; or an error."""
    if not np.isfinite(values).all() or (values < 0).any():
        raise PriorError(f"{what} must hold probabilities; found {np.array2string(values, threshold=8)}.")
    total = float(values.sum())
    if abs(total - 1) > _TOLERANCE:
        raise PriorError(f"{what} must sum to one; found {total:.6g}.\n  Divide by the sum if these are weights.")
    # Dividing by a sum that is one up to rounding would change the last digit of what the user gave.
    return values if abs(total - 1) < 1e-12 else np.asarray(values / total)


class Edges(NamedTuple):
    """The nonzero transitions of a chain, row after row, and the class of every state; in the order of the kernels."""

    heads: IntArray
    targets: IntArray
    weights: FloatArray
    labels: IntArray

    @classmethod
    def of(cls, chain: LabelChain) -> Edges:
        """Collect the edges of a chain."""
        sources, targets = np.nonzero(chain.transition)
        heads = np.searchsorted(sources, np.arange(chain.n_states + 1)).astype(np.int64)
        weights = np.array(chain.transition[sources, targets])
        return cls(heads=heads, targets=targets.astype(np.int64), weights=weights, labels=chain.labels.copy())


def marginal_laws(chain: LabelChain, edges: Edges, positions: IntArray) -> FloatArray:
    """Law of the state at each of some positions, shape (n_positions, n_states)."""
    if len(positions) == 0:
        return np.zeros((0, chain.n_states))
    length = int(positions.max()) + 1
    laws = state_marginals(chain.initial.copy(), *edges[:3], length, STILL)
    return np.asarray(laws[np.minimum(positions, len(laws) - 1)])


def laws_of_pairs(
    edges: Edges, starts: FloatArray, bounds: IntArray, first: Automaton, second: Automaton
) -> FloatArray:
    """Joint laws of two pieces, shape (n_questions, outputs of first, outputs of second).

    `starts` (n_questions, n_states) is the law of the state at element 0, `bounds` (n_questions, 4) the
    start and stop of both pieces; an empty second piece has output 0.
    """
    starts, bounds = np.ascontiguousarray(starts, dtype=np.float64), np.ascontiguousarray(bounds, dtype=np.int64)
    return np.asarray(pair_laws(starts, *edges, *first, *second, bounds))


def chain_law(chain: LabelChain, pieces: Sequence[Piece]) -> FloatArray:
    """Joint law of the labels of `pieces`, one axis each."""
    if not pieces:
        return np.ones(())
    origin = min(piece.start for piece in pieces)
    edges = Edges.of(chain)
    start = marginal_laws(chain, edges, np.array([origin]))[0]
    machines = [automaton(p.rule, chain.n_classes, p.stop - p.start) for p in pieces]
    if len(pieces) <= 2:
        bounds = np.zeros((1, 4), dtype=np.int64)
        bounds[0, : 2 * len(pieces)] = [bound - origin for piece in pieces for bound in (piece.start, piece.stop)]
        law = laws_of_pairs(edges, start[None], bounds, machines[0], machines[-1])[0]
        return np.asarray(law if len(pieces) == 2 else law[:, 0])
    return _walk(chain, start, pieces, machines, origin)


def _walk(
    chain: LabelChain, start: FloatArray, pieces: Sequence[Piece], machines: Sequence[Automaton], origin: int
) -> FloatArray:
    nothing = (0,) * len(pieces)
    now = {(int(state), nothing): float(start[state]) for state in np.flatnonzero(start)}
    for element in range(origin, max(piece.stop for piece in pieces)):
        later: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
        for (state, memory), weight in now.items():
            row = chain.transition[state]
            ways = [state] if element == origin else np.flatnonzero(row).tolist()
            for target in ways:
                chance = 1.0 if element == origin else float(row[target])
                label = int(chain.labels[target])
                moved = tuple(
                    int(machine.following[q, label]) if piece.start <= element < piece.stop else q
                    for q, piece, machine in zip(memory, pieces, machines, strict=True)
                )
                later[target, moved] += weight * chance
        now = dict(later)
    law = np.zeros([machine.n_outputs for machine in machines])
    for (_, memory), weight in now.items():
        law[tuple(int(machine.outputs[q]) for q, machine in zip(memory, machines, strict=True))] += weight
    return law


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Elements ``[start, stop)`` of a sequence and the rule that turns their classes into one label."""

    start: int
    stop: int
    rule: Rule


class Automaton(NamedTuple):
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
