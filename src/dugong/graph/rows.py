"""The graph of rows: which unknown accuracies stand together in an equation, and what that determines.

A node is one unknown: a source, a group of sources that share their parameters, or one position of a source. An edge
is a row whose two votes are independent given the labels, whose labels are correlated under the prior, and whose votes
vary. The incidence matrix of this graph is M of the paper's M l = q.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dugong.exceptions import TaskError
from dugong.graph import connected, determined
from dugong.graph.design import Design, StageName, clique_rows, crossed_edges, crossed_rows
from dugong.sums import Laws, MomentRow, Moments, Shapes
from dugong.tasks import Resolution, count_tasks
from dugong.types import BoolArray, FloatArray, IntArray

# Covariances of labels below this are rounding: the prior ties the two labels to each other in no way.
_NOTHING = 1e-12
# Singular values below this share of the largest are zero.
_ZERO = 1e-9

Node = tuple[str, int]
Stage = Literal["given"] | StageName


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowGraph:
    """Unknowns of a design, the equations between them, and the kind of rows that settles each.

    Attributes
    ----------
    nodes : name and position of every unknown
    edges : (n_equations, 2) places of the two unknowns among the nodes
    given : (n_nodes,) unknowns whose accuracy is known
    stage : the kind of rows that determines each node; None if nothing does
    """

    design: Design
    laws: Laws | None
    shapes: Shapes
    moments: Moments | None
    nodes: tuple[Node, ...]
    edges: IntArray
    given: BoolArray
    stage: tuple[Stage | None, ...]

    @classmethod
    def of(cls, design: Design, laws: Laws | None, shapes: Shapes, moments: Moments | None = None) -> RowGraph:
        """Collect the equations stage by stage, and what each stage settles."""
        nodes = tuple(_nodes(design, shapes, moments))
        pinned = {design.keys[name] for name in design.pinned}
        given = np.array([key in pinned for key, _ in nodes], dtype=np.bool_)
        stage: list[Stage | None] = ["given" if known else None for known in given]
        edges = np.zeros((0, 2), dtype=np.int64)
        for name, found in _edges(design, laws, moments, nodes):
            edges = np.concatenate([edges, found])
            known = np.array([one is not None for one in stage], dtype=np.bool_)
            for node in np.flatnonzero(determined(edges[:, 0], edges[:, 1], known) & ~known):
                stage[node] = name
        return cls(
            design=design,
            laws=laws,
            shapes=shapes,
            moments=moments,
            nodes=nodes,
            edges=edges,
            given=given,
            stage=tuple(stage),
        )

    def partners(self) -> list[tuple[str, ...]]:
        """Names that stand in an equation with every node."""
        near: list[set[Node]] = [set() for _ in self.nodes]
        for a, b in self.edges.tolist():
            near[a].add(self.nodes[b])
            near[b].add(self.nodes[a])
        return [tuple(dict.fromkeys(other for other, _ in sorted(one))) for one in near]

    def placed(self, key: str) -> bool:
        """Whether positions of a name are unknowns of their own."""
        return any(self.design.levels[i.name] == "task" for i in self.design.sources if self.design.keys[i.name] == key)

    def lost(self) -> set[Node]:
        """Unknowns that nothing determines."""
        return {node for node, stage in zip(self.nodes, self.stage, strict=True) if stage is None}

    def groups(self) -> list[list[Node]]:
        """Connected components, each sorted."""
        component = connected(self.edges[:, 0], self.edges[:, 1], len(self.nodes))
        groups: list[list[Node]] = [[] for _ in range(int(component.max(initial=-1)) + 1)]
        for node, number in sorted(zip(self.nodes, component.tolist(), strict=True)):
            groups[number].append(node)
        return groups

    def components(self) -> tuple[tuple[str, ...], ...]:
        """Names joined by equations, for every group that has any; positions of one source count once."""
        alone = bool((self.edges[:, 0] == self.edges[:, 1]).any())
        groups = [group for group in self.groups() if len(group) > 1 or alone]
        return tuple(dict.fromkeys(tuple(dict.fromkeys(key for key, _ in group)) for group in groups))

    def deficiency(self) -> int:
        """How much is missing: the rank that the system lacks, and dependencies without a witness."""
        return int((~self.given).sum()) - self.spectrum()[0] + len(list(unwitnessed(self.design)))

    def spectrum(self) -> tuple[int, float]:
        """Rank and condition number of M without the columns of what is given."""
        component = connected(self.edges[:, 0], self.edges[:, 1], len(self.nodes))[self.edges[:, 0]]
        # Component by component, because columns of different components have no row in common.
        parts = [_singular_values(self.edges[component == number], self.given) for number in np.unique(component)]
        singular = np.concatenate([np.zeros(0), *parts])
        largest, n_free = float(singular.max(initial=0.0)), int((~self.given).sum())
        kept = singular[singular > _ZERO * largest] if largest > 0 else np.zeros(0)
        if len(kept) < n_free:
            return len(kept), np.inf
        return len(kept), float(largest / kept.min()) if n_free else 1.0


def _nodes(design: Design, shapes: Shapes, moments: Moments | None) -> Iterable[Node]:
    seen: set[str] = set()
    for info in design.sources:
        key, level = design.keys[info.name], design.levels[info.name]
        row = design.singles[info.name]
        if key in seen or level == "full":
            continue
        # A source that always says the same has no slope to be found.
        if moments is not None and row in moments.plan and (moments.placed(row).sum(axis=0) > 0).sum() < 2:
            continue
        seen.add(key)
        tasks = count_tasks(info.resolution, shapes.lengths, shapes.spans) if level == "task" else np.ones(1)
        yield from ((key, position) for position in range(max(int(tasks.max(initial=0)), 1)))


def _edges(
    design: Design, laws: Laws | None, moments: Moments | None, nodes: tuple[Node, ...]
) -> Iterable[tuple[StageName, IntArray]]:
    """Places of both unknowns of every equation of the rows of a stage, (n, 2); stage after stage."""
    places: dict[str, list[int]] = {}
    for place, (key, _) in enumerate(nodes):
        places.setdefault(key, []).append(place)
    numbers: dict[Resolution, int] = {}
    sources = {
        info.name: (places.get(design.keys[info.name], []), numbers.setdefault(info.resolution, len(numbers)))
        for info in design.sources
    }
    # Most rows ask for the same covariance of labels, which is found once: at which positions there is any.
    used: dict[tuple[object, ...], list[int]] = {}
    for name, rows in design.stages.items():
        ends: list[tuple[int, int]] = []
        for row in rows:
            (first, one), (second, other) = (sources[source] for source in row.sources)
            if not first or not second or not design.independence.valid(row):
                continue
            if moments is not None and row in moments.plan and not moments.table(row).any():
                continue
            longest = max(len(first), len(second))
            kind = (row.relation, one, other, row.slots[1].offset, row.by_position, longest)
            if kind not in used:
                used[kind] = np.flatnonzero(_covariance_sizes(design, laws, row, longest) > _NOTHING).tolist()
            ends += [(first[min(at, len(first) - 1)], second[min(at, len(second) - 1)]) for at in used[kind]]
        yield name, np.array(ends, dtype=np.int64).reshape(-1, 2)


def _covariance_sizes(design: Design, laws: Laws | None, row: MomentRow, n_positions: int) -> FloatArray:
    """Largest covariance between the classes of the two tasks of a row, by position."""
    if laws is None:
        return np.ones(n_positions if row.by_position else 1)
    where = [design.infos[name].resolution for name in row.sources]
    lag = row.slots[1].offset - row.slots[0].offset
    try:
        law = laws.joint(row.relation, where[0], where[1], lag=lag, by_position=row.by_position)
    except TaskError:  # no sequence is long enough for this row
        return np.zeros(0)
    law = law if row.by_position else law[np.newaxis]
    independent = law.sum(axis=2)[:, :, np.newaxis] * law.sum(axis=1)[:, np.newaxis, :]
    return np.asarray(np.abs(law - independent).max(axis=(1, 2)))


def _singular_values(edges: IntArray, given: BoolArray) -> FloatArray:
    columns, place = np.unique(edges, return_inverse=True)
    incidence = np.zeros((len(edges), len(columns)))
    np.add.at(incidence, (np.arange(len(edges))[:, np.newaxis], place.reshape(edges.shape)), 1.0)
    incidence = incidence[:, ~given[columns]]
    # Entries are whole numbers, so that squaring the matrix is exact.
    squares = np.linalg.eigvalsh(incidence.T @ incidence) if incidence.size else np.zeros(0)
    return np.asarray(np.sqrt(np.where(squares > 1e-12 * squares.max(initial=0.0), squares, 0.0)))


def unwitnessed(design: Design) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Declared dependencies that no further source can measure: what they are, and the sources in them."""
    for name in design.elimination.order:
        clique = (*design.elimination.parents[name], name)
        if len(clique) > 1 and not clique_rows(design, clique):
            yield "clique", tuple(n for n in design.graph.names if n in clique)
    for name, lag in design.graph.temporal.items():
        if not design.repeats(name, lag):
            yield "temporal", (name,)
    for fine, coarse in crossed_edges(design.sources, design.graph):
        if not crossed_rows(design, fine, coarse):
            yield "crossed", (fine, coarse)
