"""What was learned: the law that answers for labels, the source graph, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dugong.fit.learned.tempering import Peers
from dugong.fit.result import Diagnostics
from dugong.graph import SourceGraph
from dugong.infer import answers
from dugong.law import Law
from dugong.law.parameters import Parameters
from dugong.priors import Prior
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """A label model of which something was learned from the votes.

    Attributes
    ----------
    law : what answers questions about labels
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
    def trust(self) -> float:
        """Share of the exact model in the labels, 0 to 1."""
        return self.law.tempering.trust if isinstance(self.law.tempering, Peers) else 1.0

    def probabilities(
        self,
        votes: Votes,
        resolutions: tuple[Resolution, ...] = (Element(),),
        evidence: Int8Array | None = None,
        n_threads: int | None = None,
    ) -> Mapping[Resolution, FloatArray]:
        """P(label | votes) of every task of some resolutions, for any votes of the same sources."""
        return answers.posterior(self.law, votes, resolutions, evidence=evidence, n_threads=n_threads)
