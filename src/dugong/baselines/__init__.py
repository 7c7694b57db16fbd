"""Baselines: majority vote, data programming and a hidden Markov model of votes; supervised training on labels."""

from dugong.baselines.data_programming import DataProgramming
from dugong.baselines.elements import MajorityVote
from dugong.baselines.hidden_markov import HiddenMarkov
from dugong.baselines.supervised import Supervised

__all__ = ["DataProgramming", "HiddenMarkov", "MajorityVote", "Supervised"]
