"""The learned defaults: prior, dependencies and discounts from the votes alone."""

from dugong.estimate.learned.learning import learn
from dugong.estimate.learned.part import choose_part
from dugong.estimate.learned.result import Learned, Robust

__all__ = ["Learned", "Robust", "choose_part", "learn"]
