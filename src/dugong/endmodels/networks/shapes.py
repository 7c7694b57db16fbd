"""Checks of what goes into a network, with messages that name the axes."""

from __future__ import annotations

import torch
from torch import Tensor

from dugong.exceptions import EndModelError

__all__ = ["check_input"]


def check_input(x: Tensor, axes: str) -> None:
    """Refuse tensors with other axes, and integers.

    Parameters
    ----------
    x : tensor
    axes : str
        Their names, such as "n, channels, height, width".
    """
    if x.ndim != len(axes.split(",")):
        raise EndModelError(f"the network takes tensors of shape ({axes}); found {tuple(x.shape)}.")
    if not x.is_floating_point():
        hint = (
            "\n  Images of bytes become floats with array.astype(np.float32) / 255." if x.dtype == torch.uint8 else ""
        )
        raise EndModelError(f"the network takes floats; found {x.dtype}.{hint}")
