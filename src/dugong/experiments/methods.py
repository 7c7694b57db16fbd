"""How training labels are made: the paper's baselines, its method, and the method with one part changed.

In: a `TaskCase` (votes of the train part, gold labels of the dev part). Out: a fitted model with ``predict_proba``. A
method is a plain value, so that it can be printed, hashed and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from dugong.baselines import DataProgramming, HiddenMarkov, MajorityVote
from dugong.exceptions import TaskError
from dugong.experiments.recipe import TaskCase
from dugong.graph.design import Sharing
from dugong.model import LabelModel
from dugong.priors import Prior, Uniform, from_labels
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes

Kind = Literal["supervised", "majority", "programming", "hmm", "dugong", "defaults", "gold"]
Estimator = Literal["centred", "paper", "sgd"]

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
    name : as in the tables
    kind : str
        "supervised" trains on the gold labels of the dev part and has no label model, "gold" on those of the train
        part: no labels can do better. "defaults" is ``LabelModel()``: prior and dependencies are learned.
    prior : {"user", "dev", "uniform"}
        For "dugong": the recipe's own, counted in the dev part, or every pattern alike.
    sharing : {"tied", "task"}
        "task": one table per position for sources on elements.
    dependencies : {"all", "none"}
        Which dependencies of the recipe are modelled.
    estimator : {"centred", "paper", "sgd"}
    """

    name: str
    kind: Kind
    prior: Literal["user", "dev", "uniform"] = "user"
    sharing: Literal["tied", "task"] = "tied"
    dependencies: Literal["all", "none"] = "all"
    estimator: Estimator = "centred"


DUGONG = Method(name="Dugong", kind="dugong")
PROGRAMMING = Method(name="DP", kind="programming")
TABLE1 = (
    Method(name="TS", kind="supervised"),
    Method(name="MV", kind="majority"),
    PROGRAMMING,
    Method(name="HMM", kind="hmm"),
    replace(DUGONG, name="Algorithm 1", estimator="paper"),
    DUGONG,
    Method(name="defaults", kind="defaults"),
    Method(name="gold", kind="gold"),
)
ABLATIONS = (
    DUGONG,
    replace(DUGONG, name="without tying", sharing="task"),
    replace(DUGONG, name="without dependencies", dependencies="none"),
)
PRIORS = (
    replace(DUGONG, name="uniform prior", prior="uniform"),
    replace(DUGONG, name="dev prior", prior="dev"),
    replace(DUGONG, name="user prior"),
)


def with_estimator(methods: tuple[Method, ...], estimator: Estimator) -> tuple[Method, ...]:
    """The same methods, estimated in another way where none is named."""
    free = (one.kind == "dugong" and one.estimator == "centred" for one in methods)
    return tuple(
        replace(one, estimator=estimator) if is_free else one for one, is_free in zip(methods, free, strict=True)
    )


def fit_labels(method: Method, case: TaskCase, seed: int) -> MethodLabels | None:
    """Fit the label model of a method on the votes of the train part; None where there is none."""
    if method.kind in ("supervised", "gold"):
        return None
    models: dict[str, Callable[[], Any]] = {
        "majority": MajorityVote,
        "programming": lambda: DataProgramming(seed=seed),
        "hmm": lambda: HiddenMarkov(seed=seed),
        "defaults": lambda: LabelModel(seed=seed),
        "dugong": lambda: _dugong(method, case, seed),
    }
    model: MethodLabels = models[method.kind]().fit(case.votes("train"))
    return model


def _dugong(method: Method, case: TaskCase, seed: int) -> LabelModel:
    return LabelModel(
        prior=_prior(method, case),
        dependencies=case.recipe.dependencies if method.dependencies == "all" else (),
        sharing="tied" if method.sharing == "tied" else _by_position(case.votes("train")),
        estimator=method.estimator,
        seed=seed,
    )


def certain(gold: Int8Array) -> FloatArray:
    """Gold labels as probabilities, (n, 2); even odds where they are unknown."""
    positive = (1 + gold) / 2
    return np.column_stack([1 - positive, positive])


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
