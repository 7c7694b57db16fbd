"""The main charts as matplotlib axes, for papers and notebooks (extra ``plot``).

Each function draws on `ax` (a new one by default) and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.exceptions import import_extra
from dugong.report.html.svg import class_colours
from dugong.report.material import label_names, places_of
from dugong.tasks import Element
from dugong.types import FloatArray
from dugong.votes import Votes, class_indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dugong.model import LabelModel
    from dugong.report.values import Report


def plot_votes(votes: Votes, sequence: int = 0, *, gold: Any = None, ax: Axes | None = None) -> Axes:
    """The votes on one sequence: one ribbon per source at its own resolution, white where it abstains.

    Parameters
    ----------
    sequence : place of the sequence
    gold : (n_elements,) known labels of all elements, 0 = unknown; optional
    """
    chosen = votes[[sequence]]
    names = list(votes.source_names)
    ax = _new(ax, height=0.8 + 0.3 * (len(names) + (gold is not None)))
    for row, (source, column) in enumerate(zip(chosen.sources, chosen.columns, strict=True)):
        n_classes = votes.n_classes if isinstance(source.resolution, Element) else 2
        starts, stops = chosen.layout(source.resolution).bounds()
        _ribbon(ax, row, starts, stops, class_indices(chosen, column, n_classes), n_classes)
    if gold is not None:
        labels = np.asarray(gold, dtype=np.int8)[votes.layout("element").rows(sequence)]
        places = np.arange(len(labels))
        _ribbon(ax, len(names), places, places + 1, places_of(labels, votes), votes.n_classes)
        names.append("gold")
    ax.set_yticks(range(len(names)), [_words(one) for one in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, max(int(chosen.lengths[0]), 1))
    ax.set_xlabel("element")
    ax.set_title(_words(f"sequence {votes.sequence_ids[sequence]}"))
    return ax


def plot_labels(model: LabelModel, votes: Votes, sequence: int = 0, *, ax: Axes | None = None) -> Axes:
    """The probability of every class over the elements of one sequence."""
    chosen = votes[[sequence]]
    law = model.predict_proba(chosen)
    ax = _new(ax, height=2.4)
    colours, names = class_colours(votes.n_classes)[0], label_names(votes, Element())
    edges = np.arange(len(law) + 1)
    for place in (1,) if votes.n_classes == 2 else range(votes.n_classes):
        ax.stairs(law[:, place], edges, color=colours[place], label=_words(f"P({names[place]})"), linewidth=1.5)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(0, max(len(law), 1))
    ax.set_xlabel("element")
    ax.set_ylabel("probability")
    ax.legend(loc="upper right")
    return ax


def plot_accuracies(report: Report, *, ax: Axes | None = None) -> Axes:
    """Estimated P(vote | label) of every source with its interval, and what gold shows where there is any."""
    rows = [(source.name, part) for source in report.sources for part in source.classes]
    ax = _new(ax, height=0.8 + 0.22 * len(rows))
    for place, (_, part) in enumerate(rows):
        if part.interval is not None:
            ax.plot(part.interval, [place, place], color="0.6", linewidth=3, solid_capstyle="round")
        ax.plot(part.right, place, "o", color="C0")
        if part.empirical is not None:
            ax.plot(part.empirical, place, "D", markerfacecolor="none", markeredgecolor="black")
    ax.set_yticks(range(len(rows)), [_words(f"{source}: {part.label}") for source, part in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel("P(vote | label)")
    return ax


def plot_agreement(report: Report, *, residual: bool = False, ax: Axes | None = None) -> Axes:
    """Who agrees with whom; or, with `residual`, how much more often than the model expects."""
    found = report.agreement
    ax = _new(ax, height=1.2 + 0.3 * len(found.names))
    values: FloatArray = found.excess if residual else found.observed
    limit = float(max(np.nanmax(np.abs(values)), 0.05)) if np.isfinite(values).any() else 1.0
    style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit} if residual else {"cmap": "viridis", "vmin": 0, "vmax": 1}
    picture = ax.imshow(values, **style)  # type: ignore[arg-type]
    ax.set_xticks(range(len(found.names)), [str(place + 1) for place in range(len(found.names))])
    ax.set_yticks(range(len(found.names)), [_words(f"{name} {place + 1}") for place, name in enumerate(found.names)])
    ax.figure.colorbar(picture, ax=ax)
    return ax


def plot_reliability(report: Report, *, ax: Axes | None = None) -> Axes:
    """Promised against measured shares on known labels; the diagonal is honest."""
    found = report.scores
    ax = _new(ax, height=3.6)
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    if found.mean_probability is not None and found.frequency is not None:
        both = zip(found.mean_probability, found.frequency, strict=True)
        pairs = [(p, f) for p, f in both if p is not None and f is not None]
        ax.plot([p for p, _ in pairs], [f for _, f in pairs], "o-")
    ax.set_xlabel(_words(f"promised: {found.of}"))
    ax.set_ylabel("measured share")
    ax.set_aspect("equal")
    return ax


def _words(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _ribbon(ax: Axes, row: int, starts: Any, stops: Any, places: Any, n_classes: int) -> None:
    colours = class_colours(n_classes)[0]
    for place in range(n_classes):
        mine = places == place
        pieces = list(zip(starts[mine].tolist(), (stops - starts)[mine].tolist(), strict=True))
        ax.broken_barh(pieces, (row - 0.4, 0.8), facecolors=colours[place])


def _new(ax: Axes | None, *, height: float) -> Axes:
    if ax is not None:
        return ax
    plt = import_extra("matplotlib.pyplot", "plot", "plotting")
    axes: Axes = plt.subplots(figsize=(8, height), layout="constrained")[1]
    return axes
