"""Recurrent end models: of a window of context around an element (Gait), and of a sequence of pictures.

In: windows of sensor readings (`context_windows`) with their mask, or frames. Out: logits. Bidirectional LSTMs, with
multiplicative or soft attention over their states.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dugong.endmodels.networks.convolutional import check_input, densenet40
from dugong.exceptions import EndModelError


class WindowLSTM(nn.Module):
    """A single-layer bidirectional LSTM whose states are pooled by multiplicative attention.

    Parameters
    ----------
    n_features : int
        Readings per step.
    n_classes : int
    hidden : int
        Units per direction; the paper's state has 300, and does not say whether that is both directions together.
    dropout : float
        Before the linear layer.

    Notes
    -----
    Parameters: 8 hidden (n_features + hidden + 2) in the LSTM, 4 hidden^2 in the attention,
    (2 hidden + 1) n_classes in the last layer.
    """

    def __init__(self, n_features: int, n_classes: int = 2, *, hidden: int = 300, dropout: float = 0.0) -> None:
        super().__init__()
        self.recurrent = BidirectionalLSTM(n_features, hidden)
        self.attention = MultiplicativeAttention(2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits, shape (n, n_classes).

        Parameters
        ----------
        x : tensor, shape (n, steps, n_features)
        mask : tensor of bool, shape (n, steps), optional
            Steps that hold data. Default: all.
        """
        check_input(x, "n, steps, features")
        states = self.recurrent(x, read_mask(x, mask))
        pooled = self.attention(states.hidden, states.last, states.mask)
        logits: Tensor = self.classifier(self.dropout(pooled))
        return logits


def cnn_lstm(
    n_classes: int = 2, *, in_channels: int = 3, hidden: int = 128, dropout: float = 0.1, bottleneck: bool = False
) -> FrameSequenceNet:
    """The CNN-LSTM of BAV: DenseNet-40 (growth 12) as encoder; 1,673,666 parameters at 2 classes.

    Parameters
    ----------
    n_classes, in_channels : int
    hidden : int
        Units of the LSTM per direction. 128 and a dropout of 0.1 are the defaults of the published BAV code, which
        searched over others.
    dropout : float
    bottleneck : bool
        Encode with DenseNet-BC, as the published BAV code does.
    """
    encoder = densenet40(None, in_channels=in_channels, bottleneck=bottleneck)
    return FrameSequenceNet(encoder, encoder.n_features, n_classes, hidden=hidden, dropout=dropout)


class FrameSequenceNet(nn.Module):
    """Classify a sequence of images with any encoder of single images.

    Parameters
    ----------
    encoder : torch.nn.Module
        Takes (n, channels, height, width), returns (n, n_features): such as ``resnet18(None)``.
    n_features : int
        What the encoder returns per image.
    n_classes : int
    hidden : int
        Units of the LSTM per direction.
    dropout : float
        On the hidden states.
    """

    def __init__(
        self, encoder: nn.Module, n_features: int, n_classes: int = 2, *, hidden: int = 128, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.recurrent = BidirectionalLSTM(n_features, hidden)
        self.attention = SoftAttention(2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits, shape (n, n_classes).

        Parameters
        ----------
        x : tensor, shape (n, frames, channels, height, width)
        mask : tensor of bool, shape (n, frames), optional
            Frames that exist. Default: all.
        """
        check_input(x, "n, frames, channels, height, width")
        exists = read_mask(x, mask)
        codes = self.encoder(x[exists])
        steps = torch.zeros((*exists.shape, codes.shape[-1]), dtype=codes.dtype, device=codes.device)
        steps[exists] = codes
        states = self.recurrent(steps, exists)
        logits: Tensor = self.classifier(self.attention(self.dropout(states.hidden), states.mask))
        return logits


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
        """Return states of the steps in the mask (n, steps), moved to the front; `x` is (n, steps, n_features)."""
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
