"""Interviews with one guest in TV news, one frame every ten seconds; faces, captions and the number of people.

Two sources ask whether the guest, or a host, is recognised in a frame. Two look at thirty seconds, three frames: are
there as many faces all the time, does somebody say "thank you". Here broadcasts are drawn: the guest also appears at
rallies and in clips while others talk, hosts are on screen all day, and a face recogniser takes the same stranger for
the guest throughout a programme. Interviews last about a minute, so a sequence holds the whole of one or a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dugong.experiments.recipe import EndModel, Facts, Recipe, Size
from dugong.experiments.tasks.drawing import Camera, Colour, box, cloud, ellipse, paint, plain
from dugong.experiments.tasks.examples import (
    FULL,
    LAYOUT,
    N_ELEMENTS,
    SMALL,
    Box,
    DrawnFrame,
    Example,
    as_material,
    choose,
    load_frames,
    pictures,
    sizes_of,
)
from dugong.priors import Markov, Prior
from dugong.sources import WindowView, source
from dugong.tasks import Window
from dugong.types import NEGATIVE, POSITIVE, FloatArray, Int8Array

if TYPE_CHECKING:
    from torch import nn

SHARE = 0.03
WITH_INTERVIEW = 0.04  # of the sequences: three quarters of their frames are in the interview
PER_BROADCAST = 4  # sequences
THIRTY_SECONDS = Window(size=3, stride=2, link="any")


# --- sources ----------------------------------------------------------------------------------------------------------
@source
def guest_seen(frame: DrawnFrame) -> int:
    """The guest is recognised."""
    return POSITIVE if frame.best("guest", 0.5) else NEGATIVE


@source
def host_seen(frame: DrawnFrame) -> int:
    """A host is recognised."""
    return POSITIVE if frame.best("host", 0.5) else NEGATIVE


@source(resolution=THIRTY_SECONDS)
def says_thank_you(window: WindowView) -> int:
    """Somebody is thanked."""
    return POSITIVE if any("thank you" in frame.caption for frame in window) else NEGATIVE


@source(resolution=THIRTY_SECONDS)
def same_number_of_faces(window: WindowView) -> int:
    """There are as many faces all the time, two or more."""
    counts = {len(frame.boxes) for frame in window}
    return POSITIVE if len(counts) == 1 and min(counts) >= 2 else NEGATIVE


def user_prior(dev: Sequence[Int8Array]) -> Prior:
    """The share of the dev set, and the intuition that an interview takes about a minute."""
    return Markov(positive=float(np.clip(np.mean(np.concatenate(dev) == POSITIVE), 0.01, 0.5)), bout=5)


# --- simulated broadcasts ---------------------------------------------------------------------------------------------
class Scene(NamedTuple):
    """What is shown: who, how large, and before what."""

    people: tuple[str, ...]
    size: float
    back: Colour


STUDIO, OUTSIDE, CROWD = (0.25, 0.35, 0.6), (0.55, 0.65, 0.6), (0.5, 0.4, 0.4)
INTERVIEW = (
    (0.5, Scene(("host", "guest"), 0.13, STUDIO)),
    (0.42, Scene(("host", "guest"), 0.15, STUDIO)),
    (0.08, Scene(("guest",), 0.18, STUDIO)),
)
OTHERS = (
    (0.252, Scene(("host",), 0.16, STUDIO)),
    (0.1, Scene(("host", "reporter"), 0.13, STUDIO)),
    (0.08, Scene(("host", "reporter", "stranger"), 0.1, STUDIO)),
    (0.008, Scene(("host", "guest", "stranger"), 0.1, CROWD)),  # a host before a clip of a rally
    (0.26, Scene(("reporter",), 0.14, OUTSIDE)),
    (0.188, Scene(("stranger", "stranger"), 0.11, OUTSIDE)),
    (0.012, Scene(("guest", "stranger", "stranger"), 0.1, CROWD)),  # a rally
    (0.1, Scene((), 0.1, OUTSIDE)),
)
HAIR: dict[str, Colour] = {
    "guest": (0.92, 0.92, 0.92),
    "host": (0.2, 0.15, 0.1),
    "reporter": (0.6, 0.45, 0.2),
    "stranger": (0.35, 0.25, 0.2),
}
TALK = (
    "the senate votes tonight",
    "prices rise again",
    "more on this story",
    "what do you say to them",
    "good evening",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """What the frames of a broadcast have in common.

    Attributes
    ----------
    recall : dict of who to the share of their faces that are recognised
    double : how often a stranger is taken for the guest
    polite : how often "thank you" is said outside of interviews
    """

    camera: Camera
    recall: dict[str, float]
    double: float
    polite: float


def draw_broadcast(rng: np.random.Generator) -> Broadcast:
    """A broadcast; in one of 25 there is a double of the guest."""
    return Broadcast(
        camera=Camera.draw(rng),
        recall={who: float(rng.beta(20, 1)) for who in HAIR},
        double=0.6 if rng.random() < 0.04 else 0.005,
        polite=float(rng.beta(1, 25)),
    )


def draw_frames(show: Broadcast, gold: Int8Array, side: int, rng: np.random.Generator) -> Iterator[DrawnFrame]:
    """Frames with the given labels; a scene goes on for a while."""
    scene = None
    for place, value in enumerate(gold):
        if scene is None or value != gold[place - 1] or rng.random() < 0.8:
            scene = _scene(rng, interview=value == POSITIVE)
        faces = _places(scene, rng)
        boxes = tuple(_recognise(show, scene, faces, rng))
        picture = show.camera.shoot(_draw(scene, faces, side, rng), rng)
        yield DrawnFrame(picture=picture, boxes=boxes, caption=_caption(show, rng, interview=value == POSITIVE))


def _scene(rng: np.random.Generator, *, interview: bool) -> Scene:
    scenes = INTERVIEW if interview else OTHERS
    return scenes[rng.choice(len(scenes), p=[share for share, _ in scenes])][1]


def _places(scene: Scene, rng: np.random.Generator) -> FloatArray:
    """Middles of faces, x and y, next to each other."""
    number = len(scene.people)
    x = (np.arange(number) + 0.5) / max(number, 1) + rng.normal(0, 0.03, number)
    return np.stack([x, 0.42 + rng.normal(0, 0.04, number)], axis=1)


def _draw(scene: Scene, faces: FloatArray, side: int, rng: np.random.Generator) -> FloatArray:
    picture = plain(side, scene.back) + rng.normal(0, 0.05, 3) + 0.1 * cloud(rng, side, 6)[..., np.newaxis]
    for who, (x, y) in zip(scene.people, faces, strict=True):
        size = scene.size * rng.uniform(0.85, 1.15)
        suit = (0.15, 0.2, 0.35) if who in ("host", "guest") else (0.5, 0.3, 0.3)
        picture = paint(picture, ellipse(side, x, y + 2.6 * size, 1.7 * size, 1.6 * size), suit)
        picture = paint(picture, ellipse(side, x, y - 0.3 * size, 1.05 * size, 1.2 * size), HAIR[who])
        picture = paint(picture, ellipse(side, x, y + 0.15 * size, 0.85 * size, size), (0.85, 0.65, 0.52))
    if scene.back == STUDIO and rng.random() < 0.8:
        picture = paint(picture, box(side, 0, 0.85, 1, 1), (0.8, 0.1, 0.1))
    return picture


def _recognise(show: Broadcast, scene: Scene, faces: FloatArray, rng: np.random.Generator) -> Iterator[Box]:
    """What a face recogniser says: small and unknown faces are found, but not by name."""
    for who, (x, y) in zip(scene.people, faces, strict=True):
        if rng.random() < 0.03:
            continue
        name = who if rng.random() < show.recall[who] * min(1, scene.size / 0.11) else "face"
        if who in ("stranger", "reporter"):
            name = "guest" if rng.random() < show.double else "face"
        half = scene.size
        yield Box(name, float(rng.uniform(0.55, 1)), x - half, y - half, x + half, y + half)


def _caption(show: Broadcast, rng: np.random.Generator, *, interview: bool) -> str:
    thanks = rng.random() < (0.55 if interview else show.polite)
    return f"{TALK[rng.integers(len(TALK))]} {'thank you' if thanks else ''}".strip()


@as_material("simulated")
def generate(size: Size, seed: int, folder: Path) -> Iterator[Example]:  # noqa: ARG001  pictures stay in memory
    """Broadcasts of four sequences each; 3 % of the frames are in interviews."""
    rng = np.random.default_rng([seed, 3])
    for part, number in sizes_of(size):
        chosen = choose(rng, number, WITH_INTERVIEW)
        show = draw_broadcast(rng)
        for place, interview in enumerate(chosen):
            if place % PER_BROADCAST == 0:
                show = draw_broadcast(rng)
            gold = _gold(rng, interview=interview)
            frames = list(draw_frames(show, gold, SMALL if size.small else FULL, rng))
            group = f"{part}-{place // PER_BROADCAST:05d}"
            yield Example(f"{group}-{place % PER_BROADCAST}", part, group, frames, gold)


def _gold(rng: np.random.Generator, *, interview: bool) -> Int8Array:
    """Labels of one sequence: no interview, a whole one, its begin or its end."""
    gold = np.full(N_ELEMENTS, NEGATIVE, dtype=np.int8)
    if interview:
        start, stop = [(0, 5), (0, rng.integers(1, 5)), (rng.integers(1, 5), 5)][rng.choice(3, p=[0.5, 0.25, 0.25])]
        gold[start:stop] = POSITIVE
    return gold


# --- the recipe -------------------------------------------------------------------------------------------------------
def network(small: bool) -> nn.Module:  # noqa: FBT001  the contract of a recipe
    """ResNet-50, or bottlenecks with a quarter of the layers and an eighth of the channels."""
    from dugong.endmodels.networks import ResNet, resnet50
    from dugong.endmodels.networks.convolutional import Bottleneck

    return ResNet(2, Bottleneck, (1, 1, 1, 1), n_classes=2, width=8) if small else resnet50(2)


RECIPE = Recipe(
    name="interview",
    title="interviews with one guest in TV news",
    facts=Facts(
        n_elements=N_ELEMENTS,
        size=Size(train=6835, dev=3026, test=3563),
        positive=SHARE,
        sources=(2, 2, 0),
        network="ResNet-50",
    ),
    quick=Size(train=600, dev=60, test=200, small=True),
    sources=(guest_seen, host_seen, says_thank_you, same_number_of_faces),
    # None is declared: with the guest depending on its own past the labels were much worse when it was tried.
    dependencies=(),
    user_prior=user_prior,
    generate=generate,
    end_model=EndModel(
        network=network,
        inputs=pictures,
        options={"epochs": 20, "batch_size": 32, "learning_rate": 1e-3},
        small_options={"epochs": 3, "batch_size": 32, "learning_rate": 2e-3},
    ),
    load=lambda folder: load_frames(folder, "TV news"),
    real_data=(
        "TV news is not published as video; with recordings of your own (or of the Internet Archive's TV News Archive, "
        "https://archive.org/details/tv), one frame every ten seconds, boxes of the kinds guest, host and face by any "
        f"face recogniser, captions from the transcript. {LAYOUT}"
    ),
)
