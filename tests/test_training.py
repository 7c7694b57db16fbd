"""Labels become data that end models learn from."""

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LabelError

LENGTHS = [7, 4]


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    votes = dg.Votes.from_dense([np.where(rng.random((n, 3)) < 0.7, 1, -1) for n in LENGTHS])
    tables = {name: [[0.8, 0.2, 0], [0.3, 0.7, 0]] for name in votes.source_names}
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.4, stay=0.6), dependencies=(), accuracies=tables).fit(votes)
    return model.labels(votes)


@pytest.fixture(scope="module")
def inputs():
    return {place: np.arange(n * 2, dtype=np.float32).reshape(n, 2) for place, n in enumerate(LENGTHS)}


def test_windows_for_torch_are_padded_and_masked(labels, inputs):
    data = labels.to_torch(inputs, windows=4)
    assert len(data) == 3
    values, law, mask = data[1]
    assert values.tolist() == [[8, 9], [10, 11], [12, 13], [0, 0]]
    assert mask.tolist() == [True, True, True, False]
    np.testing.assert_allclose(law[:3].numpy(), labels.to_numpy()[4:7], rtol=0, atol=1e-6)
    from torch.utils.data import DataLoader

    batch = next(iter(DataLoader(data, batch_size=3)))
    assert [tuple(part.shape) for part in batch] == [(3, 4, 2), (3, 4, 2), (3, 4)]


def test_without_windows_an_item_is_a_sequence(labels, inputs):
    data = labels.to_torch(inputs)
    assert [len(data[place][0]) for place in range(2)] == LENGTHS


def test_rows_for_scikit_learn_are_weighted_by_probability(labels, inputs):
    from sklearn.linear_model import LogisticRegression

    rows, y, weights = labels.to_sklearn(inputs)
    assert weights.sum() == pytest.approx(sum(LENGTHS), rel=1e-6)
    assert set(y) == {"-1", "1"}
    LogisticRegression().fit(rows, y, sample_weight=weights)


def test_inputs_must_fit(labels, inputs):
    with pytest.raises(LabelError, match="'1' is missing"):
        labels.to_torch({0: inputs[0]})
    with pytest.raises(LabelError, match="sequence '1' has 4 elements and 3 rows"):
        labels.to_sklearn({0: inputs[0], 1: inputs[1][:3]})
    with pytest.raises(LabelError, match="at least 1 element"):
        labels.to_torch(inputs, windows=0)


def test_datasets_need_their_extra_or_give_rows_by_sequence(labels):
    try:
        import datasets  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(dg.MissingExtraError, match="hf"):
            labels.to_datasets()
        return
    found = labels.to_datasets()
    assert [len(row["labels"]) for row in found] == LENGTHS
