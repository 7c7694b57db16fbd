"""The graph of rows: which unknown accuracies stand together in an equation, and what that determines.

A node is one unknown: a source, a group of sources that share their parameters, or one position of a source. An edge
is a row whose two votes are independent given the labels, whose labels are correlated under the prior, and whose votes
vary. The incidence matrix of this graph is M of the paper's M l = q.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dugong.exceptions import TaskError
from dugong.fit.design import (
    Design,
    clique_rows,
    crossed_edges,
    crossed_rows,
    settled_keys,
    temporal_rows,
    valid_pair,
)
from dugong.fit.identifiability import Stage, Unknown
from dugong.fit.laws import Laws
from dugong.sums import Moments, Row, Shapes, Slot
from dugong.tasks import count_tasks
from dugong.types import FloatArray

_NOTHING = 1e-12

Node = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowGraph:
    """Unknowns of a design, the equations between them, and the kind of rows that settles each."""

    design: Design
    laws: Laws | None
    shapes: Shapes
    moments: Moments | None
    nodes: tuple[Node, ...]
    edges: tuple[tuple[Node, Node], ...]
    stage: Mapping[Node, Stage | None]
    rank: int
    condition: float

    @classmethod
    def of(cls, design: Design, laws: Laws | None, shapes: Shapes, moments: Moments | None = None) -> RowGraph:
        """Collect the equations stage by stage, and what each stage settles."""
        nodes = tuple(_nodes(design, shapes, moments))
        grouped, independence = by_key(nodes), design.independence
        given = {node for node in nodes if node[0] in {design.key(name) for name in design.pinned}}
        stage: dict[Node, Stage | None] = {node: "given" if node in given else None for node in nodes}
        edges: list[tuple[Node, Node]] = []
        rows: dict[Stage, tuple[Row, ...]] = {
            "same task": design.same,
            "across resolutions": design.across,
            "across time": design.lagged,
        }
        for name, extra in rows.items():
            if not extra and edges:
                continue
            sizes: dict[tuple[object, ...], FloatArray] = {}  # most rows ask for the same covariance
            for row in extra:
                if valid_pair(independence, row, design.levels) and _counted(row, moments):
                    edges += _edges(design, laws, row, grouped, sizes)
            for node in _settled(nodes, edges, {n for n in nodes if stage[n] is not None}):
                stage[node] = stage[node] or name
        rank, condition = _spectrum(nodes, edges, given)
        return cls(
            design=design,
            laws=laws,
            shapes=shapes,
            moments=moments,
            nodes=nodes,
            edges=tuple(edges),
            stage=stage,
            rank=rank,
            condition=condition,
        )

    def unknowns(self) -> tuple[Unknown, ...]:
        """Every unknown with its partners."""
        near = _near(self.nodes, self.edges)
        return tuple(
            Unknown(
                name=key,
                position=position if self._placed(key) else None,
                partners=tuple(dict.fromkeys(other for other, _ in sorted(near[key, position]))),
                stage=self.stage[key, position],
            )
            for key, position in self.nodes
        )

    def _placed(self, key: str) -> bool:
        return any(self.design.levels[i.name] == "task" for i in self.design.sources if self.design.key(i.name) == key)

    def lost(self) -> list[Node]:
        """Unknowns that nothing determines."""
        return [node for node in self.nodes if self.stage[node] is None]

    def components(self) -> tuple[tuple[str, ...], ...]:
        """Names joined by equations, for every group that has any; positions of one source count once."""
        groups = [g for g in connected(self.nodes, self.edges) if len(g) > 1 or any(a == b for a, b in self.edges)]
        return tuple(dict.fromkeys(tuple(dict.fromkeys(key for key, _ in group)) for group in groups))

    def deficiency(self) -> int:
        """How much is missing: the rank that the system lacks, and dependencies without a witness."""
        free = sum(stage != "given" for stage in self.stage.values())
        return free - self.rank + len(list(unwitnessed(self.design)))


def by_key(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Unknowns of every name, by position."""
    grouped: dict[str, list[Node]] = {}
    for node in nodes:
        grouped.setdefault(node[0], []).append(node)
    return grouped


def _nodes(design: Design, shapes: Shapes, moments: Moments | None) -> Iterable[Node]:
    seen: set[str] = set()
    for info in design.sources:
        key, level = design.key(info.name), design.levels[info.name]
        if key in seen or level == "full" or not _varies(design, moments, info.name):
            continue
        seen.add(key)
        tasks = count_tasks(info.resolution, shapes.lengths, shapes.spans) if level == "task" else np.ones(1)
        yield from ((key, position) for position in range(max(int(tasks.max(initial=0)), 1)))


def _varies(design: Design, moments: Moments | None, name: str) -> bool:
    """Whether a source says different things; one that does not has no slope to be found."""
    row = Row(slots=(Slot(name),), by_position=design.levels[name] == "task")
    if moments is None or row not in moments.plan:
        return True
    votes = moments.table(row).reshape(-1, moments.table(row).shape[-1]).sum(axis=0)
    return int((votes > 0).sum()) > 1


