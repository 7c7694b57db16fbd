"""Names for the arrays and numbers that every stage passes on.

Inside the library a vote is one int8. Two classes: -1, +1 and 0 for abstain. K > 2 classes: 1..K and 0 for
abstain. Codes above K are underspecified votes ("one of these classes"), see `Votes.partial`. `MISSING` marks a
vote that was never asked for, which is no evidence at all (abstaining can be).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Final, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dugong.codec import Numbers

POSITIVE: Final = 1
NEGATIVE: Final = -1
ABSTAIN: Final = 0
MISSING: Final = -128

Int8Array = NDArray[np.int8]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Probabilities = Annotated[FloatArray, Numbers(low=0, high=1, sum_to_one=True)]

ClassCount = Annotated[int, Numbers(low=2, high=100)]  # codes of classes and of underspecified votes fit an int8

Count = Annotated[int, Numbers(low=0)]
Share = Annotated[float, Numbers(low=0, high=1)]

ScalarT = TypeVar("ScalarT", bound=np.generic)

Link = Literal["any", "all", "majority", "joint"]
# How exact answers about labels must be; "auto" approximates only where exact ones would take too long.
Inference = Literal["auto", "exact", "approximate"]


def class_values(n_classes: int) -> tuple[int, ...]:
    """Class values in the order of table columns: (-1, 1), or 1..K."""
    return (-1, 1) if n_classes == 2 else tuple(range(1, n_classes + 1))


class Additive:
    """A dataclass whose values add up field by field; what is no number is the same in both."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        value: Any = self
        sums = {field.name: _sum(getattr(self, field.name), getattr(other, field.name)) for field in fields(value)}
        total: Self = replace(value, **sums)
        return total


def _sum(one: Any, two: Any) -> Any:
    if isinstance(one, str):
        return one
    if isinstance(one, tuple):
        return tuple(_sum(first, second) for first, second in zip(one, two, strict=True))
    if not isinstance(one, Mapping) or hasattr(one, "__add__"):
        return one + two
    both = {**one, **two}
    return {key: _sum(one[key], two[key]) if key in one and key in two else both[key] for key in both}


def read_only(array: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """Return a view of `array` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
