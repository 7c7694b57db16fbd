"""HTML that cannot be broken by what it shows: every string is escaped, unless it was made here.

`tag("td", name)` gives `Html`; plain strings among the children are escaped, `Html` is taken as it is. Names of people,
sources and sequences go through `name`, which also keeps right-to-left text from reordering its surroundings. Below:
tables, figures and words that sections share.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb
from math import cos, isnan, log1p, pi, sin, sqrt

from dugong.report.values import EdgeRow, Scores, SourceRow
from dugong.types import FloatArray

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
    """A table that scrolls inside its own box when the screen is narrow; the first column is the heading of its row.

    `words` are the columns that hold words rather than numbers.
    """
    header = [tag("th", cell, scope="col", class_=_kind(i, words)) for i, cell in enumerate(head)]
    body = [tag("tr", [_table_cell(cell, i, words) for i, cell in enumerate(row)]) for row in rows]
    return scroll(grid(caption, header, body), caption)


def grid(caption: str, header: Iterable[Child], body: Iterable[Child]) -> Html:
    """A table of cells that are made."""
    return tag("table", tag("caption", caption), tag("thead", tag("tr", header)), tag("tbody", body))


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


def number(value: float | None, form: str = ".3f") -> str:
    """A number, a dash if it is not known."""
    return "–" if value is None or isnan(value) else format(value, form)


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


def _table_cell(cell: Child, column: int, words: Sequence[int]) -> Html:
    if column == 0:
        return tag("th", cell, scope="row")
    return tag("td", join(cell), class_=_kind(column, words))


# --- Pictures as SVG inside the page ----------------------------------------------------------------------------------
# Crisp at any size, in the colours of the page, with words for screen readers. Pictures are drawn for a width of about
# 340 units, a phone; coordinates have their origin at the top left.
WIDTH = 340
_TWO = (("#b4c1cd", "#c2410c"), ("#46566a", "#fb8b4e"))
_MANY = (
    ("#e69f00", "#56b4e9", "#0072b2", "#14315c", "#009e73", "#cc79a7", "#d55e00", "#8a8a00"),
    ("#f0b429", "#7cc7f2", "#3a8fd0", "#7f8fd8", "#2bbf95", "#dd93bb", "#ec7a30", "#b9b52a"),
)


def picture(width: float, height: float, title: str, *children: Child, fixed: bool = False) -> Html:
    """A picture that grows with the page, or keeps its size if `fixed`."""
    size = {"width": width, "height": height} if fixed else {}
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        class_="fixed" if fixed else None,
        **size,
    )


def text(x: float, y: float, words: str, *, anchor: str | None = None, class_: str | None = None) -> Html:
    """Words in a picture."""
    return tag("text", words, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str = "axis") -> Html:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def short(words: str, most: int = 22) -> str:
    """A name that fits: its beginning and its end."""
    if len(words) <= most:
        return words
    tail = most // 3
    return f"{words[: most - tail - 1]}…{words[-tail:]}"


def columns(
    edges: tuple[float, ...],
    counts: tuple[int, ...],
    *,
    title: str,
    x_label: str,
    y_label: str,
    decimals: int = 0,
    logarithmic: bool = False,
) -> Html:
    """A histogram; with a logarithmic height where one column would hide all others."""
    left, top, right, bottom = 44.0, 14.0, WIDTH - 8.0, 128.0
    most = max(*counts, 1)
    wide, bars = (right - left) / len(counts), []
    for place, count in enumerate(counts):
        height = (bottom - top) * (log1p(count) / log1p(most) if logarithmic else count / most)
        words = f"{edges[place]:.{decimals}f} to {edges[place + 1]:.{decimals}f}: {count:,}"
        where = {"x": left + place * wide + 0.5, "y": bottom - height, "width": wide - 1, "height": height}
        bars.append(tag("rect", tag("title", words), **where, class_="ink"))
    return picture(
        WIDTH,
        168,
        title,
        bars,
        line(left, bottom, right, bottom),
        text(left, bottom + 14, f"{edges[0]:.{decimals}f}", anchor="middle"),
        text(right, bottom + 14, f"{edges[-1]:.{decimals}f}", anchor="end"),
        text((left + right) / 2, bottom + 30, x_label, anchor="middle"),
        text(left - 6, top + 8, f"{most:,}", anchor="end"),
        text(left - 6, bottom, "0", anchor="end"),
        text(4, top - 3, y_label),
    )


def whisker(value: float, interval: tuple[float, float] | None, known: float | None, place: int, title: str) -> Html:
    """A share from 0 to 1 on a short line: a dot, its interval, and a diamond for what gold shows."""
    left, wide, middle = 4.0, 112.0, 9.0

    def at(share: float) -> float:
        return left + wide * min(max(share, 0.0), 1.0)

    parts = [line(left, middle, left + wide, middle, "track"), line(at(0.5), 4, at(0.5), 14, "track")]
    if interval is not None:
        parts.append(tag("rect", x=at(interval[0]), y=middle - 2.5, width=max(at(interval[1]) - at(interval[0]), 1.0),
                         height=5, rx=2.5, class_=f"c{place} soft"))  # fmt: skip
    parts.append(tag("circle", cx=at(value), cy=middle, r=4, class_=f"c{place} dot"))
    if known is not None:
        x = at(known)
        parts.append(tag("path", d=f"M{x:.1f} {middle - 6} l4 6 l-4 6 l-4 -6 z", class_="known"))
    return picture(120, 18, title, parts, fixed=True)


def class_colours(n_classes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Colours of the classes on light ground, and on dark ground."""
    if n_classes == 2:
        return _TWO
    if n_classes <= len(_MANY[0]):
        return _MANY[0][:n_classes], _MANY[1][:n_classes]
    return _circle(n_classes, 0.45), _circle(n_classes, 0.62)


