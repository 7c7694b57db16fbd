"""Attention that pools the hidden states of a sequence: a mean with learned weights.

- soft (Xu et al. 2015): score = v . tanh(W h + b)
- multiplicative (Luong et al. 2015): score = q . W h, where the query q is the last state of the LSTM

The weights are the softmax of the scores over the steps in the mask of each sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["MultiplicativeAttention", "SoftAttention"]


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
