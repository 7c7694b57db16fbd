"""One coarse source, learned by predicting its votes.

In: what the elements say about every window (log-odds x), and what the source voted there. Out: how far x may be
believed, and the table of the source:

    P(vote | x) = r table[1, vote] + (1 - r) table[0, vote],     r = sigmoid(shift + slope x)

by penalised maximum likelihood. Nothing here counts elements: a window is one observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit, softmax

from dugong.codec import Numbers
from dugong.exceptions import FileError
from dugong.types import FloatArray, Int8Array, Probabilities

SHIFT, SLOPE = 1.0, 0.5  # how far the shift is believed to be from 0, and the log of the slope from 0
PSEUDO = 2.0  # pseudo-windows per row of a table, at the rates of the source: as in every table that is learned
LEAN = 1.0  # how far the lean of a row (in standard deviations of the share) is believed to be from 0
LARGEST = 40_000  # windows that are looked at
NO, YES, N_VOTES = 0, 1, 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """What was learned about one coarse source.

    Attributes
    ----------
    shift, slope : the elements' log-odds of a window, as far as they are believed
    table : (2, 3) P(no, yes, abstain | window negative, positive)
    gain : log-likelihood of its votes over that of a source that knows nothing
    lean : how its yes depends on the share of positive elements beyond the label of the window, 0 if not asked
    """

    shift: float
    slope: Annotated[float, Numbers(low=0)]
    table: Probabilities
    gain: float
    lean: float = 0.0

    def __post_init__(self) -> None:
        if self.table.shape != (2, N_VOTES):
            raise FileError(f"table must have the shape {(2, N_VOTES)}; found {self.table.shape}")


def calibrate(
    lifted: FloatArray,
    codes: Int8Array,
    *,
    share: FloatArray | None = None,
    leaning: int = 1,
    table: FloatArray | None = None,
) -> Calibrated:
    """Fit one source.

    Parameters
    ----------
    lifted : (n,) log-odds of the windows that it was asked about
    codes : (n,) 0 no, 1 yes, 2 abstain
    share : (n,) share of positive elements; where given, row `leaning` of the table may lean on it
    table : (2, 3) a known table, kept as it is
    """
    from scipy.optimize import minimize  # slow to import, and needed only here

    order = np.lexsort((codes, lifted) if share is None else (codes, share, lifted))  # any order gives the same sums
    order = order[:: max(1, len(order) // LARGEST)]
    scale = len(codes) / max(len(order), 1)
    problem = _Problem(lifted[order], codes[order], None if share is None else share[order], leaning, table)
    best = minimize(problem.loss, problem.first(), jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-13})
    # The slope as a logarithm, because elements that speak for a window are never read as speaking against it.
    shift, log_slope = best.x[:2]
    return Calibrated(
        shift=float(shift),
        slope=float(np.exp(log_slope)),
        table=problem.table_of(best.x),
        gain=problem.gain(best.x) * scale,
        lean=0.0 if share is None else float(best.x[-1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """A source as it was heard: its table (2, 3), its votes (n,) and P(window is positive) without them (n,)."""

    table: FloatArray
    codes: Int8Array
    positive: FloatArray


def shared_errors(one: Heard, other: Heard, common: FloatArray) -> float:
    """How far two sources make the same errors, 0 to 1: their covariance beyond the one that labels bring.

    Parameters
    ----------
    common : (n,) covariance of the labels that they vote on, given what the elements say
    """
    both = ((one.codes == YES) | (one.codes == NO)) & ((other.codes == YES) | (other.codes == NO))
    explained, left, noise = common[both], [], []
    for source in (one, other):
        r = source.positive[both]
        rates = source.table[:, YES] / source.table[:, : YES + 1].sum(axis=1)
        explained = explained * (rates[1] - rates[0])
        left.append((source.codes[both] == YES) - (rates[0] + r * (rates[1] - rates[0])))
        noise.append(1 + float(r.sum() * rates[1] * (1 - rates[1]) + (1 - r).sum() * rates[0] * (1 - rates[0])))
    excess = float((left[0] * left[1] - explained).sum()) / float(np.sqrt(noise[0] * noise[1]))
    return min(1.0, abs(excess))


class _Problem:
    """The penalised likelihood of one source: theta = (shift, log slope, logits of the table, lean)."""

    def __init__(
        self, lifted: FloatArray, codes: Int8Array, share: FloatArray | None, leaning: int, table: FloatArray | None
    ) -> None:
        self.x, self.codes, self.leaning, self.known = lifted, codes, leaning, table
        counts = np.bincount(codes, minlength=N_VOTES).astype(np.float64)
        # A vote that never occurs must still have a rate, as its logarithm is taken.
        self.rates = (counts + 1e-6) / (counts + 1e-6).sum()
        self.said = np.eye(N_VOTES)[:, codes]  # votes first: sums over few votes of many windows are then quick
        self.share = None
        if share is not None:
            spread = float(share.std())
            self.share = (share - share.mean()) / (spread if spread > 0 else 1.0)

    def first(self) -> FloatArray:
        """The elements at their word, and the table that follows."""
        r = expit(self.x)
        counts = np.stack([self.said @ (1 - r), self.said @ r]) + PSEUDO * self.rates
        table = counts / counts.sum(axis=1, keepdims=True)
        return np.concatenate([[0.0, 0.0], np.log(table).ravel(), np.zeros(int(self.share is not None))])

    def table_of(self, theta: FloatArray) -> FloatArray:
        """(2, 3) the table; a leaning row at the mean share."""
        return self.known if self.known is not None else softmax(theta[2 : 2 + 2 * N_VOTES].reshape(2, N_VOTES), axis=1)

    def gain(self, theta: FloatArray) -> float:
        """Log-likelihood over that of a source that knows nothing."""
        r = expit(theta[0] + np.exp(theta[1]) * self.x)
        rows = self._rows(theta)
        likelihood = r * self._of(rows[1]) + (1 - r) * self._of(rows[0])
        return float(np.log(likelihood + 1e-300).sum() - np.log(self.rates[self.codes]).sum())

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus the penalised log-likelihood, and its gradient."""
        slope = np.exp(theta[1])
        r = expit(theta[0] + slope * self.x)
        rows = self._rows(theta)
        weighed = r * self._of(rows[1])
        likelihood = weighed + (1 - r) * self._of(rows[0]) + 1e-300
        positive = weighed / likelihood
        gradient = np.zeros_like(theta)
        # The gradient of a mixture is that of its parts, weighed by P(window is positive | vote).
        gradient[0] = (r - positive).sum() + theta[0] / SHIFT**2
        gradient[1] = ((r - positive) @ self.x) * slope + theta[1] / SLOPE**2
        value = -np.log(likelihood).sum() + (theta[0] / SHIFT) ** 2 / 2 + (theta[1] / SLOPE) ** 2 / 2
        # A known table has no gradient: its places stay at zero, so the search leaves them where they began.
        if self.known is None:
            value += self._table_part(theta, rows, positive, gradient)
        return float(value), gradient

    def _table_part(
        self, theta: FloatArray, rows: list[FloatArray], positive: FloatArray, gradient: FloatArray
    ) -> float:
        table, value = self.table_of(theta), 0.0
        for row, weights in enumerate((1 - positive, positive)):
            missed = weights * (rows[row] - self.said)
            place = slice(2 + row * N_VOTES, 2 + (row + 1) * N_VOTES)
            gradient[place] = missed.sum(axis=1) + PSEUDO * (table[row] - self.rates)
            value -= PSEUDO * float(self.rates @ np.log(table[row] + 1e-300))
            if self.share is not None and row == self.leaning:
                gradient[-1] = (missed[YES] - missed[NO]) @ self.share / 2 + theta[-1] / LEAN**2
                value += (theta[-1] / LEAN) ** 2 / 2
        return value

    def _rows(self, theta: FloatArray) -> list[FloatArray]:
        """P(vote | window negative), P(vote | window positive) of every window, (3, n or 1) each."""
        rows = list(self.table_of(theta)[:, :, np.newaxis])
        if self.share is not None:
            logs = np.repeat(np.log(rows[self.leaning] + 1e-300), len(self.x), axis=1)
            logs[YES] += theta[-1] * self.share / 2
            logs[NO] -= theta[-1] * self.share / 2
            rows[self.leaning] = softmax(logs, axis=0)
        return rows

    def _of(self, row: FloatArray) -> FloatArray:
        return row[self.codes, 0] if row.shape[1] == 1 else row[self.codes, np.arange(len(self.codes))]
