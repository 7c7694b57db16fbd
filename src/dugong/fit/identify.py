"""Before fitting: say which accuracies and dependencies the votes can determine at all.

In: the design, a prior, the shapes of the sequences. Out: an `Identifiability`. The size of an accuracy is determined
if its component of the graph of rows (those with Cov(y, y') != 0) has an odd cycle or something given; one sign per
component stays free. A dependency needs further sources that are independent of it. Advice is found by trying the
changes out. (METHOD section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dugong.fit.design import Design, make_design, valid_pair
from dugong.fit.identifiability import Identifiability, Problem, Unknown, listed
from dugong.fit.laws import Laws
from dugong.fit.paper_full import full_pair_rows
from dugong.fit.row_graph import RowGraph, connected, unwitnessed
from dugong.graph import SourceGraph, TemporalDependency
from dugong.graph.theory import minimum_chain_sources, minimum_sources
from dugong.priors import Prior
from dugong.sums import Moments, Shapes
from dugong.tasks import Window
from dugong.votes import SourceInfo

__all__ = ["Identifiability", "Problem", "Unknown", "identify"]

_NEW = "(new)"


def identify(
    design: Design,
    prior: Prior | None,
    shapes: Shapes,
    *,
    moments: Moments | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Identifiability:
    """Find out what the votes of a design can determine under a prior.

    Parameters
    ----------
    prior : Prior or None
        None: any two labels are taken to be correlated.
    shapes : lengths and spans of the sequences
    moments : counts of the design's plan, if there are any yet
        With them, sources that never vote or always say the same are left out, and rows without votes as well.
    """
    laws = None if prior is None else Laws(prior, shapes, class_names)
    found = RowGraph.of(design, laws, shapes, moments)
    problems = [*_accuracy_problems(found), *_dependency_problems(found), *_pattern_problems(found)]
    n_classes = 2 if prior is None else prior.n_classes
    length = int(shapes.lengths.max(initial=0))
    windows = [i.resolution.size for i in design.sources if isinstance(i.resolution, Window)]
    window, group = min(windows, default=length), min(windows, default=1)
    return Identifiability(
        unknowns=found.unknowns(),
        n_equations=len(found.edges),
        rank=found.rank,
        condition=found.condition,
        components=found.components(),
        problems=tuple(problems),
        minimum=minimum_sources(length, window, n_classes=n_classes) if window <= length and length else None,
        chain_minimum=minimum_chain_sources(length // group, group, n_classes=n_classes) if group <= length else None,
    )


def _accuracy_problems(found: RowGraph) -> Iterable[Problem]:
    lost = set(found.lost())
    covered = {name for kind, names in unwitnessed(found.design) if kind != "crossed" for name in names}
    for group in connected(found.nodes, found.edges):
        if not lost & set(group):
            continue
        names = tuple(dict.fromkeys(key for key, _ in group))
        lonely = len(names) == 1
        # A dependency that nothing can measure is one problem, not one more for each of its sources.
        if lonely and names[0] in covered:
            continue
        if lonely:
            reason = f"cannot find how accurate {names[0]!r} is: {_why_lonely(found, names[0])}."
        elif len(names) == 2:
            reason = f"cannot tell {listed(names)} apart: no third vote is independent of both given the labels."
        else:
            reason = (
                f"cannot tell {listed(names)} apart: no three of them are independent of each other given the labels."
            )
        yield Problem(kind="accuracy", sources=names, reason=reason, advice=_advice(found, names))


def _why_lonely(found: RowGraph, name: str) -> str:
    valid = [
        row
        for row in (*found.design.same, *found.design.across, *found.design.lagged)
        if name in map(found.design.key, row.sources)
        and valid_pair(found.design.independence, row, found.design.levels)
    ]
    if any(row.relation == "same" and row.span == 0 for row in valid):
        return "the prior leaves no doubt about its labels"
    if valid:
        return "no other source votes on its tasks, and the prior ties their labels to no others"
    return "no other vote is independent of it given the labels"


def _dependency_problems(found: RowGraph) -> Iterable[Problem]:
    for kind, names in dict.fromkeys(unwitnessed(found.design)):
        if kind == "clique" and len(names) == 2:
            reason = f"cannot tell {listed(names)} apart: no third vote is independent of both given the labels."
        elif kind == "clique":
            reason = (
                f"cannot measure how {listed(names)} depend on each other: no further vote on their tasks is "
                "independent of all of them given the labels."
            )
        elif kind == "temporal":
            reason = (
                f"cannot measure how {names[0]!r} depends on itself: no other source with one table for all positions "
                "votes on the same tasks independently of it."
            )
        else:
            reason = (
                f"cannot measure how {listed(names)} depend on each other: each resolution needs a further source "
                "that is independent of both."
            )
        yield Problem(kind="dependency", sources=names, reason=reason, advice=_advice(found, names))


def _pattern_problems(found: RowGraph) -> Iterable[Problem]:
    design = found.design
    for info in design.sources:
        if design.levels[info.name] != "full" or len(full_pair_rows(design, info.name)) >= 2:
            continue
        yield Problem(
            kind="pattern",
            sources=(info.name,),
            reason=f"cannot find the full table of {info.name!r}: fewer than two further sources vote on its tasks "
            "independently of it given the labels.",
            advice='Use sharing="tied" or "task" for it, or add a source.',
        )


# --- advice: try the small changes out -------------------------------------------------------------------------------


def _advice(found: RowGraph, names: tuple[str, ...]) -> str:
    before = found.deficiency()
    enough, helpful = [], []
    for text, design in _changes(found.design, names):
        after = RowGraph.of(design, found.laws, found.shapes, found.moments)
        if _solved(after, names):
            enough.append(text)
        elif after.deficiency() < before:
            helpful.append(text)
    enough = [text for text in enough if text.replace("two sources", "a source") not in {*enough} - {text}]
    chosen = enough or helpful or ["add two sources that are independent of the others", "give the accuracies"]
    sentence = chosen[0] if len(chosen) == 1 else ", ".join(chosen[:-1]) + f", or {chosen[-1]}"
    more = "" if enough or not helpful else " One of these alone is not enough."
    return f"{sentence[0].upper()}{sentence[1:]}.{more}"


def _solved(found: RowGraph, names: tuple[str, ...]) -> bool:
    """Whether nothing about these sources is missing any more."""
    lost = {key for key, _ in found.lost()}
    return not lost & set(names) and not any(set(others) & set(names) for _, others in unwitnessed(found.design))


def _changes(design: Design, names: tuple[str, ...]) -> Iterable[tuple[str, Design]]:
    members = {info.name for info in design.sources if design.key(info.name) in names} | set(names)
    edges = [edge for edge in design.graph.edges if set(edge) <= members] or [
        edge for edge in design.graph.edges if set(edge) & members
    ]
    for edge in edges[:3]:
        between = "them" if members == set(edge) else listed(edge)
        yield f"remove the dependency between {between}", _changed(design, without=edge)
    for name in names:
        if name in design.graph.temporal:
            yield f"remove temporal({name!r})", _changed(design, without=(name,))
    inside = [info for info in design.sources if info.name in members]
    single = len({info.resolution for info in design.sources}) == 1
    for resolution in dict.fromkeys(info.resolution for info in inside):
        extra = [SourceInfo(name=f"{_NEW} {number}", resolution=resolution) for number in (1, 2)]
        where = "" if single else f" at {resolution.name} resolution"
        yield f"add a source{where}", _changed(design, extra=extra[:1])
        if len(inside) == 1:
            yield f"add two sources{where}", _changed(design, extra=extra)
    yield f"give {inside[0].name!r} an accuracy", _changed(design, pinned=inside[0].name)


def _changed(
    design: Design,
    *,
    without: tuple[str, ...] = (),
    extra: Sequence[SourceInfo] = (),
    pinned: str | None = None,
) -> Design:
    sources = (*design.sources, *extra)
    kept = [edge for edge in design.graph.edges if edge != without]
    lags = [TemporalDependency(n, lag) for n, lag in design.graph.temporal.items() if (n,) != without]
    return make_design(
        sources,
        SourceGraph.of([info.name for info in sources], [*kept, *lags]),
        sharing=design.levels,
        pinned=design.pinned | ({pinned} if pinned else set()),
        n_tasks=design.n_tasks,
    )
