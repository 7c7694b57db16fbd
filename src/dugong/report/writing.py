"""From a report to a file: ``.html``, ``.txt`` or ``.json``, whole or not at all."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from dugong.exceptions import LabelError
from dugong.paths import write_atomically
from dugong.report.html.page import render_html
from dugong.report.text import render_text
from dugong.report.values import Report

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
