"""The dev set: how good the network is after an epoch, and whether that is better than before.

The loss is the soft one with the class weights of the training. F1 is of the second class when there are two,
and the mean over the classes that occur in gold or predictions (0/0 counts as 0) when there are more. Of equal F1
the lower loss is better: where nothing is found yet, F1 stays 0 while the network already learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from torch import nn

from dugong.endmodels.batches import Examples, as_examples
from dugong.endmodels.costs import Costs, make_costs
from dugong.endmodels.labels import KnownLabels, read_labels
from dugong.endmodels.predicting import log_table
from dugong.endmodels.result import Epoch
from dugong.exceptions import EndModelError
from dugong.metrics.elements import f_scores
from dugong.types import FloatArray, IntArray

__all__ = ["DevSet", "Metric", "check_metric", "goodness", "macro_f1", "read_dev"]

Metric = Literal["f1", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DevSet:
    """Examples with labels, on which epochs are compared."""

    examples: Examples
    labels: KnownLabels
    costs: Costs

    def score(self, model: nn.Module, batch_size: int) -> tuple[float, float]:
        """Loss and F1 of the network as it is."""
        logs = log_table(model, self.examples, batch_size)
        if logs.shape != self.costs.table.shape:
            raise EndModelError(
                f"the network says {logs.shape} about the dev set, whose labels are {self.costs.table.shape}."
            )
        rows = self.costs.rows
        loss = -np.sum(self.costs.table[rows] * logs[rows]) / self.costs.table[rows][..., 0].size
        known = self.labels.known
        gold, chosen = self.labels.probabilities[known].argmax(axis=-1), logs[known].argmax(axis=-1)
        return float(loss), macro_f1(chosen, gold, logs.shape[-1])


def read_dev(
    dev: tuple[Any, Any] | None, *, n_classes: int, classes: Sequence[int] | None, class_weights: FloatArray
) -> DevSet | None:
    """Check the pair of data and labels."""
    if dev is None:
        return None
    if not isinstance(dev, tuple) or len(dev) != 2:
        raise EndModelError(f"dev must be a pair (data, labels); found {type(dev).__name__}.")
    examples, labels = as_examples(dev[0]), read_labels(dev[1], n_classes=n_classes, classes=classes)
    if len(examples) != len(labels.known):
        raise EndModelError(f"dev must have one label per example; found {len(examples)} and {len(labels.known)}.")
    return DevSet(examples=examples, labels=labels, costs=make_costs(labels, class_weights=class_weights))


def check_metric(metric: str) -> None:
    """Refuse a metric that does not exist."""
    if metric not in get_args(Metric):
        raise EndModelError(f"metric must be one of {', '.join(get_args(Metric))}; found {metric!r}.")


def goodness(epoch: Epoch, metric: Metric) -> tuple[float, ...]:
    """What makes one epoch better than another; without a dev set, being later."""
    if epoch.dev_loss is None or epoch.dev_f1 is None:
        return (epoch.number,)
    return (epoch.dev_f1, -epoch.dev_loss) if metric == "f1" else (-epoch.dev_loss,)


def macro_f1(chosen: IntArray, gold: IntArray, n_classes: int) -> float:
    """F1 of columns against columns."""
    hits = np.bincount(gold[gold == chosen], minlength=n_classes).astype(np.float64)
    labelled, true = (np.bincount(one, minlength=n_classes).astype(np.float64) for one in (chosen, gold))
    by_class = np.nan_to_num(f_scores(hits, labelled, true)[2])
    return float(by_class[1] if n_classes == 2 else by_class[(labelled + true) > 0].mean())
