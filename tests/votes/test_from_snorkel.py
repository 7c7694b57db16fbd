"""Coming from Snorkel, pandas and scikit-learn: the coding, the names and the shapes that people bring."""

import numpy as np
import pandas as pd
import pytest

import dugong as dg
from dugong.exceptions import LabelError, VoteError


@pytest.fixture
def label_matrix():
    """Votes as Snorkel has them: classes 0 and 1, -1 abstains; one row per element."""
    rng = np.random.default_rng(0)
    gold = np.repeat(rng.integers(0, 2, 60), 5)
    votes = np.where(rng.random((300, 4)) < 0.85, gold[:, None], 1 - gold[:, None])
    votes[rng.random(votes.shape) < 0.2] = -1
    return votes, gold


def test_an_array_in_place_of_votes_says_which_constructor_to_use(label_matrix):
    votes, _ = label_matrix
    with pytest.raises(
        VoteError, match=r"found ndarray of shape \(300, 4\).\n  300 rows of 4 sources: Votes.from_classes"
    ):
        dg.LabelModel().fit(votes)
    with pytest.raises(VoteError, match=r"found str.\n  Make them with Votes.from_classes"):
        dg.LabelModel().fit("votes.parquet")


def test_data_frames_keep_their_names_and_ids_by_row_tell_sequences_apart(label_matrix):
    votes, _ = label_matrix
    frame = pd.DataFrame(votes, columns=["lexicon", "regex", "model", "crowd"])
    ids = np.repeat(["b", "a"], [100, 200])
    found = dg.Votes.from_classes(frame, n_classes=2, ids=ids)
    assert found.source_names == ("lexicon", "regex", "model", "crowd")
    assert found.lengths.tolist() == [100, 200]
    assert found.sequence_ids.tolist() == ["b", "a"]
    with pytest.raises(VoteError, match=r"must be together; 'b' begins twice.\n  Sort"):
        dg.Votes.from_classes(frame, n_classes=2, ids=np.repeat(["b", "a", "b"], 100))


def test_predictions_and_scores_speak_the_coding_of_the_votes(label_matrix, tmp_path):
    votes, gold = label_matrix
    found = dg.Votes.from_classes(votes, n_classes=2, lengths=[100, 200])
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.9), dependencies=()).fit(found)
    given = model.predict(found, coding="given")
    assert set(given.tolist()) == {0, 1}
    assert (given == gold).mean() > 0.9
    assert model.score(found, gold, coding="given") == pytest.approx((given == gold).mean(), rel=1e-12)
    assert set(model.predict(found).tolist()) == {-1, 1}
    with pytest.raises(LabelError, match=r'ambiguous: they hold only 0 and 1.*\n.*coding="given"'):
        model.score(found, gold)
    found.write(tmp_path / "votes.parquet")
    assert dg.Votes.read(tmp_path / "votes.parquet").given == (0, 1)
    assert found[[1]].given == dg.Votes.concat([found]).given == (0, 1)


def test_many_classes_come_back_as_they_were(label_matrix):
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 3, 200)
    votes = np.where(rng.random((200, 5)) < 0.8, gold[:, None], rng.integers(0, 3, (200, 5)))
    found = dg.Votes.from_classes(votes, n_classes=3, lengths=[200])
    model = dg.LabelModel(dependencies=()).fit(found)
    assert (model.predict(found, coding="given") == gold).mean() > 0.9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, v: m.predict(v, coding="snorkel"), "coding= must be 'own' or 'given'"),
        (lambda m, v: m.predict(v, threshold=None), "threshold= must be a number from 0 to 1"),
        (lambda m, v: m.score(v, np.full(300, np.nan)), "labels must be one of"),
        (lambda m, v: m.score(v, np.array(["a"] * 300)), "labels must be one of"),
    ],
)
def test_misuse_is_explained(label_matrix, call, words):
    found = dg.Votes.from_classes(label_matrix[0], n_classes=2, lengths=[300])
    model = dg.LabelModel(prior=dg.priors.Uniform(), dependencies=()).fit(found)
    with pytest.raises(LabelError, match=words):
        call(model, found)
