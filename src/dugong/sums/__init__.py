"""Sufficient sums: what is counted (plan), how (count), and values that merge with ``+``."""

from dugong.sums.count import count
from dugong.sums.groups import Grouping, assign_groups
from dugong.sums.laws import Laws
from dugong.sums.rows import MomentRow, Plan, Slot, inside, pair
from dugong.sums.sums import Moments, Shapes

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
