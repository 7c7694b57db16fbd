"""Sources that repeat themselves: how often, and which of their votes were fresh.

A repeating source gives its last vote again with one probability while the label stays and another when it changes, and
else votes afresh by its table; or an earlier vote (a lag above 1), whatever the label. In: soft labels and the law so
far. Out: counts of fresh votes, and these probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.panel import Panel
from dugong.fit.learned.settings import MOST_REPEATS
from dugong.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """Who repeats which of its votes.

    Attributes
    ----------
    rates : (2, m) probabilities of giving an earlier vote again, ``rates[0]`` if the label stayed, ``rates[1]`` if not;
        zero for sources that do not repeat themselves
    lags : (m,) how many elements earlier
    """

    rates: FloatArray
    lags: IntArray

    @classmethod
    def about(cls, rates: FloatArray, lags: IntArray) -> Repeats:
        """A first guess from own-lag correlations (m,): of last votes half as often when the label changes."""
        # Half as often when the label changes: whoever copies itself for a reason notices some of the changes.
        stay = np.clip(rates, 0.0, MOST_REPEATS)
        return cls(rates=np.stack([stay, np.where(lags == 1, stay / 2, stay)]), lags=lags)


def fresh_votes(
    panel: Panel, counts: FloatArray, labels: FloatArray, kept: FloatArray, single: FloatArray, repeats: Repeats
) -> tuple[FloatArray, Repeats]:
    """Counts (m, K, C) without repetitions, and the probabilities of repeating anew."""
    repeating = repeats.rates[0] > 0
    fresh = np.where(repeating[:, np.newaxis, np.newaxis], 0.0, counts)
    again = np.zeros((2, len(repeating), 2))
    kernels.count_fresh(panel.codes, labels, kept, panel.places(), single, repeats.rates, repeats.lags, fresh, again)
    # Beyond the last element the labels in between are not followed, so one probability has to do for both.
    again[1] = np.where(repeats.lags[:, np.newaxis] > 1, again[0], again[1])
    # Two pseudo-votes for the rate before, because a rate of few votes would jump from round to round.
    rates = (again[..., 0] + 2 * repeats.rates) / (again[..., 1] + 2)
    rates = np.where(repeating, np.clip(rates, 1e-6, MOST_REPEATS), 0.0)
    return fresh, Repeats(rates=rates, lags=repeats.lags)
