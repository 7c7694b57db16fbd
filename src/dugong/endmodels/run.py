"""A training under way: the loop over epochs, and the state that a checkpoint keeps.

`train` prepares a `Run`; everything that changes during a training is in here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.batches import Examples, batch_rows
from dugong.endmodels.checkpoints import Checkpoint, read_checkpoint, run_identity, write_checkpoint
from dugong.endmodels.costs import Costs
from dugong.endmodels.dev import DevSet, goodness
from dugong.endmodels.errors import EndModelError
from dugong.endmodels.predicting import device_of, logits_of
from dugong.endmodels.progress import ProgressCallback, TrainingProgress
from dugong.endmodels.result import Epoch, Stopped, Training
from dugong.endmodels.settings import Settings
from dugong.types import IntArray

__all__ = ["Run"]


@dataclass(kw_only=True)
class Run:
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
        if len(state.history) > self.settings.epochs:
            raise EndModelError(
                f"{path} holds {len(state.history)} epochs, and epochs={self.settings.epochs} asks for fewer.\n"
                "  Give another path, or remove the file to start anew."
            )
        try:
            self.network.load_state_dict(state.model)
            self.optimizer.load_state_dict(dict(state.optimizer))
        except (RuntimeError, ValueError) as error:
            raise EndModelError(f"{path} holds the weights of another network: {error}") from error
        self.history, self.best = list(state.history), None if state.best is None else dict(state.best)

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
        epoch = Epoch(number=number, loss=self._pass(number), dev_loss=None, dev_f1=None, improved=False)
        if self.dev is not None:
            dev_loss, dev_f1 = self.dev.score(self.network, self.settings.batch_size)
            epoch = replace(epoch, dev_loss=dev_loss, dev_f1=dev_f1)
        metric = self.settings.metric
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
        if self.settings.checkpoint is None:
            return
        state = Checkpoint(
            identity=self.identity,
            model=self.network.state_dict(),
            optimizer=self.optimizer.state_dict(),
            best=self.best,
            history=tuple(self.history),
        )
        write_checkpoint(self.settings.checkpoint, state)
