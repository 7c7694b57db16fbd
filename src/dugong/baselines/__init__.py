"""Baselines: majority vote, data programming and a hidden Markov model of votes; supervised training on labels."""

from dugong.baselines.elements import MajorityVote, Supervised
from dugong.baselines.trained import DataProgramming, HiddenMarkov

__all__ = ["DataProgramming", "HiddenMarkov", "MajorityVote", "Supervised"]
