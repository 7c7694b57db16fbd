"""What a fit is asked to do: the estimator with its options, and everything that was given or is to be learned.

In: the settings of a `LabelModel`, as users write them. Out: a `FitOptions` in which every name is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from dugong.codec import Numbers
from dugong.contract import typed
from dugong.exceptions import GraphError, PriorError
from dugong.fit.beliefs import AnyBelief, Belief, resolve_beliefs
from dugong.fit.em import EM
from dugong.fit.learned import Method
from dugong.fit.sgd.settings import SGD
from dugong.graph import Dependency, SourceGraph
from dugong.graph.design import Design, Sharing, make_design, tasks_per_sequence
from dugong.priors import Prior
from dugong.tasks import count_tasks
from dugong.types import FloatArray, Inference
from dugong.votes import Votes


@dataclass(frozen=True, slots=True)
class Centred:
    """The closed form that is right for lopsided sources (the default)."""


@dataclass(frozen=True, slots=True)
class Paper:
    """Algorithm 1 of the paper, to the letter: right for symmetric sources."""


Estimator = Centred | Paper | EM | SGD
_NAMES: dict[str, Estimator] = {
    "centred": Centred(),
    "centered": Centred(),
    "paper": Paper(),
    "em": EM(),
    "sgd": SGD(),
}
_MOST_COARSE = 64
# How a source graph is learned, by the word for it.
_METHODS: dict[str, Method] = {"learn": "residuals", "low-rank": "low-rank"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitOptions:
    """What was given, and how the rest is found.

    Attributes
    ----------
    prior : None where it is learned
    dependencies : those that were given; None where they are learned
    method : how the source graph is learned
    sharing, signs : as in `LabelModel`; `sharing` is "tied" where tables are by group
    grouped : whether every group of sequences has tables of its own
    estimator : settings of the estimator
    accuracies : known tables by source
    beliefs : what is believed about sources, as it was given
    inference : how exact answers about labels must be, while fitting and afterwards
    thresholds : from which score on soft sources are read as votes, where it is not one half
    """

    prior: Prior | None = None
    dependencies: tuple[Dependency, ...] | None = None
    method: Method = "residuals"
    sharing: Sharing | Mapping[str, Sharing] = "tied"
    grouped: bool = False
    estimator: Estimator = field(default_factory=Centred)
    signs: str = "group"
    accuracies: Mapping[str, FloatArray] = field(default_factory=dict)
    beliefs: Mapping[str, AnyBelief] = field(default_factory=dict)
    inference: Inference = "auto"
    thresholds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    @typed(GraphError)
    def of(
        cls,
        *,
        seed: Annotated[int, Numbers(low=0)],  # noqa: ARG003  checked with all others, though it decides nothing here
        n_threads: Annotated[int, Numbers(low=1)] | None,  # noqa: ARG003  as above
        prior: Prior | str,
        dependencies: Iterable[Dependency] | str,
        sharing: Sharing | Literal["group"] | Mapping[str, Sharing],
        estimator: object,
        signs: str,
        accuracies: Mapping[str, FloatArray] | None,
        beliefs: Mapping[str, Belief] | None,
        inference: Inference,
    ) -> FitOptions:
        """Resolve the settings of a label model."""
        if signs not in ("group", "positive"):
            raise GraphError(f'signs must be "group" or "positive"; found {signs!r}.')
        if isinstance(prior, str) and prior != "learn":
            raise GraphError(f'prior must be "learn" or given as an object; found {prior!r}.')
        if isinstance(dependencies, str) and dependencies not in _METHODS:
            known = " or ".join(f'"{word}"' for word in _METHODS)
            raise GraphError(f"dependencies must be {known}, or given as a list; found {dependencies!r}.")
        chosen = _NAMES.get(estimator) if isinstance(estimator, str) else estimator
        if not isinstance(chosen, Centred | Paper | EM | SGD):
            known = ", ".join(repr(name) for name in _NAMES if name != "centered")
            raise GraphError(
                f"the estimator must be one of {known}, or an object of dugong.estimators; found {estimator!r}."
            )
        return cls(
            prior=None if isinstance(prior, str) else prior,
            dependencies=None if isinstance(dependencies, str) else tuple(dependencies),
            method=_METHODS[dependencies] if isinstance(dependencies, str) else "residuals",
            sharing="tied" if sharing == "group" else sharing,
            grouped=sharing == "group",
            estimator=chosen,
            signs=signs,
            accuracies={name: np.asarray(table, dtype=np.float64) for name, table in (accuracies or {}).items()},
            beliefs=dict(beliefs or {}),
            inference=inference,
        )

    def believed(self, votes: Votes) -> dict[str, AnyBelief]:
        """What is believed about every source that there is a belief about."""
        if not self.beliefs and self.signs == "group":
            return {}
        return resolve_beliefs(self.beliefs, votes.sources, self.signs, self.accuracies)

    def by_moments(self, votes: Votes) -> bool:
        """Whether closed forms find the tables: two classes, nothing to learn beside them."""
        return self.prior is not None and self.dependencies is not None and votes.n_classes == 2

    def steps(self, otherwise: EM) -> EM:
        """How many exact E/M steps there are, and how; `otherwise` where nobody said it."""
        return self.estimator if isinstance(self.estimator, EM) else otherwise

    def design(self, votes: Votes) -> Design:
        """Which sources depend on which, and what has to be counted; learned dependencies are none before."""
        return make_design(
            votes.sources,
            SourceGraph.of(votes.source_names, self.dependencies or ()),
            sharing=self.sharing,
            pinned=self.accuracies,
            n_tasks={} if self.sharing == "tied" else tasks_per_sequence(votes),
        )

    def check(self, votes: Votes) -> None:
        """Refuse a prior about other classes than those of the votes, and names of sources that do not vote."""
        n_classes = votes.n_classes
        for name in (*self.accuracies, *(self.sharing if isinstance(self.sharing, Mapping) else ())):
            votes.index(name)
        if self.prior is not None and self.prior.n_classes not in (None, n_classes):
            raise PriorError(
                f"the prior must be about the classes of the votes, {n_classes}; it is about {self.prior.n_classes}."
            )
        n_coarse = len(votes.resolutions) - 1
        if self.by_moments(votes) and n_coarse > _MOST_COARSE:
            raise GraphError(
                f"closed forms compare every two resolutions: at most {_MOST_COARSE} beside the elements; found "
                f'{n_coarse}.\n  Learn the prior (prior="learn"), or choose sources with votes.select(sources=...).'
            )

    def check_learning(self) -> None:
        """Refuse settings that only closed forms know."""
        if isinstance(self.estimator, Paper | SGD) or self.sharing != "tied":
            raise GraphError(
                'learning the prior or the dependencies, and more than two classes, need estimator "centred" or "em", '
                'and not sharing="full".\n  Give a prior and dependencies to use other settings.'
            )

    def untied(self, votes: Votes) -> dict[str, int]:
        """Positions of the sources that get tables by position after a fit with one table for all of them.

        Closed forms do not find these: where anything is learned, and where sources repeat themselves.
        """
        levels = self.design(votes).levels
        names = [name for name, level in levels.items() if level == "task"]
        lags = SourceGraph.of(votes.source_names, self.dependencies or ()).temporal
        late = isinstance(self.estimator, Centred | EM) and "full" not in levels.values()
        if not late or (self.by_moments(votes) and not any(name in lags for name in names)):
            return {}
        numbers = {one: count_tasks(one, votes.lengths, votes.spans) for one in votes.resolutions}
        where = {info.name: info.resolution for info in votes.sources}
        return {name: max(int(numbers[where[name]].max(initial=0)), 1) for name in names}
