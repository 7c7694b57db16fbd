"""The end model of Gait: a bidirectional LSTM with multiplicative attention over a window of context.

In: a window of sensor readings around an element (`context_windows`) and its mask. Out: logits of the element.
"""

from __future__ import annotations

from torch import Tensor, nn

from dugong.endmodels.networks.attention import MultiplicativeAttention
from dugong.endmodels.networks.recurrent import BidirectionalLSTM, read_mask
from dugong.endmodels.networks.shapes import check_input

__all__ = ["WindowLSTM"]


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
