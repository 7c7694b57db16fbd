"""Before fitting: say which accuracies and dependencies the votes can determine at all.

In: the design, a prior, the shapes of the sequences. Out: an `Identifiability`, which prints, converts to plain data,
and raises if something is lost. The size of an accuracy is determined if its component of the graph of rows (those
with Cov(y, y') != 0) has an odd cycle or something given; one sign per component stays free. A dependency needs further
sources that are independent of it. Advice is found by trying the changes out. (METHOD section 5; paper, appendix
"Identifiability".)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dugong.exceptions import NotIdentifiableError
from dugong.graph import SourceGraph, TemporalDependency
from dugong.graph.design import Design, full_pair_rows, make_design
from dugong.graph.rows import RowGraph, Stage, unwitnessed
from dugong.graph.theory import (
    ChainMinimum,
    GeneralMinimum,
    minimum_chain_sources,
    minimum_sources,
)
from dugong.priors import Prior
from dugong.sums import Laws, Moments, Shapes
from dugong.tasks import Window
from dugong.texts import counted
from dugong.votes import SourceInfo

_NEW = "(new)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One accuracy to be found.

    Attributes
    ----------
    name : source, or group of sources that share their parameters
    position : place in the sequence with ``sharing="task"``, else None
    partners : names whose votes are independent of this one, given the labels, and tied to it by the prior
    stage : the kind of rows that determines it; None if nothing does
    """

    name: str
    position: int | None
    partners: tuple[str, ...]
    stage: Stage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """Something that the votes cannot determine, the reason, and the smallest changes that help."""

    kind: Literal["accuracy", "dependency", "pattern"]
    sources: tuple[str, ...]
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.reason}\n  {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability:
    """Whether every parameter can be determined, and from what.

    Attributes
    ----------
    unknowns : every accuracy to be found
    n_equations, rank, condition : of the system M l = q (logarithms of the moment equations)
        The condition number is infinite if the rank is below the number of unknowns that are not given.
    components : groups of names joined by equations
        Each has one free sign, chosen by the sign rule, unless one of its accuracies is given.
    problems : what cannot be determined
    minimum : sources that suffice by the paper's general formula
    chain_minimum : likewise for its HMM-style formula
    """

    unknowns: tuple[Unknown, ...]
    n_equations: int
    rank: int
    condition: float
    components: tuple[tuple[str, ...], ...]
    problems: tuple[Undetermined, ...]
    minimum: GeneralMinimum | None = None
    chain_minimum: ChainMinimum | None = None

    @property
    def identifiable(self) -> bool:
        """Whether everything can be determined (up to the sign of each component)."""
        return not self.problems

    @property
    def lonely(self) -> tuple[str, ...]:
        """Names without any partner: no equation mentions them."""
        return tuple(dict.fromkeys(u.name for u in self.unknowns if not u.partners and u.stage != "given"))

    @property
    def inseparable(self) -> tuple[tuple[str, ...], ...]:
        """Groups of sources that cannot be told apart."""
        return tuple(problem.sources for problem in self.problems if len(problem.sources) > 1)

    def check(self) -> Identifiability:
        """Raise a `NotIdentifiableError` that names the sources and what to change, unless all is well."""
        if self.problems:
            raise NotIdentifiableError("\n".join(map(str, self.problems)))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain data: lists, numbers and strings."""
        return asdict(self) | {
            "identifiable": self.identifiable,
            "condition": self.condition if self.condition < float("inf") else None,
            "lonely": list(self.lonely),
            "inseparable": [list(names) for names in self.inseparable],
        }

    def __str__(self) -> str:
        lines = [
            "all accuracies and dependencies can be determined"
            if self.identifiable
            else f"not everything can be determined: {counted(len(self.problems), 'problem', 'problems')}",
            f"- {counted(len(self.unknowns), 'accuracy', 'accuracies')}, "
            f"{counted(self.n_equations, 'equation', 'equations')}, rank {self.rank}, condition {self.condition:.3g}",
            *_stages(self.unknowns),
            *_signs(self.components, {u.name for u in self.unknowns if u.stage == "given"}),
            *_minima(self.minimum, self.chain_minimum),
            *(f"- {problem}" for problem in self.problems),
        ]
        return "\n".join(lines)


def listed(names: tuple[str, ...] | list[str], limit: int = 6) -> str:
    """'a', 'b' and 'c'; long lists are cut."""
    shown = [repr(name) for name in names[:limit]]
    if len(names) > limit:
        return ", ".join(shown) + f" and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _stages(unknowns: tuple[Unknown, ...]) -> list[str]:
    words = {
        "given": "given, not estimated",
        "across resolutions": "determined only through other resolutions and the prior",
        "across time": "determined only through time, assuming that errors do not persist",
    }
    lines = []
    for stage, text in words.items():
        names = tuple(dict.fromkeys(u.name for u in unknowns if u.stage == stage))
        if names:
            lines.append(f"- {text}: {listed(names)}")
    return lines


def _signs(components: tuple[tuple[str, ...], ...], given: set[str]) -> list[str]:
    free = [names for names in components if not given & set(names)]
    if components and not free:
        return ["- signs follow from the given accuracies"]
    return [f"- one sign is free, chosen by the sign rule, among {listed(names)}" for names in free]


def _minima(general: GeneralMinimum | None, chain: ChainMinimum | None) -> list[str]:
    if general is None or chain is None:
        return []
    cited = "no number" if chain.as_cited is None else chain.as_cited
    return [
        f"- sources that suffice by the paper's formulas: {general.free} if labels are free at three resolutions, "
        f"{general.linked} if they follow from the elements; for a chain {chain.as_printed} as printed "
        f"(k windows), {cited} as in the theorem cited (2k + 1 windows)"
    ]


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
    rank, condition = found.spectrum()
    return Identifiability(
        unknowns=_unknowns(found),
        n_equations=len(found.edges),
        rank=rank,
        condition=condition,
        components=found.components(),
        problems=tuple(problems),
        minimum=minimum_sources(length, window, n_classes=n_classes) if window <= length and length else None,
        chain_minimum=minimum_chain_sources(length // group, group, n_classes=n_classes) if group <= length else None,
    )


def check_identifiable(
    design: Design, prior: Prior, moments: Moments, class_names: tuple[str, ...] | None = None
) -> None:
    """Raise a `NotIdentifiableError` with advice unless everything can be determined; see `identify`."""
    found = RowGraph.of(design, Laws(prior, moments.shapes, class_names), moments.shapes, moments)
    # The whole report costs more than the fit of small data: it is made where there is something to say.
    graph, full = design.graph, "full" in design.levels.values()
    lost = None in found.stage or ((graph.edges or graph.temporal) and any(unwitnessed(design)))
    if lost or (full and any(_pattern_problems(found))):
        identify(design, prior, moments.shapes, moments=moments, class_names=class_names).check()


def _unknowns(found: RowGraph) -> tuple[Unknown, ...]:
    """Every unknown with its partners."""
    each = zip(found.nodes, found.partners(), found.stage, strict=True)
    return tuple(
        Unknown(name=key, position=place if found.placed(key) else None, partners=partners, stage=stage)
        for (key, place), partners, stage in each
    )


def _accuracy_problems(found: RowGraph) -> Iterable[Undetermined]:
    lost = found.lost()
    covered = {name for kind, names in unwitnessed(found.design) if kind != "crossed" for name in names}
    for group in found.groups():
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
        yield Undetermined(kind="accuracy", sources=names, reason=reason, advice=_advice(found, names))


def _why_lonely(found: RowGraph, name: str) -> str:
    valid = [
        row
        for rows in found.design.stages.values()
        for row in rows
        if name in [found.design.keys[source] for source in row.sources] and found.design.independence.valid(row)
    ]
    if any(row.relation == "same" and row.span == 0 for row in valid):
        return "the prior leaves no doubt about its labels"
    if valid:
        return "no other source votes on its tasks, and the prior ties their labels to no others"
    return "no other vote is independent of it given the labels"


def _dependency_problems(found: RowGraph) -> Iterable[Undetermined]:
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
        advice = _advice(found, names)
        if kind == "temporal" and found.design.levels[names[0]] == "tied":
            advice += ' With three sources or more, estimator="em" needs none: it reads whole sequences.'
        yield Undetermined(kind="dependency", sources=names, reason=reason, advice=advice)


def _pattern_problems(found: RowGraph) -> Iterable[Undetermined]:
    design = found.design
    for info in design.sources:
        if design.levels[info.name] != "full" or len(full_pair_rows(design, info.name)) >= 2:
            continue
        yield Undetermined(
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
    members = {info.name for info in design.sources if design.keys[info.name] in names} | set(names)
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
