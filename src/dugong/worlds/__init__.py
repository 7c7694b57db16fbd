"""Worlds with known truth: sources with known tables, samples, and exact population sums."""

from dugong.worlds.blocks import (
    Block,
    CrossedBlock,
    FullBlock,
    TemporalBlock,
    accurate,
    common_cause,
    confusion,
    copying_pair,
    copying_path,
    couplings,
    cycle,
    flipped,
    ising,
    path,
    silent,
    temporal,
    unipolar,
)
from dugong.worlds.population import population_counts, slot_law
from dugong.worlds.sampling import Between, Shots, Truth
from dugong.worlds.standard import STANDARD, lopsided, multiresolution, ragged, rare, self_dependent, sticky, tv_news
from dugong.worlds.world import World

__all__ = [
    "STANDARD",
    "Between",
    "Block",
    "CrossedBlock",
    "FullBlock",
    "Shots",
    "TemporalBlock",
    "Truth",
    "World",
    "accurate",
    "common_cause",
    "confusion",
    "copying_pair",
    "copying_path",
    "couplings",
    "cycle",
    "flipped",
    "ising",
    "lopsided",
    "multiresolution",
    "path",
    "population_counts",
    "ragged",
    "rare",
    "self_dependent",
    "silent",
    "slot_law",
    "sticky",
    "temporal",
    "tv_news",
    "unipolar",
]
