"""Labels that persist: a Markov chain over the classes of successive elements; and `Uniform`, the one that forgets.

Two classes: how common positives are, and how long they last. Any K: the initial and transition
probabilities. The chain of the paper's HMM-style models, for sequences of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dugong.codec import show
from dugong.contract import typed
from dugong.exceptions import PriorError
from dugong.priors.base import Prior
from dugong.priors.chain import LabelChain, distribution
from dugong.types import FloatArray, class_values

Rows = Sequence[Sequence[float]] | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Prior):
    """Every label pattern of a sequence has the same probability.

    Parameters
    ----------
    n_classes : int
        Two by default.
    """

    n_classes: int = 2
    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise PriorError(f"a prior needs at least two classes; found n_classes={self.n_classes}.")

    def chain(self) -> LabelChain:
        """A chain that forgets at every step."""
        law = np.full(self.n_classes, 1 / self.n_classes)
        return LabelChain(
            initial=law,
            transition=np.tile(law, (self.n_classes, 1)),
            labels=np.arange(self.n_classes),
            n_classes=self.n_classes,
        )


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Markov(Prior):
    """A Markov chain over element labels.

    Give either `positive` with `stay` or `bout` (two classes, stationary), or `initial` and `transition`
    (any number of classes, in the order of ``model.classes_``: -1 then +1, or 1..K).

    Parameters
    ----------
    positive : float
        P(an element is positive), at every position.
    stay : float
        P(next element positive | this one positive). 1: all elements of a sequence share one label.
    bout : float
        Mean number of elements in a run of positives, an alternative to `stay` = 1 - 1 / `bout`.
    initial : (K,) law of the first element
    transition : (K, K) P(next class | this class), rows sum to one

    Examples
    --------
    >>> Markov(positive=0.1, stay=0.9)
    Markov(positive=0.1, stay=0.9)
    >>> Markov(positive=0.1, bout=10) == Markov(positive=0.1, stay=0.9)
    True
    """

    initial: tuple[float, ...]
    transition: tuple[tuple[float, ...], ...]
    kind: ClassVar[str] = "markov"

    @typed(PriorError)
    def __init__(
        self,
        *,
        positive: float | None = None,
        stay: float | None = None,
        bout: float | None = None,
        initial: Sequence[float] | FloatArray | None = None,
        transition: Rows | None = None,
    ) -> None:
        _check_choice(positive, stay, bout, initial, transition)
        if positive is not None:
            first, rows = _stationary(positive, _stay(stay, bout))
        else:
            assert initial is not None
            assert transition is not None
            first, rows = _given(initial, transition)
        object.__setattr__(self, "initial", tuple(first.tolist()))
        object.__setattr__(self, "transition", tuple(tuple(row) for row in rows.tolist()))

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes."""
        return len(self.initial)

    @property
    def positive(self) -> float:
        """P(the first element is positive); two classes only."""
        self._check_binary("positive")
        return self.initial[1]

    @property
    def stay(self) -> float:
        """P(next element positive | this one positive); two classes only."""
        self._check_binary("stay")
        return self.transition[1][1]

    @property
    def is_stationary(self) -> bool:
        """Whether every position has the law of the first."""
        law = np.array(self.initial)
        return bool(np.allclose(law @ np.array(self.transition), law, rtol=0, atol=1e-12))

    def chain(self) -> LabelChain:
        """The chain itself: one state per class."""
        return _chain(self)

    def _check_binary(self, what: str) -> None:
        if self.n_classes != 2:
            raise PriorError(f"`{what}` is defined for two classes; this prior has {self.n_classes}.")

    def __repr__(self) -> str:
        if self.n_classes == 2 and self.is_stationary:
            return f"Markov(positive={self.positive:.6g}, stay={self.stay:.6g})"
        return f"Markov(initial={_show(self.initial)}, transition=[{', '.join(map(_show, self.transition))}])"

    def __str__(self) -> str:
        classes = class_values(self.n_classes)
        rows = [f"  {'first':>7} {_columns(self.initial)}"]
        rows += [f"  {label:>7d} {_columns(row)}" for label, row in zip(classes, self.transition, strict=True)]
        head = " ".join(f"{label:>8d}" for label in classes)
        return "\n".join([repr(self), f"  {'from':>7} {head}", *rows])


def _show(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"


def _columns(values: Sequence[float]) -> str:
    return " ".join(f"{value:8.4g}" for value in values)


@lru_cache(maxsize=16)
def _chain(prior: Markov) -> LabelChain:
    """One value for all passes of a fit, by which they know that their prior is the same."""
    return LabelChain(
        initial=np.array(prior.initial),
        transition=np.array(prior.transition),
        labels=np.arange(prior.n_classes),
        n_classes=prior.n_classes,
    )


def _check_choice(positive: object, stay: object, bout: object, initial: object, transition: object) -> None:
    short, table = [positive, stay, bout], [initial, transition]
    named = positive is not None and (stay is None) != (bout is None) and all(value is None for value in table)
    tabled = all(value is None for value in short) and initial is not None and transition is not None
    if not (named or tabled):
        names = ("positive", "stay", "bout", "initial", "transition")
        given = [name for name, value in zip(names, short + table, strict=True) if value is not None]
        raise PriorError(
            "a Markov prior takes positive= with stay= or bout=, or initial= with transition=; "
            f"found {', '.join(given) if given else 'nothing'}."
        )


def _stay(stay: float | None, bout: float | None) -> float:
    if bout is None:
        assert stay is not None
        return float(stay)
    if not bout >= 1:
        raise PriorError(f"a bout lasts at least one element; found bout={bout}.")
    return 1 - 1 / float(bout)


def _stationary(positive: float, stay: float) -> tuple[FloatArray, FloatArray]:
    for name, value in (("positive", positive), ("stay", stay)):
        if not 0 <= value <= 1:
            raise PriorError(f"`{name}` must be a probability from 0 to 1; found {value}.")
    begin, negative = positive * (1 - stay), 1 - positive
    if begin > negative * (1 + 1e-12):
        raise PriorError(
            "`positive * (1 - stay)` must be at most `1 - positive`, as each run of positives ends in a "
            f"negative; found positive={positive:g} and stay={stay:g}.\n"
            f"  With positive={positive:g}, stay must be at least {2 - 1 / positive:.4g}."
        )
    enter = min(begin / negative, 1.0) if negative > 0 else 0.0
    return np.array([negative, positive]), np.array([[1 - enter, enter], [1 - stay, stay]])


def _given(initial: Sequence[float] | FloatArray, transition: Rows) -> tuple[FloatArray, FloatArray]:
    try:
        first, rows = np.asarray(initial, dtype=np.float64), np.asarray(transition, dtype=np.float64)
    except (TypeError, ValueError):
        found = f"{show(initial)} and {show(transition)}"
        raise PriorError(f"`initial` and `transition` must be tables of numbers; found {found}.") from None
    if first.ndim != 1 or len(first) < 2 or rows.shape != (len(first), len(first)):
        raise PriorError(
            "`initial` must hold one probability per class (two or more) and `transition` one row and one "
            f"column per class; found shapes {first.shape} and {rows.shape}."
        )
    first = distribution(first, "the initial law")
    return first, np.stack([distribution(row, "every row of the transition matrix") for row in rows])
