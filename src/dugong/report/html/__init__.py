"""One page: sections, style, script and data in a single file that asks nothing of anyone.

A content security policy names the script and the style by their hashes and forbids everything else, so that even a
name that found its way into the page as code would not run and could not reach a network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np

from dugong.report.html.sections import AFTER_TIMELINES, overview
from dugong.report.html.tags import Html, class_colours, clean, name, section, tag
from dugong.report.media import Frames, Media, Words
from dugong.report.track import Lane, Sequences, Track, VoterInfo, bits_for, pack, pack_logs
from dugong.report.values import Report
from dugong.types import FloatArray, IntArray

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


# --- the data of the timelines, as compact JSON that cannot leave its script element ----------------------------------
# Votes and labels are packed (`pack`); assets/data.js reads them back.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def payload(sequences: Sequences) -> str:
    """JSON for a script element: no "<" in it, whatever the names are."""
    n_classes = len(sequences.classes)
    light, dark = class_colours(n_classes)
    two = class_colours(2)
    data = {
        "classes": [clean(one) for one in sequences.classes],
        "colours": {"light": light, "dark": dark, "two": {"light": two[0], "dark": two[1]}},
        "bits": bits_for(n_classes + 1),
        "lanes": [
            {"name": clean(one.name), "kind": one.kind, "labels": [clean(label) for label in one.labels]}
            for one in sequences.lanes
        ],
        "voters": [_voter(one) for one in sequences.voters],
        "order": sequences.order,
        "path": sequences.path,
        "tracks": [_track(one, sequences, n_classes) for one in sequences.tracks],
    }
    return embed(data)


def embed(data: Any) -> str:
    """Plain data as JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, code in _ESCAPES.items():
        text = text.replace(sign, code)
    return text


def _voter(voter: VoterInfo) -> dict[str, Any]:
    table = voter.evidence
    return {
        "name": clean(voter.name),
        "lane": voter.lane,
        "codes": [clean(one) for one in voter.codes],
        "classes": voter.classes,
        "bits": bits_for(len(voter.codes)),
        "parents": voter.parents,
        "shape": None if table is None else list(table.shape),
        "table": None if table is None else [_figure(one) for one in table.reshape(-1).tolist()],
    }


def _track(track: Track, sequences: Sequences, n_classes: int) -> dict[str, Any]:
    numbers = {name: getattr(track, name) for name in ("place", "length", "begin", "end", "seconds")}
    shares = {name: _figure(getattr(track, name)) for name in ("uncertainty", "disagreement", "difference", "wrong")}
    rows = {name: getattr(track, name) for name in ("labels", "decoded", "majority", "gold")}
    bits = bits_for(n_classes + 1)
    return {
        "name": clean(track.name),
        **numbers,
        **shares,
        "wrongPath": _figure(track.wrong_path),
        "lanes": [_lane(one, track.length) for one in track.lanes],
        "votes": [
            pack(codes, bits_for(len(voter.codes))) for codes, voter in zip(track.votes, sequences.voters, strict=True)
        ],
        **{name: None if row is None else pack(np.where(row < 0, n_classes, row), bits) for name, row in rows.items()},
        "media": None if track.media is None else _media(track.media),
    }


def _media(media: Media) -> dict[str, Any]:
    if isinstance(media, Words):
        return {"kind": "words", "words": [clean(word) for word in media.words]}
    if isinstance(media, Frames):
        images = [pack(one, 6) for one in media.images]
        size = {"width": media.width, "height": media.height}
        return {"kind": "frames", "places": media.places.tolist(), **size, "images": images}
    channels = [
        {"name": clean(one.name), "low": pack(one.low, 6), "high": pack(one.high, 6)}
        | {"bottom": _figure(one.bottom), "top": _figure(one.top)}
        for one in media.channels
    ]
    return {"kind": "signals", "channels": channels}


def _lane(lane: Lane, length: int) -> dict[str, Any]:
    return {
        "first": lane.first,
        "n": len(lane.starts),
        **geometry(lane.starts, lane.stops, length),
        "post": _logs(lane.log_probability),
        "prior": _logs(lane.log_prior),
        "exact": None if lane.log_exact is None else _logs(lane.log_exact),
    }


def geometry(starts: IntArray, stops: IntArray, length: int) -> dict[str, Any]:
    """Start, stride and size if the tasks are regular, else all borders."""
    if len(starts):
        stride = int(starts[1] - starts[0]) if len(starts) > 1 else 1
        size = int((stops - starts).max())
        regular = starts[0] + stride * np.arange(len(starts))
        if np.array_equal(starts, regular) and np.array_equal(stops, np.minimum(regular + size, length)):
            return {"start": int(starts[0]), "stride": stride, "size": size}
    return {"starts": starts.tolist(), "stops": stops.tolist()}


def _logs(laws: FloatArray) -> list[float | str]:
    """Log-odds of the second class if there are two, else log-probabilities of each; one number where all are equal."""
    with np.errstate(invalid="ignore"):
        columns = [laws[:, 1] - laws[:, 0]] if laws.shape[1] == 2 else list(laws.T)
    constant = [len(one) and np.isfinite(one).all() and np.ptp(one) < 1e-9 for one in columns]
    return [round(float(one[0]), 6) if same else pack_logs(one) for one, same in zip(columns, constant, strict=True)]


def _figure(value: float | None) -> float | None:
    """Rounded; None for what is not known, and for minus infinity in tables."""
    return None if value is None or not np.isfinite(value) else round(value, 5)
