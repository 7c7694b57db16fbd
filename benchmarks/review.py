"""Whether what `model.review` chooses is worth more than what chance would choose.

Worlds with known truth and real votes: fit, choose 50 elements by value, reveal their labels, fit and label again with
them; beside it 50 and 150 elements at random. Prints the Brier loss of all labels, means over paired draws.

Run: ``make bench-review`` (all), ``python -m benchmarks.review 5`` (five draws of each world and set).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import dugong as dg
from dugong.types import FloatArray, Int8Array, IntArray
from dugong.worlds import World
from dugong.worlds.standard import multiresolution, rare

BUDGET, RANDOM, SEQUENCES, DRAWS = 50, 150, 200, 20
REAL = ("occupancy", "tennis", "sleep-dodh", "ner-bc5cdr", "salads-mid")
MOST = 20_000  # elements of a real draw
UNKNOWN = 0.1  # share of elements of a sequence about which gold may say nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Votes, their truth, and a way to fit them."""

    votes: dg.Votes
    truth: Int8Array
    model: dg.LabelModel
    seed: int

    def chosen(self, budget: int) -> IntArray:
        """Elements by value, of those whose label somebody knows."""
        asked = budget if self.truth.all() else 2 * budget
        rows = self.model.review(self.votes, asked, by="value").rows
        assert rows is not None
        return rows[self.truth[rows] != 0][:budget]

    def at_random(self, budget: int) -> IntArray:
        """Elements by chance; fewer of the same seed are the first of more."""
        known = np.flatnonzero(self.truth != 0)
        return np.random.default_rng(self.seed).permutation(known)[:budget]


def draw_world(make: Callable[..., World], seed: int, *, given: bool = True) -> Job:
    """A world, drawn, with its prior and independent sources; or with the defaults."""
    world = make(seed=seed)
    votes, truth = world.sample(SEQUENCES, rng=1000 + seed)
    model = dg.LabelModel(prior=world.prior, dependencies=()) if given else dg.LabelModel()
    model.fit(votes)
    return Job(votes=votes, truth=truth[dg.Element()], model=model, seed=seed)


def draw_real(name: str, seed: int) -> Job:
    """Some sequences of a real set, with the defaults."""
    from benchmarks.real_sets import DATA, real_votes

    case = real_votes(DATA, name)
    votes, gold = case.votes, case.gold
    offsets = votes.layout("element").offsets
    unknown = np.diff(np.concatenate([[0], np.cumsum(gold == 0)])[offsets])
    few = unknown <= UNKNOWN * votes.lengths
    order = np.random.default_rng(seed).permutation(np.flatnonzero(few & (votes.lengths > 0)))
    within = np.cumsum(votes.lengths[order]) <= MOST
    within[0] = True
    chosen = np.sort(order[within][:SEQUENCES])
    rows = np.concatenate([np.arange(offsets[place], offsets[place + 1]) for place in chosen])
    part = votes[chosen]
    return Job(votes=part, truth=gold[rows], model=dg.LabelModel().fit(part), seed=seed)


def loss(job: Job, probabilities: FloatArray) -> float:
    """Brier loss of the labels that are known."""
    hot = job.truth[:, None] == np.array(job.votes.classes)
    return float(((probabilities - hot) ** 2).sum(axis=1)[job.truth != 0].mean())


def after(job: Job, rows: IntArray) -> float:
    """The loss once the labels of some elements are known: they are fitted with, and certain."""
    known = np.zeros(job.votes.n_elements, dtype=np.int8)
    known[rows] = job.truth[rows]
    model = dg.LabelModel(**job.model.get_params()).fit(job.votes, gold=known)
    return loss(job, model.predict_proba(job.votes, known=known))


def measure(draw: Callable[[int], Job], n_draws: int) -> FloatArray:
    """Losses before, after 50 by value, after 50 and 150 at random; (n_draws, 4)."""
    rows = []
    for seed in range(n_draws):
        job = draw(seed)
        before = loss(job, job.model.predict_proba(job.votes))
        found = [after(job, job.chosen(BUDGET)), *(after(job, job.at_random(n)) for n in (BUDGET, RANDOM))]
        rows.append([before, *found])
    return np.array(rows)


def main(n_draws: int = DRAWS) -> None:
    """Print the table."""
    print(f"{'':<26}{'before':>9}{'50 value':>10}{'50 random':>11}{'150 random':>12}{'better':>8}")
    jobs: dict[str, Callable[[int], Job]] = {}
    for make in (multiresolution, rare):
        jobs[make.__name__] = partial(draw_world, make)
        jobs[f"{make.__name__}, defaults"] = partial(draw_world, make, given=False)
    jobs |= {name: partial(draw_real, name) for name in REAL}
    for name, draw in jobs.items():
        found = measure(draw, n_draws if name not in REAL else min(n_draws, 5))
        numbers = "".join(f"{mean:11.4f}" for mean in found.mean(axis=0))
        print(f"{name:<24}{numbers}{int((found[:, 1] <= found[:, 3]).sum()):>5}/{len(found)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
