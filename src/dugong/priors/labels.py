"""Class values and class indices: -1/+1 or 1..K on the outside, 0..K-1 in tables."""

from __future__ import annotations

from dugong.exceptions import PriorError, TaskError
from dugong.tasks import Element, Resolution, describe


def class_values(n_classes: int) -> tuple[int, ...]:
    """Class values in the order of table columns: (-1, 1), or 1..K."""
    return (-1, 1) if n_classes == 2 else tuple(range(1, n_classes + 1))


def class_index(value: int, n_classes: int, where: str) -> int:
    """Table column of a class value."""
    values = class_values(n_classes)
    if value not in values:
        coding = "-1 or +1" if n_classes == 2 else f"a class from 1 to {n_classes}"
        raise PriorError(f"labels in {where} must be {coding}; found {value!r}.")
    return values.index(value)


def positive_class(resolution: Resolution, n_classes: int, class_names: tuple[str, ...] | None = None) -> int:
    """Class index that counts as positive at a window, span or sequence resolution.

    Two classes: +1. More: the class that `of` names, by value or by name.
    """
    if n_classes == 2 or isinstance(resolution, Element):
        return 1
    if class_names is not None and resolution.of in class_names:
        return class_names.index(str(resolution.of))
    if resolution.of not in class_values(n_classes):
        raise TaskError(
            f"with {n_classes} classes, {describe(resolution)} must say which class counts; "
            f"found of={resolution.of!r}.\n  Give a class from 1 to {n_classes}"
            f"{'' if class_names is None else f' or one of {class_names}'}."
        )
    return class_values(n_classes).index(int(resolution.of))
