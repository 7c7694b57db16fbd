"""An end model for token sequences: hashed words in context, and logistic regression (extra ``sklearn``).

The paper reports the label model alone for EHR. With this classifier, the same for every method, real tagging data gets
the end-to-end comparison as well: traditional supervision can only be measured on an end model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dugong.baselines import Supervised
from dugong.endmodels.classifiers import train_sklearn
from dugong.exceptions import MissingExtraError
from dugong.experiments.case import Case
from dugong.types import FloatArray

N_FEATURES = 2**18


def classify_tokens(case: Case, labels: FloatArray | None, seed: int) -> FloatArray:
    """Train on labels of the train part (None: on gold of the dev part); P(class) of the test tokens, (n, 2)."""
    try:
        from sklearn.linear_model import SGDClassifier
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "sklearn", "an end model for tokens") from error
    classifier = SGDClassifier(loss="log_loss", alpha=1e-6, max_iter=20, tol=None, average=True, random_state=seed)
    trained: Any
    if labels is None:
        trained = Supervised(classifier=classifier).fit(token_features(case.raw("dev")), case.gold("dev"))
    else:
        trained = train_sklearn(classifier, token_features(case.raw("train")), labels)
    return np.asarray(trained.predict_proba(token_features(case.raw("test"))), dtype=np.float64)


def words_of(raw: Any) -> list[str] | None:
    """The words of a raw sequence: its attribute `words`, or its elements if they are words; None for other data."""
    words = list(getattr(raw, "words", raw))
    return words if all(isinstance(word, str) for word in words) else None


def token_features(sequences: Sequence[Any]) -> Any:
    """Sparse (n_tokens, N_FEATURES): the word, its ends and its shape, and two words on either side."""
    from sklearn.feature_extraction import FeatureHasher

    hasher = FeatureHasher(N_FEATURES, input_type="string")
    return hasher.transform(features for raw in sequences for features in _of_sequence(words_of(raw) or []))


def _of_sequence(words: list[str]) -> Iterator[list[str]]:
    low = ["", "", *(word.lower() for word in words), "", ""]
    for place, word in enumerate(words):
        here = low[place + 2]
        around = [f"{step}={low[place + 2 + step]}" for step in (-2, -1, 1, 2)]
        pairs = [f"before={low[place + 1]}|{here}", f"after={here}|{low[place + 3]}"]
        yield [
            f"word={here}",
            f"end3={here[-3:]}",
            f"end4={here[-4:]}",
            f"start={here[:3]}",
            _shape(word),
            *around,
            *pairs,
        ]


def _shape(word: str) -> str:
    kinds = ["A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else "-" for c in word]
    return "shape=" + "".join(kind for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1])
