"""Convolutional networks: residual ones over images or clips (He et al. 2016; Hara et al. 2018), and DenseNet-40.

Residual networks: a stem (7 wide convolution, max pooling), four stages of residual blocks with 64, 128, 256 and 512
channels (or fewer, for small images), the mean over all positions, a linear layer. Images have two axes of positions,
clips three. Weights are named as in widely used files: conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dugong.exceptions import EndModelError

Dims = Literal[2, 3]
Shortcut = Literal["A", "B"]

STAGES = (1, 2, 4, 8)  # channels, as multiples of those of the first
AXES = {2: "n, channels, height, width", 3: "n, channels, frames, height, width"}


def convolution(dims: Dims, channels: tuple[int, int], size: int, stride: int | tuple[int, ...] = 1) -> nn.Module:
    """A convolution without bias that keeps the positions (up to the stride)."""
    kind = nn.Conv2d if dims == 2 else nn.Conv3d
    return kind(*channels, kernel_size=size, stride=stride, padding=size // 2, bias=False)  # type: ignore[arg-type]


def normalisation(dims: Dims, channels: int) -> nn.Module:
    """Batch normalisation."""
    return nn.BatchNorm2d(channels) if dims == 2 else nn.BatchNorm3d(channels)


class ZeroPadding(nn.Module):
    """Shortcut A: every second position, and zeros for the new channels; no parameters."""

    def __init__(self, dims: Dims, channels: tuple[int, int], stride: int) -> None:
        super().__init__()
        self.steps = (slice(None), slice(None), *[slice(None, None, stride)] * dims)
        self.padding = (0, 0) * dims + (0, channels[1] - channels[0])

    def forward(self, x: Tensor) -> Tensor:
        """Return the thinned and padded input."""
        return functional.pad(x[self.steps], self.padding)


class ResidualBlock(nn.Module):
    """Convolutions of some sizes beside a shortcut; the first one that is 3 wide has the stride.

    The last one has `expansion` times as many channels as the others.
    """

    sizes: tuple[int, ...]
    expansion: int

    def __init__(self, dims: Dims, channels: tuple[int, int], stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        before = channels[0]
        for place, size in enumerate(self.sizes, start=1):
            after = channels[1] * (self.expansion if place == len(self.sizes) else 1)
            strided = place == self.sizes.index(3) + 1
            self.add_module(f"conv{place}", convolution(dims, (before, after), size, stride if strided else 1))
            self.add_module(f"bn{place}", normalisation(dims, after))
            before = after
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """Return the shortcut plus what the block adds."""
        shortcut = x if self.downsample is None else self.downsample(x)
        for place in range(1, len(self.sizes) + 1):
            x = self.get_submodule(f"bn{place}")(self.get_submodule(f"conv{place}")(x))
            x = functional.relu(x if place < len(self.sizes) else x + shortcut)
        return x


class BasicBlock(ResidualBlock):
    """Two 3 wide convolutions."""

    sizes, expansion = (3, 3), 1


class Bottleneck(ResidualBlock):
    """A 3 wide convolution between two 1 wide ones."""

    sizes, expansion = (1, 3, 1), 4


class ResNet(nn.Module):
    """A residual network.

    Parameters
    ----------
    dims : 2 or 3
        Images or clips.
    block : BasicBlock or Bottleneck
    depths : blocks per stage
    n_classes : int or None
        None: return the features before the linear layer, `n_features` of them.
    in_channels : int
    stem_stride : stride of the first convolution, one number per axis
    shortcut : {"B", "A"}
        Where the number of channels changes: a 1 wide convolution, or zeros.
    width : int
        Channels of the first stage; 64 in the published networks.
    """

    def __init__(
        self,
        dims: Dims,
        block: type[ResidualBlock],
        depths: tuple[int, int, int, int],
        *,
        n_classes: int | None,
        in_channels: int = 3,
        stem_stride: int | tuple[int, ...] = 2,
        shortcut: Shortcut = "B",
        width: int = 64,
    ) -> None:
        super().__init__()
        if shortcut not in ("A", "B"):
            raise EndModelError(f"shortcut must be 'A' or 'B'; found {shortcut!r}.")
        self.axes = AXES[dims]
        self.n_features = STAGES[-1] * width * block.expansion
        self.conv1 = convolution(dims, (in_channels, width), 7, stem_stride)
        self.bn1 = normalisation(dims, width)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if dims == 2 else nn.MaxPool3d(3, 2, 1)
        before = width
        for stage, (times, depth) in enumerate(zip(STAGES, depths, strict=True)):
            channels = times * width
            layer = _stage(dims, block, (before, channels), depth, stride=1 if stage == 0 else 2, shortcut=shortcut)
            self.add_module(f"layer{stage + 1}", layer)
            before = channels * block.expansion
        self.fc = nn.Identity() if n_classes is None else nn.Linear(before, n_classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (or features), shape (n, n_classes)."""
        check_input(x, self.axes)
        y = self.maxpool(functional.relu(self.bn1(self.conv1(x))))
        for stage in range(len(STAGES)):
            y = self.get_submodule(f"layer{stage + 1}")(y)
        logits: Tensor = self.fc(torch.flatten(y, 2).mean(dim=2))
        return logits


