"""ResNet-18 (Basketball) and ResNet-50 (Interview) over single images (He et al. 2016).

The variant of the widely used ImageNet weights: shortcuts with a convolution, the stride of a bottleneck in its
3 wide convolution (the paper of 2016 puts it in the first; the parameters are the same in number).
"""

from __future__ import annotations

from dugong.endmodels.networks.residual import BasicBlock, Bottleneck, ResNet

__all__ = ["resnet18", "resnet50"]


def resnet18(n_classes: int | None = 2, *, in_channels: int = 3) -> ResNet:
    """ResNet-18: 11,689,512 parameters at 1000 classes.

    Parameters
    ----------
    n_classes : int or None
        None: return 512 features.
    in_channels : int
    """
    return ResNet(2, BasicBlock, (2, 2, 2, 2), n_classes=n_classes, in_channels=in_channels)


def resnet50(n_classes: int | None = 2, *, in_channels: int = 3) -> ResNet:
    """ResNet-50: 25,557,032 parameters at 1000 classes.

    Parameters
    ----------
    n_classes : int or None
        None: return 2048 features.
    in_channels : int
    """
    return ResNet(2, Bottleneck, (3, 4, 6, 3), n_classes=n_classes, in_channels=in_channels)
