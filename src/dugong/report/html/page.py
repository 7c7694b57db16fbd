"""One page: sections, style, script and data in a single file that asks nothing of anyone.

A content security policy names the script and the style by their hashes and forbids everything else, so that even a
name that found its way into the page as code would not run and could not reach a network.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from dugong.report.html.payload import payload
from dugong.report.html.sections import AFTER_TIMELINES, overview
from dugong.report.html.svg import class_colours
from dugong.report.html.tags import Html, clean, name, section, tag
from dugong.report.track import Sequences
from dugong.report.values import Report

SCRIPTS = ("data.js", "explain.js", "draw.js", "media.js", "timeline.js", "list.js", "main.js")
_NAV = (
    ("overview", "What was labelled"),
    ("timelines", "Timelines"),
    ("sources", "Sources"),
    ("dependencies", "Dependencies"),
    ("prior", "Prior"),
    ("agreement", "Agreement"),
    ("scores", "Certainty"),
    ("events", "Events"),
    ("majority", "Majority vote"),
    ("diagnostics", "Diagnostics"),
    ("provenance", "Provenance"),
)


_FOOTER = "Made with Dugong {}. This page works offline and sends nothing anywhere."


def render_html(report: Report) -> str:
    """The report as one self-contained HTML page."""
    parts = [overview(report), _timelines(report.sequences), *(make(report) for make in AFTER_TIMELINES)]
    links = [tag("li", tag("a", words, href=f"#{key}")) for key, words in _NAV]
    return _page(
        report.title,
        report.sequences,
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _header(report),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("main", parts, id="content", tabindex="-1"),
        tag("footer", tag("p", _FOOTER.format(report.provenance.versions["dugong-ws"]))),
    )


def render_timeline(title: str, sequences: Sequences) -> str:
    """The timelines alone, as one self-contained HTML page."""
    return _page(title, sequences, tag("main", _timelines(sequences), id="content", tabindex="-1"))


def _page(title: str, sequences: Sequences, *content: Html) -> str:
    parts = "\n".join(_asset(file) for file in SCRIPTS)
    style, script = _style(len(sequences.classes)), f'"use strict";\n(() => {{\n{parts}\n}})();\n'
    allowed = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content=f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        *content,
        tag("script", Html(payload(sequences)), type="application/json", id="data"),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(report: Report) -> Html:
    seen = report.overview
    warnings = sum(one.level == "warning" for one in report.findings)
    count = "no warnings" if not warnings else f"{warnings} warning{'s' if warnings > 1 else ''}"
    facts = (
        f"{seen.n_sequences:,} sequences, {seen.n_elements:,} elements, {seen.n_sources} sources, "
        f"{len(seen.classes)} classes. Made {report.provenance.made}. "
    )
    return tag(
        "header",
        tag("h1", name(report.title)),
        tag("p", facts, tag("a", f"Diagnostics: {count}", href="#diagnostics"), "."),
        tag("p", report.versus.sentence, class_=f"verdict {report.versus.tone}"),
    )


def _timelines(sequences: Sequences) -> Html:
    """The frame of the timelines; the script fills it."""
    return section(
        "timelines",
        "Timelines",
        tag("noscript", tag("p", "Timelines need JavaScript; everything else on this page does not.")),
        tag("div", id="viewer", hidden=True),
        intro=sequences.how,
    )


def _asset(file: str) -> str:
    return files("dugong.report.html").joinpath("assets", file).read_text(encoding="utf-8")


def _style(n_classes: int) -> str:
    """The style, and one colour per class."""
    light, dark = class_colours(n_classes)

    def colours(values: tuple[str, ...]) -> str:
        return "".join(f"--c{place}:{value};" for place, value in enumerate(values))

    fills = "".join(f".c{place}{{fill:var(--c{place});}}" for place in range(max(n_classes, 2)))
    return clean(
        f":root{{{colours(light)}}}\n@media (prefers-color-scheme: dark){{:root{{{colours(dark)}}}}}\n"
        f"@media print{{:root{{{colours(light)}}}}}\n{fills}\n{_asset('page.css')}"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
