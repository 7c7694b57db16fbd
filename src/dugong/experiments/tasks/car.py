"""Car: which frames of a dash camera, ten per second, show a cyclist; four sources on the boxes of a detector.

The paper asks an off-the-shelf detector for people and bicycles; it misses small bicycles, so there are heuristics for
small people. What misleads a source (a parked bicycle, someone who crosses the road) stays for seconds, so that all
five frames of a sequence repeat it: the sources depend on their own past. The paper reports the label model alone, and
does not say how many frames are positive; here a fifth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dugong.experiments.recipe import Facts, Part, Recipe, Size, find_folder
from dugong.experiments.tasks.examples import Example, as_material, read_table
from dugong.graph import temporal
from dugong.priors import Prior, from_labels
from dugong.sources import source
from dugong.types import ABSTAIN, NEGATIVE, POSITIVE, Int8Array

SMALL = 0.12  # height in the picture
ROAD = 0.12  # from the middle
N_FRAMES = 5
MINUTE = 600  # frames


def boxes(frame: Frame, kind: str, least: float) -> list[DetectedBox]:
    """Detections of a kind, from a score on."""
    return [box for box in frame if box.kind == kind and box.score >= least]


@source
def bicycle(frame: Frame) -> int:
    """The detector finds a bicycle, near ones only."""
    return POSITIVE if boxes(frame, "bicycle", 0.4) else NEGATIVE


@source
def person_on_road(frame: Frame) -> int:
    """Someone near is on the road, or nobody is."""
    near = [box for box in boxes(frame, "person", 0.5) if box.height >= SMALL]
    return POSITIVE if any(abs(box.x - 0.5) < ROAD for box in near) else NEGATIVE


@source
def small_person(frame: Frame) -> int:
    """Someone far away is on the road, or all who are far away walk beside it."""
    small = [box for box in boxes(frame, "person", 0.3) if box.height < SMALL]
    if not small:
        return ABSTAIN
    return POSITIVE if any(abs(box.x - 0.5) < ROAD for box in small) else NEGATIVE


@source
def leaning(frame: Frame) -> int:
    """Someone is as broad as people on bicycles are, or all stand upright."""
    shapes = [box.width / box.height for box in boxes(frame, "person", 0.3)]
    return POSITIVE if any(shape > 0.5 for shape in shapes) else NEGATIVE


def expert(dev: Sequence[Int8Array]) -> Prior:
    """The patterns of the dev set; those seen five times or less are impossible."""
    return from_labels(dev, kind="patterns", length=N_FRAMES, min_count=6)


class DetectedBox(NamedTuple):
    """A detection; places and sizes as shares of the picture, x of the middle, from the left."""

    kind: str
    score: float
    x: float
    bottom: float
    width: float
    height: float


Frame = tuple[DetectedBox, ...]


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


@as_material("simulated")
def simulate(size: Size, seed: int, folder: Path) -> Iterator[Example]:  # noqa: ARG001  no files
    """Four videos for training, and one whose frames go to dev and test by turns, five and five, as in the paper."""
    rng = np.random.default_rng(seed)
    for number, count in enumerate(np.full(4, size.train // 4) + (np.arange(4) < size.train % 4)):
        frames, gold = _drive(rng, int(count) * N_FRAMES)
        yield from (_piece(f"video{number}", "train", at, frames, gold) for at in range(0, len(frames), N_FRAMES))
    turns = max(size.dev, size.test)
    frames, gold = _drive(rng, turns * 2 * N_FRAMES)
    for turn in np.linspace(0, turns - 1, size.dev).astype(int):
        yield _piece("video4", "dev", int(turn) * 2 * N_FRAMES, frames, gold)
    for turn in np.linspace(0, turns - 1, size.test).astype(int):
        yield _piece("video4", "test", (int(turn) * 2 + 1) * N_FRAMES, frames, gold)


def _piece(video: str, part: Part, start: int, frames: list[Frame], gold: Int8Array) -> Example:
    """Five frames of a video; groups are minutes of it."""
    rows = slice(start, start + N_FRAMES)
    return Example(f"{video}-{start}", part, f"{video}-{start // MINUTE}", frames[rows], gold[rows])


def _drive(rng: np.random.Generator, n_frames: int) -> tuple[list[Frame], Int8Array]:
    """Detections and gold of one video."""
    found: list[list[DetectedBox]] = [[] for _ in range(n_frames)]
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


def _pass_by(rng: np.random.Generator, habit: Habit, start: int, stop: int) -> Iterator[tuple[int, list[DetectedBox]]]:
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


def _box(rng: np.random.Generator, kind: str, seen: float, x: float, height: float, breadth: float) -> DetectedBox:
    """A detection with a score; a bicycle is the lower half of who rides it."""
    score = float(np.clip(1 / (1 + np.exp(-0.8 * seen)) + rng.normal(0, 0.08), 0.3, 1))
    middle = x + float(rng.normal(0, 0.05 * height))
    bottom = 0.45 + 0.8 * height
    if kind == "bicycle":
        return DetectedBox(kind, score, middle, bottom, 0.6 * height, 0.55 * height)
    return DetectedBox(kind, score, middle, bottom, max(breadth + float(rng.normal(0, 0.06)), 0.1) * height, height)


@as_material("detections.csv")
def load_detections(folder: Path) -> Iterator[Example]:
    """Detections of real videos; the videos that have labels are split into dev and test as in the paper."""
    place = find_folder(folder, "car", ("frames.csv", "detections.csv"))
    boxes: dict[tuple[str, str], list[DetectedBox]] = defaultdict(list)
    for row in read_table(place / "detections.csv", ("video", "frame", *DetectedBox._fields)):
        numbers = (float(row[name]) for name in DetectedBox._fields[1:])
        boxes[row["video"], row["frame"]].append(DetectedBox(row["kind"], *numbers))
    videos: dict[str, list[tuple[Frame, int]]] = defaultdict(list)
    for row in read_table(place / "frames.csv", ("video", "frame", "label")):
        videos[row["video"]].append((tuple(boxes[row["video"], row["frame"]]), int(row["label"])))
    for video, rows in videos.items():
        frames, gold = [frame for frame, _ in rows], np.array([label for _, label in rows], dtype=np.int8)
        for number, start in enumerate(range(0, len(rows), N_FRAMES)):
            turn: Part = "test" if number % 2 else "dev"
            yield _piece(video, turn if gold.any() else "train", start, frames, gold)


RECIPE = Recipe(
    name="car",
    title="cyclists in frames of a dash camera",
    facts=Facts(
        n_elements=N_FRAMES,
        size=Size(train=4785, dev=670, test=669),
        positive=0.2,
        sources=(4, 0, 0),
        network="-",
    ),
    quick=Size(train=1200, dev=120, test=300, small=True),
    sources=(bicycle, person_on_road, small_person, leaning),
    # Not of all four: something has to tell how often the others repeat themselves.
    dependencies=(temporal("bicycle"), temporal("person_on_road"), temporal("small_person")),
    user_prior=expert,
    generate=simulate,
    end_model=None,
    load=load_detections,
    real_data=(
        "The paper's videos are not public. Detections of any dash camera will do: car/frames.csv with the columns "
        "video, frame, label (one row per frame in time, ten per second; -1, 1 or 0 for unknown) and "
        "car/detections.csv with video, frame, kind (person, bicycle), score, x, bottom, width, height (shares of the "
        "picture, x of the middle). Videos with labels go to dev and test by turns of five frames, others to train."
    ),
)
