"""From a report to a file: ``.html``, ``.txt`` or ``.json``, whole or not at all."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from dugong.exceptions import LabelError
from dugong.report.html.page import render_html
from dugong.report.text import render_text
from dugong.report.values import Report
from dugong.votes.io import write_atomically


def render(report: Report, kind: str) -> str:
    """The report as "html", "txt" or "json"."""
    if kind == "html":
        return render_html(report)
    if kind == "txt":
        return render_text(report)
    if kind == "json":
        return json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    raise LabelError(f"a report is written as .html, .txt or .json; found {kind!r}.")


def write_report(report: Report, path: str | PathLike[str]) -> None:
    """Write a report; the ending of the name decides the form."""
    data = render(report, Path(path).suffix.removeprefix(".")).encode("utf-8", "replace")
    write_atomically(path, lambda handle: handle.write(data))
