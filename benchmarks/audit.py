"""Seven worlds where real projects live: labels with the right options, and with none, over those of who knows all.

Brier scores of elements are divided by the score under the true law. ``python -m benchmarks.audit [SEEDS]`` prints a
table: the right options should stay within 1.03; the defaults within 1.15, and within 1.4 where they leave something
out on purpose (positions, impossible patterns, groups that nobody declared); and nothing is worse than the vote.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import dugong as dg
from dugong.infer.answers import posterior
from dugong.law import Law
from dugong.tasks import Element
from dugong.types import FloatArray, Int8Array
from dugong.votes.concat import concat
from dugong.worlds import Block, CrossedBlock, World, accurate, confusion

RIGHT, DEFAULTS, LEFT_OUT = 1.03, 1.15, 1.4  # limits


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Votes of a world, their truth, the labels of who knows its law, and what may be said about it."""

    votes: dg.Votes
    gold: Int8Array
    best: FloatArray
    options: dict[str, Any]
    groups: Sequence[str] | None = None
    limit: float = DEFAULTS


def resolutions(size: float, seed: int) -> Draw:
    """Frames, overlapping windows of four, and whole sequences."""
    prior = dg.priors.Markov(positive=0.25, stay=0.8)
    world = World(
        prior=prior,
        blocks=(
            *(Block(names=(f"s{j}",), table=accurate(0.7 + 0.05 * j, 0.85, 0.2, 0.1)) for j in range(4)),
            Block(names=("window",), table=accurate(0.8, 0.85), resolution=dg.Window(4, 2, "any")),
            Block(names=("whole",), table=accurate(0.85, 0.8), resolution=dg.Sequence()),
        ),
        lengths=12,
    )
    return _drawn(world, 2000 * size, seed, {"prior": prior, "dependencies": ()})


def rare(size: float, seed: int) -> Draw:
    """Fifty elements, two per cent of them positive, and a source that is worse than random."""
    prior = dg.priors.Markov(positive=0.02, stay=0.8)
    tables = [
        accurate(0.9, 0.97, 0.1),
        accurate(0.8, 0.95, 0.3),
        accurate(0.85, 0.9),
        accurate(0.7, 0.98),
        accurate(0.3, 0.4),
    ]
    blocks = tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables))
    return _drawn(
        World(prior=prior, blocks=blocks, lengths=50), 1500 * size, seed, {"prior": prior, "dependencies": ()}
    )


def classes(size: float, seed: int) -> Draw:
    """Three classes, windows about one of them, and between one and thirteen elements."""
    prior = dg.priors.Markov(
        initial=[0.5, 0.3, 0.2], transition=[[0.8, 0.12, 0.08], [0.15, 0.75, 0.1], [0.2, 0.1, 0.7]]
    )
    world = World(
        prior=prior,
        blocks=(
            *(Block(names=(f"s{j}",), table=confusion(3, [0.85 - 0.05 * j, 0.7, 0.75], 0.1)) for j in range(4)),
            Block(names=("window",), table=accurate(0.85, 0.9), resolution=dg.Window(3, link="any", of=3)),
        ),
        lengths=lambda n, rng: rng.integers(1, 14, n),
    )
    return _drawn(world, 2500 * size, seed, {"prior": prior, "dependencies": ()})


def detector(size: float, seed: int) -> Draw:
    """A source on frames that repeats what a source on windows says, six times out of ten."""
    prior, own = dg.priors.Markov(positive=0.2, stay=0.75), accurate(0.75, 0.85, 0.1)
    table = np.tile(own[:, np.newaxis, np.newaxis], (1, 2, 3, 1))
    table[:, :, :2] = 0.4 * table[:, :, :2] + 0.6 * np.eye(3)[:2]
    world = World(
        prior=prior,
        blocks=(
            *(Block(names=(f"s{j}",), table=accurate(0.75, 0.8, 0.1)) for j in range(3)),
            Block(names=("windows",), table=accurate(0.8, 0.75), resolution=dg.Window(5, link="any")),
            CrossedBlock(name="frames", parent="windows", table=table),
        ),
        lengths=20,
    )
    return _drawn(world, 1500 * size, seed, {"prior": prior, "dependencies": [("frames", "windows")]})


