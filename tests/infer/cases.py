"""Random small models and votes for the tests of inference: every link, dependency and prior, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dugong.law.parameters import Conditional, Crossed, Parameters, Temporal
from dugong.priors.chain import LabelChain
from dugong.tasks import Element, Resolution, Sequence, Spans, SpanTable, Window
from dugong.tasks.layout import Layout
from dugong.types import MISSING
from dugong.votes import SourceInfo, Votes

LINKS = ("any", "all", "majority")


@dataclass
class Case:
    votes: Votes
    parameters: Parameters
    prior: Any


def law(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A table whose last axis sums to one."""
    return rng.dirichlet(np.full(shape[-1], 1.5), size=shape[:-1])


def random_spans(rng: np.random.Generator, lengths: list[int]) -> SpanTable:
    """Pieces with gaps between some of them."""
    spans = []
    for length in lengths:
        cuts = np.flatnonzero(rng.random(length + 1) < 0.5).tolist()
        pairs = list(pairwise(cuts))
        spans.append([pair for pair in pairs if rng.random() < 0.8])
    return SpanTable.from_lists(spans)


def random_chain(rng: np.random.Generator, n_classes: int, kind: str) -> LabelChain:
    """Uniform, Markov, a reducible Markov chain, or a chain of order two as a table of patterns has."""
    if kind == "uniform":
        initial, transition = np.full(n_classes, 1 / n_classes), np.full((n_classes, n_classes), 1 / n_classes)
    elif kind == "stay":
        initial, transition = law(rng, n_classes), np.eye(n_classes)
    else:
        initial, transition = law(rng, n_classes), law(rng, n_classes, n_classes)
    chain = LabelChain(initial=initial, transition=transition, labels=np.arange(n_classes), n_classes=n_classes)
    if kind != "patterns":
        return chain
    wide = chain.with_memory(1)[0]
    transition = np.where(wide.transition > 0, rng.random(wide.transition.shape), 0.0)
    transition /= transition.sum(axis=1, keepdims=True)
    return LabelChain(initial=wide.initial, transition=transition, labels=wide.labels, n_classes=n_classes)


def random_votes(rng, n_sources: dict[str, Resolution], lengths, n_classes, spans, missing) -> Votes:
    columns = []
    for resolution in n_sources.values():
        n_tasks = Layout.of(resolution, np.array(lengths), spans).n_tasks
        binary = n_classes == 2 or not isinstance(resolution, Element)
        column = rng.integers(-1, 2, n_tasks) if binary else rng.integers(0, n_classes + 1, n_tasks)
        columns.append(np.where(rng.random(n_tasks) < missing, MISSING, column).astype(np.int8))
    return Votes(
        sources=tuple(SourceInfo(name=name, resolution=r) for name, r in n_sources.items()),
        columns=tuple(columns),
        lengths=np.array(lengths),
        n_classes=n_classes,
        spans=spans,
    )


def conditional(rng, name, resolution, n_classes, parents=(), by_position=False, weight=1.0) -> Conditional:
    size = n_classes if isinstance(resolution, Element) else 2
    lead = (3,) if by_position else ()
    table = law(rng, *lead, size, *(size + 1,) * len(parents), size + 1)
    marginal = law(rng, *lead, size, size + 1) if parents and rng.random() < 0.7 else None
    return Conditional(
        source=name,
        resolution=resolution,
        table=table,
        parents=tuple(parents),
        marginal=marginal,
        by_position=by_position,
        weight=weight,
    )


def temporal(rng, name, resolution, n_classes, lag) -> Temporal:
    size = n_classes if isinstance(resolution, Element) else 2
    by_position = bool(rng.random() < 0.4)
    lead = (3,) if by_position else ()
    return Temporal(
        source=name,
        resolution=resolution,
        first=law(rng, *lead, size, size + 1),
        step=law(rng, *lead, size, size, size + 1, size + 1),
        lag=lag,
        by_position=by_position,
    )


