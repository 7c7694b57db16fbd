"""Sample data of a new project: a wearable that hears steps and feels movement and the heart, second by second.

Out: rows of numbers with walks in them, and where these are. Made with the standard library alone, the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

N_RECORDINGS, N_SECONDS, N_GOLD = 240, 60, 60
_POSITIVE, _STAY = 0.15, 0.95
_NOISE = {"movement": 0.45, "steps": 0.5, "heart": 0.45}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recording: its name, whether somebody walks in each second, and one row of measurements per second."""

    name: str
    walking: tuple[bool, ...]
    rows: tuple[tuple[float, ...], ...]

    def csv(self) -> str:
        """The measurements as the text of a CSV file."""
        lines = [",".join(_NOISE), *(",".join(f"{value:.3f}" for value in row) for row in self.rows)]
        return "\n".join(lines) + "\n"

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Stretches of equal labels: start, end (half open), +1 or -1."""
        start = 0
        for second in range(1, len(self.walking) + 1):
            if second == len(self.walking) or self.walking[second] != self.walking[start]:
                yield start, second, 1 if self.walking[start] else -1
                start = second


def recordings(seed: int = 7) -> Iterator[Recording]:
    """All sample recordings."""
    random = Random(seed)
    for number in range(N_RECORDINGS):
        walking = _walks(random)
        rows = tuple(tuple(w + random.gauss(0.0, noise) for noise in _NOISE.values()) for w in walking)
        yield Recording(name=f"recording-{number:03d}", walking=walking, rows=rows)


def gold_csv(known: list[Recording]) -> str:
    """Labels of some recordings as the text of a CSV file."""
    lines = [f"{one.name},{start},{stop},{label}" for one in known for start, stop, label in one.runs()]
    return "\n".join(["sequence,start,end,label", *lines]) + "\n"


def _walks(random: Random) -> tuple[bool, ...]:
    begin = _POSITIVE * (1 - _STAY) / (1 - _POSITIVE)
    state, labels = random.random() < _POSITIVE, []
    for _ in range(N_SECONDS):
        labels.append(state)
        state = random.random() < (_STAY if state else begin)
    return tuple(labels)
