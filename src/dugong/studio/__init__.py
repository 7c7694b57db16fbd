"""The studio: a page on this machine that joins raw data, votes, probabilities, rules and corrections.

A server (`app`, behind its `Door`) shows what the last run left (`snapshot`); code of the user runs in
processes of their own (`bench`), so that whatever it does, the page stays.
``docs/reference/studio.md`` says what both sides say.
"""

from __future__ import annotations

from typing import Any

from dugong.exceptions import DugongError

STATUS = {"bad": 400, "missing": 404, "changed": 409, "taken": 409, "empty": 503, "waiting": 503, "bug": 500}
"""Of HTTP, by kind; all other kinds are 422."""


class StudioError(DugongError, ValueError):
    """What cannot be done now; `kind` is that of the reference, `more` what else the page is told."""

    def __init__(self, text: str, kind: str, **more: Any) -> None:
        super().__init__(text)
        self.kind = kind
        self.more = more


def plain_error(error: BaseException) -> dict[str, Any]:
    """An error as the reference says it."""
    kind, more = "data" if isinstance(error, DugongError | OSError) else "bug", {}
    if isinstance(error, StudioError):
        kind, more = error.kind, error.more
    text = str(error) or type(error).__name__
    notes = "\n".join(getattr(error, "__notes__", ()))
    return {"kind": kind, "text": text, "trace": getattr(error, "trace", None) or notes or None, **more}
