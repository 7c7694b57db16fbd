"""Named worlds that tests, benchmarks and the demo share. Each is a function of a seed: same seed, same world."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dugong.priors import Markov, Prior
from dugong.tasks import Layout, Resolution, Sequence, Window
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray
from dugong.votes import Votes
from dugong.worlds.blocks import AnyBlock, Block, TemporalBlock, accurate, copying_pair, temporal, unipolar
from dugong.worlds.sampling import Between, Truth
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
    return replace(lopsided(n_sources, seed, prior=sticky(0.03, 0.8)), name="rare")


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
    are real functions in `tvnews_sources`; `broadcasts` renders frames on which they vote like this world.
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


# --- Raw material for the demo: broadcasts made of frames that real sources read --------------------------------------
# The votes of the world `tv_news` are drawn first; every frame is then rendered so that the functions of
# `tvnews_sources` see what they would have voted on: recognised faces with confidences, a count of people, face
# heights, light, captions, a programme title. So the whole path from raw data to labels runs, and the true accuracies
# of the sources are known.
_TEXT = (
    "the government said on monday that talks will go on while prices rise and traffic is slow near the river "
    "as voters wait for results from the north where crews work late"
)
_FILLER = np.array(_TEXT.split())
_THANKS = np.array(["thank you for joining us", "thank you so much", "many thanks"])
_TALK = np.array(["what do you think", "how do you feel about that", "let me ask you"])
_DESK = np.array(["breaking news", "weather update", "markets closed lower"])
_TITLES = {1: ("One on One", "The Evening Interview"), -1: ("Weather Now", "Market Hour"), 0: ("News at Nine", "Today")}


class Frame(NamedTuple):
    """One frame as detectors describe it.

    Attributes
    ----------
    second : when it was shown
    faces : dict of name to confidence
        Who a face recogniser believes to see.
    people : how many people a second detector counts
    face_height : height of the largest face, as a share of the frame
    brightness : mean light, 0 to 1
    caption : words spoken during the frame
    programme : title of the broadcast
    """

    second: float
    faces: dict[str, float]
    people: int
    face_height: float
    brightness: float
    caption: str
    programme: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Broadcasts:
    """Frames by broadcast, the truth about them, and the votes that they were rendered from."""

    frames: dict[str, list[Frame]]
    labels: Truth
    votes: Votes


def broadcasts(n_sequences: int = 200, lengths: int | IntArray = 30, rng: np.random.Generator | int = 0) -> Broadcasts:
    """Broadcasts of `lengths` frames each, with gold labels.

    Examples
    --------
    >>> shows = broadcasts(3, 10, rng=0)
    >>> len(shows.frames["broadcast-0000"]), len(shows.labels["element"])
    (10, 30)
    """
    generator = np.random.default_rng(rng)
    votes, labels = tv_news().sample(n_sequences, lengths, generator)
    frames = _render(votes, generator)
    offsets = votes.layout("element").offsets.tolist()
    width = max(len(str(n_sequences)), 4)
    names = [f"broadcast-{place:0{width}d}" for place in range(n_sequences)]
    cut = {name: frames[offsets[i] : offsets[i + 1]] for i, name in enumerate(names)}
    return Broadcasts(frames=cut, labels=labels, votes=votes)


def _render(votes: Votes, rng: np.random.Generator) -> list[Frame]:
    """All frames, sequence after sequence."""
    owners = votes.layout("element").owners()
    return list(
        map(
            Frame,
            votes.layout("element").positions().astype(np.float64).tolist(),
            _faces(votes.column("host_on_screen"), votes.column("guest_on_screen"), rng),
            _people(votes.column("two_people"), rng).tolist(),
            _level(votes.column("close_up"), (0.05, 0.18), (0.2, 0.35), (0.38, 0.7), rng).tolist(),
            _level(votes.column("studio_light"), (0.1, 0.35), (0.4, 0.5), (0.55, 0.9), rng).tolist(),
            _captions(votes, rng),
            _titles(votes, rng)[owners].tolist(),
        )
    )


def _faces(host: Int8Array, guest: Int8Array, rng: np.random.Generator) -> list[dict[str, float]]:
    """The host is seen clearly (+1), doubtfully (abstain) or not at all (-1); the guest clearly or not."""
    sure, unsure = rng.uniform(0.7, 1.0, size=(2, len(host))), rng.uniform(0.3, 0.6, size=len(host))
    found = []
    for place, (h, g) in enumerate(zip(host.tolist(), guest.tolist(), strict=True)):
        faces = {}
        if h >= 0:
            faces["host"] = round(float(sure[0, place] if h > 0 else unsure[place]), 2)
        if g > 0:
            faces["guest"] = round(float(sure[1, place]), 2)
        found.append(faces)
    return found


def _people(column: Int8Array, rng: np.random.Generator) -> IntArray:
    """Two people (+1), at most one (-1), or a crowd in which nothing can be said."""
    few, crowd = rng.integers(0, 2, size=len(column)), rng.integers(3, 9, size=len(column))
    return np.where(column > 0, 2, np.where(column < 0, few, crowd))


def _level(
    column: Int8Array,
    low: tuple[float, float],
    middle: tuple[float, float],
    high: tuple[float, float],
    rng: np.random.Generator,
) -> FloatArray:
    """A measurement that is low for -1, high for +1 and between for an abstain."""
    bounds = np.array([low, middle, high])[column.astype(np.int64) + 1]
    return np.round(rng.uniform(bounds[:, 0], bounds[:, 1]), 3)


def _captions(votes: Votes, rng: np.random.Generator) -> list[str]:
    """Filler words, with the phrases of a window said during one of its frames."""
    layout = Layout.of(CAPTIONS, votes.lengths)
    words = _FILLER[rng.integers(0, len(_FILLER), size=(votes.n_elements, 4))]
    texts = [" ".join(row) for row in words.tolist()]
    starts, stops = layout.flat_bounds()
    thanks, talk = votes.column("thank_you"), votes.column("small_talk")
    spoken = [(thanks > 0, _THANKS), (talk > 0, _TALK), (talk < 0, _DESK)]
    for said, phrases in spoken:
        windows = np.flatnonzero(said)
        frames = rng.integers(starts[windows], stops[windows])
        chosen = phrases[rng.integers(0, len(phrases), size=len(windows))]
        for frame, phrase in zip(frames.tolist(), chosen.tolist(), strict=True):
            texts[frame] = f"{texts[frame]} {phrase}"
    return texts


def _titles(votes: Votes, rng: np.random.Generator) -> AnyArray:
    """A programme title for every sequence (sequences without frames have no vote and no title)."""
    column = np.zeros(votes.n_sequences, dtype=np.int64)
    column[votes.lengths > 0] = votes.column("interview_programme")
    choice = rng.integers(0, 2, size=votes.n_sequences)
    return np.array([_TITLES[vote][pick] for vote, pick in zip(column.tolist(), choice.tolist(), strict=True)])