def _stage(
    dims: Dims, block: type[ResidualBlock], channels: tuple[int, int], depth: int, *, stride: int, shortcut: Shortcut
) -> nn.Sequential:
    width = channels[1] * block.expansion
    downsample: nn.Module | None = None
    if stride != 1 or channels[0] != width:
        if shortcut == "A":
            downsample = ZeroPadding(dims, (channels[0], width), stride)
        else:
            downsample = nn.Sequential(convolution(dims, (channels[0], width), 1, stride), normalisation(dims, width))
    first = block(dims, channels, stride, downsample)
    return nn.Sequential(first, *(block(dims, (width, channels[1]), 1, None) for _ in range(depth - 1)))


def initialise(network: nn.Module) -> None:
    """Normal weights that keep the variance of the gradient through rectified convolutions (He et al. 2015)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Conv3d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def resnet18(n_classes: int | None = 2, *, in_channels: int = 3) -> ResNet:
    """ResNet-18: 11,689,512 parameters at 1000 classes; without classes (None), 512 features are returned."""
    return ResNet(2, BasicBlock, (2, 2, 2, 2), n_classes=n_classes, in_channels=in_channels)


def resnet50(n_classes: int | None = 2, *, in_channels: int = 3) -> ResNet:
    """ResNet-50: 25,557,032 parameters at 1000 classes; without classes (None), 2048 features are returned."""
    return ResNet(2, Bottleneck, (3, 4, 6, 3), n_classes=n_classes, in_channels=in_channels)


def resnet3d18(n_classes: int | None = 2, *, in_channels: int = 3, shortcut: Shortcut = "A") -> ResNet:
    """3-D ResNet-18: 33,235,280 parameters at 400 classes, 33,409,104 with shortcut B.

    The shortcut is of zeros (A) or a convolution (B) where the number of channels changes; without classes (None), 512
    features are returned. Input: shape (n, in_channels, frames, height, width); 16 frames of 112 x 112 in the paper,
    other sizes work.
    """
    return ResNet(
        3,
        BasicBlock,
        (2, 2, 2, 2),
        n_classes=n_classes,
        in_channels=in_channels,
        stem_stride=(1, 2, 2),
        shortcut=shortcut,
    )


def check_input(x: Tensor, axes: str) -> None:
    """Refuse tensors with other axes than the named ones (such as "n, channels, height, width"), and integers."""
    if x.ndim != len(axes.split(",")):
        raise EndModelError(f"the network takes tensors of shape ({axes}); found {tuple(x.shape)}.")
    if not x.is_floating_point():
        hint = (
            "\n  Images of bytes become floats with array.astype(np.float32) / 255." if x.dtype == torch.uint8 else ""
        )
        raise EndModelError(f"the network takes floats; found {x.dtype}.{hint}")


# --- DenseNet ---------------------------------------------------------------------------------------------------------
# DenseNet-40 (Huang et al. 2017), the frame encoder of BAV: three dense blocks at full, half and quarter size, in which
# every layer adds `growth` channels to all that came before it. The plain variant (growth 12, 16 channels after the
# first convolution, no bottleneck, no compression) is the one that its paper lists with 1.0M parameters: 1,019,722 at
# 10 classes. The variant BC (1 wide bottlenecks, half the channels between blocks) has 176,122; the BAV code used it.
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
