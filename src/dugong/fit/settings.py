"""Which estimator, and its options: small values that `LabelModel(estimator=...)` takes by name or as objects."""

from __future__ import annotations

from dataclasses import dataclass

from dugong.exceptions import GraphError
from dugong.fit.em import EM
from dugong.fit.sgd.settings import SGD


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


def resolve_estimator(estimator: object) -> Estimator:
    """The settings that a name or an object stands for."""
    if isinstance(estimator, str) and estimator in _NAMES:
        return _NAMES[estimator]
    if isinstance(estimator, Centred | Paper | EM | SGD):
        return estimator
    known = ", ".join(repr(name) for name in _NAMES if name != "centered")
    raise GraphError(f"the estimator must be one of {known}, or an object of dugong.estimators; found {estimator!r}.")
