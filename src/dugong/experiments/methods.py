"""How training labels are made: the paper's baselines, its method, and the method with one part changed.

In: a `TaskCase` (votes of the train part, gold labels of the dev part). Out: a fitted model with ``predict_proba``. A
method is a plain value, so that it can be printed, hashed and compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from dugong.baselines import DataProgramming, MajorityVote
from dugong.exceptions import TaskError
from dugong.experiments.case import TaskCase
from dugong.graph import Dependency
from dugong.graph.design import Sharing
from dugong.model import LabelModel
from dugong.priors import Prior, Uniform, from_labels
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray
from dugong.votes import Votes

Kind = Literal["supervised", "majority", "programming", "dugong"]
Estimator = Literal["centred", "sgd"]

# Tables over label patterns, as the paper's priors are, up to this length; a Markov chain for longer sequences.
_LONGEST_PATTERN = 6


class MethodLabels(Protocol):
    """What all label models have in common."""

    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | votes)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to supervise the end model.

    Attributes
    ----------
    name : str
        As in the tables.
    kind : str
        "supervised" trains on the gold labels of the dev part and has no label model.
    prior : {"user", "dev", "uniform"}
        For "dugong": the recipe's own, counted in the dev part, or every pattern alike.
    sharing : {"tied", "task"}
        "task": one table per position for sources on elements, and no self-dependence, which needs tables that
        positions share.
    dependencies : bool
        Whether the dependencies of the recipe are modelled.
    estimator : {"centred", "sgd"}
    """

    name: str
    kind: Kind
    prior: Literal["user", "dev", "uniform"] = "user"
    sharing: Literal["tied", "task"] = "tied"
    dependencies: bool = True
    estimator: Estimator = "centred"


_DUGONG = Method(name="Dugong", kind="dugong")
TABLE1 = (
    Method(name="TS", kind="supervised"),
    Method(name="MV", kind="majority"),
    Method(name="DP", kind="programming"),
    _DUGONG,
)
ABLATIONS = (
    _DUGONG,
    replace(_DUGONG, name="without tying", sharing="task"),
    replace(_DUGONG, name="without dependencies", dependencies=False),
)
PRIORS = (
    replace(_DUGONG, name="uniform prior", prior="uniform"),
    replace(_DUGONG, name="dev prior", prior="dev"),
    replace(_DUGONG, name="user prior"),
)


def with_estimator(methods: tuple[Method, ...], estimator: Estimator) -> tuple[Method, ...]:
    """The same methods, estimated in another way where there is a choice."""
    return tuple(replace(one, estimator=estimator) if one.kind == "dugong" else one for one in methods)


def fit_labels(method: Method, case: TaskCase, seed: int) -> MethodLabels | None:
    """Fit the label model of a method on the votes of the train part; None where there is none."""
    if method.kind == "supervised":
        return None
    if method.kind == "majority":
        return MajorityVote().fit(case.votes("train"))
    if method.kind == "programming":
        return DataProgramming(seed=seed).fit(case.votes("train"))
    model = LabelModel(
        prior=_prior(method, case),
        dependencies=_dependencies(method, case),
        sharing="tied" if method.sharing == "tied" else _by_position(case.votes("train")),
        estimator=method.estimator,
        seed=seed,
    )
    return model.fit(case.votes("train"))


def _dependencies(method: Method, case: TaskCase) -> tuple[Dependency, ...]:
    """What is modelled: how a source repeats itself is measured with tables that positions share, or not at all."""
    if not method.dependencies:
        return ()
    given = case.recipe.dependencies
    return given if method.sharing == "tied" else tuple(one for one in given if isinstance(one, tuple))


def _by_position(votes: Votes) -> dict[str, Sharing]:
    """A table for every position of sources on elements; sequences must be of one length for that."""
    shortest, longest = int(votes.lengths.min()), int(votes.lengths.max())
    if shortest < longest:
        raise TaskError(f"tables by position need sequences of one length; found {shortest} to {longest} elements.")
    return {info.name: "task" if isinstance(info.resolution, Element) else "tied" for info in votes.sources}


def _prior(method: Method, case: TaskCase) -> Prior:
    gold = case.gold_sequences("dev")
    if method.prior == "uniform":
        return Uniform()
    if method.prior == "user":
        return case.recipe.user_prior(gold)
    lengths = {len(labels) for labels in gold} | set(case.votes("train").lengths.tolist())
    if len(lengths) == 1 and max(lengths) <= _LONGEST_PATTERN:
        return from_labels(gold, kind="patterns", length=lengths.pop(), min_count=1)
    return from_labels(gold)