def _counted(row: Row, moments: Moments | None) -> bool:
    return moments is None or row not in moments.plan or bool(moments.table(row).any())


def _edges(
    design: Design,
    laws: Laws | None,
    row: Row,
    nodes: Mapping[str, list[Node]],
    sizes: dict[tuple[object, ...], FloatArray],
) -> Iterable[tuple[Node, Node]]:
    first, second = (nodes.get(design.key(name), []) for name in row.sources)
    if not first or not second:
        return
    where = tuple(design.info(name).resolution for name in row.sources)
    longest = max(len(first), len(second))
    key = (row.relation, where, row.slots[1].offset - row.slots[0].offset, row.by_position, longest)
    if key not in sizes:
        sizes[key] = _covariance_sizes(design, laws, row, longest)
    for position, size in enumerate(sizes[key]):
        if size > _NOTHING:
            yield first[min(position, len(first) - 1)], second[min(position, len(second) - 1)]


def _covariance_sizes(design: Design, laws: Laws | None, row: Row, n_positions: int) -> FloatArray:
    """Largest covariance between the classes of the two tasks of a row, by position."""
    if laws is None:
        return np.ones(n_positions if row.by_position else 1)
    where = [design.info(name).resolution for name in row.sources]
    lag = row.slots[1].offset - row.slots[0].offset
    try:
        law = laws.joint(row.relation, where[0], where[1], lag=lag, by_position=row.by_position)
    except TaskError:  # no sequence is long enough for this row
        return np.zeros(0)
    law = law if row.by_position else law[np.newaxis]
    independent = law.sum(axis=2)[:, :, np.newaxis] * law.sum(axis=1)[:, np.newaxis, :]
    return np.asarray(np.abs(law - independent).max(axis=(1, 2)))


def _near(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> dict[Node, set[Node]]:
    near: dict[Node, set[Node]] = {node: set() for node in nodes}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    return near


def _settled(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]], known: set[Node]) -> set[Node]:
    named = {str(node): node for node in nodes}
    near = {str(node): set(map(str, others)) for node, others in _near(named.values(), edges).items()}
    return {named[name] for name in settled_keys(near, set(map(str, known)))}


def connected(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> list[list[Node]]:
    """Connected components, each sorted."""
    near, groups, seen = _near(nodes, edges), [], set[Node]()
    for root in near:
        if root in seen:
            continue
        group, queue = [root], [root]
        seen.add(root)
        while queue:
            for other in sorted(near[queue.pop()] - seen):
                seen.add(other)
                group.append(other)
                queue.append(other)
        groups.append(sorted(group))
    return groups


def _spectrum(nodes: tuple[Node, ...], edges: list[tuple[Node, Node]], given: set[Node]) -> tuple[int, float]:
    """Rank and condition number of M without the columns of what is given, component by component."""
    free = [node for node in nodes if node not in given]
    inside = {node: number for number, group in enumerate(connected(nodes, edges)) for node in group}
    grouped: dict[int, list[tuple[Node, Node]]] = {}
    for edge in edges:
        grouped.setdefault(inside[edge[0]], []).append(edge)
    parts = [_singular_values(part, given) for part in grouped.values()]
    singular = np.concatenate(parts) if parts else np.zeros(0)
    largest = float(singular.max(initial=0.0))
    rank = int((singular > 1e-9 * largest).sum()) if largest > 0 else 0
    full = rank == len(free)
    return rank, float(largest / singular[singular > 1e-9 * largest].min(initial=np.inf)) if full and free else (
        1.0 if full else np.inf
    )


def _singular_values(edges: list[tuple[Node, Node]], given: set[Node]) -> FloatArray:
    place: dict[Node, int] = {}
    for node in (node for edge in edges for node in edge if node not in given):
        place.setdefault(node, len(place))
    incidence = np.zeros((len(edges), len(place)))
    for row, edge in enumerate(edges):
        for node in edge:
            if node in place:
                incidence[row, place[node]] += 1
    # Entries are whole numbers, so that squaring the matrix is exact.
    squares = np.linalg.eigvalsh(incidence.T @ incidence) if place else np.zeros(0)
    return np.asarray(np.sqrt(np.where(squares > 1e-12 * squares.max(initial=0.0), squares, 0.0)))


def unwitnessed(design: Design) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Declared dependencies that no further source can measure: what they are, and the sources in them."""
    for name in design.elimination.order:
        clique = (*design.elimination.parents[name], name)
        if len(clique) > 1 and not clique_rows(design, clique):
            yield "clique", tuple(n for n in design.graph.names if n in clique)
    for name, lag in design.graph.temporal.items():
        if not temporal_rows(design, name, lag):
            yield "temporal", (name,)
    for fine, coarse in crossed_edges(design.sources, design.graph):
        if not crossed_rows(design, fine, coarse):
            yield "crossed", (fine, coarse)
