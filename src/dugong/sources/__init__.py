"""Who votes: the `source` decorator, applying sources to sequences, and loaders."""

from dugong.sources.applying import Progress, ProgressCallback, apply, apply_with_report
from dugong.sources.checking import sources_in
from dugong.sources.collecting import Applied, ApplyReport, SourceReport
from dugong.sources.decorator import Source, declared_dependencies, source
from dugong.sources.inputs import Deferred, TaskBounds, WindowView
from dugong.sources.judge import judge

__all__ = [
    "Applied",
    "ApplyReport",
    "Deferred",
    "Progress",
    "ProgressCallback",
    "Source",
    "SourceReport",
    "TaskBounds",
    "WindowView",
    "apply",
    "apply_with_report",
    "declared_dependencies",
    "judge",
    "source",
    "sources_in",
]
