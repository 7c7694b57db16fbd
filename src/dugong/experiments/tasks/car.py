"""Car: which frames of a dash camera, ten per second, show a cyclist; four sources on the boxes of a detector.

The paper asks an off-the-shelf detector for people and bicycles; it misses small bicycles, so there are heuristics for
small people. What misleads a source (a parked bicycle, someone who crosses the road) stays for seconds, so that all
five frames of a sequence repeat it: the sources depend on their own past. The paper reports the label model alone, and
does not say how many frames are positive; here a fifth.
"""

from __future__ import annotations

from collections.abc import Sequence

from dugong.experiments.recipe import Facts, Recipe, Size
from dugong.experiments.tasks.car_data import N_FRAMES, Box, Frame, load_detections, simulate
from dugong.graph import temporal
from dugong.priors import Prior, from_labels
from dugong.sources import source
from dugong.types import ABSTAIN, NEGATIVE, POSITIVE, Int8Array

SMALL = 0.12  # height in the picture
ROAD = 0.12  # from the middle


def boxes(frame: Frame, kind: str, least: float) -> list[Box]:
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
