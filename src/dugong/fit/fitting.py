"""From votes to a fitted label model with a given prior and given dependencies: the algorithm, step by step.

Build the graph, plan the moments, count them, estimate, and let the sample's own class balance correct the tables.
The default ``"learn"`` settings are resolved before this stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dugong.fit.moments.centred import estimate_centred
from dugong.fit.moments.stages import Solution
from dugong.fit.paper import estimate_paper, plan_paper
from dugong.fit.passes import Passes
from dugong.fit.result import Estimate, Note
from dugong.fit.settings import Estimator, Paper
from dugong.graph.design import Design
from dugong.law.law import Law
from dugong.priors import Prior
from dugong.priors.moments import sample_balance_variance
from dugong.sums import Laws, Moments, Plan
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray

# Probability by which the prior leaves the sample's own class balance uncertain, below which it is not re-estimated.
NEGLIGIBLE_BALANCE = 0.001
# Share of positives by which sample and prior must differ, and in standard deviations, before something must be wrong.
CONTRADICTION, IMPOSSIBLE = 0.1, 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """An estimate with what it was made from.

    Attributes
    ----------
    slopes : of the centred estimate, else None
    balances : mean of y without each group, by resolution, where the sample's own class balance was used
    """

    estimate: Estimate
    laws: Laws
    slopes: Solution | None = None
    balances: Mapping[Resolution, FloatArray] = field(default_factory=dict)


def plan_for(design: Design, estimator: Estimator) -> Plan:
    """The rows that an estimator needs counted."""
    return plan_paper(design) if isinstance(estimator, Paper) else design.plan


def fit_paper(
    design: Design,
    moments: Moments,
    prior: Prior,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Fitted:
    """The paper's Algorithm 1 with the prior's class balance."""
    laws = Laws(prior, moments.shapes, class_names)
    return Fitted(estimate=estimate_paper(design, moments, laws, signs=signs, accuracies=accuracies), laws=laws)


def fit_centred(
    design: Design,
    moments: Moments,
    prior: Prior,
    *,
    passes: Passes | None = None,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Fitted:
    """Estimate with the prior's class balance; then, where that is uncertain, once more with the sample's own.

    Parameters
    ----------
    passes : goes over the votes behind the moments again; without it the balance stays the prior's
    """

    def solve(laws: Laws) -> tuple[Estimate, Solution]:
        return estimate_centred(design, moments, laws, signs=signs, accuracies=accuracies)

    return fit_balanced(solve, Laws(prior, moments.shapes, class_names), moments, passes)


def fit_balanced(
    solve: Callable[[Laws], tuple[Estimate, Solution | None]], laws: Laws, moments: Moments, passes: Passes | None
) -> Fitted:
    """What `solve` finds under the prior's class balance, or, where that is uncertain, under the sample's own."""
    estimate, slopes = solve(laws)
    if passes is None or not passes.rereadable or not balance_matters(laws.prior, moments):
        return Fitted(estimate=estimate, laws=laws, slopes=slopes)
    sums = passes.balance(Law(parameters=estimate.parameters, prior=laws.prior))
    contradiction = _contradiction(laws, moments, sums.means()[Element()])
    laws = laws.with_balance(sums.means())
    estimate, slopes = solve(laws)
    estimate = replace(estimate, diagnostics=estimate.diagnostics.noted(sums.note(), *contradiction))
    return Fitted(estimate=estimate, laws=laws, slopes=slopes, balances=sums.without_groups())


def _contradiction(laws: Laws, moments: Moments, found: float) -> tuple[Note, ...]:
    """A warning where the labels of the sample cannot have the class balance that the prior expects."""
    expected, error = float(laws.mean(Element())[0]), _balance_error(laws.prior, moments)
    gap = abs(found - expected) / 2
    if gap < max(CONTRADICTION, IMPOSSIBLE * error):
        return ()
    text = (
        f"votes and prior contradict each other: {(1 + found) / 2:.1%} of the elements would be positive, the prior "
        f"says {(1 + expected) / 2:.1%} (plus or minus {error:.1%} in such a sample). Most likely sources depend on "
        "each other in ways that were not declared, or the prior is of other data: labels may then be worse than the "
        'vote. Try dependencies="learn"'
    )
    return (Note(kind="contradiction", text=text, size=gap),)


def balance_matters(prior: Prior, moments: Moments) -> bool:
    """Whether the prior leaves the class balance of these sequences uncertain by more than a negligible amount."""
    return bool(moments.shapes.counts.sum() > 0) and _balance_error(prior, moments) > NEGLIGIBLE_BALANCE


def _balance_error(prior: Prior, moments: Moments) -> float:
    """Standard deviation, under the prior, of the share of positives in such a sample."""
    variance = sample_balance_variance(prior, moments.shapes.lengths, moments.shapes.counts)
    return float(np.sqrt(variance)) / 2
