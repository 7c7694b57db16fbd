"""Estimators with options, for ``LabelModel(estimator=...)``.

A name such as ``estimator="em"`` stands for the same object with its defaults.
"""

from __future__ import annotations

from dugong.estimate.em import EM
from dugong.estimate.settings import Centred, Paper
from dugong.estimate.sgd.settings import SGD

__all__ = ["EM", "SGD", "Centred", "Paper"]
