"""HTML that cannot be broken by what it shows: every string is escaped, unless it was made here.

`tag("td", name)` gives `Html`; plain strings among the children are escaped, `Html` is taken as it is. Names of people,
sources and sequences go through `name`, which also keeps right-to-left text from reordering its surroundings.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

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
        parts.append(attribute if value is True else f'{attribute}="{escape(_text(value))}"')
    opening = f"<{' '.join(parts)}>"
    if kind in _VOID and not children:
        return Html(f"{opening[:-1]} />" if kind in {"rect", "line", "circle", "path"} else opening)
    return Html(f"{opening}{join(*children)}</{kind}>")


def name(text: str) -> Html:
    """A name that someone else chose, kept apart from the direction of the text around it."""
    return tag("bdi", text)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _render(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            yield child if isinstance(child, Html) else escape(child)
        else:
            yield from _render(child)
