"""What a fit is asked to do: the estimator with its options, and everything that was given or is to be learned.

In: the settings of a `LabelModel`, as users write them. Out: a `FitOptions` in which every name is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.em import EM
from dugong.fit.learned import Method
from dugong.fit.sgd.settings import SGD
from dugong.graph import Dependency, SourceGraph
from dugong.graph.design import Design, Sharing, make_design, tasks_per_sequence
from dugong.infer.choice import check_inference
from dugong.priors import Prior
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
# How a source graph is learned, by the word for it.
_METHODS: dict[str, Method] = {"learn": "residuals", "low-rank": "low-rank"}


def resolve_estimator(estimator: object) -> Estimator:
    """The settings that a name or an object stands for."""
    if isinstance(estimator, str) and estimator in _NAMES:
        return _NAMES[estimator]
    if isinstance(estimator, Centred | Paper | EM | SGD):
        return estimator
    known = ", ".join(repr(name) for name in _NAMES if name != "centered")
    raise GraphError(f"the estimator must be one of {known}, or an object of dugong.estimators; found {estimator!r}.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitOptions:
    """What was given, and how the rest is found.

    Attributes
    ----------
    prior : None where it is learned
    dependencies : those that were given; None where they are learned
    method : how the source graph is learned
    sharing, signs : as in `LabelModel`
    estimator : settings of the estimator
    accuracies : known tables by source
    inference : how exact answers about labels must be, while fitting and afterwards
    """

    prior: Prior | None = None
    dependencies: tuple[Dependency, ...] | None = None
    method: Method = "residuals"
    sharing: Sharing | Mapping[str, Sharing] = "tied"
    estimator: Estimator = field(default_factory=Centred)
    signs: str = "group"
    accuracies: Mapping[str, FloatArray] = field(default_factory=dict)
    inference: Inference = "auto"

    @classmethod
    def of(
        cls,
        *,
        prior: Prior | str,
        dependencies: Iterable[Dependency] | str,
        sharing: Sharing | Mapping[str, Sharing],
        estimator: object,
        signs: str,
        accuracies: Mapping[str, Any] | None,
        inference: Inference = "auto",
    ) -> FitOptions:
        """Resolve the settings of a label model."""
        check_inference(inference)
        if isinstance(prior, str) and prior != "learn":
            raise GraphError(f'prior must be "learn" or given as an object; found {prior!r}.')
        if isinstance(dependencies, str) and dependencies not in _METHODS:
            known = " or ".join(f'"{word}"' for word in _METHODS)
            raise GraphError(f"dependencies must be {known}, or given as a list; found {dependencies!r}.")
        return cls(
            prior=None if isinstance(prior, str) else prior,
            dependencies=None if isinstance(dependencies, str) else tuple(dependencies),
            method=_METHODS[dependencies] if isinstance(dependencies, str) else "residuals",
            sharing=sharing,
            estimator=resolve_estimator(estimator),
            signs=signs,
            accuracies={name: np.asarray(table, dtype=np.float64) for name, table in (accuracies or {}).items()},
            inference=inference,
        )

    def by_moments(self, votes: Votes) -> bool:
        """Whether closed forms find the tables: two classes, nothing to learn beside them."""
        return self.prior is not None and self.dependencies is not None and votes.n_classes == 2

    def design(self, votes: Votes) -> Design:
        """Which sources depend on which, and what has to be counted; learned dependencies are none before."""
        return make_design(
            votes.sources,
            SourceGraph.of(votes.source_names, self.dependencies or ()),
            sharing=self.sharing,
            pinned=self.accuracies,
            n_tasks=tasks_per_sequence(votes),
        )

    def check_learning(self) -> None:
        """Refuse settings that only closed forms know."""
        if isinstance(self.estimator, Paper | SGD) or self.sharing != "tied" or self.signs != "group":
            raise GraphError(
                'learning the prior or the dependencies, and more than two classes, need estimator "centred" or "em", '
                'sharing="tied" and signs="group".\n  Give a prior and dependencies to use other settings.'
            )
