"""A report as plain text, for terminals, logs and mails: the page without its pictures; and reports in files."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from os import PathLike
from pathlib import Path

from dugong.exceptions import LabelError
from dugong.paths import write_atomically
from dugong.report.html import render_html
from dugong.report.html.sections import AFTER_TIMELINES, overview
from dugong.report.html.tags import Html, name, section, share, table
from dugong.report.track import Sequences
from dugong.report.values import Report
from dugong.texts import on_one_line, text_table

_MOST = 20  # sequences, and rows of a table that the page shows on demand
_LINES = ("p", "h3", "caption", "summary", "blockquote", "pre", "li", "div")
_HIDDEN = ("svg", "figure")


def render_text(report: Report) -> str:
    """The report as text, section by section."""
    title = on_one_line(report.title)
    every = [overview(report), _sequences(report.sequences), *(make(report) for make in AFTER_TIMELINES)]
    return "\n\n".join([f"{title}\n{'=' * len(title)}", *map(_as_text, every)]) + "\n"


def _sequences(found: Sequences) -> Html:
    """The sequences that the page draws, in numbers."""
    head = ("Sequence", "Elements", "Uncertainty", "Disagreement", "Difference")
    rows = [
        (name(one.name), f"{one.length:,}", share(one.uncertainty), share(one.disagreement), share(one.difference))
        for one in found.tracks[:_MOST]
    ]
    grid = table(head, rows, caption="What each is sorted by")
    return section("sequences", "Sequences worth a look", grid, intro=found.how)


def _as_text(part: Html) -> str:
    reader = _SectionReader()
    reader.feed(part)
    return "\n".join(reader.lines)


class _SectionReader(HTMLParser):
    """Reads a section of the page: pictures are left out, tables are aligned, those on demand cut after some rows."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._words = ""
        self._hidden = 0
        self._rows: list[list[str]] = []
        self._heading, self._left = "", 0  # the first cell, and for how many more rows it stands
        self._numbers: set[int] = set()
        self._on_demand = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._hidden += tag in _HIDDEN
        self._on_demand = self._on_demand or tag == "details"
        if tag == "tr":
            self._rows.append([self._heading] if self._left else [])
            self._left = max(0, self._left - 1)
        elif tag in ("td", "th"):
            self._words = ""
            if given.get("class") == "n":
                self._numbers.add(len(self._rows[-1]))
            self._left += int(given.get("rowspan") or 1) - 1
        elif tag == "span" and given.get("class") == "line" and self._words:
            self._words += ", "
        elif tag == "span" and given.get("class") == "todo":
            self._words += "\n  "
        elif tag == "li":
            self._words = "- "

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        self._on_demand = self._on_demand and tag != "details"
        if tag in ("td", "th"):
            self._rows[-1].append(self._words.strip())
            self._heading = self._rows[-1][0]
            self._words = ""
        elif tag == "table":
            self._end_table()
        elif tag in ("dt", "strong"):
            self._words += ": " if tag == "dt" else ":"
        elif tag == "h2":
            self.lines += [self._words, "-" * len(self._words)]
            self._words = ""
        elif tag in _LINES:
            self.lines += [self._words.rstrip()] if self._words.strip() else []
            self._words = ""

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words += on_one_line(data)

    def _end_table(self) -> None:
        head, *rows = self._rows
        left = [place for place in range(len(head)) if place not in self._numbers]
        most = _MOST if self._on_demand else len(rows)
        more = [f"... and {len(rows) - most:,} more"] if len(rows) > most else []
        self.lines += ["", text_table(head, rows[:most], left=left), *more, ""]
        self._rows, self._numbers = [], set()


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
