"""Pictures as SVG inside the page: crisp at any size, in the colours of the page, with words for screen readers.

Pictures are drawn for a width of about 340 units, a phone; coordinates have their origin at the top left.
"""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb
from math import log1p

from dugong.report.html.tags import Child, Html, tag

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


def bar(x: float, y: float, width: float, height: float, class_: str, title: str | None = None) -> Html:
    """A filled rectangle; `title` is shown on hover."""
    inner = () if title is None else (tag("title", title),)
    return tag("rect", *inner, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_)


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
    wide = (right - left) / len(counts)
    heights = [log1p(count) / log1p(most) if logarithmic else count / most for count in counts]
    bars: Iterable[Html] = [
        bar(
            left + place * wide + 0.5,
            bottom - (bottom - top) * heights[place],
            wide - 1,
            (bottom - top) * heights[place],
            "ink",
            f"{edges[place]:.{max(decimals, 0)}f} to {edges[place + 1]:.{max(decimals, 0)}f}: {count:,}",
        )
        for place, count in enumerate(counts)
    ]
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
