"""HTML that cannot be broken by what it shows: every string is escaped, unless it was made here.

`tag("td", name)` gives `Html`; plain strings among the children are escaped, `Html` is taken as it is. Names of people,
sources and sequences go through `name`, which also keeps right-to-left text from reordering its surroundings. Below:
tables, figures and words that sections share.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from math import isnan

_VOID = frozenset({"br", "col", "hr", "input", "link", "meta", "rect", "line", "circle", "path"})
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def clean(text: str) -> str:
    """Text that every browser shows: control characters and halves of characters become a replacement sign."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROL.sub("\ufffd", whole)


def escape(text: str) -> Html:
    """Text as HTML."""
    return Html(html.escape(clean(text), quote=True))


def join(*children: Child) -> Html:
    """Children one after the other."""
    return Html("".join(_render(children)))


def tag(kind: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. Attributes: ``class_`` and ``for_`` lose their underscore, others become dashes; None is left out."""
    parts = [kind]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words = value if isinstance(value, str) else f"{value:.6g}"
        parts.append(attribute if value is True else f'{attribute}="{escape(words)}"')
    opening = f"<{' '.join(parts)}>"
    if kind in _VOID and not children:
        return Html(f"{opening[:-1]} />" if kind in {"rect", "line", "circle", "path"} else opening)
    return Html(f"{opening}{join(*children)}</{kind}>")


def name(text: str) -> Html:
    """A name that someone else chose, kept apart from the direction of the text around it."""
    return tag("bdi", text)


def _render(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            yield child if isinstance(child, Html) else escape(child)
        else:
            yield from _render(child)


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
