"""Windows of any size and overlap: groups that are counted exactly, and propagation between them."""

from dugong.infer.grouped.engine import WindowEngine

__all__ = ["WindowEngine"]
