"""Baselines with the contract of the label model."""

from dugong.baselines.majority import MajorityVote

__all__ = ["MajorityVote"]
