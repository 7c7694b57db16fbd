"""Sections about what went in: what was labelled, the sources, and what they share."""

from __future__ import annotations

from dugong.report.html.charts import graph
from dugong.report.html.svg import columns, whisker
from dugong.report.html.tags import (
    Child,
    Html,
    facts,
    figure,
    join,
    name,
    number,
    scroll,
    section,
    share,
    span,
    table,
    tag,
)
from dugong.report.values import ClassRow, Report, SourceRow


def overview(report: Report) -> Html:
    """What was labelled."""
    seen = report.overview
    low, middle, mean, high = seen.lengths
    pairs: list[tuple[Child, Child]] = [
        ("Sequences", f"{seen.n_sequences:,}"),
        ("Elements", f"{seen.n_elements:,}"),
        ("Sources", f"{seen.n_sources:,}"),
        ("Votes", f"{seen.n_votes:,}"),
        (
            "Elements per sequence",
            f"{low:,.0f} each" if low == high else f"{low:,.0f} to {high:,.0f}, median {middle:,.0f}, mean {mean:,.1f}",
        ),
        ("Classes", [[", " if place else "", name(one)] for place, one in enumerate(seen.classes)]),
        ("Elements that no source speaks about", f"{seen.n_silent:,} ({share(seen.n_silent / seen.n_elements)})"),
    ]
    if seen.n_known is not None:
        pairs.append(("Elements with a known label", f"{seen.n_known:,} ({share(seen.n_known / seen.n_elements)})"))
    if seen.clock is not None:
        pairs.append(("Time", seen.clock))
    rows = [
        (
            name(one.name),
            one.words,
            f"{one.n_tasks:,}",
            str(one.n_sources),
            [
                tag("span", f"{share(part)} ", name(label), class_="line")
                for label, part in zip(one.labels, one.shares, strict=True)
            ],
        )
        for one in seen.resolutions
    ]
    head = ("Resolution", "What it is", "Labels", "Sources", "Expected shares")
    lengths = None
    if len(seen.histogram_counts) > 4:
        lengths = figure(
            columns(
                seen.histogram_edges,
                seen.histogram_counts,
                title="Histogram of the lengths of sequences",
                x_label="elements per sequence",
                y_label="sequences",
            ),
            "Lengths of the sequences.",
        )
    return section(
        "overview",
        "What was labelled",
        facts(pairs),
        table(head, rows, caption="Resolutions: what carries a label, and how often each", words=(0, 1, 4)),
        lengths,
    )


def sources(report: Report) -> Html:
    """Coverage, overlaps, conflicts and accuracies."""
    gold = report.overview.n_known is not None
    weighted = any(row.weight != 1 for row in report.sources)
    head = ["Source", "Resolution", "Coverage", "Overlaps", "Conflicts", "Accuracy"]
    head += ["Measured"] if gold else []
    head += ["Weight"] if weighted else []
    rows = []
    for row in report.sources:
        cells: list[Child] = [name(row.name), name(row.resolution), share(row.coverage), share(row.overlaps)]
        cells += [share(row.conflicts), share(row.accuracy)]
        cells += [share(row.empirical)] if gold else []
        cells += [number(row.weight, 2)] if weighted else []
        rows.append(cells)
    weight = None
    if weighted:
        words = (
            "Weight: how far a vote is taken at its word; below 1, sources repeat each other or themselves in ways "
            "that are not modelled one by one."
        )
        weight = tag("p", words, class_="small")
    return section(
        "sources",
        "Sources",
        table(head, rows, caption="What each source covers, and how often it is right when it votes", words=(0, 1)),
        tag("p", "Coverage: share of its tasks on which a source votes. Overlaps: on which another source speaks too. "
            "Conflicts: on which another source says otherwise. Accuracy: estimated share of right votes.",
            class_="small"),
        weight,
        _by_class(report.sources, gold=gold),
        intro="How good each source is was estimated from agreements and disagreements alone."
        + (" Measured on known labels beside it." if gold else ""),
    )  # fmt: skip


def _by_class(rows: tuple[SourceRow, ...], *, gold: bool) -> Html:
    head = ["Source", "Label", "P(this vote | this label)", "", "95 % interval", "Abstains"]
    head += ["Measured"] if gold else []
    body = []
    for row in rows:
        for place, part in enumerate(row.classes):
            cells: list[Child] = [number(part.right), _dot(row, part, place), span(part.interval), share(part.abstains)]
            cells += [number(part.empirical)] if gold else []
            first = tag("th", name(row.name), scope="rowgroup", rowspan=str(len(row.classes))) if place == 0 else None
            label = tag("th", name(part.label), scope="row")
            more = "more" if place + 1 < len(row.classes) else None
            body.append(tag("tr", first, label, [tag("td", cell, class_="n") for cell in cells], class_=more))
    caption = "What each source does with the tasks of each label"
    header = tag("tr", [tag("th", cell, scope="col", class_="n" if i > 1 else None) for i, cell in enumerate(head)])
    inner = tag("table", tag("caption", caption), tag("thead", header), tag("tbody", body))
    marks = "Dot: estimate; bar: 95 % interval" + ("; diamond: measured on known labels." if gold else ".")
    return join(scroll(inner, caption), tag("p", marks, " The line runs from 0 to 1.", class_="small"))


def _dot(row: SourceRow, part: ClassRow, place: int) -> Html:
    words = f"{row.name}, {part.label}: {part.right:.3f}"
    words += "" if part.interval is None else f", interval {span(part.interval)}"
    words += "" if part.empirical is None else f", measured {part.empirical:.3f}"
    return whisker(part.right, part.interval, part.empirical, place, words)


def dependencies(report: Report) -> Html:
    """The graph."""
    found = report.dependencies
    if not found.edges:
        text = "All sources count as independent given the labels: no dependency was declared or found."
        return section("dependencies", "Dependencies between sources", tag("p", text))
    rows = [
        (name(edge.first), name("itself, earlier" if edge.kind == "repeats itself" else edge.second),
         edge.kind, number(edge.strength, 2))
        for edge in found.edges
    ]  # fmt: skip
    came = "learned from the votes" if found.learned else "as declared"
    picture = scroll(graph(report.sources, found.edges), "Picture of the dependencies")
    return section(
        "dependencies",
        "Dependencies between sources",
        picture,
        table(("Source", "Other", "Kind", "Strength"), rows, caption="Dependencies, strongest first", words=(0, 1, 2)),
        intro=f"Sources that share more than the label, {came}. Lines are as thick as the dependency is strong; a ring "
        f"is a source that repeats itself. Strength: {found.measure}.",
    )
