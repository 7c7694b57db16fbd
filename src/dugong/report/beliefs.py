"""The prior in numbers that people can judge: how common each label is, what follows what, how long runs last."""

from __future__ import annotations

import numpy as np

from dugong.priors import Joint, Prior
from dugong.report.material import Material
from dugong.report.values import PriorRow
from dugong.types import FloatArray

_LONGEST = 1000


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


def label_steps(prior: Prior, length: int) -> tuple[FloatArray, FloatArray]:
    """Mean law of a label, and of the next label given it, over a sequence of `length` elements."""
    chain = prior.chain()
    states = np.zeros((chain.n_states, chain.n_classes))
    states[np.arange(chain.n_states), chain.labels] = 1.0
    onward = chain.transition @ states
    law, share = chain.initial, np.zeros(chain.n_classes)
    pairs = np.zeros((chain.n_classes, chain.n_classes))
    n_steps = min(length, _LONGEST)
    for _ in range(n_steps):
        share += law @ states
        pairs += (states * law[:, None]).T @ onward
        law = law @ chain.transition
    total = pairs.sum(axis=1, keepdims=True)
    return share / n_steps, np.divide(pairs, total, out=np.full_like(pairs, np.nan), where=total > 0)


def _from_table(prior: Joint) -> tuple[FloatArray, None]:
    """A table over few tasks has no steps; the mean law of its elements is all there is."""
    expected, _ = prior.count_moments(np.array([prior.n_elements]))
    return expected[0] / prior.n_elements, None


def _bout(stay: float) -> float | None:
    return 1 / (1 - stay) if stay < 1 - 1e-12 else None
