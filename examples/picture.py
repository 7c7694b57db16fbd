"""Draw the picture of the README: votes at three resolutions on one broadcast, and the probabilities that follow.

Run it from the root of the repository: ``.venv/bin/python examples/picture.py docs/img/overview.svg``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dugong as dg
from dugong.worlds import tv_news

WIDTH, LEFT, CELL, ROW = 880, 176, 22, 24
COLOURS = {1: "#2f855a", -1: "#dd6b20", 0: "#e2e8f0"}
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


def pick(votes: dg.Votes, gold: np.ndarray) -> int:
    """A broadcast with one interview in its middle, on which every source has something to say."""
    offsets = votes.layout("element").offsets
    for place in np.flatnonzero(votes.column("interview_programme")):
        own = gold[offsets[place] : offsets[place + 1]]
        steps = np.flatnonzero(np.diff(own))
        if len(steps) == 2 and own[0] < 0 and steps[0] >= 6 and steps[1] <= 24 and steps[1] - steps[0] >= 7:
            return int(place)
    raise SystemExit("no broadcast has an interview in its middle; try another seed.")


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A box."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" fill="{colour}"/>'


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#2d3748") -> str:
    """A line of words."""
    return f'<text x="{x}" y="{y}" {FONT} text-anchor="{anchor}" fill="{colour}">{words}</text>'


def vote_row(votes: dg.Votes, name: str, place: int, y: float) -> list[str]:
    """One source: a bar per task, as wide as the task."""
    layout = votes.layout(votes.sources[votes.index(name)].resolution)
    starts, stops = layout.bounds()
    tasks = range(layout.offsets[place], layout.offsets[place + 1])
    bars = [
        rectangle(
            LEFT + CELL * starts[task] + 1,
            y,
            CELL * (stops[task] - starts[task]) - 2,
            ROW - 6,
            COLOURS[int(votes.column(name)[task])],
        )
        for task in tasks
    ]
    return [text(LEFT - 10, y + 14, name, "end"), *bars]


def curve(values: np.ndarray, y: float, height: float, colour: str) -> str:
    """Probabilities frame by frame."""
    points = " ".join(f"{LEFT + CELL * (i + 0.5):.1f},{y + height * (1 - v):.1f}" for i, v in enumerate(values))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'


def draw(path: Path) -> None:
    """Simulate, fit, and draw one broadcast."""
    world = tv_news()
    votes, labels = world.sample(2000, rng=0)
    model = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
    place = pick(votes, labels["element"])
    here = slice(*votes.layout("element").offsets[place : place + 2])
    found, share = model.predict_proba(votes)[here, 1], dg.MajorityVote().fit(votes).predict_proba(votes)[here, 1]
    truth = labels["element"][here]
    parts, y = [text(LEFT, 18, "votes of eight small rules on one broadcast of thirty frames", colour="#718096")], 30.0
    for name in votes.source_names:
        parts += vote_row(votes, name, place, y)
        y += ROW
    y, height = y + 34, 96.0
    parts.append(text(LEFT, y - 10, "probability that an interview is on", colour="#718096"))
    parts += [rectangle(LEFT + CELL * i, y, CELL, height, "#c6f6d5") for i in np.flatnonzero(truth > 0)]
    parts += [curve(share, y, height, "#a0aec0"), curve(found, y, height, "#2b6cb0")]
    parts += [text(LEFT - 10, y + 12, "1", "end"), text(LEFT - 10, y + height, "0", "end")]
    y += height + 26
    legend = [("#2f855a", "yes"), ("#dd6b20", "no"), ("#e2e8f0", "abstains"), ("#2b6cb0", "label model"),
              ("#a0aec0", "majority vote"), ("#c6f6d5", "truth")]  # fmt: skip
    for number, (colour, words) in enumerate(legend):
        parts += [rectangle(LEFT + 118 * number, y - 11, 14, 14, colour), text(LEFT + 118 * number + 20, y, words)]
    size = f'width="{WIDTH}" height="{y + 14:.0f}" viewBox="0 0 {WIDTH} {y + 14:.0f}"'
    title = "<title>Noisy votes at three resolutions, and the probabilities that Dugong makes of them</title>"
    background = f'<rect width="{WIDTH}" height="{y + 14:.0f}" fill="#ffffff"/>'
    body = "\n".join([title, background, *parts])
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{body}\n</svg>\n', encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/img/overview.svg"))
