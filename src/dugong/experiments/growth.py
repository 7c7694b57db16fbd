"""An end model whose best error is known: Gaussian features, logistic regression, labels from votes on n sequences.

In: a number of unlabelled sequences. Out: the error of the label model's tables, the excess error of the end model over
one that was trained on the true labels of the same sequences, and the bounds of section 3.2 of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dugong.endmodels.classifiers import train_sklearn
from dugong.exceptions import MissingExtraError
from dugong.graph.theory import end_model_bound, tied_error_bound, untied_error_bound
from dugong.model import LabelModel
from dugong.types import FloatArray, Int8Array
from dugong.worlds import World, lopsided

SIZES = (100, 300, 1_000, 3_000, 10_000)
N_SOURCES, N_ELEMENTS, N_FEATURES = 6, 5, 10
N_TEST = 20_000
DISTANCE = 0.45  # of the two classes in every feature, in standard deviations


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
    features = _features(gold, rng)
    ours = train_sklearn(LogisticRegression(), features, model.predict_proba(votes))
    best = LogisticRegression().fit(features, gold)
    truth = np.where(rng.random(N_TEST) < 0.3, 1, -1).astype(np.int8)
    fresh = _features(truth, rng)
    table_error = _norm(model.accuracies_, world)
    excess = float((ours.predict(fresh) != truth).mean() - (best.predict(fresh) != truth).mean())
    return {
        "error of the tables": table_error,
        "excess error of the end model": max(excess, 0.0),
        "8 x error of the tables": end_model_bound(table_error),
        "8 x Theorem 1 (tied)": end_model_bound(_bound(tied_error_bound, n_sequences, world)),
        "8 x Theorem 2 (untied)": end_model_bound(_bound(untied_error_bound, n_sequences, world)),
    }


def _features(labels: Int8Array, rng: np.random.Generator) -> FloatArray:
    return DISTANCE / 2 * labels[:, None] + rng.normal(size=(len(labels), N_FEATURES))


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
