"""The prior that believes nothing: every class equally likely at every element, all independent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dugong.exceptions import PriorError
from dugong.priors.base import Prior
from dugong.priors.chain import LabelChain


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Prior):
    """Every label pattern of a sequence has the same probability.

    Parameters
    ----------
    n_classes : int
        Two by default.
    """

    n_classes: int = 2
    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise PriorError(f"a prior needs at least two classes; found n_classes={self.n_classes}.")

    def chain(self) -> LabelChain:
        """A chain that forgets at every step."""
        law = np.full(self.n_classes, 1 / self.n_classes)
        return LabelChain(
            initial=law,
            transition=np.tile(law, (self.n_classes, 1)),
            labels=np.arange(self.n_classes),
            n_classes=self.n_classes,
        )
