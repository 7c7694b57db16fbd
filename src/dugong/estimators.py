"""Estimators with options, for ``LabelModel(estimator=...)``.

A name such as ``estimator="em"`` stands for the same object with its defaults.
"""

from __future__ import annotations

from dugong.fit.em import EM
from dugong.fit.settings import Centred, Paper
from dugong.fit.sgd.settings import SGD

__all__ = ["EM", "SGD", "Centred", "Paper"]
