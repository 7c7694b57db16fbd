"""From votes to a fitted label model with a given prior and given dependencies: the algorithm, step by step.

Build the graph, plan the moments, count them, estimate, and let the sample's own class balance correct the tables.
The default ``"learn"`` settings are resolved before this stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dugong.estimate.balance import LabelSums
from dugong.estimate.centred import estimate_centred
from dugong.estimate.design import Design
from dugong.estimate.em import EM, expectation_maximisation
from dugong.estimate.laws import Laws
from dugong.estimate.paper import estimate_paper, plan_paper
from dugong.estimate.readout import read_accuracies, read_correlations
from dugong.estimate.result import Estimate, Note
from dugong.estimate.settings import Estimator, Paper
from dugong.estimate.slopes import Slopes
from dugong.infer.engine import expected_counts, posterior
from dugong.moments import Grouping, Moments, Plan
from dugong.priors import Prior
from dugong.priors.moments import sample_balance_variance
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes

# Probability by which the prior leaves the sample's own class balance uncertain, below which it is not re-estimated.
NEGLIGIBLE_BALANCE = 0.001
_SIGNS = np.array([-1.0, 1.0])


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
    slopes: Slopes | None = None
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


def refine(
    fitted: Fitted,
    votes: Votes,
    design: Design,
    prior: Prior,
    settings: EM,
    *,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
) -> tuple[Fitted, Prior]:
    """Raise the likelihood from a closed-form start (EM), with known labels as evidence where there are any."""
    start = fitted.estimate.parameters
    result = expectation_maximisation(votes, start, prior, settings, evidence=evidence, n_threads=n_threads)
    counts = expected_counts(votes, result.parameters, result.prior, evidence=evidence, n_threads=n_threads)
    accuracies = read_accuracies(result.parameters, counts)
    correlations = read_correlations(result.parameters, counts, design.graph.edges)
    gain, steps = result.objective[-1] - result.objective[0], len(result.objective) - 1
    ending = "converged" if result.converged else "stopped at the most steps allowed"
    note = Note(kind="em", text=f"EM raised the log-likelihood by {gain:.4g} in {steps} steps and {ending}", size=gain)
    estimate = replace(
        fitted.estimate,
        parameters=result.parameters,
        accuracies=accuracies,
        correlations={**fitted.estimate.correlations, **correlations},
        diagnostics=replace(fitted.estimate.diagnostics, notes=(*fitted.estimate.diagnostics.notes, note)),
    )
    return replace(fitted, estimate=estimate), result.prior


def fit_centred(
    design: Design,
    moments: Moments,
    prior: Prior,
    *,
    votes: Votes | None = None,
    grouping: Grouping | None = None,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    class_names: tuple[str, ...] | None = None,
    n_threads: int | None = None,
    measure: Callable[[Estimate], LabelSums] | None = None,
) -> Fitted:
    """Estimate with the prior's class balance; then, where that is uncertain, once more with the sample's own.

    Parameters
    ----------
    grouping : how `moments` were divided into groups, so that the jackknife can leave a group's balance out as well
    measure : finds the sample's own balance under a first estimate, where the votes are not in one piece
    """
    laws = Laws(prior, moments.shapes, class_names)
    estimate, slopes = estimate_centred(design, moments, laws, signs=signs, accuracies=accuracies)
    first = Fitted(estimate=estimate, laws=laws, slopes=slopes)
    if (votes is None and measure is None) or not balance_matters(prior, moments):
        return first
    if votes is None:
        assert measure is not None
        sums = measure(estimate)
        balance, balances = sums.means(), sums.without_groups()
    else:
        found = sample_labels(votes, estimate, prior, n_threads)
        balance = {resolution: float(labels.mean()) for resolution, labels in found.items()}
        balances = {} if grouping is None else {r: _without_groups(votes, grouping, r, y) for r, y in found.items()}
    laws = laws.with_balance(balance)
    estimate, slopes = estimate_centred(design, moments, laws, signs=signs, accuracies=accuracies)
    note = Note(
        kind="balance",
        text="class balance of this sample (mean of y by resolution): "
        + ", ".join(f"{resolution.name} {mean:+.3f}" for resolution, mean in balance.items()),
    )
    diagnostics = replace(estimate.diagnostics, notes=(*estimate.diagnostics.notes, note))
    return Fitted(estimate=replace(estimate, diagnostics=diagnostics), laws=laws, slopes=slopes, balances=balances)


def balance_matters(prior: Prior, moments: Moments) -> bool:
    """Whether the prior leaves the class balance of these sequences uncertain by more than a negligible amount."""
    if moments.shapes.counts.sum() == 0:
        return False
    variance = sample_balance_variance(prior, moments.shapes.lengths, moments.shapes.counts)
    return float(np.sqrt(variance)) / 2 > NEGLIGIBLE_BALANCE


def sample_labels(
    votes: Votes, estimate: Estimate, prior: Prior, n_threads: int | None = None
) -> dict[Resolution, FloatArray]:
    """Posterior mean of y of every task by resolution, under a first estimate (one exact E-step)."""
    resolutions = tuple(dict.fromkeys([Element(), *(info.resolution for info in votes.sources)]))
    found = posterior(votes, estimate.parameters, prior, resolutions=resolutions, n_threads=n_threads)
    return {r: found.probabilities[r] @ _SIGNS for r in resolutions if len(found.probabilities[r])}


def _without_groups(votes: Votes, grouping: Grouping, resolution: Resolution, labels: FloatArray) -> FloatArray:
    """Mean of y over all tasks but those of each group, shape (n_groups,)."""
    groups = grouping.of_tasks(votes.layout(resolution))
    sums = np.bincount(groups, labels, grouping.n_groups)
    counts = np.bincount(groups, minlength=grouping.n_groups)
    return np.asarray((sums.sum() - sums) / np.maximum(len(labels) - counts, 1))
