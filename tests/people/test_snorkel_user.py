"""A Snorkel user: a label matrix of 0, 1 and -1, a data frame with names, gold in the same coding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dugong as dg

RNG = np.random.default_rng(5)
GOLD = np.repeat(RNG.integers(0, 2, 240), 5)  # 1,200 seconds, twenty recordings
MATRIX = np.where(RNG.random((1200, 4)) < [0.9, 0.8, 0.75, 0.7], GOLD[:, None], 1 - GOLD[:, None])
MATRIX[RNG.random(MATRIX.shape) < 0.3] = -1
RECORDING = np.repeat([f"r{i:02d}" for i in range(20)], 60)
FRAME = pd.DataFrame(MATRIX, columns=["lexicon", "regex", "detector", "crowd"])


def test_from_a_data_frame_to_labels_in_the_coding_that_was_given() -> None:
    # 1. An array is no votes: the message names the constructor, with the shape of the array in it.
    with pytest.raises(dg.VoteError, match=r"from_classes") as refused:
        dg.LabelModel().fit(MATRIX)
    assert "1200" in str(refused.value).replace(",", "")

    # 2. The data frame is: names of columns stay, and one id per row says where recordings begin.
    votes = dg.Votes.from_classes(FRAME, n_classes=2, ids=RECORDING)
    assert votes.source_names == ("lexicon", "regex", "detector", "crowd")
    assert votes.n_sequences == 20

    # 3. Fit, and compare in her own coding; a better answer than the vote of the functions.
    model = dg.LabelModel().fit(votes)
    mine = model.predict(votes, coding="given")
    assert set(mine.tolist()) == {0, 1}
    right = float((mine == GOLD).mean())
    assert right == pytest.approx(model.score(votes, GOLD, coding="given"))
    vote = dg.MajorityVote().fit(votes).predict(votes)
    assert right >= float(((vote == 1) == GOLD).mean())

    # 4. Gold in another coding than the labels is never compared in silence.
    with pytest.raises(dg.LabelError, match='coding="given"'):
        model.score(votes, GOLD)

    # 5. Everything else speaks her coding too: labels, scores, comparisons.
    table = model.labels(votes).to_pandas()
    assert len(table) == len(FRAME)
    assert (table["label"].astype(int).to_numpy() == mine).all()
    assert {"p_0", "p_1"} <= set(table.columns)
    assert dg.evaluate(mine, GOLD, classes=[0, 1]).accuracy == pytest.approx(right)
    assert dg.evaluate(model.predict_proba(votes), GOLD, classes=[0, 1]).accuracy == pytest.approx(right)
    compared = dg.compare({"vote": (vote == 1).astype(int), "ours": mine}, np.where(GOLD < 1, 0, GOLD), classes=[0, 1])
    assert compared["ours"].accuracy == pytest.approx(right)
    with pytest.raises(dg.LabelError, match=r"classes=\[0, 1\]"):
        dg.evaluate(model.predict(votes), GOLD)

    # 6. On to scikit-learn.
    rows = {name: FRAME.to_numpy(dtype=float)[name == RECORDING] for name in dict.fromkeys(RECORDING.tolist())}
    inputs, target, weight = model.labels(votes).to_sklearn(rows)
    assert len(inputs) == len(target) == len(weight)
    assert (weight > 0).all()


def test_the_column_of_a_data_frame_says_where_recordings_begin() -> None:
    frame = FRAME.assign(recording=RECORDING)
    votes = dg.Votes.from_classes(frame, n_classes=2, ids="recording")
    assert votes.equals(dg.Votes.from_classes(FRAME, n_classes=2, ids=RECORDING))
    with pytest.raises(dg.VoteError, match="found 'video' and 'lexicon', 'regex'"):
        dg.Votes.from_classes(FRAME, n_classes=2, ids="video")
    with pytest.raises(dg.VoteError, match="no columns with names"):
        dg.Votes.from_classes(MATRIX, n_classes=2, ids="video")


def test_unknown_labels_are_minus_one_in_her_coding() -> None:
    gold = np.array([0, 1, 2, -1, 2])
    found = dg.evaluate(np.array([0, 1, 1, 2, -1]), gold, classes={0: "no", 1: "maybe", 2: "yes"})
    assert (found.n_known, found.n_unknown, found.n_abstained) == (4, 1, 1)
    assert found.accuracy == 0.5
    with pytest.raises(dg.LabelError, match="or -1; found 3"):
        dg.evaluate(np.array([0, 1, 3]), np.array([0, 1, 2]), classes=[0, 1, 2])
