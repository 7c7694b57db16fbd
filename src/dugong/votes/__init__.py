"""What was observed: the container of votes, its constructors, files and summaries."""

from dugong.votes.codes import (
    Fault,
    SourceInfo,
    allowed_classes,
    class_indices,
    code_name,
    count_codes,
    count_faults,
    implied_background,
    positive_class,
)
from dugong.votes.container import Votes, replace_unchecked
from dugong.votes.gold import gold_at, labels_from_classes
from dugong.votes.summary import Problem, SourceSummary, Summary, find_problems

__all__ = [
    "Fault",
    "Problem",
    "SourceInfo",
    "SourceSummary",
    "Summary",
    "Votes",
    "allowed_classes",
    "class_indices",
    "code_name",
    "count_codes",
    "count_faults",
    "find_problems",
    "gold_at",
    "implied_background",
    "labels_from_classes",
    "positive_class",
    "replace_unchecked",
]
