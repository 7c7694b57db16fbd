"""What the votes can determine, as a value that prints, converts to plain data, and raises if something is lost.

Made by `identify` before anything is fitted. (METHOD section 5; paper, appendix "Identifiability".)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from dugong.exceptions import NotIdentifiableError
from dugong.graph.theory import ChainMinimum, GeneralMinimum

Stage = Literal["given", "same task", "across resolutions", "across time"]


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
class Problem:
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
    problems: tuple[Problem, ...]
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
            else f"not everything can be determined: {_counted(len(self.problems), 'problem', 'problems')}",
            f"- {_counted(len(self.unknowns), 'accuracy', 'accuracies')}, "
            f"{_counted(self.n_equations, 'equation', 'equations')}, rank {self.rank}, condition {self.condition:.3g}",
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


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


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
