"""The learned defaults: prior, dependencies and discounts from the votes alone."""

from dugong.estimate.learned.graphs import LearnedGraph, learn_graph
from dugong.estimate.learned.learning import learn
from dugong.estimate.learned.part import choose_part
from dugong.estimate.learned.result import Learned, Robust
from dugong.estimate.learned.search import Method

__all__ = ["Learned", "LearnedGraph", "Method", "Robust", "choose_part", "learn", "learn_graph"]
