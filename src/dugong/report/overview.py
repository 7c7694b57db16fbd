"""What was labelled and what was believed: counts, lengths, resolutions, expected labels, and the prior in numbers.

The prior is shown as people can judge it: how common each label is, what follows what, how long runs last.
"""

from __future__ import annotations

import numpy as np

from dugong.priors import Joint
from dugong.report.material import Material, label_names
from dugong.report.values import Overview, PriorRow, ResolutionRow
from dugong.summary import label_steps
from dugong.tasks import Element, Resolution, describe
from dugong.types import FloatArray
from dugong.votes import Votes
from dugong.votes.codes import count_codes, n_spoken

_BINS = 20


def make_overview(material: Material, n_silent: int) -> Overview:
    """Count what the report is about."""
    votes = material.votes
    lengths = votes.lengths
    counts, edges = np.histogram(lengths, bins=int(min(_BINS, max(1, len(np.unique(votes.lengths))))))
    spread = (lengths.min(), np.median(lengths), lengths.mean(), lengths.max()) if len(lengths) else (0, 0, 0, 0)
    return Overview(
        n_sequences=votes.n_sequences,
        n_elements=votes.n_elements,
        n_sources=votes.n_sources,
        n_votes=sum(n_spoken(count_codes(column)) for column in votes.columns),
        lengths=(float(spread[0]), float(spread[1]), float(spread[2]), float(spread[3])),
        histogram_counts=tuple(counts.tolist()),
        histogram_edges=tuple(edges.tolist()),
        classes=material.names,
        resolutions=tuple(_row(material, resolution) for resolution in material.probabilities),
        n_silent=n_silent,
        n_known=None if material.gold is None else int(np.count_nonzero(material.gold)),
        clock=_clock(votes),
    )


def seconds_per_element(votes: Votes) -> float | None:
    """Seconds per element, if all sequences share one rate."""
    if votes.time is None or votes.time.rate is None or not len(votes.time.rate):
        return None
    rates = np.unique(votes.time.rate)
    return float(1 / rates[0]) if len(rates) == 1 else None


def _row(material: Material, resolution: Resolution) -> ResolutionRow:
    votes, probabilities = material.votes, material.probabilities[resolution]
    shares = probabilities.mean(axis=0) if len(probabilities) else np.zeros(probabilities.shape[1])
    return ResolutionRow(
        name=resolution.name,
        words="every single element" if isinstance(resolution, Element) else describe(resolution),
        n_tasks=len(probabilities),
        n_sources=sum(source.resolution == resolution for source in votes.sources),
        labels=label_names(votes, resolution),
        shares=tuple(shares.tolist()),
    )


def _clock(votes: Votes) -> str | None:
    if votes.time is None:
        return None
    if votes.time.rate is None:
        return "every element has a timestamp"
    rates = np.unique(votes.time.rate)
    span = f"{rates[0]:g}" if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}"
    return f"{span} elements per second"


def make_prior(material: Material) -> PriorRow:
    """Shares, transitions and mean runs of a sequence of median length."""
    model, lengths = material.model, material.votes.lengths
    prior = model.prior_
    length = int(np.median(lengths)) if len(lengths) else 2
    share, transition = _from_table(prior) if isinstance(prior, Joint) else label_steps(prior, max(length, 2))
    bouts = () if transition is None else tuple(_bout(float(stay)) for stay in np.diagonal(transition))
    return PriorRow(
        words=repr(prior),
        learned=isinstance(model.prior, str),
        classes=material.names,
        share=tuple(share.tolist()),
        transition=transition,
        bouts=bouts,
    )


def _from_table(prior: Joint) -> tuple[FloatArray, None]:
    """A table over few tasks has no steps; the mean law of its elements is all there is."""
    expected, _ = prior.count_moments(np.array([prior.n_elements]))
    return expected[0] / prior.n_elements, None


def _bout(stay: float) -> float | None:
    return 1 / (1 - stay) if stay < 1 - 1e-12 else None
