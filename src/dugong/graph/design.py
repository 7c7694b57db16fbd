"""What is to be estimated: the unknowns, and which rows of moments determine them.

An unknown is one source, or a group of sources that share their parameters, or one position of a source
(``sharing="task"``). In: sources, graph, sharing. Out: a `Design` with the plan of rows to count. Rows on the same task
come first; rows across resolutions and across time are added only for unknowns that nothing else determines, because
they lean on the prior (METHOD 3.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, combinations_with_replacement
from typing import Literal

import numpy as np

from dugong.exceptions import TaskError
from dugong.graph import Elimination, SourceGraph, determined, eliminate
from dugong.sums import MomentRow, Plan, Slot, inside, pair
from dugong.tasks import Element, Resolution, Sequence, Window, count_tasks, describe
from dugong.votes import SourceInfo, Votes

Sharing = Literal["tied", "task", "full"]
StageName = Literal["same task", "across resolutions", "across time"]
# Of a source with itself: labels farther apart are hardly correlated, so that further rows would add little.
SELF_LAGS = (1, 2, 3)
LARGEST_FULL = 6  # tasks of a table with 2^6 rows of 3^6 votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence:
    """Which pairs of votes are independent given the labels, and may stand in a row of the moment equations.

    Two votes are independent given all labels if no path of the source graph joins their sources. A source that
    depends on itself in time carries earlier labels along, and one that follows a coarser source carries that one's
    label, so such a source may appear only on its own task, together with one that does not; never across time or
    resolutions. (Paper, appendix "Conditional Independencies"; METHOD 3.3.)

    Attributes
    ----------
    component : number of the connected component by source
    tangled : sources whose vote, given all labels, depends on other labels than that of their own task
    levels : what shares a table, by source
    """

    component: Mapping[str, int]
    tangled: frozenset[str]
    levels: Mapping[str, Sharing]

    def apart(self, first: str, second: str) -> bool:
        """No path of the source graph joins the two sources."""
        return self.component[first] != self.component[second]

    def ordinary(self, name: str) -> bool:
        """Whether a source can serve as a proxy: it reads its own task only."""
        return name not in self.tangled and self.levels[name] != "full"

    def valid(self, row: MomentRow) -> bool:
        """Whether a pair row is an equation: both votes are independent given the labels and read their own task."""
        first, second = row.sources
        if "full" in (self.levels[first], self.levels[second]):
            return False
        apart, tangled = self.component[first] != self.component[second], self.tangled & {first, second}
        # On one task a vote may depend on other labels as well, if the other vote does not.
        if row.relation == "same" and row.span == 0:
            return apart and len(tangled) < 2
        return (apart or first == second) and not tangled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Everything about the estimation problem that does not depend on numbers.

    Attributes
    ----------
    levels : what shares a table, by source
    infos : every source by its name
    keys : name of the parameters of every source: its `shares` group, or itself
    singles : the row of the votes of every source alone
    stages : rows of pairs by the stage in which they are used
    plan : all rows that have to be counted
    """

    sources: tuple[SourceInfo, ...]
    graph: SourceGraph
    pinned: frozenset[str]
    stages: Mapping[StageName, tuple[MomentRow, ...]]
    elimination: Elimination
    independence: Independence
    n_tasks: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sharing] = field(init=False, repr=False)
    infos: Mapping[str, SourceInfo] = field(init=False, repr=False)
    keys: Mapping[str, str] = field(init=False, repr=False)
    singles: Mapping[str, MomentRow] = field(init=False, repr=False)
    plan: Plan = field(init=False, repr=False)
    _repeats: dict[tuple[str, int], list[MomentRow]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", self.independence.levels)
        object.__setattr__(self, "infos", {info.name: info for info in self.sources})
        object.__setattr__(self, "keys", table_names(self.sources))
        singles = {
            name: MomentRow(slots=(Slot(name),), by_position=level == "task") for name, level in self.levels.items()
        }
        object.__setattr__(self, "singles", singles)
        pairs = [row for rows in self.stages.values() for row in rows]
        object.__setattr__(self, "plan", Plan.of([*singles.values(), *pairs, *_further_rows(self)]))

    def repeats(self, name: str, lag: int) -> list[MomentRow]:
        """Two votes of a source `lag` tasks apart, with those of each proxy at both times."""
        key, times = (name, lag), (0, lag)
        if key not in self._repeats:
            proxies = _tied(self, self.proxies((name,), self.infos[name].resolution))
            slots = [tuple(Slot(source, time) for source in (name, proxy) for time in times) for proxy in proxies]
            self._repeats[key] = [MomentRow(slots=own) for own in slots]
        return self._repeats[key]

    def firsts(self, name: str) -> list[MomentRow]:
        """The votes of a source that repeats itself with those of each proxy by position, for its first votes."""
        proxies = [row.sources[-1] for row in self.repeats(name, self.graph.temporal[name])]
        return [MomentRow(slots=(Slot(name), Slot(proxy)), by_position=True) for proxy in proxies]

    def proxies(self, names: Iterable[str], resolution: Resolution) -> tuple[str, ...]:
        """Ordinary sources of a resolution that are independent of all the given ones."""
        independence = self.independence
        return tuple(
            info.name
            for info in self.sources
            if info.resolution == resolution
            and independence.ordinary(info.name)
            and all(independence.apart(info.name, name) for name in names)
        )


def make_design(
    sources: tuple[SourceInfo, ...],
    graph: SourceGraph,
    *,
    sharing: Sharing | Mapping[str, Sharing] = "tied",
    pinned: Iterable[str] = (),
    n_tasks: Mapping[str, int] | None = None,
) -> Design:
    """Decide which rows are needed.

    Parameters
    ----------
    n_tasks : tasks per sequence by source, needed for ``sharing="full"`` (the same for all sequences)
    """
    levels = _levels(sources, sharing)
    fixed, where = frozenset(pinned), {info.name: info.resolution for info in sources}
    following = [fine for fine, _ in crossed_edges(sources, graph)]
    tangled = frozenset([*graph.temporal, *following])
    independence = Independence(component=graph.components(), tangled=tangled, levels=levels)
    # Edges between resolutions are factors of their own: no clique on one task holds both ends.
    inner = replace(graph, edges=tuple(edge for edge in graph.edges if where[edge[0]] == where[edge[1]]))
    # All pairs on one task are counted, equations or not: the best weights of proxies need all their covariances.
    same = tuple(
        pair(first.name, second.name, by_position="task" in (levels[first.name], levels[second.name]))
        for first, second in combinations(sources, 2)
        if first.resolution == second.resolution
    )
    # Rows across resolutions and time lean on the prior, so that they are added only for what is loose without them.
    loose = _loose(sources, independence, fixed, same)
    across = tuple(_across_rows(sources, independence, loose)) if loose else ()
    loose = _loose(sources, independence, fixed, (*same, *across)) if across else loose
    lagged = tuple(_lagged_rows(sources, independence, loose)) if loose else ()
    return Design(
        sources=sources,
        graph=graph,
        pinned=fixed,
        stages={"same task": same, "across resolutions": across, "across time": lagged},
        elimination=eliminate(inner),
        independence=independence,
        n_tasks=n_tasks or {},
    )


def tasks_per_sequence(votes: Votes) -> dict[str, int]:
    """Tasks of each source per sequence, where that number is the same for all sequences."""
    numbers = {one: count_tasks(one, votes.lengths, votes.spans) for one in votes.resolutions}
    alike = {one: int(counts[0]) for one, counts in numbers.items() if counts.min() == counts.max()}
    return {info.name: alike[info.resolution] for info in votes.sources if info.resolution in alike}


def table_names(sources: Iterable[SourceInfo]) -> dict[str, str]:
    """Name of the parameters of every source: that of its `shares` group, or its own, whatever groups are called."""
    sources = tuple(sources)
    groups = {info.shares for info in sources}
    alone = {info.name: f"{info.name} (alone)" if info.name in groups else info.name for info in sources}
    return {info.name: info.shares or alone[info.name] for info in sources}


def crossed_edges(sources: tuple[SourceInfo, ...], graph: SourceGraph) -> list[tuple[str, str]]:
    """Edges between resolutions, as (finer source, coarser source)."""
    where = {info.name: info.resolution for info in sources}
    return [(a, b) if _rank(where[a]) < _rank(where[b]) else (b, a) for a, b in graph.edges if where[a] != where[b]]


def _levels(sources: tuple[SourceInfo, ...], sharing: Sharing | Mapping[str, Sharing]) -> dict[str, Sharing]:
    levels: dict[str, Sharing] = {
        info.name: sharing if isinstance(sharing, str) else sharing.get(info.name, "tied") for info in sources
    }
    where: dict[str, Resolution] = {}
    for info in sources:
        if info.shares is not None and where.setdefault(info.shares, info.resolution) != info.resolution:
            raise TaskError(
                f"sources that share parameters must vote at one resolution; the group {info.shares!r} has "
                f"{describe(where[info.shares])} and {describe(info.resolution)}."
            )
    return levels


def _rank(resolution: Resolution) -> tuple[int, int]:
    """Order of resolutions from fine to coarse."""
    if isinstance(resolution, Element):
        return (0, 1)
    if isinstance(resolution, Window):
        return (1, resolution.size)
    return (3, 0) if isinstance(resolution, Sequence) else (2, 0)


def _across_rows(sources: tuple[SourceInfo, ...], independence: Independence, loose: set[str]) -> Iterable[MomentRow]:
    levels = independence.levels
    for one, other in combinations(sources, 2):
        if one.resolution == other.resolution or not {one.name, other.name} & loose:
            continue
        fine, coarse = (one, other) if _rank(one.resolution) < _rank(other.resolution) else (other, one)
        row = inside(fine.name, coarse.name, by_position=levels[fine.name] == "task")
        placed = levels[coarse.name] != "task" or isinstance(coarse.resolution, Sequence)
        if placed and independence.valid(row):
            yield row


def _lagged_rows(sources: tuple[SourceInfo, ...], independence: Independence, loose: set[str]) -> Iterable[MomentRow]:
    levels = independence.levels
    for first, second in combinations_with_replacement(sources, 2):
        if first.resolution != second.resolution or not {first.name, second.name} & loose:
            continue
        if "task" in (levels[first.name], levels[second.name]) or isinstance(first.resolution, Sequence):
            continue
        rows = (pair(first.name, second.name, lag=lag) for lag in (SELF_LAGS if first == second else (1,)))
        yield from (row for row in rows if independence.valid(row))


def _loose(
    sources: tuple[SourceInfo, ...],
    independence: Independence,
    pinned: frozenset[str],
    rows: Iterable[MomentRow],
) -> set[str]:
    """Sources whose size the rows do not determine: their component has no odd cycle and nothing pinned."""
    keys = table_names(sources)
    place = {key: index for index, key in enumerate(dict.fromkeys(keys.values()))}
    own = {name: place[key] for name, key in keys.items()}
    ends = [[own[name] for name in row.sources] for row in rows if independence.valid(row)]
    left, right = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    settled = determined(left, right, np.isin(np.arange(len(place)), [own[name] for name in pinned]))
    return {info.name for info in sources if not settled[own[info.name]] and independence.levels[info.name] != "full"}


def _further_rows(design: Design) -> Iterable[MomentRow]:
    """Rows for correlations, self-dependence and full tables: votes together with those of proxies."""
    for name in design.elimination.order:
        parents = design.elimination.parents[name]
        if parents:
            yield from clique_rows(design, (*parents, name))
    for edge in design.graph.edges:
        if design.infos[edge[0]].resolution == design.infos[edge[1]].resolution:
            yield from clique_rows(design, edge)
    for name, lag in design.graph.temporal.items():
        for both in zip(design.repeats(name, lag), design.firsts(name), strict=True):
            yield from both
    for fine, coarse in crossed_edges(design.sources, design.graph):
        yield from crossed_rows(design, fine, coarse)
    for info in design.sources:
        if design.levels[info.name] == "full":
            yield from full_rows(design, info.name)


def clique_rows(design: Design, names: tuple[str, ...]) -> list[MomentRow]:
    """The votes of a clique on one task, in the order of the sources, with those of each proxy."""
    proxies = design.proxies(names, design.infos[names[0]].resolution)
    by_position = any(design.levels[name] == "task" for name in names)
    if not by_position:
        by_position = not _tied(design, proxies)
        proxies = _tied(design, proxies) or proxies
    slots = tuple(Slot(name) for name in design.graph.names if name in names)
    return [MomentRow(slots=(*slots, Slot(proxy)), by_position=by_position) for proxy in proxies]


def crossed_rows(design: Design, fine: str, coarse: str) -> list[MomentRow]:
    """A fine and a coarse vote with those of proxies for both tasks."""
    low = _tied(design, design.proxies((fine, coarse), design.infos[fine].resolution))
    high = _tied(design, design.proxies((fine, coarse), design.infos[coarse].resolution))
    pairs = [(a, b) for a in low for b in high if design.independence.apart(a, b)]
    return [MomentRow(slots=(Slot(fine), Slot(coarse), Slot(a), Slot(b)), relation="inside") for a, b in pairs]


def _tied(design: Design, names: tuple[str, ...]) -> tuple[str, ...]:
    """Sources with one table for all positions: the proxies of rows whose positions are not kept apart."""
    return tuple(name for name in names if design.levels[name] == "tied")


def full_rows(design: Design, name: str) -> list[MomentRow]:
    """All votes of a source on a sequence with all those of each proxy."""
    own = _whole(design, name)
    return [
        MomentRow(slots=(*own, *(Slot(proxy, slot.offset) for slot in own)))
        for proxy in design.proxies((name,), design.infos[name].resolution)
    ]


def full_pair_rows(design: Design, name: str) -> list[MomentRow]:
    """All votes of a full source with all those of each independent source of its resolution, full ones included."""
    own, rows = _whole(design, name), []
    for info in design.sources:
        other = info.name
        if info.resolution != design.infos[name].resolution or other in design.independence.tangled:
            continue
        if not design.independence.apart(name, other):
            continue
        both_full = design.levels[other] == "full"
        first, second = sorted((name, other), key=design.graph.names.index) if both_full else (name, other)
        rows.append(MomentRow(slots=tuple(Slot(source, slot.offset) for source in (first, second) for slot in own)))
    return rows


def _whole(design: Design, name: str) -> tuple[Slot, ...]:
    """The votes of a source on all tasks of a sequence."""
    size = design.n_tasks.get(name, 0)
    if not 1 <= size <= LARGEST_FULL:
        raise TaskError(
            f'sharing="full" needs sequences with the same number of tasks, at most {LARGEST_FULL}; source {name!r} '
            f'has {size or "varying numbers of"} tasks.\n  Use sharing="tied" or "task".'
        )
    return tuple(Slot(name, offset) for offset in range(size))