def positions(size: float, seed: int) -> Draw:
    """Accuracies that differ by position, and labels that become more frequent."""
    rng = np.random.default_rng(seed + 1000)
    tables = [np.stack([accurate(*rng.uniform(0.6, 0.95, 2), 0.1) for _ in range(6)]) for _ in range(5)]
    prior = dg.priors.Markov(initial=[0.95, 0.05], transition=[[0.75, 0.25], [0.1, 0.9]])
    blocks = tuple(Block(names=(f"s{j}",), table=table, by_position=True) for j, table in enumerate(tables))
    options = {"prior": prior, "dependencies": (), "sharing": "task"}
    return _drawn(World(prior=prior, blocks=blocks, lengths=6), 4000 * size, seed, options, limit=LEFT_OUT)


def patterns(size: float, seed: int) -> Draw:
    """Half of the patterns of five labels are impossible."""
    rng = np.random.default_rng(seed + 2000)
    every = list(product((-1, 1), repeat=5))
    chosen = [every[place] for place in rng.choice(32, 16, replace=False)]
    prior = dg.priors.Patterns(dict(zip(chosen, rng.dirichlet(np.full(16, 20.0)).tolist(), strict=True)))
    tables = [accurate(*rng.uniform(0.6, 0.8, 2), 0.1) for _ in range(5)]
    blocks = tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables))
    options = {"prior": prior, "dependencies": ()}
    return _drawn(World(prior=prior, blocks=blocks, lengths=5), 3000 * size, seed, options, limit=LEFT_OUT)


def patients(size: float, seed: int) -> Draw:
    """Four patients whose tables differ."""
    rng, prior = np.random.default_rng(seed + 3000), dg.priors.Markov(positive=0.3, stay=0.8)
    draws = []
    for number in range(4):
        tables = [accurate(*rng.uniform(0.65, 0.9, 2), *rng.uniform(0, 0.3, 2)) for _ in range(5)]
        blocks = tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables))
        draws.append(_drawn(World(prior=prior, blocks=blocks, lengths=8), 500 * size, 10 * seed + number, {}))
    return Draw(
        votes=concat([one.votes for one in draws], keys=list("abcd")),
        gold=np.concatenate([one.gold for one in draws]),
        best=np.concatenate([one.best for one in draws]),
        options={"prior": prior, "dependencies": (), "sharing": "group"},
        groups=[name for name, one in zip("abcd", draws, strict=True) for _ in range(one.votes.n_sequences)],
        limit=LEFT_OUT,
    )


WORLDS: dict[str, Callable[[float, int], Draw]] = {
    "three resolutions": resolutions,
    "rare, one worse than random": rare,
    "three classes, ragged": classes,
    "shared detector": detector,
    "by position": positions,
    "impossible patterns": patterns,
    "four patients": patients,
}


def _drawn(world: World, n: float, seed: int, options: dict[str, Any], limit: float = DEFAULTS) -> Draw:
    votes, truth = world.sample(round(n), rng=seed)
    best = posterior(Law(parameters=world.parameters(), prior=world.prior), votes)[Element()]
    return Draw(votes=votes, gold=truth["element"], best=best, options=options, limit=limit)


def brier(probabilities: FloatArray, draw: Draw) -> float:
    """Mean squared distance of probabilities from the truth, over elements and classes."""
    truth = draw.gold[:, np.newaxis] == np.array(draw.votes.classes)
    return float(((probabilities - truth) ** 2).sum(axis=1).mean())


def ratios(draw: Draw) -> dict[str, float]:
    """Scores of the right options, the defaults, plain EM and the vote over that of who knows the law."""
    right = dg.LabelModel(**draw.options).fit(draw.votes, groups=draw.groups)
    found = {
        "right": right.predict_proba(draw.votes, groups=draw.groups),
        "defaults": dg.LabelModel().fit(draw.votes).predict_proba(draw.votes),
        "EM": dg.LabelModel(dependencies=(), estimator="em").fit(draw.votes).predict_proba(draw.votes),
        "vote": dg.MajorityVote().fit(draw.votes).predict_proba(draw.votes),
    }
    return {name: brier(one, draw) / brier(draw.best, draw) for name, one in found.items()}


def main(n_seeds: int = 5) -> None:
    """Print the table: means over draws, and the worst draw."""
    for name, make in WORLDS.items():
        rows = [ratios(make(1.0, seed)) for seed in range(n_seeds)]
        cells = [
            f"{how} {np.mean([r[how] for r in rows]):.3f} (worst {max(r[how] for r in rows):.3f})" for how in rows[0]
        ]
        beside = max(max(r["right"], r["defaults"]) / r["vote"] for r in rows)
        limits = f"limits {RIGHT}, {make(0.02, 0).limit}"
        print(f"{name:28}  {'   '.join(cells)}   at most {beside:.2f} of the vote   {limits}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
