"""Read files of weights without running anything that is in them."""

from __future__ import annotations

import pickle
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from dugong.endmodels.errors import EndModelError

__all__ = ["read_file"]


def read_file(path: str | PathLike[str], device: torch.device | str = "cpu") -> Any:
    """Return the tensors and plain data of a file that ``torch.save`` wrote; refuse all else."""
    place = Path(path)
    if not place.is_file():
        raise EndModelError(f"there is no file {place}.")
    try:
        return torch.load(place, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        raise EndModelError(
            f"{place} holds more than tensors and plain data, or is no file of weights, and is not loaded.\n"
            "  If you trust it, save its state_dict() alone with torch.save and load that."
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise EndModelError(f"{place} is damaged or no file of weights: {error}") from error