def _circle(n_classes: int, lightness: float) -> tuple[str, ...]:
    colours = []
    for place in range(n_classes):
        wave = lightness + (0.1 if place % 2 else -0.06)
        red, green, blue = hls_to_rgb(place / n_classes, wave, 0.55)
        colours.append(f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}")
    return tuple(colours)


# --- single sections: reliability, the graph of dependencies, matrices ------------------------------------------------
CELL = 26
_NUMBERS = 12  # with more sources the cells hold colour only


def reliability(scores: Scores) -> Html:
    """Promised against measured shares: the diagonal is honest."""
    assert scores.mean_probability is not None
    assert scores.frequency is not None
    assert scores.bin_counts is not None
    left, top, size = 44.0, 24.0, 200.0
    right, bottom = left + size, top + size
    biggest = max(*scores.bin_counts, 1)
    dots = []
    for promised, measured, count in zip(scores.mean_probability, scores.frequency, scores.bin_counts, strict=True):
        if isnan(promised) or isnan(measured):
            continue
        words = f"promised {promised:.2f}, measured {measured:.2f}, {count:,} elements"
        radius = 3 + 7 * sqrt(count / biggest)
        dots.append(
            tag("circle", tag("title", words), cx=left + size * promised, cy=bottom - size * measured, r=radius,
                class_="ink soft-line")
        )  # fmt: skip
    ends = [text(left - 8, bottom, "0", anchor="end"), text(left - 8, top + 8, "1", anchor="end")]
    return picture(
        WIDTH,
        top + size + 40,
        f"Reliability: measured share against {scores.of}",
        line(left, bottom, right, top, "track"),
        line(left, bottom, right, bottom),
        line(left, bottom, left, top),
        dots,
        ends,
        text(left, bottom + 14, "0", anchor="middle"),
        text(right, bottom + 14, "1", anchor="middle"),
        text(left + size / 2, bottom + 30, f"promised: {short(scores.of, 30)}", anchor="middle"),
        text(4, 12, "measured share"),
    )


