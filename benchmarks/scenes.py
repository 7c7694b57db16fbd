"""The votes that everybody gets: one file per scenario and size, with the labels and the best possible answer.

Peers read dense votes, one row per element: a vote on a window or a sequence is repeated on its elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dugong.infer.engine import posterior
from dugong.votes import Votes
from dugong.worlds import Block, World
from dugong.worlds.blocks import copying_pair
from dugong.worlds.standard import lopsided, lopsided_table, multiresolution, rare, self_dependent, sticky

N_SOURCES = 10
SCENARIOS = ("plain", "correlated", "multi-resolution", "self-dependent", "rare")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One set of votes: a scenario at a size."""

    scenario: str
    n_sequences: int
    n_elements: int

    @property
    def name(self) -> str:
        """Name of its file and of its rows."""
        return f"{self.scenario}-{self.n_sequences}x{self.n_elements}"


def make_world(scenario: str) -> World:
    """The world of a scenario, ten sources each (the multi-resolution one has ten as well)."""
    if scenario == "plain":
        return lopsided(N_SOURCES)
    if scenario == "correlated":
        return correlated()
    if scenario == "multi-resolution":
        return multiresolution()
    if scenario == "self-dependent":
        return self_dependent(N_SOURCES)
    return rare(N_SOURCES)


def correlated() -> World:
    """Seven sources of their own, and three that copy a neighbour 70 % of the time."""
    rng = np.random.default_rng(0)
    tables = [lopsided_table(rng) for _ in range(N_SOURCES)]
    blocks = [Block(names=(f"s{j}",), table=tables[j]) for j in range(4)]
    blocks += [
        Block(names=(f"s{j}", f"s{j + 1}"), table=copying_pair(tables[j], 0.7, own=tables[j + 1])) for j in (4, 6, 8)
    ]
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks), lengths=5, name="correlated")


def write_scene(scene: Scene, folder: Path) -> Path:
    """Draw the votes of a scene once and keep them."""
    path = folder / f"{scene.name}.npz"
    if path.exists():
        return path
    world = make_world(scene.scenario)
    votes, labels = world.sample(scene.n_sequences, lengths=scene.n_elements, rng=7)
    best = posterior(votes, world.parameters(), world.prior, resolutions=["element"])
    optimum = next(iter(best.probabilities.values()))[:, 1]
    truth = labels["element"] == 1
    chain = world.prior.chain()
    arrays = {
        "dense": dense_votes(votes),
        "lengths": votes.lengths,
        "truth": truth,
        "optimum": np.array(((optimum - truth) ** 2).mean()),
        "initial": np.asarray(chain.initial),
        "transition": np.asarray(chain.transition),
    }
    for place, column in enumerate(votes.columns):
        arrays[f"column{place}"] = column
    partial = path.with_suffix(".part.npz")
    np.savez(partial, scenario=np.array(scene.scenario), **arrays)
    partial.rename(path)
    return path


def dense_votes(votes: Votes) -> np.ndarray:
    """Votes by element, (n_elements, n_sources): coarse votes on each of their elements, the last one that speaks."""
    dense = np.zeros((votes.n_elements, votes.n_sources), dtype=np.int8)
    for place, (info, column) in enumerate(zip(votes.sources, votes.columns, strict=True)):
        starts, stops = votes.layout(info.resolution).flat_bounds()
        sizes = stops - starts
        offsets = np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = np.arange(int(sizes.sum())) - offsets + np.repeat(starts, sizes)
        spoken = np.repeat(column, sizes)
        dense[rows[spoken != 0], place] = spoken[spoken != 0]
    return dense


__all__ = ["SCENARIOS", "Scene", "make_world", "write_scene"]
