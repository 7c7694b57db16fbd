"""The same training with several seeds: mean and standard deviation of its scores.

The paper reports end models as mean and standard deviation over five runs. A run differs from the others in
everything random: initial weights, the order of examples, dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from dugong.endmodels.batches import predict
from dugong.endmodels.checkpoints import ProgressCallback, Training, TrainOptions
from dugong.endmodels.costs import read_labels
from dugong.endmodels.trainer import train
from dugong.exceptions import EndModelError
from dugong.metrics import Evaluation, evaluate


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedScore:
    """One score over the seeds.

    Attributes
    ----------
    values : one per seed; NaN where it is 0/0, such as the precision of a run that never says +1
    """

    name: str
    values: tuple[float, ...]

    @property
    def n_undefined(self) -> int:
        """How many values are 0/0."""
        return int(np.isnan(self.values).sum())

    @property
    def mean(self) -> float:
        """The mean; an undefined value counts as 0."""
        return float(np.nan_to_num(self.values).mean())

    @property
    def sd(self) -> float:
        """The sample standard deviation, NaN with one seed; an undefined value counts as 0."""
        return float(np.nan_to_num(self.values).std(ddof=1)) if len(self.values) > 1 else float("nan")

    def __str__(self) -> str:
        undefined = f" ({self.n_undefined} undefined, counted as 0)" if self.n_undefined else ""
        return f"{self.name} {self.mean:.4f} ± {self.sd:.4f}{undefined}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SeedSummary:
    """Trainings that differ in their seed.

    Attributes
    ----------
    evaluations : on the test set
    scores : `summary["f1"]` finds one by name
    """

    seeds: tuple[int, ...]
    trainings: tuple[Training, ...]
    evaluations: tuple[Evaluation, ...]
    scores: tuple[SeedScore, ...]

    def __getitem__(self, name: str) -> SeedScore:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"no score {name!r}; there are {', '.join(score.name for score in self.scores)}")

    def __str__(self) -> str:
        lines = [f"{len(self.seeds)} seeds, mean ± s.d. on {self.evaluations[0].n_known:,} labels"]
        return "\n".join([*lines, *map(str, self.scores)])

    __repr__ = __str__


def train_seeds(
    factory: Callable[[], nn.Module],
    data: Any,
    labels: Any,
    *,
    test: tuple[Any, Any],
    seeds: Iterable[int] = range(5),
    checkpoint: str | PathLike[str] | None = None,
    progress: bool | ProgressCallback = False,
    **options: Unpack[TrainOptions],
) -> SeedSummary:
    """Train a new network per seed and score each on a test set.

    Parameters
    ----------
    factory : function
        Makes a network with random weights; called once per seed, with torch's seed set. A pretrained network is
        loaded in here.
    data, labels :
        As for `train`.
    test : pair (data, gold)
        Gold as class values; 0 is unknown and left out.
    seeds : iterable of int
    checkpoint : path, optional
        A folder with one file per seed; finished seeds are not trained again.
    progress : bool or function
        As for `train`.
    **options :
        All other options of `train`.

    Returns
    -------
    SeedSummary
    """
    numbers = tuple(int(seed) for seed in seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise EndModelError(f"seeds must be different numbers, at least one; found {numbers}.")
    trainings, evaluations = [], []
    for seed in numbers:
        place = None if checkpoint is None else Path(checkpoint) / f"seed-{seed}.pt"
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(seed)
            network = factory()
        one = train(network, data, labels, seed=seed, checkpoint=place, progress=progress, **options)
        trainings.append(one)
        evaluations.append(_evaluate(one.model, test, options))
    scores = [
        SeedScore(name=score.name, values=tuple(one[score.name].value for one in evaluations))
        for score in evaluations[0].scores
    ]
    return SeedSummary(seeds=numbers, trainings=tuple(trainings), evaluations=tuple(evaluations), scores=tuple(scores))


def _evaluate(model: nn.Module, test: tuple[Any, Any], options: TrainOptions) -> Evaluation:
    probabilities = predict(model, test[0], batch_size=options.get("batch_size", 32))
    n_classes = probabilities.shape[-1]
    gold = read_labels(test[1], n_classes=n_classes, classes=options.get("classes")).values()
    if gold.shape != probabilities.shape[:-1]:
        raise EndModelError(f"test must have one label per prediction {probabilities.shape[:-1]}; found {gold.shape}.")
    return evaluate(probabilities.reshape(-1, n_classes), gold.reshape(-1))