def crossed(rng, name, resolution, n_classes, parent, parent_resolution) -> Crossed:
    size = n_classes if isinstance(resolution, Element) else 2
    marginal = law(rng, size, size + 1) if rng.random() < 0.7 else None
    return Crossed(
        source=name,
        resolution=resolution,
        parent=parent,
        parent_resolution=parent_resolution,
        table=law(rng, size, 2, 3, size + 1),
        marginal=marginal,
    )


def random_resolutions(rng: np.random.Generator, n_classes: int) -> list[Resolution]:
    """Overlapping and other windows, spans, the sequence."""

    def of() -> int | None:
        return None if n_classes == 2 else int(rng.integers(1, n_classes + 1))

    size = int(rng.integers(1, 5))
    pool: list[Resolution] = [
        Window(size=size, stride=int(rng.integers(1, size + 1)), link=str(rng.choice(LINKS)), of=of()),
        Window(size=int(rng.integers(1, 4)), link=str(rng.choice(LINKS)), of=of(), name="block"),
        Spans(name="shot", link=str(rng.choice(LINKS)), of=of()),
        Sequence(link=str(rng.choice(LINKS)), of=of()),
    ]
    return list(dict.fromkeys(one for one in pool if rng.random() < 0.5))


def random_case(seed: int, n_classes: int, kind: str, dependency: str, longest: int) -> Case:
    """One small model with votes."""
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(1, longest + 1, size=2).tolist(), 0, int(rng.integers(1, 4))]
    spans = {"shot": random_spans(rng, lengths)}
    coarse = random_resolutions(rng, n_classes)
    sources: dict[str, Resolution] = {"a": Element(), "b": Element()}
    sources |= {f"w{i}": resolution for i, resolution in enumerate(coarse)}
    factors = [conditional(rng, "a", Element(), n_classes, weight=0.7), conditional(rng, "b", Element(), n_classes)]
    factors += [
        conditional(rng, f"w{i}", r, n_classes, by_position=bool(rng.random() < 0.3)) for i, r in enumerate(coarse)
    ]
    extra = _dependent(rng, dependency, n_classes, coarse)
    sources |= {factor.source: factor.resolution for factor in extra}
    votes = random_votes(rng, sources, lengths, n_classes, spans, missing=0.2 * float(rng.random() < 0.7))
    parameters = Parameters(n_classes=n_classes, factors=(*factors, *extra))
    if rng.random() < 0.2:
        votes = votes.select(sources=[name for name in sources if name != "b"])
    return Case(votes=votes, parameters=parameters, prior=random_chain(rng, n_classes, kind))


def _dependent(rng, dependency, n_classes, coarse) -> list[Any]:
    if dependency == "pair":
        return [conditional(rng, "c", Element(), n_classes, parents=("b",))]
    if dependency == "triangle":
        return [
            conditional(rng, "c", Element(), n_classes, parents=("b",)),
            conditional(rng, "d", Element(), n_classes, parents=("b", "c")),
        ]
    if dependency == "coarse pair" and coarse:
        return [conditional(rng, "c", coarse[0], n_classes, parents=("w0",))]
    if dependency in ("lag 1", "lag 2"):
        return [temporal(rng, "c", Element(), n_classes, int(dependency[-1]))]
    if dependency == "coarse lag" and coarse:
        return [temporal(rng, f"t{i}", r, n_classes, int(rng.integers(1, 3))) for i, r in enumerate(coarse[:2])]
    disjoint = [i for i, r in enumerate(coarse) if not (isinstance(r, Window) and r.stride < r.size)]
    if dependency == "crossed" and disjoint:
        place = disjoint[0]
        fine = [Element(), *(r for r in coarse if r != coarse[place])]
        return [crossed(rng, f"x{i}", r, n_classes, f"w{place}", coarse[place]) for i, r in enumerate(fine[:2])]
    return []


DEPENDENCIES = ("none", "pair", "triangle", "coarse pair", "lag 1", "lag 2", "coarse lag", "crossed")
KINDS = ("uniform", "markov", "stay", "patterns")
