"""Tables, figures and words that several sections share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from dugong.report.html.tags import Child, Html, join, tag


def section(key: str, title: str, *children: Child, intro: Child = None) -> Html:
    """A section of the page with its heading."""
    opening = None if intro is None else tag("p", intro, class_="intro")
    return tag(
        "section", tag("h2", title, id=f"{key}-title"), opening, *children, id=key, aria_labelledby=f"{key}-title"
    )


def table(head: Sequence[Child], rows: Iterable[Sequence[Child]], *, caption: str, words: Sequence[int] = (0,)) -> Html:
    """A table that scrolls inside its own box when the screen is narrow.

    Parameters
    ----------
    caption : what it shows, for everyone
    words : columns that hold words rather than numbers; the first column is the heading of its row
    """
    header = tag("tr", [tag("th", cell, scope="col", class_=_kind(i, words)) for i, cell in enumerate(head)])
    body = [tag("tr", [_cell(cell, i, words) for i, cell in enumerate(row)]) for row in rows]
    inner = tag("table", tag("caption", caption), tag("thead", header), tag("tbody", body))
    return scroll(inner, caption)


def scroll(inner: Child, label: str) -> Html:
    """A box that scrolls sideways, with the keyboard too."""
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


def details(summary: str, *children: Child) -> Html:
    """Something that opens on demand."""
    return tag("details", tag("summary", summary), *children)


def figure(picture: Html, caption: Child) -> Html:
    """A picture with its caption."""
    return tag("figure", picture, tag("figcaption", caption))


def facts(pairs: Iterable[tuple[Child, Child]]) -> Html:
    """Terms and what they are."""
    return tag("dl", [tag("div", tag("dt", term), tag("dd", value)) for term, value in pairs], class_="facts")


def share(value: float | None) -> str:
    """A share as a percentage, a dash if it is not known."""
    return "–" if value is None else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 3) -> str:
    """A number, a dash if it is not known."""
    return "–" if value is None or isnan(value) else f"{value:.{digits}f}"


def length(value: float | None, seconds: float | None) -> str:
    """A number of elements, with its seconds if they are known."""
    if value is None:
        return "–"
    plain = f"{value:,.1f}".removesuffix(".0")
    return plain if seconds is None else f"{plain} ({duration(value * seconds)})"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def span(interval: tuple[float, float] | None, *, signed: bool = False) -> str:
    """An interval in words."""
    if interval is None:
        return "–"
    style = "+.3f" if signed else ".2f"
    return f"{interval[0]:{style}} to {interval[1]:{style}}"


def _kind(column: int, words: Sequence[int]) -> str | None:
    return None if column in words else "n"


def _cell(cell: Child, column: int, words: Sequence[int]) -> Html:
    if column == 0:
        return tag("th", cell, scope="row")
    return tag("td", join(cell), class_=_kind(column, words))
