"""From votes to a fitted label model with a given prior and given dependencies: the algorithm, step by step.

Build the graph, plan the moments, count them, estimate, and let the sample's own class balance correct the tables.
The default ``"learn"`` settings are resolved before this stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dugong.estimate.centred import estimate_centred
from dugong.estimate.design import Design
from dugong.estimate.laws import Laws
from dugong.estimate.result import Estimate, Note
from dugong.estimate.slopes import Slopes
from dugong.infer.engine import posterior
from dugong.moments import Moments
from dugong.priors import Prior
from dugong.priors.moments import sample_balance_variance
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray
from dugong.votes import Votes

# Probability by which the prior leaves the sample's own class balance uncertain, below which it is not re-estimated.
NEGLIGIBLE_BALANCE = 0.001
_SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """An estimate with what it was made from."""

    estimate: Estimate
    slopes: Slopes
    laws: Laws


def fit_centred(
    design: Design,
    moments: Moments,
    prior: Prior,
    *,
    votes: Votes | None = None,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
    class_names: tuple[str, ...] | None = None,
    n_threads: int | None = None,
) -> Fitted:
    """Estimate with the prior's class balance; then, where that is uncertain, once more with the sample's own."""
    laws = Laws(prior, moments.shapes, class_names)
    estimate, slopes = estimate_centred(design, moments, laws, signs=signs, accuracies=accuracies)
    first = Fitted(estimate=estimate, slopes=slopes, laws=laws)
    if votes is None or not balance_matters(prior, moments):
        return first
    balance = sample_balance(votes, estimate, prior, n_threads)
    laws = laws.with_balance(balance)
    estimate, slopes = estimate_centred(design, moments, laws, signs=signs, accuracies=accuracies)
    note = Note(
        kind="balance",
        text="class balance of this sample (mean of y by resolution): "
        + ", ".join(f"{resolution.name} {mean:+.3f}" for resolution, mean in balance.items()),
    )
    diagnostics = replace(estimate.diagnostics, notes=(*estimate.diagnostics.notes, note))
    return Fitted(estimate=replace(estimate, diagnostics=diagnostics), slopes=slopes, laws=laws)


def balance_matters(prior: Prior, moments: Moments) -> bool:
    """Whether the prior leaves the class balance of these sequences uncertain by more than a negligible amount."""
    if moments.shapes.counts.sum() == 0:
        return False
    variance = sample_balance_variance(prior, moments.shapes.lengths, moments.shapes.counts)
    return float(np.sqrt(variance)) / 2 > NEGLIGIBLE_BALANCE


def sample_balance(
    votes: Votes, estimate: Estimate, prior: Prior, n_threads: int | None = None
) -> dict[Resolution, float]:
    """Mean of y by resolution over this very sample: the posterior mean under a first estimate (one exact E-step)."""
    resolutions = tuple(dict.fromkeys([Element(), *(info.resolution for info in votes.sources)]))
    found = posterior(votes, estimate.parameters, prior, resolutions=resolutions, n_threads=n_threads)
    return {
        resolution: float((found.probabilities[resolution] @ _SIGNS).mean())
        for resolution in resolutions
        if len(found.probabilities[resolution])
    }
