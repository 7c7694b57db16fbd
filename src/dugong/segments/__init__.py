"""Intervals with labels: what people mark in other tools, and what our labels look like there."""

from dugong.segments.container import UNITS, Recording, Segment, Segments
from dugong.segments.gold import class_codes

__all__ = ["UNITS", "Recording", "Segment", "Segments", "class_codes"]
