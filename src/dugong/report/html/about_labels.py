"""Sections about what came out: events, the comparison with majority vote, diagnostics, provenance."""

from __future__ import annotations

from dugong.report.html.tags import (
    Child,
    Html,
    details,
    duration,
    facts,
    join,
    length,
    name,
    number,
    section,
    share,
    span,
    table,
    tag,
)
from dugong.report.values import Report

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
            cells += [_count(row.known_events), _count(row.gold_events)]
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
    tone = "fine" if found.better else "warning" if found.better is False else "note"
    rows = [
        (_SCORE_WORDS.get(one.name, one.name), number(one.majority), number(one.model),
         "–" if one.difference is None else f"{one.difference:+.3f}", span(one.interval, signed=True), one.finding)
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
        tag("p", found.sentence, class_=f"verdict {tone}"),
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


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
