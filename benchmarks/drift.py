"""How often a source that changed is found, and how often a stable stream raises an alarm.

Worlds of eight asymmetric sources that abstain, sequences of five elements. A model is fitted on 1,000 sequences; the
accuracy of one source then falls by .15, and 200 new sequences are compared. ``make bench-drift`` runs 100 draws.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import dugong as dg
from dugong.types import FloatArray
from dugong.worlds import World
from dugong.worlds.blocks import Block
from dugong.worlds.standard import lopsided

CHANGE, FITTED, NEW, DRAWS = 0.15, 1000, 200, 100


def worse(table: FloatArray, change: float) -> FloatArray:
    """The same source with P(right | it votes) lower by `change`, as often silent as before."""
    spoken = 1 - table[:, 2]
    right = np.diag(table[:, :2]) / spoken - change
    found = table.copy()
    for label in (0, 1):
        found[label, label], found[label, 1 - label] = right[label] * spoken[label], (1 - right[label]) * spoken[label]
    return found


def changed(world: World, place: int) -> World:
    """A world in which one source has lost accuracy."""
    blocks = list(world.blocks)
    block = blocks[place]
    assert isinstance(block, Block)
    blocks[place] = replace(block, table=worse(block.table, CHANGE))
    return replace(world, blocks=tuple(blocks))


def draw(seed: int, *, given: bool = True) -> tuple[bool, bool]:
    """Whether the changed source was named, and whether a stable stream raised an alarm."""
    world, place = lopsided(8, seed=seed), seed % 8
    model = dg.LabelModel(prior=world.prior, dependencies=()) if given else dg.LabelModel()
    model.fit(world.sample(FITTED, rng=seed)[0])
    after = model.drift(changed(world, place).sample(NEW, rng=10_000 + seed)[0])
    stable = model.drift(world.sample(NEW, rng=20_000 + seed)[0])
    return any(one.where == f"s{place}" for one in after.alarms), bool(stable)


def main(n_draws: int = DRAWS) -> None:
    """Print how often."""
    for name, given in (("prior given", True), ("defaults", False)):
        found = np.array([draw(seed, given=given) for seed in range(n_draws)]).sum(axis=0)
        print(f"{name:<12} of {n_draws} draws: changed source named {found[0]}, false alarms {found[1]}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
