"""The colours of classes, on light and on dark ground.

Two classes: a quiet one and a loud one, so that events stand out. More: colours that people with any colour vision tell
apart (after Okabe and Ito) for the first eight, then steps around the colour circle.
"""

from __future__ import annotations

from colorsys import hls_to_rgb

_TWO = (("#b4c1cd", "#c2410c"), ("#46566a", "#fb8b4e"))
_MANY = (
    ("#e69f00", "#56b4e9", "#0072b2", "#14315c", "#009e73", "#cc79a7", "#d55e00", "#8a8a00"),
    ("#f0b429", "#7cc7f2", "#3a8fd0", "#7f8fd8", "#2bbf95", "#dd93bb", "#ec7a30", "#b9b52a"),
)


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
