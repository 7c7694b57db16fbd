"""Train a network on probabilistic labels.

In: any `torch.nn.Module`, data, and labels as a label model gives them. Out: a `Training`. The steps: labels
become a table of costs (`costs`), every epoch goes once over the shuffled examples (`run`), the dev set says
whether it was the best so far (`dev`), and the state goes to a file (`checkpoints`). Shuffling and dropout of an
epoch follow from the seed and its number alone, and the global random state is left as it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.batches import (
    DevSet,
    Examples,
    as_examples,
    batch_rows,
    device_of,
    evaluating,
    logits_of,
    read_dev,
)
from dugong.endmodels.checkpoints import (
    Epoch,
    Metric,
    ProgressCallback,
    Settings,
    Stopped,
    Training,
    TrainingProgress,
    goodness,
    progress_callback,
    read_checkpoint,
    run_identity,
    write_checkpoint,
)
from dugong.endmodels.costs import ClassWeights, Costs, Loss, make_costs, read_labels
from dugong.exceptions import EndModelError
from dugong.types import IntArray


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
        run = TrainingRun(network=network, examples=examples, costs=costs, dev=dev_set, settings=settings)
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


@dataclass(kw_only=True)
class TrainingRun:
    """The network on its way. `best` is None when the best weights are those of the network now."""

    network: nn.Module
    examples: Examples
    costs: Costs
    dev: DevSet | None
    settings: Settings
    history: list[Epoch] = field(default_factory=list)
    best: dict[str, Tensor] | None = None
    identity: dict[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        learned = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        if not learned:
            raise EndModelError("the network has no parameters to train (none that requires a gradient).")
        rates = self.settings
        self.optimizer = torch.optim.Adam(learned, lr=rates.learning_rate, weight_decay=rates.weight_decay)
        self.device = device_of(self.network)
        self.table = torch.from_numpy(self.costs.table.astype(np.float32))

    @property
    def best_epoch(self) -> int:
        """The last epoch that improved."""
        return max(epoch.number for epoch in self.history if epoch.improved)

    @property
    def stopped(self) -> Stopped | None:
        """Why no further epoch is run; None while there is one."""
        patience = self.settings.patience
        if self.history and patience is not None and len(self.history) - self.best_epoch >= patience:
            return "patience"
        return "epochs" if len(self.history) >= self.settings.epochs else None

    def resume(self) -> None:
        """Go back to the state of the checkpoint, if there is one."""
        path = self.settings.checkpoint
        if path is None:
            return
        dev = None if self.dev is None else (self.dev.examples, self.dev.costs)
        self.identity = run_identity(self.settings, self.examples, self.costs, dev)
        if not Path(path).exists():
            return
        state = read_checkpoint(path, self.identity, self.device)
        if len(state["history"]) > self.settings.epochs:
            raise EndModelError(
                f"{path} holds {len(state['history'])} epochs, and epochs={self.settings.epochs} asks for fewer.\n"
                "  Give another path, or remove the file to start anew."
            )
        try:
            self.network.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError) as error:
            raise EndModelError(f"{path} holds the weights of another network: {error}") from error
        self.history, self.best = state["history"], state["best"]

    def finish(self, report: ProgressCallback) -> Training:
        """Run epochs until all are done or the dev set stops improving; keep the weights of the best."""
        start = time.perf_counter()
        while self.stopped is None:
            self._epoch(len(self.history) + 1)
            self._save()
            report(
                TrainingProgress(
                    epoch=self.history[-1],
                    done=len(self.history),
                    total=self.settings.epochs,
                    best_epoch=self.best_epoch,
                    seed=self.settings.seed,
                    seconds=time.perf_counter() - start,
                )
            )
        if self.best is not None:
            self.network.load_state_dict(self.best)
        self.network.eval()
        return Training(
            model=self.network,
            history=tuple(self.history),
            best_epoch=self.best_epoch,
            stopped=self.stopped,
            n_examples=len(self.costs.rows),
            n_left_out=len(self.costs.table) - len(self.costs.rows),
            seed=self.settings.seed,
        )

    def _epoch(self, number: int) -> None:
        """One pass over the examples, and a look at the dev set."""
        if self.dev is not None and self.best is None and self.history:
            self.best = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        loss, metric = self._pass(number), self.settings.metric
        dev_loss, dev_f1 = (None, None) if self.dev is None else self.dev.score(self.network, self.settings.batch_size)
        epoch = Epoch(number=number, loss=loss, dev_loss=dev_loss, dev_f1=dev_f1, improved=False)
        if not self.history or goodness(epoch, metric) > goodness(self.history[self.best_epoch - 1], metric):
            epoch, self.best = replace(epoch, improved=True), None
        self.history.append(epoch)

    def _pass(self, number: int) -> float:
        """Go over the examples in an order of the epoch's own; return the mean loss."""
        rng = np.random.default_rng([self.settings.seed, number])
        torch.manual_seed(int(rng.integers(2**63)))
        rows = rng.permutation(self.costs.rows)
        total, n_labels = 0.0, 0
        self.network.train()
        for batch in batch_rows(rows, self.settings.batch_size):
            loss, size = self._step(batch)
            if not np.isfinite(loss):
                raise EndModelError(
                    f"the loss is {loss} in epoch {number}: the data holds numbers that are not finite, or the "
                    f"learning rate ({self.settings.learning_rate}) is too high."
                )
            total, n_labels = total + loss * size, n_labels + size
        return total / n_labels

    def _step(self, rows: IntArray) -> tuple[float, int]:
        """Move the weights once; return the loss and the number of labels behind it."""
        costs = self.table[torch.from_numpy(rows)].to(self.device)
        logits = logits_of(self.network, self.examples.batch(rows), self.device)
        if logits.shape != costs.shape:
            raise EndModelError(
                f"the network returns {tuple(logits.shape)} for a batch whose labels are {tuple(costs.shape)}."
            )
        size = costs[..., 0].numel()
        loss = -(costs * functional.log_softmax(logits, dim=-1)).sum() / size
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.optimizer.step()
        return float(loss.detach()), size

    def _save(self) -> None:
        if self.settings.checkpoint is not None:
            state: dict[str, Any] = {"identity": self.identity, "model": dict(self.network.state_dict())}
            state |= {"optimizer": self.optimizer.state_dict(), "best": self.best, "history": self.history}
            write_checkpoint(self.settings.checkpoint, state)
