"""What was observed: the container of votes, its constructors, files and summaries."""

from dugong.votes.background import implied_background
from dugong.votes.classes import allowed_classes, code_name, positive_class
from dugong.votes.codes import class_indices, count_codes
from dugong.votes.container import SourceInfo, Votes
from dugong.votes.faults import Fault, count_faults
from dugong.votes.gold import gold_at, labels_from_classes
from dugong.votes.problems import Problem, find_problems
from dugong.votes.summary import SourceSummary, Summary

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
]
