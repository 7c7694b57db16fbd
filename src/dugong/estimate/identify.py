"""Before fitting: say which accuracies and dependencies the votes can determine at all.

In: the design, a prior, the shapes of the sequences. Out: an `Identifiability`. The size of an accuracy is determined
if its component of the graph of rows (those with Cov(y, y') != 0) has an odd cycle or something given; one sign per
component stays free. A dependency needs further sources that are independent of it. Advice is found by trying the
changes out. (METHOD section 5.)
"""

from __future__ import annotations

from collections.abc import Iterable

from dugong.estimate.design import Design, make_design, valid_pair
from dugong.estimate.identifiability import Identifiability, Problem, Unknown, listed
from dugong.estimate.laws import Laws
from dugong.estimate.paper_full import full_pair_rows
from dugong.estimate.row_graph import RowGraph, connected, unwitnessed
from dugong.graph import SourceGraph, TemporalDependency
from dugong.graph.theory import minimum_chain_sources, minimum_sources
from dugong.moments import Moments, Shapes
from dugong.priors import Prior
from dugong.tasks import Window
from dugong.votes import SourceInfo

__all__ = ["Identifiability", "Problem", "Unknown", "identify"]

_NEW = "(a new source)"


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
    window = min((i.resolution.size for i in design.sources if isinstance(i.resolution, Window)), default=length)
    enough = 1 <= window <= length
    return Identifiability(
        unknowns=found.unknowns(),
        n_equations=len(found.edges),
        rank=found.rank,
        condition=found.condition,
        components=found.components(),
        problems=tuple(problems),
        minimum=minimum_sources(length, window, n_classes=n_classes) if enough else None,
        chain_minimum=minimum_chain_sources(max(length // window, 1), window, n_classes=n_classes) if enough else None,
    )


def _accuracy_problems(found: RowGraph) -> Iterable[Problem]:
    lost = set(found.lost())
    covered = {frozenset(names) for kind, names in unwitnessed(found.design) if kind == "clique"}
    for group in connected(found.nodes, found.edges):
        if not lost & set(group):
            continue
        names = tuple(dict.fromkeys(key for key, _ in group))
        lonely = len(names) == 1
        # Two sources that depend on each other and on nothing else are one problem, not three.
        if lonely and any(names[0] in clique for clique in covered):
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
    rows = [row for row in (*found.design.same, *found.design.across, *found.design.lagged) if name in row.sources]
    valid = [row for row in rows if valid_pair(found.design.independence, row, found.design.levels)]
    if valid:
        return "the prior leaves no doubt about its labels, or ties them to no other label"
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
    tried = [(text, _deficiency_after(found, changed)) for text, changed in _changes(found.design, names)]
    enough = [text for text, after in tried if after < before and after <= _elsewhere(found, names)]
    helpful = enough or [text for text, after in tried if after < before]
    if not helpful:
        return "Add two sources that are independent of the others, or give the accuracies."
    sentence = helpful[0] if len(helpful) == 1 else ", ".join(helpful[:-1]) + f", or {helpful[-1]}"
    more = "" if enough else " One of these alone is not enough."
    return f"{sentence[0].upper()}{sentence[1:]}.{more}"


def _elsewhere(found: RowGraph, names: tuple[str, ...]) -> int:
    """What is missing apart from the given names."""
    lost = sum(1 for key, _ in found.lost() if key not in names)
    return lost + sum(1 for _, others in unwitnessed(found.design) if not set(others) & set(names))


def _deficiency_after(found: RowGraph, design: Design) -> int:
    return RowGraph.of(design, found.laws, found.shapes, found.moments).deficiency()


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
    first = next(info for info in design.sources if info.name in members)
    others = {info.resolution.name for info in design.sources}
    where = f" at {first.resolution.name} resolution" if len(others) > 1 else ""
    yield f"add a source{where}", _changed(design, extra=SourceInfo(name=_NEW, resolution=first.resolution))
    yield f"give {first.name!r} an accuracy", _changed(design, pinned=first.name)


def _changed(
    design: Design,
    *,
    without: tuple[str, ...] = (),
    extra: SourceInfo | None = None,
    pinned: str | None = None,
) -> Design:
    sources = design.sources if extra is None else (*design.sources, extra)
    kept = [edge for edge in design.graph.edges if edge != without]
    lags = [TemporalDependency(n, lag) for n, lag in design.graph.temporal.items() if (n,) != without]
    return make_design(
        sources,
        SourceGraph.of([info.name for info in sources], [*kept, *lags]),
        sharing=design.levels,
        pinned=design.pinned | ({pinned} if pinned else set()),
        n_tasks=design.n_tasks,
    )
