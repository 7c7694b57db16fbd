"""Settings of the paper's SGD variant (section 3.1, "SGD-Based Variant"); needs the extra `torch` when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dugong.contract import typed
from dugong.exceptions import GraphError

Schedule = Literal["plateau", "cosine"]
Batches = Literal["moments", "votes"]
Losses = Literal["centred", "agreements"]


@typed(GraphError)
@dataclass(frozen=True, slots=True, kw_only=True)
class SGD:
    """Settings of estimation by stochastic gradient descent (Adam).

    Parameters
    ----------
    learning_rate : float
        At the start; about the change of a probability per step.
    schedule : {"plateau", "cosine"}
        "plateau" halves the learning rate whenever the loss has stopped falling; "cosine" lowers it to zero over
        `max_steps`.
    max_steps : int
        Most steps of each stage: accuracies on the same task, across resolutions, across time, correlations.
    patience : int
        Steps between two looks at the loss over all moments: for the schedule, the early stop and the report.
    tolerance : float
        Stop when no parameter moved by more than this between two looks (or the fit is exact for all purposes).
    batches : {"moments", "votes"}
        What a step sees: `batch_size` of the stored moments (rows of the plan by position), or the moments of
        `batch_size` sequences, counted on the fly.
    batch_size : int
    losses : {"centred", "agreements"}
        What is matched: covariances, as in the closed form, or raw products of votes as the paper prints them. The
        second has the bias of ``estimator="paper"`` for sources that prefer one class; pairs follow as in Algorithm 1.
    consistency : float
        Weight of the loss that ties the correlations to the accuracies, relative to that of the moments. With 0 the
        tables of pairs are those of the closed form, and may disagree a little with the tables of their members.
    device : str
        Where torch computes: "cpu", "cuda", "cuda:1", "mps".
    seed : int
        Of the order of the batches.
    """

    learning_rate: float = 0.02
    schedule: Schedule = "plateau"
    max_steps: int = 4000
    patience: int = 50
    tolerance: float = 1e-6
    batches: Batches = "moments"
    batch_size: int = 512
    losses: Losses = "centred"
    consistency: float = 0.1
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("max_steps", "patience", "batch_size"):
            if getattr(self, name) < 1:
                raise GraphError(f"SGD needs {name} >= 1; found {getattr(self, name)}.")
        if not self.learning_rate > 0 or self.tolerance < 0 or self.consistency < 0:
            raise GraphError(
                "SGD needs learning_rate > 0, tolerance >= 0 and consistency >= 0; found "
                f"{self.learning_rate}, {self.tolerance} and {self.consistency}."
            )
