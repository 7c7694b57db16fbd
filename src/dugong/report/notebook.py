"""What a notebook shows for a model or for votes: a small table, styled by nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dugong.report.html.tags import Child, Html, join, name, tag

if TYPE_CHECKING:
    from dugong.model import LabelModel
    from dugong.votes import Votes


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
    summary = model.summary()
    rows = []
    for one in summary.sources:
        parts: list[Child] = [
            [", " if place else "", name(part.label), f" {part.right:.2f}"] for place, part in enumerate(one.classes)
        ]
        accuracy = "–" if one.accuracy is None else f"{one.accuracy:.1%}"
        rows.append((name(one.name), name(one.resolution), f"{one.coverage:.1%}", accuracy, parts))
    title = f"Label model of {len(summary.sources)} sources, fitted on {summary.n_sequences:,} sequences"
    edges = ", ".join(f"{a} repeats itself" if a == b else f"{a} + {b}" for a, b in summary.dependencies) or "none"
    notes = tag("p", "Prior: ", tag("code", summary.prior), "; dependencies: ", name(edges))
    return _block(title, ("source", "resolution", "coverage", "accuracy", "P(vote | label)"), rows, notes)


def _block(title: str, head: Sequence[str], rows: Sequence[Sequence[Child]], notes: Html | None) -> str:
    header = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [tag("tr", tag("th", row[0], scope="row"), [tag("td", join(cell)) for cell in row[1:]]) for row in rows]
    table = tag("table", tag("caption", title), tag("thead", header), tag("tbody", body))
    return tag("div", table, notes, class_="dugong")
