"""How far propagation between overlapping windows is from exact answers, and whether the audit knows it.

Worlds and windows of the tests, more of them: every case is answered exactly by the product engine as well. Writes a
table into docs/explanation/resolutions.md: `python -m benchmarks.propagation [seeds]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dugong.infer.factors import flatten
from dugong.infer.grouped import WindowEngine
from dugong.infer.grouped.audit import audit
from dugong.infer.prepare import prepare
from dugong.tasks import Window

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
from infer.test_propagation import DIFFUSE, WORLDS, errors, make_votes  # noqa: E402  (the same worlds as the tests)

PAGE = ROOT / "docs" / "explanation" / "resolutions.md"
BEGIN, END = "<!-- errors: written by make bench-windows -->", "<!-- end of errors -->"
WINDOWS = ((8, 4), (16, 8), (12, 4), (30, 10), (9, 3), (12, 2), (12, 1))
LENGTH = 200
LARGE, SMALL = 0.01, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One case: mean errors of elements and of windows, and whether the audit warned."""

    window: str
    at_their_word: bool
    elements: float
    windows: float
    warned: bool

    @property
    def worst(self) -> float:
        """The larger of both."""
        return max(self.elements, self.windows)


def measure(seeds: Iterable[int]) -> list[Found]:
    """All windows in all worlds, votes at their word and raised to stride / size."""
    found = []
    for size, stride in WINDOWS:
        window = Window(size=size, stride=stride, link="majority")
        for seed in seeds:
            for world in (*WORLDS, DIFFUSE):
                for weight in (1.0, stride / size):
                    case = make_votes(seed, [window], world, LENGTH, weight)
                    elements, windows, _ = errors(*case)
                    made = prepare(case[0], flatten(*case[:2]), case[2].chain(), case[0].resolutions)
                    warned = audit(WindowEngine(made), np.random.default_rng(seed)).warns
                    found.append(
                        Found(
                            window=f"{size}/{stride}",
                            at_their_word=weight == 1.0,
                            elements=elements,
                            windows=windows,
                            warned=warned,
                        )
                    )
                    print(found[-1], file=sys.stderr, flush=True)
    return found


def render(found: list[Found]) -> str:
    """The tables of the page."""
    lines = ["| size/stride | votes | mean over worlds | worst world |", "| --- | --- | --- | --- |"]
    for window in dict.fromkeys(one.window for one in found):
        for word, said in ((True, "at their word"), (False, "raised to stride / size")):
            some = [one for one in found if (one.window, one.at_their_word) == (window, word)]
            mean, worst = (
                f"{how([one.elements for one in some]):.4f} / {how([one.windows for one in some]):.4f}"
                for how in (np.mean, np.max)
            )
            lines.append(f"| {window} | {said} | {mean} | {worst} |")
    large, small = (
        [one.warned for one in found if hit(one.worst)] for hit in (lambda e: e > LARGE, lambda e: e < SMALL)
    )
    return "\n".join(
        [
            f"Mean errors of elements / windows over {LENGTH} elements, against exact answers ({len(found)} cases):",
            "",
            *lines,
            "",
            f"The audit warned in {sum(large)} of {len(large)} cases with a mean error above {LARGE}, and in "
            f"{sum(small)} of {len(small)} below {SMALL}.",
        ]
    )


def main() -> None:
    """Measure, and write the page."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    found = render(measure(range(n_seeds)))
    PAGE.write_text(f"{head}{BEGIN}\n\n{found}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
