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
from typing import Any

import numpy as np

from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.coarse import coarse_shares
from dugong.fit.learned.panel import Coding, Reader
from dugong.fit.learned.robust import LabelLaw, Views, look
from dugong.fit.learned.settings import BLOCK, DOUBT
from dugong.fit.learned.silence import Silence
from dugong.fit.result import Diagnostics
from dugong.graph import SourceGraph
from dugong.infer import answers
from dugong.infer.blocks import block_bounds, on_threads
from dugong.infer.engine import posterior
from dugong.law.law import Law
from dugong.law.parameters import Parameters
from dugong.priors import Markov, Prior, from_dict
from dugong.tasks import Element, Resolution
from dugong.tasks.resolutions import resolution_from_dict, resolution_to_dict
from dugong.types import FloatArray, Int8Array, read_only
from dugong.votes import SourceInfo, Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robust:
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
    trust: float = 0.0

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        views = self.views
        return {
            "kind": "robust",
            "trust": self.trust,
            "sources": [{"name": s.name, "resolution": resolution_to_dict(s.resolution)} for s in self.sources],
            "split": self.coding.split.tolist(),
            "tables": views.tables.tolist(),
            "similar": views.similar.tolist(),
            "background": views.background,
            "silence": views.silence.logs.tolist(),
            "silent_shift": views.silence.shift.tolist(),
            "silent_share": views.silence.share,
            "balance": views.law.balance.tolist(),
            "initial": views.law.initial.tolist(),
            "transition": views.law.transition.tolist(),
            "parameters": self.parameters.to_dict(),
            "prior": self.prior.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Robust:
        """Inverse of `to_dict`."""
        law = LabelLaw(**{name: np.array(plain[name]) for name in ("balance", "initial", "transition")})
        m = len(plain["sources"])
        views = Views(
            tables=np.array(plain["tables"]),
            law=law,
            similar=np.array(plain["similar"]).reshape(m, m),
            background=plain["background"],
            silence=Silence(
                logs=np.array(plain["silence"]).reshape(m, len(law.balance)),
                shift=np.array(plain["silent_shift"]),
                share=float(plain["silent_share"]),
            ),
        )
        return cls(
            sources=tuple(
                SourceInfo(name=one["name"], resolution=resolution_from_dict(one["resolution"]))
                for one in plain["sources"]
            ),
            coding=Coding(split=read_only(np.array(plain["split"]))),
            views=views,
            parameters=Parameters.from_dict(plain["parameters"]),
            prior=from_dict(plain["prior"]),
            trust=float(plain["trust"]),
        )


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
