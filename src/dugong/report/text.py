"""A report as plain text, for terminals, logs and mails; and as a file: ``.html``, ``.txt`` or ``.json``."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

import numpy as np

from dugong.exceptions import LabelError
from dugong.paths import write_atomically
from dugong.report.html.page import render_html
from dugong.report.values import Report
from dugong.texts import on_one_line, text_table

_MOST = 20


def render_text(report: Report) -> str:
    """The report as text, section by section."""
    parts = [
        _overview(report),
        _sequences(report),
        _sources(report),
        _dependencies(report),
        _prior(report),
        _agreement(report),
        _scores(report),
        _events(report),
        _versus(report),
        _findings(report),
        _provenance(report),
    ]
    title = on_one_line(report.title)
    return "\n\n".join([f"{title}\n{'=' * len(title)}", *parts]) + "\n"


def _overview(report: Report) -> str:
    seen = report.overview
    low, middle, _, high = seen.lengths
    lines = [
        f"{seen.n_sequences:,} sequences, {seen.n_elements:,} elements ({low:,.0f} to {high:,.0f} per sequence, median "
        f"{middle:,.0f}), {seen.n_sources} sources, {seen.n_votes:,} votes.",
        f"No source speaks about {seen.n_silent:,} elements.",
    ]
    lines += [] if seen.n_known is None else [f"{seen.n_known:,} elements have a known label."]
    lines += [] if seen.clock is None else [f"Time: {seen.clock}."]
    rows = [
        (one.name, f"{one.n_tasks:,}", str(one.n_sources),
         ", ".join(f"{label} {part:.1%}" for label, part in zip(one.labels, one.shares, strict=True)))
        for one in seen.resolutions
    ]  # fmt: skip
    grid = text_table(("resolution", "labels", "sources", "expected shares"), rows, left=(0, 3))
    return _section("What was labelled", *lines, "", grid)


def _sequences(report: Report) -> str:
    found = report.sequences
    rows = [
        (one.name, f"{one.length:,}", _share(one.uncertainty), _share(one.disagreement), _share(one.difference))
        for one in found.tracks[:_MOST]
    ]
    head = ("sequence", "elements", "uncertainty", "disagreement", "difference")
    return _section("Sequences worth a look", found.how, "", text_table(head, rows))


def _sources(report: Report) -> str:
    gold = report.overview.n_known is not None
    head = ["source", "resolution", "coverage", "overlaps", "conflicts", "accuracy", *(["measured"] if gold else [])]
    rows, classes = [], []
    for row in report.sources:
        cells = [row.name, row.resolution, _share(row.coverage), _share(row.overlaps), _share(row.conflicts)]
        rows.append([*cells, _share(row.accuracy), *([_share(row.empirical)] if gold else [])])
        for part in row.classes:
            interval = "-" if part.interval is None else f"{part.interval[0]:.3f} to {part.interval[1]:.3f}"
            measured = [_number(part.empirical)] if gold else []
            classes.append([row.name, part.label, _number(part.right), interval, _share(part.abstains), *measured])
    by_class = ["source", "label", "P(vote | label)", "95 % interval", "abstains", *(["measured"] if gold else [])]
    return _section("Sources", text_table(head, rows, left=(0, 1)), "", text_table(by_class, classes, left=(0, 1)))


def _dependencies(report: Report) -> str:
    lines = [f"- {edge.words}" for edge in report.dependencies.edges] or [
        "None: sources are independent given the labels."
    ]
    return _section("Dependencies between sources", *lines)


def _prior(report: Report) -> str:
    row = report.prior
    lines = ["Learned from the votes." if row.learned else f"{row.words}, given."]
    if row.transition is not None:
        head = ("label", "share", "mean run", *(f"then {label}" for label in row.classes))
        rows = [
            (label, _share(row.share[i]), _number(row.bouts[i], 1), *(_number(float(p)) for p in row.transition[i]))
            for i, label in enumerate(row.classes)
        ]
        lines += ["", text_table(head, rows)]
    return _section("Prior", *lines)


def _agreement(report: Report) -> str:
    found = report.agreement
    rows = [
        (found.names[j], found.names[i], _share(float(found.observed[i, j])), f"{100 * found.excess[i, j]:+.1f}")
        for i, j in found.meeting()[:_MOST]
    ]
    if not rows:
        return _section("Agreement", "No two sources vote on the same tasks.")
    return _section(
        "Agreement", text_table(("source", "other", "agree", "above expectation, points"), rows, left=(0, 1))
    )


def _scores(report: Report) -> str:
    found = report.scores
    lines = [
        f"The model promises {found.expected_accuracy:.1%} right labels; {found.doubtful:.1%} of the elements are in "
        "doubt."
    ]
    if found.ece is not None:
        lines.append(f"Calibration error on known labels: {found.ece:.3f}.")
    return _section("How sure the model is", *lines)


def _events(report: Report) -> str:
    found = report.events
    rows = [
        (row.name, f"{row.n_events:,}", _share(row.share), _number(row.mean, 1), _number(row.median, 1),
         "-" if row.gold_events is None else f"{row.gold_events:,}", _number(row.gold_mean, 1))
        for row in found.rows
    ]  # fmt: skip
    head = ("class", "events", "share", "mean length", "median", "in gold", "mean in gold")
    return _section("Events", f"Runs of {found.how}.", "", text_table(head, rows))


def _versus(report: Report) -> str:
    found = report.versus
    rows = [
        (one.name, _number(one.majority), _number(one.model), _number(one.difference), one.finding)
        for one in found.scores
    ]
    grid = (
        ["", text_table(("score", "majority vote", "label model", "difference", "the model is"), rows)] if rows else []
    )
    return _section("Comparison with majority vote", found.sentence, *grid)


def _findings(report: Report) -> str:
    lines = []
    for one in report.findings:
        lines.append(f"- {one.level}: {on_one_line(one.text)}")
        lines += [f"  {on_one_line(one.todo)}"] if one.todo else []
    return _section("Diagnostics", *lines)


def _provenance(report: Report) -> str:
    found = report.provenance
    lines = [
        f"made      {found.made}",
        f"votes     {found.votes_hash}",
        f"model     {found.model_hash}",
        f"versions  {', '.join(f'{key} {value}' for key, value in found.versions.items())}",
        "",
        found.methods,
    ]
    return _section("Provenance", *lines)


def _section(title: str, *lines: str) -> str:
    return "\n".join([title, "-" * len(title), *lines])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


KINDS = ("html", "txt", "json")


def render(report: Report, kind: str) -> str:
    """The report as "html", "txt" or "json"."""
    if kind == "html":
        return render_html(report)
    if kind == "txt":
        return render_text(report)
    return json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def check_kind(path: str | PathLike[str]) -> str:
    """The kind of report that a name asks for; an error if there is no such kind."""
    kind = Path(path).suffix.removeprefix(".")
    if kind not in KINDS:
        raise LabelError(f"a report is written as .html, .txt or .json; found {str(path)!r}.")
    return kind


def write_report(report: Report, path: str | PathLike[str]) -> None:
    """Write a report; the ending of the name decides the form."""
    data = render(report, check_kind(path)).encode("utf-8", "replace")
    write_atomically(path, lambda handle: handle.write(data))
