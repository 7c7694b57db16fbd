"""Sections about the model: its prior, what it expects of agreements, and how sure it is."""

from __future__ import annotations

from math import isnan

import numpy as np

from dugong.report.html.charts import matrix, reliability
from dugong.report.html.svg import columns
from dugong.report.html.tags import (
    Child,
    Html,
    details,
    facts,
    figure,
    length,
    name,
    number,
    scroll,
    section,
    share,
    table,
    tag,
)
from dugong.report.values import Agreement, Report

_MOST_PAIRS = 200


def prior(report: Report) -> Html:
    """What is believed before any vote."""
    row, seconds = report.prior, report.events.seconds
    came = "learned from the votes" if row.learned else "given"
    head: list[Child] = ["Label", "Share"]
    if row.transition is not None:
        head += ["Mean run, elements", *(["then ", name(one)] for one in row.classes)]
    rows = []
    for place, label in enumerate(row.classes):
        cells: list[Child] = [name(label), share(row.share[place])]
        if row.transition is not None:
            bout = row.bouts[place]
            cells.append("never ends" if bout is None else length(bout, seconds))
            cells += [number(float(value)) for value in row.transition[place]]
        rows.append(cells)
    return section(
        "prior",
        "Prior: what labels look like before any vote",
        table(head, rows, caption="Share of each label, how long it lasts, and what comes next"),
        details("The prior as code", tag("pre", row.words)),
        intro=f"The prior was {came}.",
    )


def agreement(report: Report) -> Html:
    """Who agrees with whom, and whether that is expected."""
    found = report.agreement
    excess = _largest(found)
    return section(
        "agreement",
        "Agreement between sources",
        tag(
            "div",
            figure(
                scroll(
                    matrix(found.names, found.observed, title="Agreement matrix", largest=1.0, signed=False),
                    "Agreement matrix",
                ),
                "Agreement: percent of equal votes where both vote. Blank: never on the same task.",
            ),
            figure(
                scroll(
                    matrix(found.names, found.excess, title="Residual matrix", largest=max(excess, 0.1), signed=True),
                    "Residual matrix",
                ),
                "Residual: percentage points above (orange) or below (blue) what the model expects. Large values: the "
                "two share something that the model does not know.",
            ),
            class_="pair",
        ),
        details("As a table", _pairs(found)),
    )


def _largest(found: Agreement) -> float:
    known = np.abs(found.excess[~np.isnan(found.excess)])
    return float(known.max()) if len(known) else 0.0


def _pairs(found: Agreement) -> Html:
    pairs = found.meeting()
    rows = [
        (
            name(found.names[j]),
            name(found.names[i]),
            f"{found.n_pairs[i, j]:,.0f}",
            share(float(found.observed[i, j])),
            _signed(100 * float(found.excess[i, j])),
            _signed(float(found.standardised[i, j])),
        )
        for i, j in pairs[:_MOST_PAIRS]
    ]
    head = ("Source", "Other", "Both vote", "Agree", "Residual, points", "Standardised")
    more = f", the {_MOST_PAIRS} with the largest residual" if len(pairs) > _MOST_PAIRS else ""
    return table(head, rows, caption=f"Pairs of sources{more}", words=(0, 1))


def _signed(value: float) -> str:
    return "–" if isnan(value) else f"{value:+.1f}"


def scores(report: Report) -> Html:
    """How sure the model is, and whether it is right to be."""
    found = report.scores
    histogram = figure(
        columns(found.edges, found.counts, title=f"Distribution of {found.of} over all elements", x_label=found.of,
                y_label="elements (logarithmic)", decimals=2, logarithmic=True),
        f"Distribution of {found.of} over all elements.",
    )  # fmt: skip
    pairs: list[tuple[Child, Child]] = [
        ("Right labels that the model promises", share(found.expected_accuracy)),
        ("Elements in doubt (no class reaches 0.75)", share(found.doubtful)),
    ]
    curve: Child = tag("p", "Whether these probabilities are honest cannot be measured without known labels.")
    if found.ece is not None:
        pairs.append(("Calibration error on known labels", number(found.ece)))
        caption = (
            "Reliability on known labels. Dots on the diagonal: what is promised happens; below it: less often than "
            "promised. Larger dots: more elements."
        )
        curve = figure(reliability(found), caption)
    return section("scores", "How sure the model is", facts(pairs), tag("div", histogram, curve, class_="pair"))
