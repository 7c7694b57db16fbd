"""A bidirectional LSTM over padded sequences, blind to the padding.

Steps that the mask leaves out are removed before the LSTM runs, wherever they are, so neither their values nor
their number change the result.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dugong.exceptions import EndModelError

__all__ = ["BidirectionalLSTM", "MultiplicativeAttention", "SoftAttention", "States", "read_mask"]


class States(NamedTuple):
    """What the LSTM remembers: hidden states (n, steps, 2 hidden), their mask, and both last states (n, 2 hidden)."""

    hidden: Tensor
    mask: Tensor
    last: Tensor


class BidirectionalLSTM(nn.Module):
    """One layer, `hidden` units in each direction."""

    def __init__(self, n_features: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, mask: Tensor) -> States:
        """Return states of the steps in the mask, moved to the front.

        Parameters
        ----------
        x : tensor, shape (n, steps, n_features)
        mask : tensor of bool, shape (n, steps)
        """
        order = torch.argsort((~mask).int(), dim=1, stable=True)
        front = torch.gather(x, 1, order[..., None].expand_as(x))
        packed = pack_padded_sequence(front, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        hidden, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        return States(hidden, torch.gather(mask, 1, order), torch.cat([last[0], last[1]], dim=1))


def read_mask(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mask of the first two axes; all steps where none is given."""
    if mask is None:
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise EndModelError(
            f"the mask must be boolean, one entry per step {tuple(x.shape[:2])}; "
            f"found {mask.dtype} of shape {tuple(mask.shape)}."
        )
    if not bool(mask.any(dim=1).all()):
        raise EndModelError("every sequence needs at least one step in its mask; there is one without.")
    return mask


class SoftAttention(nn.Module):
    """Scores by a small network of each state."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.outer = nn.Linear(size, 1, bias=False)

    def weights(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return weights that add up to 1 over the steps, shape (n, steps)."""
        scores: Tensor = self.outer(torch.tanh(self.inner(hidden)))
        return _over_steps(scores[..., 0], mask)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the weighted mean of the states, shape (n, size)."""
        return _pool(hidden, self.weights(hidden, mask))


class MultiplicativeAttention(nn.Module):
    """Scores by the product of each state with a query."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.product = nn.Linear(size, size, bias=False)

    def weights(self, hidden: Tensor, query: Tensor, mask: Tensor) -> Tensor:
        """Return weights that add up to 1 over the steps, shape (n, steps)."""
        return _over_steps(torch.einsum("nts,ns->nt", self.product(hidden), query), mask)

    def forward(self, hidden: Tensor, query: Tensor, mask: Tensor) -> Tensor:
        """Return the weighted mean of the states, shape (n, size)."""
        return _pool(hidden, self.weights(hidden, query, mask))


def _over_steps(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)


def _pool(hidden: Tensor, weights: Tensor) -> Tensor:
    return torch.einsum("nts,nt->ns", hidden, weights)
