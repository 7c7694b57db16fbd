"""Sufficient sums: what is counted (plan), how (count), and values that merge with ``+``."""

from dugong.sums.count import count
from dugong.sums.groups import Grouping, assign_groups
from dugong.sums.laws import Laws
from dugong.sums.sums import MomentRow, Moments, Plan, Shapes, Slot, inside, pair

__all__ = [
    "Grouping",
    "Laws",
    "MomentRow",
    "Moments",
    "Plan",
    "Shapes",
    "Slot",
    "assign_groups",
    "count",
    "inside",
    "pair",
]