def graph(sources: tuple[SourceRow, ...], edges: tuple[EdgeRow, ...]) -> Html:
    """Sources around a circle; a line for every dependency, as thick as it is strong."""
    names = [row.name for row in sources]
    joined = [name for name in names if any(name in (edge.first, edge.second) for edge in edges)]
    radius = max(70.0, 9.0 * len(joined))
    side = 172.0
    places = {
        name: 2 * pi * place / len(joined) - pi / 2 + 0.5 * (2 * pi / len(joined)) for place, name in enumerate(joined)
    }
    upright = [sin(angle) for angle in places.values()]
    centre = radius + side, 24.0 - radius * min(upright)
    height = centre[1] + radius * max(upright) + 24.0
    strongest = max((edge.strength for edge in edges), default=1.0) or 1.0
    drawn = [_edge(edge, places, centre, radius, strongest) for edge in edges]
    dots = []
    for name, angle in places.items():
        x, y = _point(angle, centre, radius)
        anchor = "start" if cos(angle) > 0.01 else "end" if cos(angle) < -0.01 else "middle"
        outer_x, outer_y = _point(angle, centre, radius + 12)
        label = tag("text", tag("title", name), short(name), x=outer_x, y=outer_y + 4, text_anchor=anchor)
        dots.append(tag("circle", cx=x, cy=y, r=5, class_="ink"))
        dots.append(label)
    words = "Dependencies between sources: " + "; ".join(edge.words for edge in edges)
    return picture(2 * centre[0], height, words, drawn, dots, fixed=True)


def _edge(
    edge: EdgeRow, places: dict[str, float], centre: tuple[float, float], radius: float, strongest: float
) -> Html:
    wide = 1 + 6 * edge.strength / strongest
    title = tag("title", edge.words)
    if edge.first == edge.second:
        x, y = _point(places[edge.first], centre, radius - 13)
        return tag("circle", title, cx=x, cy=y, r=11, class_="link", stroke_width=wide)
    (x1, y1), (x2, y2) = (_point(places[name], centre, radius) for name in (edge.first, edge.second))
    bend = 0.35
    middle = (x1 + x2) / 2 * (1 - bend) + centre[0] * bend, (y1 + y2) / 2 * (1 - bend) + centre[1] * bend
    course = f"M{x1:.1f} {y1:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {x2:.1f} {y2:.1f}"
    return tag("path", title, d=course, class_="link", stroke_width=wide)


def _point(angle: float, centre: tuple[float, float], radius: float) -> tuple[float, float]:
    return centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)


def matrix(names: tuple[str, ...], values: FloatArray, *, title: str, largest: float, signed: bool) -> Html:
    """A square of coloured cells; numbers inside while there is room."""
    left, top = 150.0, 26.0
    n_rows = len(names)
    cells = []
    for i in range(n_rows):
        label = f"{short(names[i], 19)}  {i + 1}"
        middle = top + CELL * i + CELL / 2 + 4
        cells.append(tag("text", tag("title", names[i]), label, x=left - 6, y=middle, text_anchor="end"))
        cells.append(text(left + CELL * i + CELL / 2, top - 8, str(i + 1), anchor="middle"))
        for j in [j for j in range(n_rows) if j != i]:
            pair, at = f"{names[i]}, {names[j]}", (left + CELL * j, top + CELL * i)
            cells.append(_cell(pair, float(values[i, j]), at, largest, signed=signed, blank=n_rows > _NUMBERS))
    return picture(left + CELL * n_rows + 4, top + CELL * n_rows + 4, title, cells, fixed=True)


def _cell(pair: str, value: float, at: tuple[float, float], largest: float, *, signed: bool, blank: bool) -> Html:
    (x, y), place = at, {"x": at[0] + 0.5, "y": at[1] + 0.5, "width": CELL - 1, "height": CELL - 1}
    if isnan(value):
        return tag("rect", **place, class_="empty")
    percent = round(100 * value)
    figure = f"{percent:+d}" if signed and percent else str(percent)
    words = tag("title", f"{pair}: {figure} {'points' if signed else '%'}")
    strength = min(abs(value) / largest, 1.0) if largest else 0.0
    side = "minus" if signed and value < 0 else "plus"
    shade = tag("rect", words, **place, class_=side, fill_opacity=0.06 + 0.6 * strength)
    return shade if blank else join(shade, text(x + CELL / 2, y + CELL / 2 + 4, figure, anchor="middle", class_="tiny"))
