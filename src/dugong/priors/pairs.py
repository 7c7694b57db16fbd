"""Prior laws of pairs of tasks, averaged over all sequences: what the estimators divide by.

In: a prior, two resolutions, how their tasks are paired, and the lengths of the sequences. Out: `PairSums`, sums over
all pairs of P(class of the first task, class of the second), by position of the anchor if asked; from them follow the
means of E[y_i], E[y_i'] and E[y_i y_i'] of METHOD section 3.3 ("every mean over the same pairs").

What is alike is pooled, and every distinct geometry computed once. Under a homogeneous chain the joint law of two tasks
depends linearly on the law of the state where the first of them starts, so pairs with the same relative bounds are
pooled into one weighted state law. Elements inside windows, and anything inside whole sequences, go through one forward
pass that carries sums over the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from dugong.exceptions import TaskError
from dugong.priors._kernels import part_sums
from dugong.priors.base import Prior
from dugong.priors.chain import Automaton, Edges, LabelChain, Rule, Task, automaton, laws_of_pairs, marginal_laws
from dugong.priors.geometry import Pairs, inside_pairs, pair_indices, parts_of_whole, same_pairs
from dugong.priors.joint import Joint
from dugong.tasks import Element, Resolution, Sequence, Spans, SpanTable, count_tasks, describe
from dugong.types import FloatArray, IntArray

Kind = Literal["same", "inside"]
SpanTables = Mapping[str, SpanTable]
# The law of the state where wholes begin, the places of their parts, their lengths, and how many there are of each.
Wholes = tuple[FloatArray, tuple[IntArray, IntArray, IntArray], IntArray, FloatArray]
# A majority needs a counter with one state per element, so that its cost grows with the square.
LONGEST_MAJORITY = 20_000


class PairOptions(TypedDict, total=False):
    """What may be said about pairs beside their resolutions and lengths."""

    lag: int
    spans: SpanTables | None
    class_names: tuple[str, ...] | None


class PairSums(NamedTuple):
    """Sums over pairs: `table` ([positions,] K_a, K_b) of joint laws, and `n_pairs` ([positions,])."""

    table: FloatArray
    n_pairs: FloatArray

    def means(self) -> FloatArray:
        """Joint laws per pair; zeros at positions without pairs."""
        n_pairs = self.n_pairs[..., None, None]
        return np.divide(self.table, n_pairs, out=np.zeros_like(self.table), where=n_pairs > 0)

    def total(self) -> PairSums:
        """All positions together."""
        return PairSums(self.table.sum(axis=0), np.asarray(self.n_pairs.sum()))

    def plus(self, other: PairSums) -> PairSums:
        """Sums over the pairs of both."""
        return PairSums(self.table + other.table, np.asarray(self.n_pairs + other.n_pairs))


def pair_sums(
    prior: Prior,
    kind: Kind,
    first: Resolution,
    second: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    *,
    by_position: bool = False,
    **options: Unpack[PairOptions],
) -> PairSums:
    """Sum over all pairs of the joint law of two tasks, and the number of pairs; ``.means()`` gives laws.

    Parameters
    ----------
    prior : Prior
    kind : {"same", "inside"}
        "same": tasks i and i + `lag` of one resolution. "inside": a task of the finer resolution `first` that starts
        inside a task of the coarser `second`.
    first, second : Resolution
    lengths, counts : (n,) arrays
        Elements of the sequences, and how many sequences have each length (one by default).
    by_position : bool
        Whether sums are kept apart by position of the anchor (the first task; the finer one of "inside"). There are as
        many positions as the sequence with most tasks of `first` has tasks.
    lag : int
        Of kind "same": how many tasks later the second task is.
    spans : mapping of name to SpanTable, optional
        Given pieces, one list per entry of `lengths`.
    class_names : tuple of str, optional
        Needed where a resolution names its class.
    """
    if kind == "same" and first != second:
        raise TaskError(
            f'pairs of the kind "same" are at one resolution; found {describe(first)} and {describe(second)}.'
        )
    question = _ask(prior, kind, (first, second), lengths, counts, options)
    if isinstance(prior, Joint):
        placed = looked_up(question, prior)
        return placed if by_position else placed.total()
    if by_position:
        return one_by_one(question)
    large = isinstance(second, Sequence) or (isinstance(first, Element) and not isinstance(second, Element))
    if kind == "inside" and large and not isinstance(first, Sequence):
        return by_parts(question)
    return pooled(question)


def pair_law(
    prior: Prior,
    kind: Kind,
    first: Resolution,
    second: Resolution,
    lengths: IntArray,
    counts: IntArray | FloatArray | None = None,
    **options: Unpack[PairOptions],
) -> FloatArray:
    """Mean over all pairs of the joint law of two tasks, (K_a, K_b); see `pair_sums`. There must be a pair."""
    sums = pair_sums(prior, kind, first, second, lengths, counts, **options)
    if sums.n_pairs == 0:
        raise TaskError(
            f"the sequences hold no {kind} pair of {describe(first)} and {describe(second)} "
            f"at lag {options.get('lag', 0)}."
        )
    return sums.means()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Which pairs of tasks: see `pair_sums` for the fields."""

    prior: Prior
    kind: Kind
    first: Resolution
    second: Resolution
    lengths: IntArray
    weights: FloatArray
    lag: int = 0
    spans: SpanTables = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None

    @property
    def rules(self) -> tuple[Rule, Rule]:
        """How the labels of both tasks follow from elements."""
        first, second = (Rule.of(one, self.prior.n_classes, self.class_names) for one in (self.first, self.second))
        return first, second

    @property
    def n_positions(self) -> int:
        """Tasks of the first resolution in the sequence that has most."""
        return int(count_tasks(self.first, self.lengths, self.spans).max(initial=0))

    @property
    def shape(self) -> tuple[int, int]:
        """Classes of both tasks."""
        n_classes = self.prior.n_classes
        first, second = (n_classes if isinstance(one, Element) else 2 for one in (self.first, self.second))
        return first, second

    def pairs(self) -> Iterable[Pairs]:
        """All pairs, in blocks."""
        if self.kind == "same":
            return same_pairs(self.first, self.lag, self.lengths, self.weights, self.spans)
        return inside_pairs(self.first, self.second, self.lengths, self.weights, self.spans)

    def spans_of(self, place: int) -> SpanTables:
        """The spans of one sequence."""
        return {name: table.select(np.array([place])) for name, table in self.spans.items()}


