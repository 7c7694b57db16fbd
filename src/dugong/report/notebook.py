"""What a notebook shows: small tables styled by nothing but themselves, and pages in a frame of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dugong.report.html.page import render_html, render_timeline
from dugong.report.html.payload import payload
from dugong.report.html.tags import Child, Html, join, name, number, tag
from dugong.report.material import find_sequences, gather
from dugong.report.track import Sequences
from dugong.report.tracks import make_sequences

if TYPE_CHECKING:
    from dugong.fit.result import Diagnostics
    from dugong.infer.explain import Explanation
    from dugong.metrics.compare import Comparison
    from dugong.model import LabelModel
    from dugong.report.values import Report
    from dugong.summary import ModelSummary
    from dugong.votes import Votes

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
    header = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [tag("tr", tag("th", row[0], scope="row"), [tag("td", join(cell)) for cell in row[1:]]) for row in rows]
    table = tag("table", tag("caption", title), tag("thead", header), tag("tbody", body))
    return tag("div", table, notes, class_="dugong")


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
        (name(method), *(number(scores.value(one), 4) for one in shown))
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
    """One sequence with its votes and probabilities, to look at; make it with `LabelModel.timeline`.

    Attributes
    ----------
    title : str
    sequences : what is drawn
    """

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
