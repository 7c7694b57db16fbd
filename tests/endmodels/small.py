"""Small networks and small problems."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


def linear(n_features: int = 2, n_classes: int = 2, seed: int = 0) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(n_features, n_classes)


def noisy(seed: int = 0) -> nn.Sequential:
    """A network with everything that makes resuming hard: batch statistics and dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


def blobs(n: int, seed: int, n_features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points and their classes -1, +1."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 1], size=n)
    return rng.normal(size=(n, n_features)) + 0.8 * gold[:, None], gold


def soften(gold: np.ndarray, certainty: float = 0.9) -> np.ndarray:
    """Probabilities that lean to gold."""
    positive = np.where(gold > 0, certainty, 1 - certainty)
    return np.column_stack([1 - positive, positive])


def n_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def same_weights(left: nn.Module, right: nn.Module) -> bool:
    ours, theirs = left.state_dict(), right.state_dict()
    return list(ours) == list(theirs) and all(torch.equal(ours[name], theirs[name]) for name in ours)
