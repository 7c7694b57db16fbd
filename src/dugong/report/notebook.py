"""What a notebook shows: small tables styled by nothing but themselves, and pages in a frame of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.exceptions import import_extra
from dugong.report.html import payload, render_html, render_timeline
from dugong.report.html.tags import Child, Html, class_colours, grid, join, name, number, tag
from dugong.report.material import find_sequences, gather, label_names, places_of
from dugong.report.track import Sequences
from dugong.report.tracks import make_sequences
from dugong.tasks import Element
from dugong.types import FloatArray
from dugong.votes import Votes, class_indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dugong.fit.result import Diagnostics
    from dugong.infer.explain import Explanation
    from dugong.metrics.compare import Comparison
    from dugong.model import LabelModel
    from dugong.report.values import Report
    from dugong.summary import ModelSummary


IN_A_CELL = 200_000  # characters of timelines that a cell of a notebook may hold


def votes_html(votes: Votes) -> str:
    """Votes at a glance: coverage, overlaps and conflicts of every source."""
    summary = votes.summary()
    rows = [
        (name(one.name), name(one.resolution), f"{one.coverage:.1%}", f"{one.overlaps:.1%}", f"{one.conflicts:.1%}")
        for one in summary.sources
    ]
    title = (
        f"Votes of {votes.n_sources} sources on {votes.n_sequences:,} sequences ({votes.n_elements:,} elements, "
        f"{votes.n_classes} classes)"
    )
    notes = tag("ul", [tag("li", name(problem.text)) for problem in summary.problems]) if summary.problems else None
    return _block(title, ("source", "resolution", "coverage", "overlaps", "conflicts"), rows, notes)


def model_html(model: LabelModel) -> str:
    """A model at a glance: its settings if it is not fitted, else what it learned about every source."""
    if not hasattr(model, "law_"):
        return tag("pre", repr(model), "\nnot fitted yet")
    return summary_html(model.summary())


def _block(title: str, head: Sequence[str], rows: Sequence[Sequence[Child]], notes: Html | None) -> str:
    header = [tag("th", cell, scope="col") for cell in head]
    body = [tag("tr", tag("th", row[0], scope="row"), [tag("td", join(cell)) for cell in row[1:]]) for row in rows]
    return tag("div", grid(title, header, body), notes, class_="dugong")


def summary_html(summary: ModelSummary) -> str:
    """What was learned about every source, as a table."""
    rows = []
    for one in summary.sources:
        parts: list[Child] = [
            [", " if place else "", name(part.label), f" {part.right:.2f}"] for place, part in enumerate(one.classes)
        ]
        accuracy = "–" if one.accuracy is None else f"{one.accuracy:.1%}"
        rows.append((name(one.name), name(one.resolution), f"{one.coverage:.1%}", accuracy, parts))
    title = f"Label model of {len(summary.sources)} sources, fitted on {summary.n_sequences:,} sequences"
    edges = ", ".join(f"{a} repeats itself" if a == b else f"{a} + {b}" for a, b in summary.dependencies) or "none"
    notes = tag("p", "Prior: ", summary.belief or tag("code", summary.prior), "; dependencies: ", name(edges))
    return _block(title, ("source", "resolution", "coverage", "accuracy", "P(vote | label)"), rows, notes)


def explanation_html(explanation: Explanation) -> str:
    """The log-odds of one label taken apart, as a table with bars."""
    parts = [
        ("what is believed before any vote", explanation.prior),
        *((one.source, one.log_odds) for one in explanation.own_votes),
        ("votes on other tasks", explanation.neighbours),
        *((("caution of the learned model", explanation.averaging),) if explanation.averaging else ()),
    ]
    largest = max(1e-9, *(abs(value) for _, value in parts))
    rows = [(name(what), f"{value:+.2f}", _bar(value / largest)) for what, value in parts]
    title = (
        f"{explanation.resolution.name} {explanation.task} of sequence {explanation.sequence}: "
        f"P({explanation.target:+d}) = {explanation.probability:.3f}, log-odds {explanation.log_odds:+.2f}"
    )
    return _block(title, ("because of", "log-odds", ""), rows, None)


def _bar(share: float) -> Html:
    """A bar to the right of its middle for, to the left against."""
    side, width = ("left: 50%", 50 * share) if share >= 0 else (f"left: {50 + 50 * share:.0f}%", -50 * share)
    fill = tag("span", style=f"position: absolute; {side}; width: {width:.0f}%; height: 100%; background: currentColor")
    return tag("span", fill, style="position: relative; display: inline-block; width: 8em; height: .7em")


def comparison_html(comparison: Comparison) -> str:
    """Methods on the same known labels: their scores, and what can be said about the difference."""
    shown = [one for one in ("accuracy", "f1", "brier", "log_loss") if any(one in e for e in comparison.evaluations)]
    rows = [
        (name(method), *(number(scores.value(one), ".4f") for one in shown))
        for method, scores in zip(comparison.names, comparison.evaluations, strict=True)
    ]
    return _block("On known labels", ("method", *shown), rows, tag("p", comparison.verdict))


def diagnostics_html(diagnostics: Diagnostics) -> str:
    """What a user should know about a fit, in words."""
    notes = [tag("li", name(f"{one.where}: " if one.where else ""), one.text) for one in diagnostics.notes]
    return tag("div", tag("ul", notes) if notes else tag("p", "nothing to report"), class_="dugong")


def report_html(report: Report) -> str:
    """A report in a frame of its own, with as many sequences as a notebook can carry."""
    costs = accumulate(len(payload(replace(report.sequences, tracks=(one,)))) for one in report.sequences.tracks)
    n_shown = max(1, sum(cost <= IN_A_CELL for cost in costs))
    cut = replace(report, sequences=replace(report.sequences, tracks=report.sequences.tracks[:n_shown]))
    return in_frame(render_html(cut), height=700)


def in_frame(page: str, height: int) -> str:
    """A page inside of another: its style and script cannot touch those around it."""
    return tag("iframe", srcdoc=page, sandbox="allow-scripts", width="100%", height=height, style="border: 0")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Timeline:
    """One sequence with its votes and probabilities, to look at; make it with `LabelModel.timeline`."""

    title: str
    sequences: Sequences

    def to_html(self) -> str:
        """One self-contained page."""
        return render_timeline(self.title, self.sequences)

    def write(self, path: str | Path) -> None:
        """Write the page into an ``.html`` file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return in_frame(self.to_html(), height=460)

    def __repr__(self) -> str:
        return f"Timeline({self.title!r}: shown in a notebook; write('timeline.html') for a browser)"


def make_timeline(model: LabelModel, votes: Votes, sequence: object, media: Any = None) -> Timeline:
    """The timeline of one sequence, by its id."""
    place = find_sequences(votes, [sequence])[0]
    one = votes[[place]]
    shown = make_sequences(
        gather(model, one, None),
        n_sequences=1,
        wanted=one.sequence_ids.tolist(),
        media=media,
        media_bytes=IN_A_CELL,
    )
    return Timeline(title=f"Sequence {one.sequence_ids.tolist()[0]}", sequences=shown)


# --- the main charts as matplotlib axes (extra ``plot``) --------------------------------------------------------------
# Each function draws on `ax` (a new one by default) and returns it.
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
    ax.set(xlim=(0, max(int(chosen.lengths[0]), 1)), ylim=(len(names) - 0.5, -0.5), xlabel="element")
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
    ax.set(xlim=(0, max(len(law), 1)), ylim=(-0.02, 1.02), xlabel="element", ylabel="probability")
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
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xlabel="P(vote | label)")
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
        filled = ~np.isnan(found.frequency)
        ax.plot(found.mean_probability[filled], found.frequency[filled], "o-")
    ax.set(xlabel=_words(f"promised: {found.of}"), ylabel="measured share", aspect="equal")
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