def _ask(
    prior: Prior,
    kind: Kind,
    resolutions: tuple[Resolution, Resolution],
    lengths: IntArray,
    counts: IntArray | FloatArray | None,
    options: PairOptions,
) -> Question:
    """Check and summarise: distinct lengths and their numbers; with spans every sequence stays on its own."""
    lengths = np.atleast_1d(np.asarray(lengths, dtype=np.int64))
    weights = np.ones(len(lengths)) if counts is None else np.asarray(counts, dtype=np.float64)
    if not options.get("spans"):
        lengths, inverse = np.unique(lengths, return_inverse=True)
        weights = np.bincount(inverse, weights=weights, minlength=len(lengths)).astype(np.float64)
    return Question(
        prior=prior,
        kind=kind,
        first=resolutions[0],
        second=resolutions[1],
        lengths=lengths,
        weights=weights,
        lag=options.get("lag", 0),
        spans=options.get("spans") or {},
        class_names=options.get("class_names"),
    )


def pooled(question: Question) -> PairSums:
    """Pairs of bounded tasks: pool equal relative bounds, then one law per distinct geometry."""
    chain = question.prior.chain()
    edges = Edges.of(chain)
    table, n_pairs = np.zeros(question.shape), 0.0
    for block in question.pairs():
        if len(block.weights):
            # Only distances matter once the law of the state at the first element is known.
            origin = np.minimum(block.bounds[:, 0], block.bounds[:, 2])
            shapes, inverse = _distinct(block.bounds - origin[:, None])
            starts = _pool(chain, edges, inverse, origin, block.weights)
            table += _laws(question, edges, starts, shapes).sum(axis=0)
            n_pairs += float(block.weights.sum())
    return PairSums(table, np.asarray(n_pairs))


def one_by_one(question: Question) -> PairSums:
    """Every pair on its own, summed by position of the anchor."""
    chain = question.prior.chain()
    edges = Edges.of(chain)
    table, n_pairs = np.zeros((question.n_positions, *question.shape)), np.zeros(question.n_positions)
    for block in question.pairs():
        origin = np.minimum(block.bounds[:, 0], block.bounds[:, 2])
        starts = marginal_laws(chain, edges, origin) * block.weights[:, None]
        relative = block.bounds - origin[:, None]
        np.add.at(table, block.positions, _laws(question, edges, starts, relative))
        np.add.at(n_pairs, block.positions, block.weights)
    return PairSums(table, n_pairs)


def by_parts(question: Question) -> PairSums:
    """Tasks inside larger ones: one forward pass carries sums over the parts, for all wholes that begin alike."""
    chain = question.prior.chain()
    edges, total = Edges.of(chain), PairSums(np.zeros(question.shape), np.asarray(0.0))
    wholes = _sequences if isinstance(question.second, Sequence) else _equal_sizes
    for start, places, lengths, weights in wholes(question, chain, edges):
        sizes = places[1] - places[0], lengths
        rules = zip(question.rules, sizes, strict=True)
        part, whole = (_machine(rule, chain.n_classes, int(size.max(initial=0))) for rule, size in rules)
        table = np.tensordot(weights, part_sums(np.array(start), *edges, *part, *whole[:2], *places, lengths), axes=1)
        total = total.plus(PairSums(table, np.asarray(table.sum())))
    return total


