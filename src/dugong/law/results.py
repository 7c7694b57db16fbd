"""What inference returns: posterior marginals, and the expected counts that estimation by likelihood needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dugong.tasks import Resolution, find_resolution
from dugong.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """P(label | all votes of the sequence) of every task, and how likely the votes are.

    Attributes
    ----------
    probabilities : mapping of resolution to (n_tasks, n_classes) float64
        Rows in the flat order of tasks, columns in class order; coarse tasks have two classes.
    log_likelihood : (n_sequences,) log P(votes of the sequence); an estimate where they are not exact
    exact : whether the probabilities are exact, or found by propagation between overlapping windows
    """

    probabilities: Mapping[Resolution, FloatArray]
    log_likelihood: FloatArray
    exact: bool = True

    def __getitem__(self, resolution: str | Resolution) -> FloatArray:
        """Marginals of one resolution, by name or object."""
        return self.probabilities[find_resolution(resolution, self.probabilities)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedCounts:
    """Sufficient statistics given the votes: how often each cell of each factor is expected to occur.

    Attributes
    ----------
    factors : mapping of source to a mapping of table to counts
        "table" (and "marginal" for factors with parents), "step" and "first" for temporal ones; each has the
        shape of the factor's own table. Votes that were not asked are not counted.
    initial : (K,) expected labels of the first elements
    transitions : (K, K) expected pairs of labels of neighbouring elements
    log_likelihood : () sum over the sequences

    With groups, every array has a leading axis over groups.
    """

    factors: Mapping[str, Mapping[str, FloatArray]]
    initial: FloatArray
    transitions: FloatArray
    log_likelihood: FloatArray

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        return ExpectedCounts(
            factors={
                source: {name: table + other.factors[source][name] for name, table in tables.items()}
                for source, tables in self.factors.items()
            },
            initial=self.initial + other.initial,
            transitions=self.transitions + other.transitions,
            log_likelihood=self.log_likelihood + other.log_likelihood,
        )
