"""The sections of the page: what went in (votes, sources), the model, what came out (labels, events, diagnostics)."""

from __future__ import annotations

import numpy as np

from dugong.report.html.tags import (
    Child,
    Html,
    columns,
    details,
    duration,
    facts,
    figure,
    graph,
    grid,
    join,
    length,
    matrix,
    name,
    number,
    reliability,
    scroll,
    section,
    share,
    span,
    table,
    tag,
    whisker,
)
from dugong.report.values import Agreement, ClassRow, Report, SourceRow


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
        cells += [number(row.weight, ".2f")] if weighted else []
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
    header = [tag("th", cell, scope="col", class_="n" if i > 1 else None) for i, cell in enumerate(head)]
    marks = "Dot: estimate; bar: 95 % interval" + ("; diamond: measured on known labels." if gold else ".")
    below = tag("p", marks, " The line runs from 0 to 1.", class_="small")
    return join(scroll(grid(caption, header, body), caption), below)


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
         edge.kind, number(edge.strength, ".2f"))
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


# --- the model --------------------------------------------------------------------------------------------------------
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
    largest = float(np.nan_to_num(np.abs(found.excess)).max(initial=0.1))
    observed = matrix(found.names, found.observed, title="Agreement matrix", largest=1.0, signed=False)
    excess = matrix(found.names, found.excess, title="Residual matrix", largest=largest, signed=True)
    pair = (
        figure(
            scroll(observed, "Agreement matrix"),
            "Agreement: percent of equal votes where both vote. Blank: never on the same task.",
        ),
        figure(
            scroll(excess, "Residual matrix"),
            "Residual: percentage points above (orange) or below (blue) what the model expects. Large values: the two "
            "share something that the model does not know.",
        ),
    )
    table = details("As a table", _pairs(found))
    return section("agreement", "Agreement between sources", tag("div", *pair, class_="pair"), table)


def _pairs(found: Agreement) -> Html:
    pairs = found.meeting()
    rows = [
        (
            name(found.names[j]),
            name(found.names[i]),
            f"{found.n_pairs[i, j]:,.0f}",
            share(float(found.observed[i, j])),
            number(100 * float(found.excess[i, j]), "+.1f"),
            number(float(found.standardised[i, j]), "+.1f"),
        )
        for i, j in pairs[:_MOST_PAIRS]
    ]
    if not rows:
        return tag("p", "No two sources vote on the same tasks.")
    head = ("Source", "Other", "Both vote", "Agree", "Residual, points", "Standardised")
    more = f", the {_MOST_PAIRS} with the largest residual" if len(pairs) > _MOST_PAIRS else ""
    return table(head, rows, caption=f"Pairs of sources{more}", words=(0, 1))


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


# --- what came out ----------------------------------------------------------------------------------------------------
_SCORE_WORDS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "macro_f1": "F1, mean over classes",
    "precision": "precision",
    "recall": "recall",
    "brier": "Brier score (less is better)",
    "log_loss": "log loss (less is better)",
    "ece": "calibration error (less is better)",
    "event_precision": "event precision",
    "event_recall": "event recall",
    "event_f1": "event F1",
    "span_f1": "F1 of exact events",
    "onset_error": "onset error, elements (less is better)",
    "offset_error": "offset error, elements (less is better)",
}


def events(report: Report) -> Html:
    """Runs of labels."""
    found = report.events
    gold = any(row.gold_events is not None for row in found.rows)
    head = ["Class", "Events", "Sequences with one", "Share of elements", "Mean length", "Median", "Longest"]
    head += ["Events where gold is known", "in gold", "Mean there", "in gold"] if gold else []
    rows = []
    for row in found.rows:
        cells: list[Child] = [name(row.name), f"{row.n_events:,}", f"{row.n_sequences:,}", share(row.share)]
        cells += [length(one, found.seconds) for one in (row.mean, row.median, row.longest)]
        if gold:
            cells += [number(row.known_events, ","), number(row.gold_events, ",")]
            cells += [length(row.known_mean, found.seconds), length(row.gold_mean, found.seconds)]
        rows.append(cells)
    matched = None
    if found.scores:
        body = [(_SCORE_WORDS.get(key, key), number(pair[0]), number(pair[1])) for key, pair in found.scores.items()]
        caption = "Events against known labels (a match covers at least half of the union)"
        matched = table(("Score", "Majority vote", "Label model"), body, caption=caption)
    unit = "" if found.seconds is None else f" An element lasts {duration(found.seconds)}."
    return section(
        "events",
        "Events",
        table(head, rows, caption="Runs of each class in the labels"),
        matched,
        intro=f"An event is a run of equal labels; labels are {found.how}.{unit}",
    )


def versus(report: Report) -> Html:
    """The label model beside majority vote."""
    found = report.versus
    rows = [
        (_SCORE_WORDS.get(one.name, one.name), number(one.majority), number(one.model),
         number(one.difference, "+.3f"), span(one.interval, signed=True), one.finding)
        for one in found.scores
    ]  # fmt: skip
    head = ("Score", "Majority vote", "Label model", "Difference", "95 % interval", "The model is")
    scored = table(head, rows, caption="Scores on known labels, paired by sequence", words=(0, 5)) if rows else None
    body = [
        (name(label), *(f"{found.confusion[i, j]:,.0f}" for j in range(len(found.classes))))
        for i, label in enumerate(found.classes)
    ]
    crossed = table(
        ("Majority vote says", *(join("model: ", name(one)) for one in found.classes)),
        body,
        caption="Elements by label of majority vote (rows) and of the model (columns)",
    )
    return section(
        "majority",
        "Comparison with majority vote",
        tag("p", found.sentence, class_=f"verdict {found.tone}"),
        scored,
        tag("p", f"The two label {share(found.differ)} of the elements differently."),
        crossed,
    )


def findings(report: Report) -> Html:
    """Diagnostics in words."""
    words = {"warning": "Warning", "note": "Note", "fine": "Fine"}
    items = [
        tag(
            "li",
            tag("strong", words[one.level]),
            " ",
            name(one.text),
            None if not one.todo else tag("span", "What to do: ", name(one.todo), class_="todo"),
            class_=one.level,
        )
        for one in report.findings
    ]
    return section("diagnostics", "Diagnostics", tag("ul", items, class_="findings"))


def provenance(report: Report) -> Html:
    """Where all this comes from."""
    found = report.provenance
    hashes: list[tuple[Child, Child]] = [("Votes", found.votes_hash), ("Model", found.model_hash)]
    hashes += [] if found.gold_hash is None else [("Known labels", found.gold_hash)]
    rows = [(name(key), tag("code", value)) for key, value in found.source_hashes.items()]
    return section(
        "provenance",
        "Provenance",
        tag("h3", "For a methods section"),
        tag("blockquote", found.methods, id="methods"),
        tag("h3", "Settings"),
        facts([(key, tag("code", value)) for key, value in found.settings.items()]),
        tag("h3", "Versions"),
        facts([(key, value) for key, value in found.versions.items()]),
        tag("h3", "Fingerprints (SHA-256)"),
        facts([(key, tag("code", value)) for key, value in hashes]),
        details(
            "Votes of each source",
            table(
                ("Source", "SHA-256 of its votes"), rows, caption="Fingerprints of the votes of sources", words=(0, 1)
            ),
        ),
        intro=f"Made {found.made}.",
    )


AFTER_TIMELINES = (sources, dependencies, prior, agreement, scores, events, versus, findings, provenance)
"""What follows the overview and the timelines, in the order of the page."""
