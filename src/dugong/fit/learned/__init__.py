"""The learned defaults: prior, dependencies and discounts from the votes alone."""

from dugong.fit.learned.graphs import LearnedGraph, learn_graph
from dugong.fit.learned.learning import learn
from dugong.fit.learned.part import choose_part
from dugong.fit.learned.result import Learned
from dugong.fit.learned.search import Method
from dugong.fit.learned.tempering import Peers

__all__ = ["Learned", "LearnedGraph", "Method", "Peers", "choose_part", "learn", "learn_graph"]
