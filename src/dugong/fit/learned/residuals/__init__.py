"""What a fitted model leaves unexplained, and which of it is more than chance."""

from dugong.fit.learned.residuals.misfit import Misfit, find_misfit

__all__ = ["Misfit", "find_misfit"]
