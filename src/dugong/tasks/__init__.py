"""What is asked: resolutions, links, and where every task lies."""

from dugong.tasks.layout import Layout, SpanTable, TaskCounter, TaskFinder, TaskRun, count_tasks
from dugong.tasks.links import link_labels
from dugong.tasks.resolutions import (
    Element,
    Resolution,
    Sequence,
    Spans,
    WholeSequence,
    Window,
    describe,
    find_resolution,
    in_elements,
)
from dugong.tasks.time import ElementSpans, Rounding, TimeAxis

__all__ = [
    "Element",
    "ElementSpans",
    "Layout",
    "Resolution",
    "Rounding",
    "Sequence",
    "SpanTable",
    "Spans",
    "TaskCounter",
    "TaskFinder",
    "TaskRun",
    "TimeAxis",
    "WholeSequence",
    "Window",
    "count_tasks",
    "describe",
    "find_resolution",
    "in_elements",
    "link_labels",
]
