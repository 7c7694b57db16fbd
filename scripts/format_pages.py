"""Make the table of formats in docs/reference/formats.md and the pictures of the round trips anew (``make pictures``).

Every picture comes from a small fit on simulated votes: the votes of the sources, the probability, the intervals that
go to the tool, and what a person makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np

import dugong as dg
from dugong import formats

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "dugong"
mpl.rcParams["font.family"] = "sans-serif"
from matplotlib import pyplot as plt  # noqa: E402

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "reference" / "formats.md"
MARKS = ("<!-- table: made by scripts/format_pages.py -->", "<!-- end of table -->")
INK, BLUE, ORANGE, PALE = "#222222", "#2a6f97", "#c8553d", "#d7e3ea"


@dataclass(frozen=True)
class Scene:
    """What one picture shows."""

    name: str
    tool: str
    sources: tuple[str, ...]
    label: str
    axis: str
    rate: float
    seed: int


SCENES = (
    Scene("video", "Label Studio", ("face", "motion", "caption"), "interview", "seconds", 2.0, 3),
    Scene("audio", "Audacity", ("loudness", "pitch", "onsets"), "call", "seconds", 4.0, 5),
    Scene("sensors", "EDF+ viewer", ("energy", "peaks", "tilt"), "walk", "seconds", 1.0, 8),
    Scene("text", "brat", ("lexicon", "suffix", "context"), "DISEASE", "token", 1.0, 11),
)


def table() -> str:
    """The table of all formats."""
    head = "| format | name, endings | keeps | loses | units | checked by |\n|---|---|---|---|---|---|\n"
    rows = []
    for name in formats.names():
        one = formats.of_name(name)
        needs = f" (extra `{one.extra}`)" if one.extra else ""
        endings = ", ".join(f"`{ending}`" for ending in one.suffixes)
        cells = (f"{one.title}{needs}", f"`{one.name}`: {endings}", one.keeps, one.loses, one.unit, one.checked)
        rows.append(f"| {' | '.join(cells)} |\n")
    return head + "".join(rows)


def filled(page: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{table()}\n{MARKS[1]}{after}"


def draw(scene: Scene) -> None:
    """Votes, probability, intervals, and their correction."""
    rng = np.random.default_rng(scene.seed)
    n = 80
    truth = np.full((30, n), -1)
    for row in truth:
        for start in rng.integers(0, n - 14, 2):
            row[start : start + rng.integers(6, 14)] = 1
    votes = np.stack([np.where(rng.random(truth.shape) < right, truth, -truth) for right in (0.88, 0.8, 0.75)], axis=2)
    table_ = dg.Votes.from_dense(votes, sources=scene.sources, classes=("other", scene.label))
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.25, stay=0.9), dependencies=()).fit(table_)
    labels = model.labels(table_)
    first = str(model.review(table_, 1).ids[0])
    found = labels.segments().select(sequences=[first])
    shares = labels.to_numpy()[int(first) * n : (int(first) + 1) * n, 1]
    figure, axes = plt.subplots(figsize=(8, 3.1), layout="constrained")
    for place, source in enumerate(scene.sources):
        spoken = votes[int(first), :, place] == 1
        axes.bar(np.flatnonzero(spoken) / scene.rate, 0.6, 1 / scene.rate, 4.2 + place, align="edge", color=PALE)
        axes.text(-0.5 / scene.rate, 4.5 + place, source, ha="right", va="center", color=INK)
    axes.plot((np.arange(n) + 0.5) / scene.rate, 2.6 + shares, color=BLUE, lw=1.5)
    axes.text(-0.5 / scene.rate, 3.1, "probability", ha="right", va="center", color=BLUE)
    known = dg.Segments.from_gold(truth[int(first)], table_[[int(first)]]).select(labels=[scene.label])
    for height, segments, colour, name in ((1.4, found, BLUE, f"to {scene.tool}"), (0.2, known, ORANGE, "corrected")):
        for one in segments:
            axes.bar(
                one.start / scene.rate, 0.8, (one.end - one.start) / scene.rate, height, align="edge", color=colour
            )
            if height > 1 and one.end - one.start > 5:  # there is room for the number
                middle = (one.start + one.end) / 2 / scene.rate
                axes.text(
                    middle, height + 0.4, f"{one.probability:.2f}", ha="center", va="center", color="white", size=8
                )
        axes.text(-0.5 / scene.rate, height + 0.4, name, ha="right", va="center", color=colour)
    axes.set(xlim=(0, n / scene.rate), ylim=(0, 7), yticks=(), xlabel=scene.axis)
    axes.spines[["left", "top", "right"]].set_visible(False)
    figure.savefig(DOCS / "img" / f"round-trip-{scene.name}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Write the table and all pictures."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for scene in SCENES:
        draw(scene)


if __name__ == "__main__":
    main()
