"""One law from the answer: a chain whose element marginals are the probabilities that were learned.

In: a fitted `ElementAnswer`, the share of the exact model, and coarse votes where there are any. Out: for any votes a
chain and log-potentials by element. Windows, sequences, best paths and samples are asked of that chain, so that all of
them agree with the elements.

The potentials need no iteration over the chain. For neighbours the matrix diag(u) T diag(v) with row sums q(t) and
column sums q(t + 1) is found by scaling rows and columns in turn (Sinkhorn); as the pairs share their margins, their
product over time divided by the margins is a chain with the transitions T and the potentials log u + log v - log q.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from dugong.codec import Numbers
from dugong.exceptions import FileError
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.answer import ElementAnswer
from dugong.fit.learned.coarse import CoarseRules
from dugong.fit.learned.folded import fold
from dugong.fit.learned.panel import Reader
from dugong.fit.learned.settings import BLOCK, LEAST, ROUNDS_SCALING
from dugong.infer import engine
from dugong.infer.blocks import block_bounds, on_threads
from dugong.law import Law, Tempering
from dugong.priors import Markov
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Peers(Tempering):
    """The learned answer in place of a law that is not trusted whole.

    Attributes
    ----------
    answer : from votes on elements to probabilities
    coarse : what votes on windows, spans and sequences add to them
    trust : share of the exact model in the labels, 0 to 1
    """

    answer: ElementAnswer
    coarse: CoarseRules = field(default_factory=CoarseRules)
    trust: Annotated[float, Numbers(low=0, high=1)] = 0.0
    kind: ClassVar[str] = "peers"

    def __post_init__(self) -> None:
        wanted = (2, self.answer.coding.n_classes)
        for one in self.coarse.sources:
            if one.composition is not None and one.composition.shape != wanted:
                raise FileError(f"the composition of {one.name!r} must be {wanted}; found {one.composition.shape}")

    @property
    def asked(self) -> Iterable[tuple[str, Resolution]]:
        """The sources whose votes it reads, and where they vote."""
        fine, coarse = self.answer.sources, self.coarse.sources
        return [*((one.name, one.resolution) for one in fine), *((one.name, one.resolution) for one in coarse)]

    def chain(
        self, law: Law, votes: Votes, evidence: Int8Array | None = None, n_threads: int | None = None
    ) -> tuple[Markov, FloatArray]:
        """The chain that answers for these votes: its prior, and log-potentials of every element, (n, K)."""
        prior = Markov(initial=self.answer.law.initial, transition=self.answer.law.transition)
        labels = self.elements(law, votes, evidence, n_threads)
        return prior, potentials_for(labels, votes, prior)

    def elements(
        self, law: Law, votes: Votes, evidence: Int8Array | None = None, n_threads: int | None = None
    ) -> FloatArray:
        """P(label) of every element, (n, K)."""
        labels = self.coarse.move(self.without_coarse(votes, evidence, n_threads), votes)
        if self.trust > 0:
            exact = engine.posterior(
                votes, law.parameters, law.prior, resolutions=(Element(),), evidence=evidence, n_threads=n_threads
            )
            labels += self.trust * (exact.probabilities[Element()] - labels)
        return labels

    def without_coarse(
        self, votes: Votes, evidence: Int8Array | None = None, n_threads: int | None = None
    ) -> FloatArray:
        """P(label) of every element by the votes on elements, (n, K)."""
        reader = Reader(votes, self.answer.sources, self.answer.coding, evidence)
        labels = np.empty((votes.n_elements, self.answer.coding.n_classes))
        work = partial(_look_at_block, reader, self.answer, labels)
        for _ in on_threads(work, block_bounds(reader.offsets, BLOCK), n_threads):
            pass
        return labels


def potentials_for(labels: FloatArray, votes: Votes, prior: Markov) -> FloatArray:
    """Log-potentials with which a chain has these marginals, (n, K)."""
    starts = np.zeros(len(labels), dtype=np.bool_)
    offsets = votes.layout(Element()).offsets
    starts[offsets[:-1][votes.lengths > 0]] = True
    # Scaling divides by these, and margins that a zero makes impossible could not be met.
    initial = np.maximum(np.asarray(prior.initial, dtype=np.float64), LEAST)
    transition = np.maximum(np.asarray(prior.transition, dtype=np.float64), LEAST)
    out = np.empty(labels.shape)
    kernels.scale_pairs(np.maximum(labels, LEAST), starts, initial, transition, ROUNDS_SCALING, out)
    return out


def _look_at_block(reader: Reader, answer: ElementAnswer, out: FloatArray, bounds: tuple[int, int]) -> None:
    begin, end = int(reader.offsets[bounds[0]]), int(reader.offsets[bounds[1]])
    if end > begin:
        out[begin:end] = answer.look(fold(reader.read(begin, end)))
