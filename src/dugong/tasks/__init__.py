"""What is asked: resolutions, links, and where every task lies."""

from dugong.tasks.layout import Layout, SpanTable, count_tasks
from dugong.tasks.resolutions import (
    Element,
    Resolution,
    Sequence,
    Spans,
    WholeSequence,
    Window,
    describe,
    find_resolution,
    resolution_from_dict,
    resolution_to_dict,
)

__all__ = [
    "Element",
    "Layout",
    "Resolution",
    "Sequence",
    "SpanTable",
    "Spans",
    "WholeSequence",
    "Window",
    "count_tasks",
    "describe",
    "find_resolution",
    "resolution_from_dict",
    "resolution_to_dict",
]
