"""Draw the picture of docs/explanation/resolutions.md: run it from the root of the project."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Execute the page, then plot what it computed."""
    text = (ROOT / "explanation" / "resolutions.md").read_text(encoding="utf-8")
    page: dict[str, np.ndarray] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), page)
    frames = np.arange(12)
    mpl.rcParams["svg.hashsalt"] = "dugong"
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    axes.step(frames, page["with_caption"], where="mid", color="#0b6e99", label="frames, all votes")
    before_style = {"color": "#888888", "linestyle": "--", "label": "frames, no caption vote"}
    axes.step(frames, page["without_caption"], where="mid", **before_style)
    for window, (now, before) in enumerate(zip(page["windows"], page["from_frames"], strict=True)):
        span = (4 * window - 0.4, 4 * window + 3.4)
        axes.hlines(now, *span, color="#d1495b", linewidth=3, label="windows, all votes" if window == 0 else None)
        axes.hlines(before, *span, color="#d1495b", linewidth=1.2, linestyle=":")
    axes.axvspan(3.5, 7.5, color="#f2e394", alpha=0.5, linewidth=0)
    axes.annotate("caption votes +1", (5.5, 0.03), ha="center")
    axes.set(xlabel="frame", ylabel="P(interview)", ylim=(0, 1), xticks=frames)
    axes.legend(frameon=False, loc="upper left")
    (ROOT / "img").mkdir(exist_ok=True)
    figure.savefig(ROOT / "img" / "resolutions.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