def _sequences(question: Question, chain: LabelChain, _: Edges) -> Iterable[Wholes]:
    """Whole sequences: all lengths at once, or one by one with spans."""
    lengths, weights = question.lengths, question.weights
    if not isinstance(question.first, Spans):
        order = np.argsort(lengths)
        places = parts_of_whole(question.first, int(lengths.max(initial=0)))
        yield chain.initial, places, lengths[order], weights[order]
        return
    for place, length in enumerate(lengths.tolist()):
        own, places = slice(place, place + 1), parts_of_whole(question.first, length, question.spans_of(place))
        yield chain.initial, places, lengths[own], weights[own]


def _equal_sizes(question: Question, chain: LabelChain, edges: Edges) -> Iterable[Wholes]:
    """Elements in windows or spans: the coarser tasks pooled by size."""
    for block in same_pairs(question.second, 0, question.lengths, question.weights, question.spans):
        sizes, inverse = np.unique(block.bounds[:, 1] - block.bounds[:, 0], return_inverse=True)
        starts = _pool(chain, edges, inverse, block.bounds[:, 0], block.weights)
        for size, start in zip(sizes.tolist(), starts, strict=True):
            yield start, parts_of_whole(Element(), size), np.array([size]), np.ones(1)


def looked_up(question: Question, prior: Joint) -> PairSums:
    """Every pair of every sequence looked up in a joint table, by position of the anchor."""
    table, n_pairs = np.zeros((question.n_positions, *question.shape)), np.zeros(question.n_positions)
    for place, length in enumerate(question.lengths.tolist()):
        own = question.spans_of(place)
        given = {name: list(zip(one.starts.tolist(), one.stops.tolist(), strict=True)) for name, one in own.items()}
        first, second = pair_indices(question.first, question.second, question.kind, question.lag, length, own)
        for i, w in zip(first.tolist(), second.tolist(), strict=True):
            tasks: list[Task] = [(question.first, i), (question.second, w)]
            table[i] += question.weights[place] * prior.joint_law(tasks, length, given, question.class_names)
            n_pairs[i] += question.weights[place]
    return PairSums(table, n_pairs)


def _pool(chain: LabelChain, edges: Edges, groups: IntArray, origins: IntArray, weights: FloatArray) -> FloatArray:
    """Weighted sum, by group, of the state laws at some origins."""
    reach, place = np.unique(origins, return_inverse=True)
    laws, n_groups = marginal_laws(chain, edges, reach), int(groups.max(initial=-1)) + 1
    found = [np.bincount(groups, weights * law[place], n_groups) for law in laws.T]
    return np.asarray(np.stack(found, axis=1), dtype=np.float64)


def _laws(question: Question, edges: Edges, starts: FloatArray, bounds: IntArray) -> FloatArray:
    """Joint laws of both tasks, (n_pairs, K_a, K_b)."""
    n_classes, sizes = question.prior.n_classes, (bounds[:, 1::2] - bounds[:, ::2]).max(axis=0, initial=0).tolist()
    first, second = (_machine(rule, n_classes, size) for rule, size in zip(question.rules, sizes, strict=True))
    if question.kind == "inside" or question.lag:
        return laws_of_pairs(edges, starts, bounds, first, second)
    # A task and itself: one label, read once, because two automata side by side would square the work.
    alone = np.concatenate([bounds[:, :2], np.zeros_like(bounds[:, :2])], axis=1)
    laws = laws_of_pairs(edges, starts, alone, first, automaton(question.rules[1], n_classes, 1))
    return np.asarray(laws[:, :, :1] * np.eye(laws.shape[1]))


def _machine(rule: Rule, n_classes: int, size: int) -> Automaton:
    if rule.link == "majority" and size > LONGEST_MAJORITY:
        raise TaskError(
            f"the majority over {size} elements costs {size} squared steps; "
            f"at most {LONGEST_MAJORITY} elements are allowed.\n  Use the link 'any' or 'all', or windows."
        )
    return automaton(rule, n_classes, size)


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct rows and the place of every row among them."""
    base = int(rows.max(initial=0)) + 1
    # Four numbers below this fit one 64-bit number, and sorting one is much faster than sorting rows of four.
    if base < 50_000:
        codes = ((rows[:, 0] * base + rows[:, 1]) * base + rows[:, 2]) * base + rows[:, 3]
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return rows[first], inverse
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)
