"""From single sequences to `TaskMaterial`, for generators and adapters of all tasks."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from dugong.exceptions import LoaderError
from dugong.experiments.recipe import PARTS, Part, Size, TaskMaterial
from dugong.experiments.tasks.drawing import read_picture
from dugong.types import AnyArray, BoolArray, Int8Array


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


P = ParamSpec("P")


def as_material(origin: str) -> Callable[[Callable[P, Iterable[Example]]], Callable[P, TaskMaterial]]:
    """Let a function that makes sequences one by one return them together."""

    def change(make: Callable[P, Iterable[Example]]) -> Callable[P, TaskMaterial]:
        return wraps(make)(lambda *given, **more: material(make(*given, **more), origin))

    return change


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


# --- frames of videos with what detectors found in them ---------------------------------------------------------------
# The raw data of Basketball and Interview: a `DrawnFrame` is a picture, boxes of an object or face detector, and the
# words spoken meanwhile. Generators draw the picture; `load_frames` reads pictures and detections of real videos.
N_ELEMENTS = 5
SMALL, FULL, REAL = 32, 64, 224
"""Pixels of a side: drawn for small networks, drawn for those of the paper, real pictures for those of the paper."""

LAYOUT = """frames.csv with the columns video, frame, part, label (one row per sampled frame, in time; part is train,
dev or test; label -1, 1 or 0 for unknown), frames/<video>/<frame> with the pictures (jpg or png), and
detections/<video>.json, a mapping of frame to {"boxes": [[kind, score, left, top, right, bottom], ...],
"caption": "words spoken"}, places as shares of the picture from its upper left corner."""


class Box(NamedTuple):
    """What a detector found, and where: shares of the picture from its upper left corner."""

    kind: str
    score: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def x(self) -> float:
        """The middle, from the left."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The middle, from the top."""
        return (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnFrame:
    """One frame.

    Attributes
    ----------
    picture : bytes of shape (height, width, 3), or the path of a picture
    caption : words spoken during the frame
    """

    picture: AnyArray | Path
    boxes: tuple[Box, ...]
    caption: str = ""

    def pixels(self, size: int | None = None) -> AnyArray:
        """The picture as bytes, (height, width, 3); one from a file is scaled to a square of `size`."""
        return read_picture(self.picture, size) if isinstance(self.picture, Path) else self.picture

    def best(self, kind: str, least: float = 0.0) -> Box | None:
        """The surest box of a kind."""
        found = [one for one in self.boxes if one.kind == kind and one.score >= least]
        return max(found, key=lambda one: one.score, default=None)

    def colour(self, where: Box) -> AnyArray:
        """Mean red, green and blue in the middle of a box, 0 to 1."""
        pixels = self.pixels()
        height, width = pixels.shape[:2]
        rows = _middle(where.top, where.bottom, height)
        columns = _middle(where.left, where.right, width)
        return np.asarray(pixels[rows, columns].mean(axis=(0, 1)) / 255)


def _middle(low: float, high: float, pixels: int) -> slice:
    quarter = (high - low) / 4
    first = int(np.clip((low + quarter) * pixels, 0, pixels - 1))
    return slice(first, max(first + 1, int(np.ceil((high - quarter) * pixels))))


def pictures(sequence: Sequence[DrawnFrame], small: bool) -> AnyArray:  # noqa: FBT001  the contract of a recipe
    """What a network of single frames reads, (n_frames, 3, height, width)."""
    pixels = np.stack([frame.pixels(SMALL if small else REAL) for frame in sequence])
    return np.asarray(pixels.transpose(0, 3, 1, 2) / np.float32(255) - np.float32(0.45))


def load_frames(folder: Path, origin: str) -> TaskMaterial:
    """Real frames from a folder that looks as `LAYOUT` says, cut into sequences of five."""
    return material(_examples(folder), origin)


def _examples(folder: Path) -> Iterator[Example]:
    table = folder / "frames.csv"
    rows = read_table(table, ("video", "frame", "part", "label"))
    for (video, part), found in groupby(rows, key=lambda row: (row["video"], read_part(row, table))):
        listed = list(found)
        seen = _detections(folder / "detections" / f"{video}.json")
        for start in range(0, len(listed) - N_ELEMENTS + 1, N_ELEMENTS):
            cut = listed[start : start + N_ELEMENTS]
            frames = [_frame(folder / "frames" / video / row["frame"], seen.get(row["frame"], {})) for row in cut]
            gold = np.array([read_label(row, table) for row in cut], dtype=np.int8)
            yield Example(f"{video}-{cut[0]['frame']}", part, video, frames, gold)


def _detections(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoaderError(f"{path}: must hold detections by frame: {error}") from error
    if not isinstance(found, dict):
        raise LoaderError(f"{path}: must hold a mapping of frame to detections; found {type(found).__name__}.")
    return found


def _frame(path: Path, seen: dict[str, Any]) -> DrawnFrame:
    if not path.is_file():
        raise LoaderError(f"{path}: there must be a picture; there is no such file.")
    boxes = tuple(Box(str(kind), *map(float, rest)) for kind, *rest in seen.get("boxes", ()))
    return DrawnFrame(picture=path, boxes=boxes, caption=str(seen.get("caption", "")))
