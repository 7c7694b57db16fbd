"""How far scores can be believed, learned without labels.

In: a fitted law and votes with scores. Out: one `Grading` per soft source. The labels that the law gives, with what is
known of the scores so far, say how often each label comes with each cell of scores; that gives new gradings, and so on:
EM over the gradings, and over the tables of the votes too, where the law is trusted whole: where positives are rare,
scores tell more about the labels behind a table than votes do. In each cell

    P(label | cell) = softmax over labels of (shift + slope * mean log-score),     slope >= 0,

which is calibration with a temperature and a bias; where cells contradict the curve by more than chance, the counts
themselves take over, as far as they do. With two classes the result never falls where the score rises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from dugong.fit.em import EM, FREE, Ties, maximise
from dugong.infer.answers import expected_counts, posterior
from dugong.law import Grading, Law, cells_of, choose_cuts
from dugong.tasks import Element
from dugong.types import MISSING, FloatArray, Int8Array, IntArray
from dugong.votes import SourceInfo, Votes
from dugong.votes.flat import certainty

_ROUNDS = 10
_SETTLED = 1e-3  # rounds end when no probability moves by more
_SHIFT, _SLOPE = 3.0, 1.0  # how far shifts are believed to be from 0, and the slope from 1
_ENOUGH = 0.8  # of what the best threshold shows of others; one half stays the threshold where it shows as much
_PARTING = 4.0  # standard deviations: chance alone reaches 3 and a half somewhere among thousands of thresholds
_PLAIN = EM()
_FEWEST = 20  # tasks on either side of a threshold
_LEAST = 1e-6  # probabilities of exactly 0 have a logarithm, too
_LEAST_SCORE = 1e-12  # below what overconfident sources say of rare classes


def learn_soft(
    law: Law,
    votes: Votes,
    evidence: Int8Array | None = None,
    n_threads: int | None = None,
    ties: Ties = FREE,
    learning: EM = _PLAIN,
) -> Law:
    """The same law, with what scores of soft sources are worth; tables that `ties` do not know are learned along."""
    start = law
    scored = [_Scored.of(votes, info) for info in votes.sources if info.name in votes.scores]
    where = tuple(dict.fromkeys(one.info.resolution for one in scored))
    chances: list[FloatArray] = []
    for _ in range(_ROUNDS):
        labels = posterior(law, votes, where, evidence=evidence, n_threads=n_threads)
        before, chances = chances, [one.chances(labels[one.info.resolution]) for one in scored]
        law = replace(law, soft=tuple(one.grading(found) for one, found in zip(scored, chances, strict=True)))
        if law.tempering is None:
            counts = expected_counts(law, votes, evidence=evidence, n_threads=n_threads)
            law = maximise(counts, law, start, learning, ties)
        if before and max(float(np.abs(a - b).max()) for a, b in zip(before, chances, strict=True)) < _SETTLED:
            break
    return law


# --- where a score becomes a vote ----------------------------------------------------------------------------------
def choose_thresholds(votes: Votes) -> dict[str, float]:
    """The score above which votes go best with those of the other sources, where one half does worse.

    Of rare events a calibrated source is never sure, and a detector may have a scale of its own: whoever cuts its
    scores at one half learns nothing from its votes. Only sources on elements are compared.
    """
    fine = [info.name for info in votes.sources if isinstance(info.resolution, Element)]
    leans = {name: _lean(votes, name) for name in fine}
    total, found = sum(leans.values(), np.zeros(votes.n_elements)), {}
    for name in fine:
        if name in votes.scores and votes.n_classes == 2:
            best = _parting(certainty(votes.scores[name], 1), total - leans[name])
            if best is not None:
                found[name] = best
    return found


def _lean(votes: Votes, name: str) -> FloatArray:
    """What a source says, from -1 to 1, around 0: scores by their rank, because nobody knows their scale."""
    if name not in votes.scores:
        said = votes.column(name).astype(np.float64)
        said[said == MISSING] = 0
        return np.asarray(said - said.mean())
    from scipy.stats import rankdata  # slow to import, and soft votes are rare

    scores = certainty(votes.scores[name], 1)
    asked = ~np.isnan(scores)
    said = np.zeros(len(scores))
    said[asked] = 2 * rankdata(scores[asked]) / (asked.sum() + 1) - 1
    return said


def _parting(scores: FloatArray, others: FloatArray) -> float | None:
    """The threshold above which votes go best with what others say; None where one half does nearly as well."""
    order = np.argsort(-scores, kind="stable")
    order = order[~np.isnan(scores[order])]
    ordered, said = scores[order], others[order]
    above = np.arange(1, len(order) + 1)
    below = len(order) - above
    # Between equal scores there is no threshold, and a few tasks on one side prove little.
    ends = np.flatnonzero((np.diff(ordered, append=-1) < 0) & (np.minimum(above, below) >= _FEWEST))
    if not len(ends):
        return None
    sums = np.cumsum(said - said.mean())
    # What others say above a threshold, in standard deviations of the sum of as many at random.
    parting = sums / np.maximum(said.std() * np.sqrt(above * np.maximum(below, 1) / len(order)), 1e-12)
    best, n_plain = ends[np.argmax(parting[ends])], int((ordered > 0.5).sum())
    constant = min(n_plain, len(order) - n_plain) < _FEWEST
    if parting[best] < max(_PARTING, 0 if constant else parting[n_plain - 1] / _ENOUGH):
        if not constant:
            return None
        best = ends[np.argmax(sums[ends])]  # a vote that is always the same says less than any other
    return float((ordered[best] + ordered[best + 1]) / 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """A soft source: its cells, numbered over all votes for a class, and what scores are like in them.

    Attributes
    ----------
    asked : (n,) tasks with a score and a vote
    cells : (n,) their cells, vote * (cells per vote) + cell
    sizes : (K * cells,) tasks in each
    logs : (K * cells, K) mean logarithm of the score of every class
    """

    info: SourceInfo
    cuts: FloatArray
    asked: IntArray
    cells: IntArray
    sizes: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, votes: Votes, info: SourceInfo) -> _Scored:
        rows, column = votes.scores[info.name], votes.column(info.name)
        cuts, n_classes = choose_cuts(rows, column), rows.shape[1]
        own = cells_of(rows, column, cuts)
        asked = np.flatnonzero(own >= 0)
        first = (column[asked].astype(np.int64) + 1) // 2 if n_classes == 2 else column[asked].astype(np.int64) - 1
        per_vote = (cuts.shape[1] + 1) * (1 if n_classes == 2 else n_classes)
        cells, total = first * per_vote + own[asked], n_classes * per_vote
        sizes = np.bincount(cells, minlength=total).astype(np.float64)
        logs = np.log(np.maximum(rows[asked].astype(np.float64), _LEAST_SCORE))
        sums = np.stack([np.bincount(cells, logs[:, k], total) for k in range(n_classes)], axis=1)
        return cls(
            info=info,
            cuts=cuts,
            asked=asked,
            cells=cells,
            sizes=sizes,
            logs=sums / np.maximum(sizes, 1)[:, np.newaxis],
        )

    def chances(self, labels: FloatArray) -> FloatArray:
        """P(label | cell), (K * cells, K), from P(label) of every task."""
        given = labels[self.asked]
        counts = np.zeros((len(self.sizes), given.shape[1]))
        for place, own in enumerate(given.T):
            counts[:, place] = np.bincount(self.cells, own, len(counts))
        found = _trusted(counts, np.exp(_curve(self.logs, counts)))
        return found if found.shape[1] > 2 else self._rising(found)

    def _rising(self, chances: FloatArray) -> FloatArray:
        """P(positive) in the order of scores without a fall: of negative votes, sure ones come first."""
        from scipy.optimize import isotonic_regression  # slow to import, and soft votes are rare

        per_vote = len(self.sizes) // 2
        order = np.concatenate([np.arange(per_vote)[::-1], np.arange(per_vote, 2 * per_vote)])
        order = order[self.sizes[order] > 0]
        if len(order):
            chances[order, 1] = isotonic_regression(chances[order, 1], weights=self.sizes[order]).x
            chances[order, 0] = 1 - chances[order, 1]
        return chances

    def grading(self, chances: FloatArray) -> Grading:
        """The law of cells that these chances mean."""
        n_classes = chances.shape[1]
        # What nobody has seen says nothing: as likely as votes for that class are right.
        shape = (n_classes, len(self.sizes) // n_classes)
        sizes, parts = self.sizes.reshape(shape), chances.reshape(*shape, n_classes)
        base = (sizes[:, :, np.newaxis] * parts).sum(axis=1) + 1 / n_classes
        base /= base.sum(axis=1, keepdims=True)
        parts = np.where(sizes[:, :, np.newaxis] > 0, parts, base[:, np.newaxis])
        table = np.maximum(sizes, _LEAST)[:, :, np.newaxis] * np.maximum(parts, _LEAST)
        table = np.moveaxis(table / table.sum(axis=1, keepdims=True), -1, 0)
        return Grading(source=self.info.name, resolution=self.info.resolution, cuts=self.cuts, table=table)


def _curve(logs: FloatArray, counts: FloatArray) -> FloatArray:
    """Log P(label | cell) on the curve that fits the counts best, (cells, K)."""
    from scipy.optimize import minimize

    n_classes, sizes = counts.shape[1], counts.sum(axis=1)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        found = log_softmax(theta[:-1] + theta[-1] * logs, axis=1)
        missed = sizes[:, np.newaxis] * np.exp(found) - counts
        away = np.append(theta[:-1] / _SHIFT**2, (theta[-1] - 1) / _SLOPE**2)
        penalty = (theta[:-1] ** 2).sum() / _SHIFT**2 / 2 + ((theta[-1] - 1) / _SLOPE) ** 2 / 2
        gradient = np.append(missed.sum(axis=0), (missed * logs).sum())
        return float(penalty - (counts * found).sum()), gradient + away

    bounds = [(None, None)] * n_classes + [(0, None)]
    best = minimize(loss, np.append(np.zeros(n_classes), 1.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(log_softmax(best.x[:-1] + best.x[-1] * logs, axis=1))


def _trusted(counts: FloatArray, curve: FloatArray) -> FloatArray:
    """The curve, and the counts as far as they contradict it by more than chance (beta-binomial, by moments)."""
    sizes = counts.sum(axis=1)
    seen = sizes > 0
    expected = np.maximum(sizes[:, np.newaxis] * curve, 1e-12)
    misfit = ((counts - expected) ** 2 / expected)[seen].sum()
    freedom = (seen.sum() - 2) * (counts.shape[1] - 1)
    spread = max(misfit - freedom, 0.0) / max(float((sizes[seen] - 1).sum()) * (counts.shape[1] - 1), 1.0)
    share = np.where(seen, sizes * spread / (1 - min(spread, 0.5) + sizes * spread), 0.0)[:, np.newaxis]
    return np.asarray((1 - share) * curve + share * counts / np.maximum(sizes, 1)[:, np.newaxis])
