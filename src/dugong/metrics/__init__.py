"""How good are the labels? Scores of elements, of events and of probabilities, with intervals by sequence.

In: flat arrays of labels (or probabilities) and gold, sequence after sequence, with the lengths of the
sequences. Out: an `Evaluation` of one method (`evaluate`), or a `Comparison` of several (`compare`).
"""

from dugong.metrics.compare import Comparison, Difference, compare
from dugong.metrics.elements import LOG_LOSS_CLIP, Calibration, Events, runs, spans_from_bio
from dugong.metrics.evaluate import ClassScores, Evaluation, evaluate
from dugong.metrics.scores import Score

__all__ = [
    "LOG_LOSS_CLIP",
    "Calibration",
    "ClassScores",
    "Comparison",
    "Difference",
    "Evaluation",
    "Events",
    "Score",
    "compare",
    "evaluate",
    "runs",
    "spans_from_bio",
]
