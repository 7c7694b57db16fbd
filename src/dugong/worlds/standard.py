"""Named worlds that tests, benchmarks and the demo share. Each is a function of a seed: same seed, same world."""

from __future__ import annotations

import numpy as np

from dugong.priors import Markov, Prior
from dugong.tasks import Resolution, Sequence, Window
from dugong.types import FloatArray
from dugong.worlds.blocks import AnyBlock, Block, TemporalBlock, accurate, copying_pair, temporal, unipolar
from dugong.worlds.sampling import Between
from dugong.worlds.world import World

CAPTIONS = Window(5, link="any", name="caption")
BROADCAST = Sequence(link="any")


def lopsided_table(rng: np.random.Generator) -> FloatArray:
    """A source with accuracies from .6 to .9 and abstains up to 50 %, different for each class."""
    p_plus, p_minus = rng.uniform(0.6, 0.9, size=2)
    abstain_plus, abstain_minus = rng.uniform(0.0, 0.5, size=2)
    return accurate(p_plus, p_minus, abstain_plus, abstain_minus)


def sticky(positive: float, keep: float) -> Markov:
    """An element keeps the label before it with probability `keep` and is redrawn otherwise."""
    return Markov(positive=positive, stay=keep + (1 - keep) * positive)


def lopsided(n_sources: int = 8, seed: int = 0, prior: Prior | None = None, n_elements: int = 5) -> World:
    """Independent, asymmetric sources that abstain; 30 % positive (METHOD 3.3)."""
    rng = np.random.default_rng(seed)
    blocks = tuple(Block(names=(f"s{j}",), table=lopsided_table(rng)) for j in range(n_sources))
    return World(prior=prior or sticky(0.3, 0.8), blocks=blocks, lengths=n_elements, name="lopsided")


def multiresolution(seed: int = 0) -> World:
    """Six frame sources, a seventh that copies one of them, windows of 2 and 3 and the sequence by majority."""
    rng = np.random.default_rng(seed)
    tables = [lopsided_table(rng) for _ in range(10)]
    blocks: list[AnyBlock] = [Block(names=(f"frame{j}",), table=tables[j]) for j in range(5)]
    blocks.append(Block(names=("frame5", "copy5"), table=copying_pair(tables[5], 0.7, own=tables[6])))
    coarse: dict[str, Resolution] = {
        "pair": Window(2, link="majority"),
        "triple": Window(3, link="majority"),
        "whole": Sequence("majority"),
    }
    for (name, resolution), table in zip(coarse.items(), tables[7:], strict=True):
        blocks.append(Block(names=(name,), table=table, resolution=resolution))
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks), lengths=5, name="multiresolution")


def rare(n_sources: int = 8, seed: int = 0) -> World:
    """As `lopsided`, with 3 % positive."""
    world = lopsided(n_sources, seed, prior=sticky(0.03, 0.8))
    return World(prior=world.prior, blocks=world.blocks, lengths=world.lengths, name="rare")


def self_dependent(n_sources: int = 8, n_temporal: int = 3, repeat: float = 0.5, seed: int = 0) -> World:
    """As `lopsided`, with some sources that repeat their last vote."""
    rng = np.random.default_rng(seed)
    blocks: list[AnyBlock] = []
    for j in range(n_sources):
        table = lopsided_table(rng)
        if j < n_temporal:
            first, step = temporal(table, repeat)
            blocks.append(TemporalBlock(name=f"s{j}", first=first, step=step))
        else:
            blocks.append(Block(names=(f"s{j}",), table=table))
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks), lengths=5, name="self_dependent")


def ragged(n_sources: int = 6, seed: int = 0) -> World:
    """Sequences of 1 to 12 elements that begin almost surely negative, with a window and a sequence source."""
    rng = np.random.default_rng(seed)
    prior = Markov(initial=[0.95, 0.05], transition=[[0.85, 0.15], [0.2, 0.8]])
    blocks = [Block(names=(f"s{j}",), table=lopsided_table(rng)) for j in range(n_sources)]
    blocks.append(Block(names=("window",), table=lopsided_table(rng), resolution=Window(3, 2, "any")))
    blocks.append(Block(names=("sequence",), table=lopsided_table(rng), resolution=Sequence("any")))
    return World(prior=prior, blocks=tuple(blocks), lengths=Between(1, 12), name="ragged")


def tv_news() -> World:
    """The demo: interviews in TV news, 3 % of all frames, in bouts of about ten frames (after the paper's task).

    Five sources look at frames (faces, light), two at captions over five frames, one at the programme. The same names
    are real functions in `tvnews_sources`; `tvnews.broadcasts` renders frames on which they vote like this world.
    """
    frames = {
        "host_on_screen": accurate(0.85, 0.80, 0.15, 0.20),
        "guest_on_screen": unipolar(0.55, 0.06),
        "two_people": accurate(0.78, 0.82, 0.25, 0.40),
        "close_up": accurate(0.72, 0.76, 0.20, 0.30),
        "studio_light": accurate(0.70, 0.66, 0.10, 0.10),
    }
    captions = {"thank_you": unipolar(0.50, 0.07), "small_talk": accurate(0.75, 0.85, 0.30, 0.35)}
    blocks = [Block(names=(name,), table=table) for name, table in frames.items()]
    blocks += [Block(names=(name,), table=table, resolution=CAPTIONS) for name, table in captions.items()]
    programme = accurate(0.80, 0.82, 0.20, 0.30)
    blocks.append(Block(names=("interview_programme",), table=programme, resolution=BROADCAST))
    return World(prior=Markov(positive=0.03, bout=10), blocks=tuple(blocks), lengths=30, name="tv_news")


STANDARD = {
    "lopsided": lopsided,
    "multiresolution": multiresolution,
    "ragged": ragged,
    "rare": rare,
    "self_dependent": self_dependent,
    "tv_news": tv_news,
}
