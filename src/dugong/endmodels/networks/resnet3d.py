"""3-D ResNet-18 over clips of 16 frames (Shot; Hara, Kataoka and Satoh 2018).

All convolutions are as long as they are wide. The first one, 7 x 7 x 7, keeps every frame and every second row and
column; four further halvings take 16 frames to 1. Shortcuts are of type A (no parameters), as in the 18 layer
network of that paper and its Kinetics weights; later releases of these weights use type B.
"""

from __future__ import annotations

from dugong.endmodels.networks.residual import BasicBlock, ResNet, Shortcut

__all__ = ["resnet3d18"]


def resnet3d18(n_classes: int | None = 2, *, in_channels: int = 3, shortcut: Shortcut = "A") -> ResNet:
    """3-D ResNet-18: 33,235,280 parameters at 400 classes, 33,409,104 with shortcut B.

    Parameters
    ----------
    n_classes : int or None
        None: return 512 features.
    in_channels : int
    shortcut : {"A", "B"}
        Zeros or a convolution where the number of channels changes.

    Notes
    -----
    Input: shape (n, in_channels, frames, height, width); 16 frames of 112 x 112 in the paper, other sizes work.
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
