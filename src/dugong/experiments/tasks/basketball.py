"""Basketball among other sports, one frame every two seconds; four sources on detected people and balls.

The paper takes sports videos of ActivityNet, detects objects with an off-the-shelf network, and asks of every frame
whether it comes from a basketball video. Here videos are drawn: every video has a sport, a floor, a ball of some
colour, a camera, and a detector that misses balls and takes the same lamp or logo for a ball again and again. So errors
persist within a video, which is why all sources that read single frames are declared to depend on their own past.
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
from dugong.graph import temporal
from dugong.priors import Markov, Prior
from dugong.sources import source
from dugong.tasks import Sequence as WholeSequence
from dugong.types import ABSTAIN, NEGATIVE, POSITIVE, FloatArray, Int8Array

if TYPE_CHECKING:
    from torch import nn

SHARE = 0.12
PER_VIDEO = 2  # sequences from one video
SURE, LIKELY = 0.6, 0.4  # scores from which a detection is believed


# --- sources ----------------------------------------------------------------------------------------------------------
@source
def person_and_ball(frame: DrawnFrame) -> int:
    """A person and a ball are surely seen."""
    return POSITIVE if frame.best("ball", SURE) and frame.best("person", SURE) else NEGATIVE


@source
def ball_at_hand(frame: DrawnFrame) -> int:
    """The ball is near the upper half of a person, or far from everyone."""
    ball, people = frame.best("ball"), [one for one in frame.boxes if one.kind == "person"]
    if ball is None or not people:
        return ABSTAIN
    distance = min(np.hypot(ball.x - one.x, ball.y - (one.top + one.y) / 2) for one in people)
    return POSITIVE if distance < 0.1 else NEGATIVE


@source
def orange_ball(frame: DrawnFrame) -> int:
    """The colour of the ball: much more red than blue, green between them."""
    ball = frame.best("ball")
    if ball is None:
        return ABSTAIN
    red, green, blue = frame.colour(ball)
    return POSITIVE if red > 1.7 * blue and 1.15 * blue < green < 0.8 * red else NEGATIVE


@source(resolution=WholeSequence())
def ball_rises(frames: Sequence[DrawnFrame]) -> int:
    """How far the ball moves up and down in the sequence."""
    heights = [ball.y for frame in frames if (ball := frame.best("ball", LIKELY))]
    if len(heights) < 2:
        return ABSTAIN
    return POSITIVE if max(heights) - min(heights) > 0.3 else NEGATIVE


def user_prior(dev: Sequence[Int8Array]) -> Prior:
    """The share of the dev set, and the intuition that a video does not change its sport."""
    return Markov(positive=float(np.clip(np.mean(np.concatenate(dev) == POSITIVE), 0.02, 0.5)), stay=0.995)


# --- simulated videos -------------------------------------------------------------------------------------------------
class Sport(NamedTuple):
    """How a sport looks: its share, its floors, its ball, how high it flies, how often it is in a hand."""

    share: float
    floors: tuple[Colour, ...]
    ball: Colour
    radius: float
    flight: float
    at_hand: float
    stand: str = ""


WOOD, GRASS, CLAY, BLUE, GREY = (
    (0.74, 0.55, 0.36),
    (0.3, 0.55, 0.25),
    (0.7, 0.42, 0.28),
    (0.3, 0.45, 0.68),
    (0.5, 0.5, 0.52),
)
BASKETBALL = Sport(SHARE, (WOOD, WOOD, WOOD, BLUE), (0.85, 0.45, 0.15), 0.06, 0.7, 0.7, "hoop")
OTHERS = (
    Sport(0.25, (WOOD, BLUE), (0.9, 0.85, 0.7), 0.045, 0.7, 0.1, "net"),  # volleyball
    Sport(0.2, (WOOD, BLUE), (0.6, 0.7, 0.8), 0.035, 0.2, 0.6),  # handball
    Sport(0.25, (GRASS,), (0.95, 0.95, 0.95), 0.04, 0.25, 0.1),  # football
    Sport(0.15, (CLAY, GRASS, BLUE), (0.75, 0.85, 0.3), 0.025, 0.35, 0.2, "net"),  # tennis
    Sport(0.08, (GRASS,), (0.75, 0.4, 0.2), 0.025, 0.2, 0.2),  # cricket
    Sport(0.07, (WOOD, BLUE, GREY), (0.8, 0.4, 0.2), 0.05, 0.3, 0.1),  # rhythmic gymnastics
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GameClip:
    """What the frames of a video have in common.

    Attributes
    ----------
    floor, ball : colours as they are in this video
    seen : how often the detector finds a ball that is there
    decoy : x, y, and colour of a round thing that may be taken for a ball
    """

    sport: Sport
    camera: Camera
    floor: Colour
    ball: Colour
    seen: float
    decoy: tuple[float, float, Colour]


def draw_video(rng: np.random.Generator, *, basketball: bool) -> GameClip:
    """A video of basketball or of another sport."""
    sport = BASKETBALL if basketball else OTHERS[rng.choice(len(OTHERS), p=[one.share for one in OTHERS])]
    decoy = (float(rng.uniform(0.1, 0.9)), float(rng.uniform(0.05, 0.6)), _vary(rng, (0.75, 0.6, 0.4), 0.2))
    return GameClip(
        sport=sport,
        camera=Camera.draw(rng),
        floor=_vary(rng, sport.floors[rng.integers(len(sport.floors))], 0.12),
        ball=_vary(rng, sport.ball, 0.1),
        seen=float(rng.beta(20, 1)),
        decoy=decoy,
    )


def draw_frames(video: GameClip, number: int, size: int, rng: np.random.Generator) -> Iterator[DrawnFrame]:
    """Frames of a video; the camera changes between wide and close every few seconds."""
    close = rng.random() < 0.3
    for _ in range(number):
        close = close ^ (rng.random() < 0.25)
        people = _places(rng, 2 if close else 4)
        ball = _ball(video.sport, people, rng)
        picture = _draw(video, people, ball, size, rng, close=close)
        boxes = _detect(video, people, ball, rng, close=close)
        yield DrawnFrame(picture=video.camera.shoot(picture, rng), boxes=tuple(boxes))


def _vary(rng: np.random.Generator, colour: Colour, by: float) -> Colour:
    red, green, blue = np.clip(np.array(colour) * rng.normal(1, by) + rng.normal(0, by / 2, 3), 0, 1).tolist()
    return red, green, blue


def _places(rng: np.random.Generator, most: int) -> FloatArray:
    """Where people stand, (n, 2)."""
    number = int(rng.integers(1, most + 1))
    return np.stack([rng.uniform(0.1, 0.9, number), rng.uniform(0.5, 0.75, number)], axis=1)


def _ball(sport: Sport, people: FloatArray, rng: np.random.Generator) -> tuple[float, float] | None:
    if rng.random() < 0.03:
        return None
    x, y = people[rng.integers(len(people))]
    if rng.random() < sport.at_hand:
        return float(x + rng.normal(0, 0.03)), float(y - 0.1 + rng.normal(0, 0.03))
    return float(rng.uniform(0.1, 0.9)), float(0.78 - sport.flight * np.sqrt(rng.random()))


def _draw(
    video: GameClip,
    people: FloatArray,
    ball: tuple[float, float] | None,
    size: int,
    rng: np.random.Generator,
    *,
    close: bool,
) -> FloatArray:
    wide = 1.25 if close else 1.0
    picture = plain(size, (0.35, 0.35, 0.4)) + 0.12 * cloud(rng, size, 8)[..., np.newaxis]
    picture = paint(picture, box(size, -1, 0.45, 2, 2), video.floor) + 0.04 * cloud(rng, size, 4)[..., np.newaxis]
    place = rng.uniform(0, 0.8)
    picture = paint(picture, box(size, place, 0.2, place + 0.25, 0.35), _vary(rng, (0.7, 0.7, 0.7), 0.4))  # a poster
    if video.sport.stand == "net":
        picture = paint(picture, box(size, -1, 0.3, 2, 0.42), (0.75, 0.75, 0.75))
    if video.sport.stand == "hoop" and rng.random() < 0.6:
        side = rng.uniform(0.1, 0.9)
        picture = paint(picture, box(size, side - 0.13, 0.1, side + 0.13, 0.3), (0.9, 0.9, 0.9))
        picture = paint(picture, box(size, side - 0.06, 0.3, side + 0.06, 0.35), (0.95, 0.25, 0.1))
    x, y, colour = video.decoy
    picture = paint(picture, ellipse(size, x, y, 0.045, 0.045), colour)
    for x, y in people:
        shirt = _vary(rng, (0.5, 0.4, 0.5), 0.5)
        picture = paint(picture, ellipse(size, x, y, 0.05 * wide, 0.14 * wide), shirt)
        picture = paint(picture, ellipse(size, x, y - 0.17 * wide, 0.035 * wide, 0.04 * wide), (0.8, 0.62, 0.5))
    if ball:
        radius = video.sport.radius * wide
        picture = paint(picture, ellipse(size, *ball, radius, radius), video.ball)
    return picture


def _detect(
    video: GameClip, people: FloatArray, ball: tuple[float, float] | None, rng: np.random.Generator, *, close: bool
) -> Iterator[Box]:
    """What an object detector says: it errs by video, by size and by blur, and knows no sports."""
    wide = 1.25 if close else 1.0
    for x, y in people:
        if rng.random() < 0.92:
            yield _around(rng, ("person", 0.8), x, y - 0.03, 0.06 * wide, 0.18 * wide)
    if ball and rng.random() < video.seen:
        radius = video.sport.radius * wide
        yield _around(rng, ("ball", 0.3 + 7 * radius - 4 * video.camera.blur), *ball, radius, radius)
    if rng.random() < 0.97:
        yield _around(rng, ("ball", 0.3), *video.decoy[:2], 0.045, 0.045)


def _around(rng: np.random.Generator, what: tuple[str, float], x: float, y: float, width: float, height: float) -> Box:
    kind, score = what
    x, y = x + rng.normal(0, 0.01), y + rng.normal(0, 0.01)
    sure = float(np.clip(rng.normal(score, 0.1), 0.3, 1))
    return Box(kind, sure, float(x - width), float(y - height), float(x + width), float(y + height))


@as_material("simulated")
def generate(size: Size, seed: int, folder: Path) -> Iterator[Example]:  # noqa: ARG001  pictures stay in memory
    """Videos of two sequences each, 12 % of them basketball; parts do not share videos."""
    rng, pixels = np.random.default_rng([seed, 12]), SMALL if size.small else FULL
    for part, number in sizes_of(size):
        for place, basketball in enumerate(choose(rng, -(-number // PER_VIDEO), SHARE)):
            count = min(PER_VIDEO, number - place * PER_VIDEO)
            video = f"{part}-{place:05d}"
            frames = list(draw_frames(draw_video(rng, basketball=basketball), count * N_ELEMENTS, pixels, rng))
            gold = np.full(N_ELEMENTS, POSITIVE if basketball else NEGATIVE, dtype=np.int8)
            for cut in range(count):
                yield Example(f"{video}-{cut}", part, video, frames[cut * N_ELEMENTS :][:N_ELEMENTS], gold)


# --- the recipe -------------------------------------------------------------------------------------------------------
def network(small: bool) -> nn.Module:  # noqa: FBT001  the contract of a recipe
    """ResNet-18, or one with half the layers and an eighth of the channels."""
    from dugong.endmodels.networks import ResNet, resnet18
    from dugong.endmodels.networks.convolutional import BasicBlock

    return ResNet(2, BasicBlock, (1, 1, 1, 1), n_classes=2, width=8) if small else resnet18(2)


RECIPE = Recipe(
    name="basketball",
    title="frames of basketball videos among other sports",
    facts=Facts(
        n_elements=N_ELEMENTS,
        size=Size(train=3594, dev=212, test=244),
        positive=SHARE,
        sources=(3, 0, 1),
        network="ResNet-18",
    ),
    quick=Size(train=600, dev=48, test=160, small=True),
    sources=(person_and_ball, ball_at_hand, orange_ball, ball_rises),
    dependencies=(temporal("orange_ball"),),
    user_prior=user_prior,
    generate=generate,
    end_model=EndModel(
        network=network,
        inputs=pictures,
        options={"epochs": 20, "batch_size": 32, "learning_rate": 1e-3},
        small_options={"epochs": 6, "batch_size": 32, "learning_rate": 2e-3},
    ),
    load=lambda folder: load_frames(folder, "ActivityNet"),
    real_data=(
        "ActivityNet, http://activity-net.org: videos of the class Basketball (label 1) and of other sports, one frame "
        f"every two seconds, with people and balls by any object detector. {LAYOUT}"
    ),
)
