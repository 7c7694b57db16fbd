"""`python -m benchmarks.real_picture`: draws docs/img/peers.svg, whether the fitted model predicts every source better.

One row per set of votes, one dot per source (or group of sources) that was left out: nats per vote by which the fitted
model predicts it better than the answer learned from peers. The model is taken at its word where every dot is on the
right.
"""

from __future__ import annotations

import numpy as np

import dugong as dg
from benchmarks.real import many_classes, ring
from benchmarks.real_sets import DATA, EVERY, ROOT, real_votes
from dugong.worlds import lopsided, multiresolution, rare, self_dependent

PICTURE = ROOT / "docs" / "img" / "peers.svg"
WORLDS = {
    "world: independent sources": (lopsided, 3_000),
    "world: windows, a copy": (multiresolution, 3_000),
    "world: 3 % positive": (rare, 10_000),
    "world: sources repeat themselves": (self_dependent, 3_000),
    "world: a ring of four": (ring, 3_000),
    "world: four classes": (many_classes, 3_000),
}
LEFT, WIDTH, ROW, TOP = 240, 460, 24, 30
LINEAR = 0.005  # nats: the axis is linear inside, logarithmic outside
FARTHEST = 0.3


def gains() -> dict[str, list[float]]:
    """Of every set of votes, the gain of the fitted model for every left-out source."""
    found = {}
    for name, (make, n_sequences) in WORLDS.items():
        votes, _ = make(seed=1).sample(n_sequences, rng=1)
        found[name] = dg.LabelModel().fit(votes).diagnostics_.learned["gains"]
    for name in EVERY:
        values = dg.LabelModel().fit(real_votes(DATA, name).votes).diagnostics_.learned["gains"]
        if values:
            found[name] = values
    return found


def place(gain: float) -> float:
    """Where a gain is on the axis."""
    far = np.sign(gain) * np.log1p(abs(gain) / LINEAR) / np.log1p(FARTHEST / LINEAR)
    return float(LEFT + WIDTH / 2 * (1 + np.clip(far, -1, 1)))


def draw(found: dict[str, list[float]]) -> str:
    """The picture as SVG."""
    height = TOP + ROW * len(found) + 44
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    bottom = TOP + ROW * len(found)
    for tick in (-0.1, -0.01, 0.0, 0.01, 0.1):
        at, colour = place(tick), "#444" if tick == 0 else "#ddd"
        lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 12}" y2="{bottom}" stroke="{colour}"/>')
        lines.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#444">{tick:g}</text>')
    for row, (name, values) in enumerate(found.items()):
        y, colour = TOP + ROW * (row + 0.5), "#1b7f5c" if name.startswith("world") else "#b3541e"
        lines.append(f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end" fill="#222">{name}</text>')
        lines += [f'<circle cx="{place(v):.1f}" cy="{y:.1f}" r="4.5" fill="{colour}" opacity=".7"/>' for v in values]
    text = "nats per vote by which the fitted model predicts a left-out source better than its peers' answer"
    lines.append(f'<text x="{LEFT + WIDTH / 2}" y="{bottom + 36}" text-anchor="middle" fill="#222">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(gains()))
