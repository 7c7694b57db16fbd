"""What a detector sees from a driving car: simulated videos, and tables of detections of real ones.

A sequence is a list of frames (ten per second), a frame a tuple of `Box`. In simulated videos cyclists and walkers come
nearer and pass, bicycles are parked, and posts are taken for people. Whether the detector finds a thing depends on its
size, on the thing (the same one is missed again and again) and on luck.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dugong.experiments.recipe import Material, Part, Size
from dugong.experiments.tasks.finding import find_folder
from dugong.types import Int8Array

N_FRAMES = 5
MINUTE = 600  # frames


class Box(NamedTuple):
    """A detection; places and sizes as shares of the picture, x of the middle, from the left."""

    kind: str
    score: float
    x: float
    bottom: float
    width: float
    height: float


Frame = tuple[Box, ...]


class Piece(NamedTuple):
    """Five frames of a video."""

    video: str
    part: Part
    start: int
    frames: list[Frame]
    gold: Int8Array


class Habit(NamedTuple):
    """How one kind of thing occurs: share of frames in which one comes, frames it stays, where it is, how it looks."""

    comes: float
    stays: tuple[int, int]
    away: tuple[float, float]  # from the middle of the road
    breadth: float  # of who is taken for a person, by height
    boxes: tuple[tuple[str, float], ...]  # kinds, and the height at which half of them are found


THINGS = {
    "cyclist": Habit(0.0045, (20, 80), (0.0, 0.3), 0.55, (("person", 0.05), ("bicycle", 0.12))),
    "walker": Habit(0.0080, (20, 60), (0.25, 0.45), 0.38, (("person", 0.05),)),
    "crossing": Habit(0.0020, (15, 40), (0.0, 0.2), 0.45, (("person", 0.05),)),
    "parked": Habit(0.0030, (15, 50), (0.25, 0.45), 0.38, (("bicycle", 0.12),)),
    "post": Habit(0.0030, (10, 40), (0.1, 0.4), 0.35, (("person", 0.15),)),
}


def simulate(size: Size, seed: int, folder: Path) -> Material:  # noqa: ARG001  no files
    """Four videos for training, and one whose frames go to dev and test by turns, five and five, as in the paper."""
    rng = np.random.default_rng(seed)
    pieces: list[Piece] = []
    for number, count in enumerate(np.full(4, size.train // 4) + (np.arange(4) < size.train % 4)):
        frames, gold = _drive(rng, int(count) * N_FRAMES)
        pieces += [_piece(f"video{number}", "train", at, frames, gold) for at in range(0, len(frames), N_FRAMES)]
    turns = max(size.dev, size.test)
    frames, gold = _drive(rng, turns * 2 * N_FRAMES)
    for turn in np.linspace(0, turns - 1, size.dev).astype(int):
        pieces.append(_piece("video4", "dev", turn * 2 * N_FRAMES, frames, gold))
    for turn in np.linspace(0, turns - 1, size.test).astype(int):
        pieces.append(_piece("video4", "test", (turn * 2 + 1) * N_FRAMES, frames, gold))
    return _material(pieces, "simulated")


def _piece(video: str, part: Part, start: int, frames: list[Frame], gold: Int8Array) -> Piece:
    rows = slice(start, start + N_FRAMES)
    return Piece(video, part, int(start), frames[rows], gold[rows])


def _material(pieces: list[Piece], origin: str) -> Material:
    """Groups are minutes of a video."""
    named = {f"{piece.video}-{piece.start}": piece for piece in pieces}
    return Material(
        sequences={name: piece.frames for name, piece in named.items()},
        gold={name: piece.gold for name, piece in named.items()},
        parts={name: piece.part for name, piece in named.items()},
        groups={name: f"{piece.video}-{piece.start // MINUTE}" for name, piece in named.items()},
        origin=origin,
    )


def _drive(rng: np.random.Generator, n_frames: int) -> tuple[list[Frame], Int8Array]:
    """Detections and gold of one video."""
    found: list[list[Box]] = [[] for _ in range(n_frames)]
    gold = np.full(n_frames, -1, dtype=np.int8)
    for kind, habit in THINGS.items():
        # Things may already be there when the video begins.
        for start in np.flatnonzero(rng.random(n_frames + habit.stays[1]) < habit.comes) - habit.stays[1]:
            stop = int(start + rng.integers(habit.stays[0], habit.stays[1] + 1))
            for frame, boxes in _pass_by(rng, habit, int(start), stop):
                if 0 <= frame < n_frames:
                    found[frame] += boxes
            if kind == "cyclist":
                gold[max(start, 0) : max(stop, 0)] = 1
    return [tuple(boxes) for boxes in found], gold


def _pass_by(rng: np.random.Generator, habit: Habit, start: int, stop: int) -> Iterator[tuple[int, list[Box]]]:
    """One thing comes nearer; the detector finds it easily or hardly all along, with some luck in every frame."""
    side, away = rng.choice([-1, 1]), rng.uniform(*habit.away)
    near, breadth = rng.uniform(0.08, 0.5), habit.breadth + rng.normal(0, 0.06)
    easy = rng.normal(0, 1.2, len(habit.boxes))
    for frame in range(start, stop):
        height = 0.04 * (near / 0.04) ** ((frame - start) / max(stop - start - 1, 1))
        x = 0.5 + side * away * (0.4 + height)
        seen = 2.5 * np.log(height / np.array([half for _, half in habit.boxes])) + easy
        seen += rng.logistic(0, 0.7, len(seen))
        found = [(kind, value) for (kind, _), value in zip(habit.boxes, seen, strict=True) if value > 0]
        yield frame, [_box(rng, kind, value, x, height, breadth) for kind, value in found]


def _box(rng: np.random.Generator, kind: str, seen: float, x: float, height: float, breadth: float) -> Box:
    """A detection with a score; a bicycle is the lower half of who rides it."""
    score = float(np.clip(1 / (1 + np.exp(-0.8 * seen)) + rng.normal(0, 0.08), 0.3, 1))
    middle = x + float(rng.normal(0, 0.05 * height))
    bottom = 0.45 + 0.8 * height
    if kind == "bicycle":
        return Box(kind, score, middle, bottom, 0.6 * height, 0.55 * height)
    return Box(kind, score, middle, bottom, max(breadth + float(rng.normal(0, 0.06)), 0.1) * height, height)


def load_detections(folder: Path) -> Material:
    """Detections of real videos; the videos that have labels are split into dev and test as in the paper."""
    place = find_folder(folder, "car", ("frames.csv", "detections.csv"))
    boxes: dict[tuple[str, str], list[Box]] = defaultdict(list)
    with (place / "detections.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = (float(row[name]) for name in ("score", "x", "bottom", "width", "height"))
            boxes[row["video"], row["frame"]].append(Box(row["kind"], *numbers))
    videos: dict[str, list[tuple[Frame, int]]] = defaultdict(list)
    with (place / "frames.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            videos[row["video"]].append((tuple(boxes[row["video"], row["frame"]]), int(row["label"])))
    return _material(list(_pieces(videos)), "detections.csv")


def _pieces(videos: dict[str, list[tuple[Frame, int]]]) -> Iterator[Piece]:
    for video, rows in videos.items():
        frames, gold = [frame for frame, _ in rows], np.array([label for _, label in rows], dtype=np.int8)
        for number, start in enumerate(range(0, len(rows), N_FRAMES)):
            turn: Part = "test" if number % 2 else "dev"
            yield _piece(video, turn if gold.any() else "train", start, frames, gold)
