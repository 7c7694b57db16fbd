"""From single sequences to `TaskMaterial`, for generators and adapters of all tasks."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dugong.exceptions import LoaderError
from dugong.experiments.recipe import PARTS, Part, Size, TaskMaterial
from dugong.types import BoolArray, Int8Array


class Example(NamedTuple):
    """One sequence, where it belongs, and its gold labels."""

    name: str
    part: Part
    group: str
    sequence: Any
    gold: Int8Array


def material(examples: Iterable[Example], origin: str) -> TaskMaterial:
    """Put sequences together."""
    found = list(examples)
    return TaskMaterial(
        sequences={one.name: one.sequence for one in found},
        gold={one.name: one.gold for one in found},
        parts={one.name: one.part for one in found},
        groups={one.name: one.group for one in found},
        origin=origin,
    )


def sizes_of(size: Size) -> Iterator[tuple[Part, int]]:
    """Parts with their numbers of sequences."""
    for part in PARTS:
        yield part, getattr(size, part)


def choose(rng: np.random.Generator, number: int, share: float) -> BoolArray:
    """Which of `number` things are positive: a fixed share of them, one at least."""
    chosen = np.arange(number) < max(1, round(share * number))
    return rng.permutation(chosen)


def read_table(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of a CSV file that has at least the given columns."""
    if not path.is_file():
        raise LoaderError(
            f"{path}: there must be a table with the columns {', '.join(columns)}; there is no such file."
        )
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        absent = [name for name in columns if name not in (reader.fieldnames or ())]
        if absent:
            raise LoaderError(f"{path}: must have the columns {', '.join(columns)}; it lacks {', '.join(absent)}.")
        return list(reader)


def read_part(row: dict[str, str], path: Path) -> Part:
    """The part that a row names."""
    if row["part"] not in PARTS:
        raise LoaderError(f"{path}: part must be one of {', '.join(PARTS)}; found {row['part']!r}.")
    return row["part"]


def read_label(row: dict[str, str], path: Path) -> int:
    """The label that a row names: -1, +1, and 0 or nothing where it is unknown."""
    known = {"": 0, "0": 0, "1": 1, "+1": 1, "-1": -1}
    if row["label"].strip() not in known:
        raise LoaderError(f"{path}: label must be -1, 1, or 0 for unknown; found {row['label']!r}.")
    return known[row["label"].strip()]
