"""Order of the sources by what they say, and which of them are variants of one another.

In: folded votes. Out: an order that does not depend on the given one; a similarity of every pair from 0 (ordinary) to 1
(identical). A source with variants counts 1 / (1 + sum of similarities), so that a family counts about as one.

Sources that are accurate agree as well, so agreement alone must not count against them. A pair is judged by what skill
cannot explain: for independent errors Cohen's kappa of two sources is the product of their skills. A large group is
judged by its agreement beyond chance: that two sources are experts is plausible, that six are and err apart is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.fit.learned.folded import Folded
from dugong.fit.learned.settings import FAMILY, NEAR, NEAR_ROUNDS, SKILL_ROUNDS
from dugong.types import BoolArray, FloatArray, IntArray

_FEWEST = 4  # with three sources two that share errors cannot be told from two that are better than the third
_COMMON = 20  # votes on the same elements without which a kappa is noise
_SETTLED = 1e-14  # a step of a skill below this is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreements:
    """How pairs of sources agree, (m, m).

    Attributes
    ----------
    both : how often both speak
    apart, chance : shares of different and, by chance, of equal votes among these
    others : off the diagonal
    excess, possible : votes that agree beyond chance, and that could
    """

    both: FloatArray
    apart: FloatArray
    chance: FloatArray
    others: BoolArray
    excess: FloatArray
    possible: FloatArray

    def similar(self, expected: FloatArray) -> FloatArray:
        """From 0 to 1: how much less often than `expected` two sources differ, a few pseudo-votes added."""
        own = np.maximum(np.diag(self.both), 1)
        steadied = (self.apart * self.both + 5 * expected) / (self.both + 5)
        nearness = np.clip(1 - steadied / np.maximum(NEAR * expected, 1e-9), 0, 1)
        return np.asarray(nearness * self.both / np.sqrt(np.outer(own, own)) * self.others)

    def beyond_chance(self, weights: FloatArray) -> float:
        """Cohen's kappa over all pairs of sources, which count so much, (m,); one vote is added that says one half."""
        return max((float(weights @ self.excess @ weights) + 0.5) / (float(weights @ self.possible @ weights) + 1), 0.0)


def content_order(folded: Folded, names: tuple[str, ...]) -> IntArray:
    """Places of the sources sorted by how often they gave each vote, and how many spoke there; ties go by name."""
    rows, sizes = folded.rows, folded.sizes
    company, most = sizes * (rows.spoken() @ np.ones(len(names))), rows.coding.n_columns + 1
    keys = [
        (*(np.bincount(codes, counted, most).tolist() for counted in (sizes, company)), name)
        for codes, name in zip(rows.codes.T + 1, names, strict=True)
    ]
    return np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=np.int64)


def find_families(agreements: Agreements) -> FloatArray:
    """Similarity of every pair of sources, (m, m), zero on the diagonal."""
    typical, free = np.zeros(agreements.both.shape), np.maximum(1 - agreements.chance, 1e-9)
    if len(typical) < _FEWEST:
        return typical
    # Who differs much less often than sources here usually do, families counted once.
    for _ in range(NEAR_ROUNDS):
        weight = family_weights(typical)
        pairs = np.outer(weight, weight) * agreements.both * agreements.others
        # Beside what chance alone would do: where a class is frequent, all sources agree on it.
        usual = max(float((pairs * agreements.apart).sum()), 0.5) / max(float((pairs * free).sum()), 1.0)
        typical = agreements.similar(usual * free)
    by_skill = _beyond_skill(agreements, typical)
    large = np.clip((typical.sum(axis=1) - 1) / FAMILY, 0, 1)
    share = np.sqrt(np.outer(large, large))
    return np.asarray(share * np.maximum(typical, by_skill) + (1 - share) * by_skill)


def family_weights(similar: FloatArray) -> FloatArray:
    """What each source counts: one over one plus its variants."""
    return np.asarray(1 / (1 + similar.sum(axis=1)))


def count_agreements(folded: Folded) -> Agreements:
    """How pairs of sources agree on the elements about which both speak.

    Underspecified votes agree with all that they leave open: they are other votes, but nothing speaks against them.
    """
    rows, m = folded.rows, folded.rows.codes.shape[1]
    sizes, spoken = folded.sizes[:, np.newaxis], rows.spoken().astype(np.float64)
    heard = spoken * sizes
    both, (same, equal, met, expected) = spoken.T @ heard, np.zeros((4, m, m))

    def says(code: int) -> FloatArray:
        return np.asarray(rows.codes == code, dtype=np.float64)

    said = [says(code).T @ heard for code in range(rows.coding.n_columns)]
    open_to = rows.coding.split @ rows.coding.split.T > 0
    for one, other in np.argwhere(open_to).tolist():
        together, by_chance = says(one).T @ (says(other) * sizes), said[one] * said[other].T
        met, expected = met + together, expected + by_chance
        if one == other:
            same, equal = same + together, equal + by_chance
    total, others = np.maximum(both, 1), ~np.eye(m, dtype=np.bool_)
    # A list of yes and a list of no can only contradict each other: they agree where they seldom speak together.
    asked = (rows.codes >= 0).astype(np.float64)
    speaks = spoken.T @ (asked * sizes)
    alone = speaks * speaks.T / np.maximum(asked.T @ (asked * sizes), 1)
    named = np.stack([np.diag(one) > 0 for one in said])
    able = named.T @ open_to @ named
    return Agreements(
        both=both,
        apart=1 - same / total,
        chance=equal / total**2,
        others=others,
        excess=np.where(able, met - expected / total, alone - both) * others,
        possible=np.where(able, both - expected / total, alone) * others,
    )


def _beyond_skill(agreements: Agreements, start: FloatArray) -> FloatArray:
    """Who differs much less often than their skills explain, from a first guess that is then acquitted."""
    both, chance = agreements.both, agreements.chance
    usable = agreements.others & (both >= _COMMON) & (chance < 0.999)
    kappa = np.where(usable, 1 - agreements.apart / np.maximum(1 - chance, 1e-9), 0.0)
    skill = np.full(len(both), np.sqrt(np.clip(kappa.sum() / max(usable.sum(), 1), 0.01, 0.99)))
    similar = start
    for _ in range(SKILL_ROUNDS):
        weights = usable * both * family_weights(similar) * (1 - similar)
        agreed = weights * kappa
        for _ in range(100):  # damped steps of a rank-one fit of kappa
            before, fitted = skill, agreed @ skill / np.maximum(weights @ skill**2, 1e-9)
            skill = np.sqrt(skill * np.clip(fitted, 1e-3, 0.99))
            if np.abs(skill - before).max() < _SETTLED:
                break
        # The skill of i as all sources but j show it: that two agree with each other does not prove their skill.
        agreed, explained = (one.sum(axis=1, keepdims=True) - one for one in (agreed * skill, weights * skill**2))
        shown = np.clip(agreed / np.where(explained > 0, explained, 1.0), 1e-3, 0.99)
        others = np.where(explained > 0, shown, skill[:, np.newaxis])
        similar = (similar + agreements.similar((1 - others * others.T) * (1 - chance)) * usable) / 2
    return similar
