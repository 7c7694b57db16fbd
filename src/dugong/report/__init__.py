"""See it: a fitted model as a page that people can read, share and check.

`summarize` makes a plain value (`Report`); `render_html`, `render_text` and `Report.to_dict` show it, and
`write_report` puts it into a file.
"""

from dugong.report.html import render_html
from dugong.report.summarize import summarize
from dugong.report.text import render_text, write_report
from dugong.report.values import Report

__all__ = ["Report", "render_html", "render_text", "summarize", "write_report"]
