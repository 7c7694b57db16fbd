"""Who votes: the `source` decorator, applying sources to sequences, and loaders."""

from dugong.sources.applying import apply, apply_with_report
from dugong.sources.checking import sources_in
from dugong.sources.collecting import Applied, ApplyReport, SourceReport
from dugong.sources.decorator import Source, declared_dependencies, source
from dugong.sources.inputs import Deferred
from dugong.sources.judge import judge
from dugong.sources.progress import Progress, ProgressCallback
from dugong.sources.views import TaskBounds, WindowView

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
