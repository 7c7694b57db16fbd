"""Sufficient sums: what is counted (plan), how (count), and values that merge with ``+``."""

from dugong.moments.count import count
from dugong.moments.groups import Grouping, assign_groups
from dugong.moments.rows import Plan, Row, Slot, inside, pair
from dugong.moments.sums import Moments, Shapes

__all__ = ["Grouping", "Moments", "Plan", "Row", "Shapes", "Slot", "assign_groups", "count", "inside", "pair"]
