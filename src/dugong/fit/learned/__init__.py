"""The learned defaults: prior, dependencies and discounts from the votes alone."""

from dugong.fit.learned.graphs import LearnedGraph, learn_graph
from dugong.fit.learned.learning import learn
from dugong.fit.learned.part import choose_part
from dugong.fit.learned.result import Learned, Robust
from dugong.fit.learned.search import Method

__all__ = ["Learned", "LearnedGraph", "Method", "Robust", "choose_part", "learn", "learn_graph"]
