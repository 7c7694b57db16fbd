"""DenseNet-40 for small images (Huang et al. 2017), the frame encoder of BAV.

Three dense blocks at full, half and quarter size. Every layer adds `growth` channels to all that came before it.
The plain variant (growth 12, 16 channels after the first convolution, no bottleneck, no compression) is the one
that its paper lists with 1.0M parameters: 1,019,722 at 10 classes. The variant BC (1 wide bottlenecks, half the
channels between blocks, 0.2M) has 176,122; the published BAV code used it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.endmodels.networks.residual import check_input, convolution, initialise
from dugong.exceptions import EndModelError

N_BLOCKS = 3
SMALLEST = 4
"""Images below this size have no position left after two halvings."""


def densenet40(
    n_classes: int | None = 2, *, growth: int = 12, in_channels: int = 3, bottleneck: bool = False, dropout: float = 0.0
) -> DenseNet:
    """DenseNet with 40 layers: 1,019,722 parameters at 10 classes, growth 12.

    Parameters
    ----------
    n_classes : int or None
        None: return the features before the linear layer, `n_features` of them (448 at growth 12).
    growth, in_channels : int
    bottleneck : bool
        The variant BC.
    dropout : float
        After every convolution of a dense layer; 0.2 in the paper when images are not augmented.
    """
    return DenseNet(
        40, growth=growth, n_classes=n_classes, in_channels=in_channels, bottleneck=bottleneck, dropout=dropout
    )


class DenseNet(nn.Module):
    """A densely connected network over images, shape (n, channels, height, width).

    Parameters
    ----------
    depth : int
        Layers with weights: 3 k + 4, or 6 k + 4 with bottlenecks.
    growth, n_classes, in_channels, bottleneck, dropout :
        As for `densenet40`.
    """

    def __init__(
        self,
        depth: int,
        *,
        growth: int,
        n_classes: int | None,
        in_channels: int = 3,
        bottleneck: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        per_block, rest = divmod(depth - 4, 2 * N_BLOCKS if bottleneck else N_BLOCKS)
        if rest or per_block < 1:
            raise EndModelError(f"depth must be {6 if bottleneck else 3} k + 4; found {depth}.")
        width = 2 * growth if bottleneck else 16
        self.stem = convolution(2, (in_channels, width), 3)
        stages: list[nn.Module] = []
        for block in range(N_BLOCKS):
            for _ in range(per_block):
                stages.append(DenseLayer(width, growth, bottleneck=bottleneck, dropout=dropout))
                width += growth
            if block < N_BLOCKS - 1:
                narrow = width // 2 if bottleneck else width
                stages.append(Transition(width, narrow))
                width = narrow
        self.stages = nn.Sequential(*stages)
        self.norm = nn.BatchNorm2d(width)
        self.n_features = width
        self.classifier = nn.Identity() if n_classes is None else nn.Linear(width, n_classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (or features), shape (n, n_classes)."""
        check_input(x, "n, channels, height, width")
        if min(x.shape[-2:]) < SMALLEST:
            raise EndModelError(f"images must be at least {SMALLEST} wide and high; found {tuple(x.shape[-2:])}.")
        y = functional.relu(self.norm(self.stages(self.stem(x))))
        logits: Tensor = self.classifier(y.mean(dim=(2, 3)))
        return logits


class DenseLayer(nn.Module):
    """Normalise, rectify, convolve, and append the result to the input."""

    def __init__(self, width: int, growth: int, *, bottleneck: bool, dropout: float) -> None:
        super().__init__()
        widths = (width, 4 * growth, growth) if bottleneck else (width, growth)
        sizes = (1, 3) if bottleneck else (3,)
        parts: list[nn.Module] = []
        for before, after, size in zip(widths, widths[1:], sizes, strict=False):
            parts += [nn.BatchNorm2d(before), nn.ReLU(), convolution(2, (before, after), size), nn.Dropout(dropout)]
        self.parts = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input and `growth` channels more."""
        return torch.cat([x, self.parts(x)], dim=1)


class Transition(nn.Module):
    """Between blocks: a 1 wide convolution and the mean of 2 x 2 positions."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(before)
        self.conv = convolution(2, (before, after), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of half the size."""
        return functional.avg_pool2d(self.conv(functional.relu(self.norm(x))), 2)
