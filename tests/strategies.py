"""Hypothesis strategies for everything that the tests draw: one file for the whole project."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dugong.tasks import Element, Resolution, Sequence, Spans, SpanTable, TimeAxis, Window
from dugong.tasks.layout import Layout
from dugong.types import MISSING
from dugong.votes import Fault, SourceInfo, Votes

LINKS = ("any", "all", "majority", "joint")


def lengths(max_sequences: int = 5, max_length: int = 12) -> st.SearchStrategy[np.ndarray]:
    """Ragged lengths, empty sequences among them."""
    each = st.integers(0, max_length)
    return st.lists(each, min_size=1, max_size=max_sequences).map(lambda v: np.array(v, dtype=np.int64))


@st.composite
def windows(draw: st.DrawFn, n_classes: int = 2, links: tuple[str, ...] = LINKS, max_size: int = 7) -> Window:
    """Windows of any size, stride and link."""
    size = draw(st.integers(1, max_size))
    of = None if n_classes == 2 else draw(st.integers(1, n_classes))
    return Window(size, draw(st.integers(1, size)), draw(st.sampled_from(links)), of=of)


@st.composite
def resolutions(draw: st.DrawFn, n_classes: int = 2, links: tuple[str, ...] = LINKS) -> Resolution:
    """Any resolution; spans are called "shot" or "line"."""
    of = None if n_classes == 2 else draw(st.integers(1, n_classes))
    link = draw(st.sampled_from(links))
    return draw(
        st.one_of(
            st.just(Element()),
            windows(n_classes, links),
            st.just(Sequence(link, of)),
            st.sampled_from(("shot", "line")).map(lambda name: Spans(name, link, of)),
        )
    )


@st.composite
def span_tables(draw: st.DrawFn, of_lengths: np.ndarray) -> SpanTable:
    """Sorted pieces that do not overlap, with gaps between some of them."""
    tables = []
    for length in of_lengths.tolist():
        borders = sorted(draw(st.sets(st.integers(0, length), max_size=6)))
        pairs = list(pairwise(borders))
        tables.append([pair for pair in pairs if draw(st.booleans())])
    return SpanTable.from_lists(tables)


@st.composite
def time_axes(draw: st.DrawFn, of_lengths: np.ndarray) -> TimeAxis:
    """Rates or timestamps for sequences of the given lengths."""
    start = draw(hnp.arrays(np.float64, len(of_lengths), elements=st.floats(-1e3, 1e3)))
    if draw(st.booleans()):
        rate = draw(hnp.arrays(np.float64, len(of_lengths), elements=st.floats(0.1, 100)))
        return TimeAxis.from_rate(rate, start=start)
    steps = st.floats(0.01, 10)
    return TimeAxis.from_timestamps(
        [np.cumsum(draw(hnp.arrays(np.float64, int(length), elements=steps))) for length in of_lengths], start=start
    )


@st.composite
def columns(draw: st.DrawFn, codes: list[int], size: int) -> np.ndarray:
    """The flat votes of one source."""
    return draw(hnp.arrays(np.int8, size, elements=st.sampled_from(codes)))


@st.composite
def votes(draw: st.DrawFn, max_sources: int = 4, *, links: tuple[str, ...] = LINKS, plain: bool = False) -> Votes:
    """Votes at any resolutions, binary or not, with names, ids, spans, time and faults unless `plain`."""
    n_classes = draw(st.sampled_from([2, 2, 3, 5]))
    of_lengths = draw(lengths())
    spans = {name: draw(span_tables(of_lengths)) for name in ("shot", "line")}
    names = draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=max_sources, unique=True))
    partial = {n_classes + 1: (1, 2), n_classes + 2: (2, 3)} if n_classes > 2 and draw(st.booleans()) else {}
    infos, flat = [], []
    for name in names:
        info = SourceInfo(name=name, resolution=draw(resolutions(n_classes, links)))
        on_elements = isinstance(info.resolution, Element) and n_classes > 2
        codes = [0, *range(1, n_classes + 1), *partial] if on_elements else [-1, 0, 1]
        size = Layout.of(info.resolution, of_lengths, spans).n_tasks
        infos.append(info)
        flat.append(draw(columns([*codes, MISSING], size)))
    return Votes(
        sources=tuple(infos),
        columns=tuple(flat),
        lengths=of_lengths,
        n_classes=n_classes,
        partial=partial,
        spans=spans,
        **({} if plain else draw(decorations(of_lengths, n_classes, names))),
    )


@st.composite
def decorations(draw: st.DrawFn, of_lengths: np.ndarray, n_classes: int, names: list[str]) -> dict[str, Any]:
    """What votes may have besides: ids, class names, background, time, faults."""
    count = len(of_lengths)
    words = st.lists(st.text(st.characters(exclude_characters="\x00"), max_size=6), unique=True)
    ids = draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(-(2**40), 2**40), min_size=count, max_size=count, unique=True).map(np.array),
            st.just([f"night/{place}é" for place in range(count)]).map(np.array),
        )
    )
    classes = (-1, 1) if n_classes == 2 else tuple(range(1, n_classes + 1))
    fault = Fault(names[0], "x", draw(st.none() | st.integers(0, 9)), "ValueError: no face", "Traceback ...")
    drawn = draw(words)
    return {
        "ids": ids,
        "class_names": tuple([*drawn, *(f"#{place}" for place in range(n_classes))][:n_classes])
        if all(not word.startswith("#") for word in drawn)
        else None,
        "background": draw(st.sampled_from([None, *classes])),
        "time": draw(st.none() | time_axes(of_lengths)),
        "faults": draw(st.sampled_from([(), (fault,)])),
    }
