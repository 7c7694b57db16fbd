"""What was learned: the exact model, the robust answer, and how much of each is in every label.

`Learned` is plain state and pure functions of it. Labels are ``trust * exact + (1 - trust) * robust``: the exact
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

from dugong.exceptions import VoteError
from dugong.fit.learned import _kernels as kernels
from dugong.fit.learned.coarse import coarse_shares
from dugong.fit.learned.panel import Coding, Reader
from dugong.fit.learned.robust import Law, Views, look
from dugong.fit.learned.settings import BLOCK, DOUBT
from dugong.fit.learned.silence import Silence
from dugong.fit.result import Diagnostics, Note
from dugong.graph import SourceGraph
from dugong.infer.blocks import block_bounds, on_threads
from dugong.infer.engine import posterior
from dugong.law.parameters import Parameters
from dugong.priors import Markov, Prior, from_dict
from dugong.tasks import Element, Resolution
from dugong.tasks.resolutions import resolution_from_dict, resolution_to_dict
from dugong.types import FloatArray, Int8Array, read_only
from dugong.votes import SourceInfo, Votes

_EDGE = "|"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robust:
    """The robust answer as a function of votes.

    Attributes
    ----------
    sources : the sources, in the order of the tables
    coding : what their codes say
    views : tables, law of the labels, near-copies, background
    parameters, prior : discounted independent factors, for coarser resolutions
    """

    sources: tuple[SourceInfo, ...]
    coding: Coding
    views: Views
    parameters: Parameters
    prior: Prior

    def probabilities(
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
        law = Law(**{name: np.array(plain[name]) for name in ("balance", "initial", "transition")})
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
        )


def _look_at_block(reader: Reader, views: Views, out: FloatArray, bounds: tuple[int, int]) -> None:
    begin, end = int(reader.offsets[bounds[0]]), int(reader.offsets[bounds[1]])
    if end > begin:
        out[begin:end] = look(reader.read(begin, end), views)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """A label model of which everything was learned from the votes.

    Attributes
    ----------
    n_classes : int
    parameters, prior : the exact model; where it is not trusted at all, the discounted one of the robust answer
    robust : the robust answer; None when the source graph was given
    trust : share of the exact model in the labels, 0 to 1
    graph : the source graph, learned or given
    strengths : residual correlation of every edge; of a self-dependent source with itself under (name, name)
    accuracies : P(vote | label) by source, (K, C)
    correlations : P(vote a, vote b | label) by edge, (K, C, C)
    diagnostics : what was learned, in words and numbers
    """

    n_classes: int
    parameters: Parameters
    prior: Prior
    robust: Robust | None
    trust: float
    graph: SourceGraph
    strengths: Mapping[tuple[str, str], float] = field(default_factory=dict)
    accuracies: Mapping[str, FloatArray] = field(default_factory=dict)
    correlations: Mapping[tuple[str, str], FloatArray] = field(default_factory=dict)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    def probabilities(
        self,
        votes: Votes,
        resolutions: tuple[Resolution, ...] = (Element(),),
        evidence: Int8Array | None = None,
        n_threads: int | None = None,
    ) -> dict[Resolution, FloatArray]:
        """P(label | votes) of every task of some resolutions, for any votes of the same sources.

        Parameters
        ----------
        evidence : (n_elements,) class values of known labels, 0 = unknown; optional
        """
        self._check_sources(votes)
        if self.robust is None:
            return self._exact(votes, resolutions, evidence, n_threads)
        if self.trust == 0:
            return self.robust.probabilities(votes, resolutions, evidence, n_threads)
        labels = self._exact(votes, resolutions, evidence, n_threads)
        if self.trust < 1:
            for resolution, robust in self.robust.probabilities(votes, resolutions, evidence, n_threads).items():
                _mix(labels[resolution], robust, 1 - self.trust)
        for resolution, probabilities in labels.items():
            on_elements = isinstance(resolution, Element)
            balance = self.robust.views.law.balance if on_elements else np.full(2, 0.5)
            known = evidence if on_elements and evidence is not None else np.zeros(0, dtype=np.int8)
            kernels.soften(probabilities, balance, DOUBT, known)
        return labels

    def _exact(
        self, votes: Votes, resolutions: tuple[Resolution, ...], evidence: Int8Array | None, n_threads: int | None
    ) -> dict[Resolution, FloatArray]:
        found = posterior(
            votes, self.parameters, self.prior, resolutions=resolutions, evidence=evidence, n_threads=n_threads
        )
        return dict(found.probabilities)

    def _check_sources(self, votes: Votes) -> None:
        unknown = [name for name in votes.source_names if name not in self.parameters.sources]
        if unknown:
            known = ", ".join(map(repr, self.parameters.sources))
            raise VoteError(
                f"source {unknown[0]!r} was not there when the model was fitted; known are {known}.\n"
                "  Fit again with it, or leave it out."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings that `from_dict` turns back into the same value."""
        return {
            "n_classes": self.n_classes,
            "parameters": self.parameters.to_dict(),
            "prior": self.prior.to_dict(),
            "robust": None if self.robust is None else self.robust.to_dict(),
            "trust": self.trust,
            "graph": {
                "names": list(self.graph.names),
                "edges": [list(edge) for edge in self.graph.edges],
                "temporal": dict(self.graph.temporal),
            },
            "strengths": [[*edge, value] for edge, value in self.strengths.items()],
            "accuracies": {name: table.tolist() for name, table in self.accuracies.items()},
            "correlations": [[*edge, table.tolist()] for edge, table in self.correlations.items()],
            "notes": [
                {"kind": note.kind, "text": note.text, "where": note.where, "size": note.size}
                for note in self.diagnostics.notes
            ],
            "learned": dict(self.diagnostics.learned),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Learned:
        """Inverse of `to_dict`."""
        graph = plain["graph"]
        return cls(
            n_classes=int(plain["n_classes"]),
            parameters=Parameters.from_dict(plain["parameters"]),
            prior=from_dict(plain["prior"]),
            robust=None if plain["robust"] is None else Robust.from_dict(plain["robust"]),
            trust=float(plain["trust"]),
            graph=SourceGraph(
                names=tuple(graph["names"]),
                edges=tuple((a, b) for a, b in graph["edges"]),
                temporal=dict(graph["temporal"]),
            ),
            strengths={(a, b): value for a, b, value in plain["strengths"]},
            accuracies={name: np.array(table) for name, table in plain["accuracies"].items()},
            correlations={(a, b): np.array(table) for a, b, table in plain["correlations"]},
            diagnostics=Diagnostics(
                notes=tuple(Note(**note) for note in plain["notes"]), learned=dict(plain["learned"])
            ),
        )


def _mix(labels: FloatArray, other: FloatArray, share: float) -> None:
    """Give a share of `labels` to others, in place and block by block."""
    for start in range(0, len(labels), 1 << 16):
        rows = slice(start, start + (1 << 16))
        labels[rows] += share * (other[rows] - labels[rows])


def as_markov(law: Law) -> Markov:
    """A law of labels as a prior."""
    return Markov(initial=law.initial, transition=law.transition)
