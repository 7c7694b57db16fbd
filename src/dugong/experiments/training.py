"""End models of a case: examples of a part, training under one method, predictions for the test part.

In: a `TaskCase` and labels of its train part (or none: then the gold labels of the dev part are all there is). Out:
probabilities for every example of the test part. The dev part chooses the epoch, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dugong.baselines import Supervised
from dugong.endmodels.costs import train_sklearn
from dugong.exceptions import import_extra
from dugong.experiments.recipe import EndModel, Part, TaskCase
from dugong.types import AnyArray, FloatArray

# Larger inputs are computed when they are needed, sequence by sequence.
_IN_MEMORY = 1 << 30
N_FEATURES = 2**18


def has_end_model(case: TaskCase) -> bool:
    """Whether there is one: the recipe's, or the classifier of tokens on real text."""
    if case.recipe.end_model is not None:
        return True
    if case.material.origin == "simulated":
        return False
    return all(words_of(raw) is not None for raw in case.material.sequences.values())


def end_model_probabilities(
    case: TaskCase, labels: FloatArray | None, seed: int, *, device: str | None = None, checkpoint: Path | None = None
) -> FloatArray:
    """Train on labels of the train part (None: on gold of the dev part); P(class) on the test part, (n, 2)."""
    model = case.recipe.end_model
    if model is None:
        return classify_tokens(case, None if labels is None else decided(labels), seed)
    with _few_threads(small=case.small):
        return _trained(case, model, labels, seed=seed, device=device, checkpoint=checkpoint)


@contextmanager
def _few_threads(*, small: bool) -> Iterator[None]:
    """One thread for small networks: more of them only wait for each other, and change the last digits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _trained(case: TaskCase, model: EndModel, labels: FloatArray | None, *, seed: int, **place: Any) -> FloatArray:
    import torch

    from dugong.endmodels import predict, train

    chosen = {**model.options, **(model.small_options if case.small else {})}
    options = {**chosen, **place, "seed": seed, "classes": (-1, 1)}
    dev = (examples(case, "dev"), case.gold("dev"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = model.network(case.small)
    if labels is None:
        # Epochs on the few dev examples with as many steps as the given ones on the train part
        ratio = len(case.gold("train")) / max(len(case.gold("dev")), 1)
        options["epochs"] = max(1, round(int(options.get("epochs", 20)) * max(ratio, 1.0)))
        options.pop("patience", None)
        trained = train(network, *dev, **options)
    else:
        trained = train(network, examples(case, "train"), decided(labels), dev=dev, **options)
    size = int(options.get("batch_size", 32))
    return predict(trained.model, examples(case, "test"), batch_size=max(size, 32))


def decided(labels: FloatArray) -> FloatArray:
    """Labels to learn from: even odds (no source has spoken, or as many each way) count as -1, as they do in scores."""
    even = np.abs(labels[:, 1:] - 0.5) < 1e-9
    return np.where(even, [1.0, 0.0], labels)


@lru_cache(maxsize=3)
def examples(case: TaskCase, part: Part) -> Any:
    """Inputs of the end model, one row per example, in the order of the labels; kept for the methods that follow."""
    assert case.recipe.end_model is not None
    rows = TrainingRows(case, case.recipe.end_model, part)
    first = rows[0]
    return rows.stacked() if first.nbytes * len(rows) <= _IN_MEMORY else rows


class TrainingRows:
    """Examples by number; each is computed from its raw sequence when it is asked for."""

    def __init__(self, case: TaskCase, model: EndModel, part: Part) -> None:
        self._raw = case.raw(part)
        self._model, self._small = model, case.small
        self._whole = model.unit == "sequence"
        lengths = [1 if self._whole else len(raw) for raw in self._raw]
        self._owners = np.repeat(np.arange(len(lengths)), lengths)
        self._places = np.arange(len(self._owners)) - np.repeat(np.cumsum([0, *lengths])[:-1], lengths)

    def __len__(self) -> int:
        return len(self._owners)

    def __getitem__(self, row: int) -> AnyArray:
        found = self._inputs(self._raw[self._owners[row]])
        return np.asarray(found if self._whole else found[self._places[row]])

    def _inputs(self, raw: Any) -> AnyArray:
        return np.asarray(self._model.inputs(raw, self._small), dtype=np.float32)

    def stacked(self) -> AnyArray:
        """All of them as one array."""
        parts = [self._inputs(raw) for raw in self._raw]
        return np.stack(parts) if self._whole else np.concatenate(parts)


def classify_tokens(case: TaskCase, labels: FloatArray | None, seed: int) -> FloatArray:
    """Train on labels of the train part (None: on gold of the dev part); P(class) of the test tokens, (n, 2)."""
    linear = import_extra("sklearn.linear_model", "sklearn", "an end model for tokens", package="scikit-learn")
    classifier = linear.SGDClassifier(
        loss="log_loss", alpha=1e-6, max_iter=20, tol=None, average=True, random_state=seed
    )
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
        own = [f"word={here}", f"end3={here[-3:]}", f"end4={here[-4:]}", f"start={here[:3]}", _shape(word)]
        around = [f"{step}={low[place + 2 + step]}" for step in (-2, -1, 1, 2)]
        pairs = [f"before={low[place + 1]}|{here}", f"after={here}|{low[place + 3]}"]
        yield own + around + pairs


def _shape(word: str) -> str:
    kinds = ["A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else "-" for c in word]
    return "shape=" + "".join(kind for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1])
