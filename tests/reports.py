"""Fitted models and votes that the tests of reports share, and explanations read off a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.report.track import Sequences, Track
from dugong.tasks import Element, Sequence, Window
from dugong.votes import Votes
from dugong.worlds import Block, TemporalBlock, World, accurate, confusion, copying_pair, sticky, temporal

HOSTILE = (
    "<script>window.broken = 1</script>",
    "\"'><img src=x onerror='window.broken=2'>",
    "</script></style><svg onload=window.broken=3>",
    "\u202egnp.exe مرحبا שלום",
    "🦭🌊 sea cow",
    "long " + "x" * 290 + " end!",
)


@dataclass(frozen=True)
class Case:
    """A fitted model with its votes and the truth."""

    model: LabelModel
    votes: Votes
    gold: np.ndarray


@cache
def binary_case(n_sequences: int = 60) -> Case:
    """Two classes, three resolutions, overlapping windows, a copying pair and a source that repeats itself."""
    first, step = temporal(accurate(0.8, 0.75, 0.1, 0.2), 0.5)
    blocks = (
        Block(names=("face",), table=accurate(0.85, 0.8, 0.2, 0.3)),
        Block(names=("light",), table=accurate(0.75, 0.85, 0.1, 0.1)),
        Block(names=("voice", "echo"), table=copying_pair(accurate(0.8, 0.7, 0.3, 0.3), 0.6)),
        TemporalBlock(name="motion", first=first, step=step),
        Block(names=("caption",), table=accurate(0.85, 0.8, 0.2), resolution=Window(5, 3, "any", name="caption")),
        Block(names=("show",), table=accurate(0.8, 0.85, 0.1), resolution=Sequence("any")),
    )
    world = World(prior=sticky(0.3, 0.8), blocks=blocks, lengths=lambda n, rng: rng.integers(12, 40, n))
    votes, labels = world.sample(n_sequences, rng=3)
    model = LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
    return Case(model, votes, labels.by_resolution[Element()])


@cache
def many_case() -> Case:
    """Three named classes, everything learned."""
    chain = Markov(initial=[0.5, 0.3, 0.2], transition=[[0.9, 0.08, 0.02], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
    blocks = tuple(Block(names=(f"net {j}",), table=confusion(3, 0.6 + 0.06 * j, 0.1)) for j in range(5))
    world = World(prior=chain, blocks=blocks, lengths=60, class_names=("Wake", "NREM", "REM"))
    votes, labels = world.sample(40, rng=5)
    return Case(LabelModel().fit(votes), votes, labels.by_resolution[Element()])


@cache
def hostile_case() -> Case:
    """Names of sources, classes, windows and sequences that try to get out of where they are shown."""
    blocks = tuple(
        Block(names=(name,), table=accurate(0.75 + 0.03 * j, 0.8, 0.2)) for j, name in enumerate(HOSTILE[:5])
    )
    window = Window(4, link="any", name=HOSTILE[0])
    blocks += (Block(names=(HOSTILE[5],), table=accurate(0.8), resolution=window),)
    world = World(prior=sticky(0.3, 0.8), blocks=blocks, lengths=20, class_names=(HOSTILE[1], HOSTILE[2]))
    votes, labels = world.sample(len(HOSTILE) * 20, rng=7)
    ids = [f"{HOSTILE[place % len(HOSTILE)]} {place}" for place in range(votes.n_sequences)]
    named = Votes(
        sources=votes.sources,
        columns=votes.columns,
        lengths=votes.lengths,
        ids=np.array(ids),
        class_names=votes.class_names,
    )
    model = LabelModel(prior=world.prior, dependencies=()).fit(named)
    return Case(model, named, labels.by_resolution[Element()])


# --- the explanation of a report, in Python ------------------------------------------------------------------------
@dataclass(frozen=True)
class Split:
    """Log-odds of a task, taken apart with nothing but what a report holds."""

    prior: float
    own: dict[str, float]
    neighbours: float
    averaging: float
    total: float


def split(found: Sequences, track: Track, lane: int, task: int, target: int) -> Split:
    tasks = track.lanes[lane]
    law = tasks.log_prior[task].copy()
    prior = before = log_odds(law, target)
    own = {}
    for place in found.order:
        voter = found.voters[place]
        code = int(track.votes[place][task]) if voter.lane == lane else len(voter.codes) - 1
        if code < len(voter.codes) - 1:
            position = min(tasks.first + task, voter.evidence.shape[0] - 1)
            parents = (int(track.votes[parent][task]) for parent in voter.parents)
            law = law + voter.evidence[(position, *parents, code)]
            own[voter.name] = log_odds(law, target) - before
            before = log_odds(law, target)
    total = log_odds(tasks.log_probability[task], target)
    exact = total if tasks.log_exact is None else log_odds(tasks.log_exact[task], target)
    return Split(prior=prior, own=own, neighbours=exact - before, averaging=total - exact, total=total)


def log_odds(law: np.ndarray, target: int) -> float:
    others = np.delete(law, target)
    return float(law[target] - np.logaddexp.reduce(others))


def some_tasks(votes: Votes, lane: int, n_tasks: int, rng: np.random.Generator) -> Iterable[tuple[int, int]]:
    """Pairs of sequence and task, drawn at random."""
    counts = np.diff(votes.layout(votes.resolutions[lane]).offsets)
    for _ in range(n_tasks):
        sequence = int(rng.integers(votes.n_sequences))
        yield sequence, int(rng.integers(counts[sequence]))
