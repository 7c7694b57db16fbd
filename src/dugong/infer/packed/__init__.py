"""The packed chain engine: elements only, one state per class; several sources per look-up."""

from dugong.infer.packed.run import count, fits, smooth

__all__ = ["count", "fits", "smooth"]
