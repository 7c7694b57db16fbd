"""What was observed: the container of votes, its constructors, files and summaries."""

from dugong.votes.container import SourceInfo, Votes, class_indices
from dugong.votes.faults import Fault, count_faults

__all__ = ["Fault", "SourceInfo", "Votes", "class_indices", "count_faults"]
