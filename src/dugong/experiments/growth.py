"""An end model whose best error is known: Gaussian features, logistic regression, labels from votes on n sequences.

In: a number of unlabelled sequences. Out: the error of the label model's tables, how far the error rate of the end
model is above the best one there is (exact, no test set), the same with true labels, and the bounds of section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr

from dugong.endmodels.classifiers import train_sklearn
from dugong.exceptions import MissingExtraError
from dugong.graph.theory import end_model_bound, tied_error_bound, untied_error_bound
from dugong.model import LabelModel
from dugong.types import FloatArray
from dugong.worlds import World, lopsided

SIZES = (30, 100, 300, 1_000, 3_000, 10_000)
N_SOURCES, N_ELEMENTS, N_FEATURES = 6, 5, 10
DISTANCE = 0.45  # between the classes in every feature, in standard deviations
POSITIVE = 0.3  # the balance of the world


def end_model_errors(*, n_sequences: int, seed: int, estimator: str) -> Mapping[str, float]:
    """Errors and bounds for one draw."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "sklearn", "the end model of the scaling figure") from error
    world = lopsided(N_SOURCES, seed, n_elements=N_ELEMENTS)
    votes, labels = world.sample(n_sequences, rng=seed)
    gold, rng = labels["element"], np.random.default_rng((seed, n_sequences))
    model = LabelModel(prior=world.prior, dependencies=(), estimator=estimator).fit(votes)
    features = DISTANCE / 2 * gold[:, None] + rng.normal(size=(len(gold), N_FEATURES))
    ours = train_sklearn(LogisticRegression(), features, model.predict_proba(votes))
    supervised = LogisticRegression().fit(features, gold)
    best = error_rate(np.full(N_FEATURES, DISTANCE), float(np.log(POSITIVE / (1 - POSITIVE))))
    table_error = _norm(model.accuracies_, world)
    return {
        "end model: excess error": error_rate(ours.coef_[0], float(ours.intercept_[0])) - best,
        "with true labels": error_rate(supervised.coef_[0], float(supervised.intercept_[0])) - best,
        "tables: norm of the error": table_error,
        "8 x that norm": end_model_bound(table_error),
        "8 x Theorem 1 (tied)": end_model_bound(_bound(tied_error_bound, n_sequences, world)),
        "8 x Theorem 2 (untied)": end_model_bound(_bound(untied_error_bound, n_sequences, world)),
    }


def error_rate(weights: FloatArray, offset: float) -> float:
    """Share of wrong answers of a linear classifier, exactly: the features of both classes are Gaussian."""
    scale = float(np.linalg.norm(weights))
    middle = DISTANCE / 2 * float(weights.sum())
    missed, invented = ndtr((-middle - offset) / scale), ndtr((-middle + offset) / scale)
    return float(POSITIVE * missed + (1 - POSITIVE) * invented)


def _norm(found: Mapping[str, FloatArray], world: World) -> float:
    """Euclidean norm of the error of all tables together."""
    truth = world.accuracies(N_ELEMENTS)
    return float(np.sqrt(sum(((found[name] - table) ** 2).sum() for name, table in truth.items())))


def _bound(theorem: Callable[..., float], n_sequences: int, world: World) -> float:
    """A bound with the smallest entry of the prior of one label and the smallest expected agreement with it."""
    balance = world.prior.joint_law([("element", 0)], 1)
    sides = np.array([-1, 1])
    agreements = [float(balance @ ((table[:, 1] - table[:, 0]) * sides)) for table in world.accuracies().values()]
    smallest = min(map(abs, agreements))
    return theorem(n_sequences, N_SOURCES, N_ELEMENTS, smallest_prior=float(balance.min()), smallest_agreement=smallest)
