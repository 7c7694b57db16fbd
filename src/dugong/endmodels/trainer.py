"""Train a network on probabilistic labels.

In: any `torch.nn.Module`, data, and labels as a label model gives them. Out: a `Training`. The steps: labels
become a table of costs (`costs`), every epoch goes once over the shuffled examples (`run`), the dev set says
whether it was the best so far (`dev`), and the state goes to a file (`checkpoints`). Shuffling and dropout of an
epoch follow from the seed and its number alone, and the global random state is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from dugong.endmodels.batches import Examples, as_examples
from dugong.endmodels.costs import ClassWeights, Loss, make_costs
from dugong.endmodels.dev import Metric, read_dev
from dugong.endmodels.errors import EndModelError
from dugong.endmodels.labels import read_labels
from dugong.endmodels.predicting import device_of, evaluating, logits_of
from dugong.endmodels.progress import ProgressCallback, progress_callback
from dugong.endmodels.result import Training
from dugong.endmodels.run import Run
from dugong.endmodels.settings import Settings

__all__ = ["train"]


def train(  # noqa: PLR0913
    model: nn.Module,
    data: Any,
    labels: Any,
    *,
    loss: Loss = "soft",
    class_weights: ClassWeights = None,
    weights: ArrayLike | None = None,
    classes: Sequence[int] | None = None,
    dev: tuple[Any, Any] | None = None,
    metric: Metric = "f1",
    patience: int | None = None,
    epochs: int = 20,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    device: str | torch.device | None = None,
    seed: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool | ProgressCallback = False,
) -> Training:
    """Train a copy of a network (Adam) on probabilities or class values.

    Parameters
    ----------
    model : torch.nn.Module
        Returns logits, one column per class, or one number per label: the log-odds of the second of two. It is
        not changed; parameters that need no gradient stay as they are.
    data : array, tensor, Padded, tuple of arrays, or indexable dataset
        A tuple holds one array per argument of `forward`; item i of a dataset is example i.
    labels : array, shape (n, ..., K) of float or (n, ...) of int
        Probabilities (`LabelModel.predict_proba`), or class values with 0 for unknown.
    loss : {"soft", "hard", "confidence"}
        Cross-entropy with the probabilities, with the most probable class, or with that class weighted by how
        far its probability is above chance.
    class_weights : "balanced" or one number per class, optional
    weights : array, shape (n, ...), optional
        One per label. 0 leaves it out, as the padding of sequences.
    classes : sequence of int, optional
        Values of the classes in the order of the columns, where they are not -1, +1 or 1..K.
    dev : pair (data, labels), optional
        Decides which epoch's weights are kept.
    metric : {"f1", "loss"}
        What is compared on the dev set.
    patience : int, optional
        Stop after so many epochs without an improvement on the dev set. Default: run all epochs.
    epochs, batch_size : int
    learning_rate, weight_decay : float
    device : str or torch.device, optional
        Default: where the model is.
    seed : int
        Of shuffling and dropout. Equal seeds give equal weights on one machine with one number of threads; a
        dataset that draws random numbers itself should draw them from torch.
    checkpoint : path, optional
        Written after every epoch. If the file exists the run goes on from there, with the same result as if it
        had never stopped; the weights of `model` are then not used.
    progress : bool or function
        A bar on the standard error, or a function of `TrainingProgress`.

    Returns
    -------
    Training

    Examples
    --------
    >>> data = np.linspace(-1, 1, 40)[:, None]
    >>> positive = 1 / (1 + np.exp(-6 * data[:, 0]))
    >>> training = train(nn.Linear(1, 2), data, np.column_stack([1 - positive, positive]), learning_rate=0.1)
    >>> predict(training.model, np.array([[-1.0], [1.0]])).argmax(axis=1).tolist()
    [0, 1]
    """
    settings = Settings(
        loss=loss,
        metric=metric,
        patience=patience,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        seed=seed,
        checkpoint=checkpoint,
        has_dev=dev is not None,
    )
    examples = as_examples(data)
    network = deepcopy(model) if device is None else deepcopy(model).to(device)
    with _own_randomness(device_of(network)):
        shape = _shape_of_output(network, examples, seed)
        known = read_labels(labels, n_classes=shape[-1], classes=classes)
        _check_shapes(examples, known.probabilities.shape, shape)
        costs = make_costs(known, loss=loss, class_weights=class_weights, weights=weights)
        dev_set = read_dev(dev, n_classes=shape[-1], classes=classes, class_weights=costs.class_weights)
        run = Run(network=network, examples=examples, costs=costs, dev=dev_set, settings=settings)
        run.resume()
        with progress_callback(progress) as report:
            return run.finish(report)


def _shape_of_output(network: nn.Module, examples: Examples, seed: int) -> tuple[int, ...]:
    """What the network says about one example; a network with lazy layers gets its weights here."""
    if not len(examples):
        raise EndModelError("there must be at least one example; found none.")
    torch.manual_seed(seed)
    with evaluating(network), torch.no_grad():
        return tuple(logits_of(network, examples.batch(np.arange(1)), device_of(network)).shape[1:])


def _check_shapes(examples: Examples, labels: tuple[int, ...], output: tuple[int, ...]) -> None:
    if len(examples) != labels[0]:
        raise EndModelError(f"there must be one label per example; found {labels[0]:,} and {len(examples):,} examples.")
    if labels[1:] != output:
        raise EndModelError(
            f"the network returns {output} per example (the last axis are the classes); the labels give {labels[1:]}."
        )


@contextmanager
def _own_randomness(device: torch.device) -> Iterator[None]:
    """Leave the global random state as it was; choose repeatable kernels on a GPU."""
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        if device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True))
        yield
