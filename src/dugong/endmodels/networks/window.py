"""The end model of Gait: a bidirectional LSTM with multiplicative attention over a window of context.

In: a window of sensor readings around an element (`context_windows`) and its mask. Out: logits of the element.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dugong.endmodels.networks.densenet import densenet40
from dugong.endmodels.networks.recurrent import BidirectionalLSTM, MultiplicativeAttention, SoftAttention, read_mask
from dugong.endmodels.networks.shapes import check_input

__all__ = ["FrameSequenceNet", "WindowLSTM", "cnn_lstm"]


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
