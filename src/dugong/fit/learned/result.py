"""What was learned: the exact model, the robust answer, and how much of each is in every label.

`Robust` tempers the law that was learned. Labels are ``trust * exact + (1 - trust) * robust``: the exact
posterior of the fitted model where its residuals are noise, the robust answer where they are not; what has no share is
not computed. An error that all sources share is invisible: a model that is trusted leaves one per cent of every label
to the class balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from dugong.codec import Numbers
from dugong.exceptions import FileError
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.coarse import coarse_shares
from dugong.fit.learned.panel import Coding, Reader
from dugong.fit.learned.robust import LabelLaw, Views, look
from dugong.fit.learned.settings import BLOCK, DOUBT
from dugong.fit.result import Diagnostics
from dugong.graph import SourceGraph
from dugong.infer import answers
from dugong.infer.blocks import block_bounds, on_threads
from dugong.infer.engine import posterior
from dugong.law.law import Law, Tempering
from dugong.law.parameters import Parameters
from dugong.priors import Markov, Prior
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array
from dugong.votes import SourceInfo, Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robust(Tempering):
    """The robust answer as a function of votes, and how it tempers the exact one.

    Attributes
    ----------
    sources : the sources, in the order of the tables
    coding : what their codes say
    views : tables, law of the labels, near-copies, background
    parameters, prior : discounted independent factors, for coarser resolutions
    trust : share of the exact model in the labels, 0 to 1
    """

    sources: tuple[SourceInfo, ...]
    coding: Coding
    views: Views
    parameters: Parameters
    prior: Prior
    trust: Annotated[float, Numbers(low=0, high=1)] = 0.0
    kind: ClassVar[str] = "robust"

    def __post_init__(self) -> None:
        m, k = len(self.sources), self.coding.n_classes
        views = self.views
        wanted = (
            ("tables", views.tables, (m, k, len(self.coding.split))),
            ("similar", views.similar, (m, m)),
            ("silence.logs", views.silence.logs, (m, k)),
            ("silence.shift", views.silence.shift, (k,)),
            ("law.balance", views.law.balance, (k,)),
            ("law.initial", views.law.initial, (k,)),
            ("law.transition", views.law.transition, (k, k)),
        )
        # The kernels read these without looking at their bounds.
        for name, array, shape in wanted:
            if array.shape != shape:
                raise FileError(f"views.{name} must have the shape {shape}; found {array.shape}")
        if views.background is not None and not 0 <= views.background < k:
            raise FileError(f"views.background must be one of {k} classes; found {views.background}")

    def probabilities(
        self,
        law: Law,
        votes: Votes,
        resolutions: tuple[Resolution, ...],
        evidence: Int8Array | None = None,
        n_threads: int | None = None,
    ) -> dict[Resolution, FloatArray]:
        """P(label | votes) of every task of some resolutions, for any votes of the same sources."""
        if self.trust == 0:
            return self.alone(votes, resolutions, evidence, n_threads)
        exact = posterior(
            votes, law.parameters, law.prior, resolutions=resolutions, evidence=evidence, n_threads=n_threads
        )
        labels = dict(exact.probabilities)
        if self.trust < 1:
            for resolution, robust in self.alone(votes, resolutions, evidence, n_threads).items():
                _mix(labels[resolution], robust, 1 - self.trust)
        for resolution, probabilities in labels.items():
            on_elements = isinstance(resolution, Element)
            balance = self.views.law.balance if on_elements else np.full(2, 0.5)
            known = evidence if on_elements and evidence is not None else np.zeros(0, dtype=np.int8)
            kernels.soften(probabilities, balance, DOUBT, known)
        return labels

    def alone(
        self,
        votes: Votes,
        resolutions: tuple[Resolution, ...],
        evidence: Int8Array | None = None,
        n_threads: int | None = None,
    ) -> dict[Resolution, FloatArray]:
        """The robust answer at some resolutions."""
        reader = Reader(votes, self.sources, self.coding, evidence)
        found: dict[Resolution, FloatArray] = {}
        coarse = tuple(one for one in resolutions if not isinstance(one, Element))
        if len(coarse) < len(resolutions):
            found[Element()] = self._elements(reader, n_threads)
        if coarse:
            exact = posterior(
                votes, self.parameters, self.prior, resolutions=coarse, evidence=evidence, n_threads=n_threads
            )
            for one in coarse:
                found[one] = (coarse_shares(reader, self.views, one) + exact.probabilities[one]) / 2
        return found

    def _elements(self, reader: Reader, n_threads: int | None) -> FloatArray:
        out = np.empty((reader.votes.n_elements, self.coding.n_classes))
        work = partial(_look_at_block, reader, self.views, out)
        for _ in on_threads(work, block_bounds(reader.offsets, BLOCK), n_threads):
            pass
        return out


def _look_at_block(reader: Reader, views: Views, out: FloatArray, bounds: tuple[int, int]) -> None:
    begin, end = int(reader.offsets[bounds[0]]), int(reader.offsets[bounds[1]])
    if end > begin:
        out[begin:end] = look(reader.read(begin, end), views)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """A label model of which something was learned from the votes.

    Attributes
    ----------
    law : what answers questions about labels; where the model is not trusted at all, its factors are discounted
    graph : the source graph, learned or given
    strengths : residual correlation of every edge; of a self-dependent source with itself under (name, name)
    accuracies : P(vote | label) by source, (K, C)
    correlations : P(vote a, vote b | label) by edge, (K, C, C)
    diagnostics : what was learned, in words and numbers
    """

    law: Law
    graph: SourceGraph
    strengths: Mapping[tuple[str, str], float] = field(default_factory=dict)
    accuracies: Mapping[str, FloatArray] = field(default_factory=dict)
    correlations: Mapping[tuple[str, str], FloatArray] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    @property
    def parameters(self) -> Parameters:
        """The law of the votes given the labels."""
        return self.law.parameters

    @property
    def prior(self) -> Prior:
        """The law of the labels."""
        return self.law.prior

    @property
    def robust(self) -> Robust | None:
        """The robust answer; None when the source graph was given."""
        return self.law.tempering if isinstance(self.law.tempering, Robust) else None

    @property
    def trust(self) -> float:
        """Share of the exact model in the labels, 0 to 1."""
        return 1.0 if self.robust is None else self.robust.trust

    def probabilities(
        self,
        votes: Votes,
        resolutions: tuple[Resolution, ...] = (Element(),),
        evidence: Int8Array | None = None,
        n_threads: int | None = None,
    ) -> Mapping[Resolution, FloatArray]:
        """P(label | votes) of every task of some resolutions, for any votes of the same sources."""
        return answers.posterior(self.law, votes, resolutions, evidence=evidence, n_threads=n_threads)


def _mix(labels: FloatArray, other: FloatArray, share: float) -> None:
    """Give a share of `labels` to others, in place and block by block."""
    for start in range(0, len(labels), 1 << 16):
        rows = slice(start, start + (1 << 16))
        labels[rows] += share * (other[rows] - labels[rows])


def as_markov(law: LabelLaw) -> Markov:
    """A law of labels as a prior."""
    return Markov(initial=law.initial, transition=law.transition)
