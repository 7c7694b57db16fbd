"""The real votes of ../shared/data load through the public constructors, and keep what is known about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dugong.tasks import Element
from dugong.votes import Votes, gold_at, implied_background, labels_from_classes

pytestmark = pytest.mark.data


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict]:
    with np.load(folder / "votes.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}, json.loads((folder / "meta.json").read_text())


def test_tennis(shared_data):
    data, meta = load(shared_data / "tennis")
    votes = Votes.from_classes(data["votes"], lengths=data["lengths"], sources=meta["sources"], classes=meta["classes"])
    assert votes.n_classes == 2
    assert (votes.n_sequences, votes.n_elements, votes.n_sources) == (2, 7705, 6)
    gold = labels_from_classes(data["gold"], 2)
    table = votes.summary(gold).to_dict()
    assert min(table["Coverage"]) == pytest.approx(0.12, abs=0.01)
    assert max(table["Coverage"]) == 1.0
    by_hand = [
        int(((data["votes"][:, j] == data["gold"]) & (data["gold"] >= 0) & (data["votes"][:, j] >= 0)).sum())
        for j in range(6)
    ]
    assert table["Correct"] == by_hand
    assert np.count_nonzero(gold_at(votes, gold, Element())) == 746


def test_tennis_in_the_order_of_flyingsquid(shared_data):
    data, meta = load(shared_data / "tennis")
    train = data["votes"][: data["lengths"][0]]
    signs = np.where(train == -1, 0, 2 * train.astype(int) - 1)
    n_rows = len(signs) // 3
    votes = Votes.from_flyingsquid(signs[: 3 * n_rows].reshape(n_rows, 18), n_tasks=3, sources=meta["sources"])
    assert np.array_equal(np.stack(votes.columns, axis=1), signs[: 3 * n_rows])


def test_sleep(shared_data, tmp_path):
    data, meta = load(shared_data / "sleep-dodh")
    votes = Votes.from_classes(
        data["votes"],
        lengths=data["lengths"],
        sources=meta["sources"],
        classes=meta["classes"],
        ids=meta["sequence_ids"],
    )
    assert (votes.n_sequences, votes.n_sources, votes.n_classes) == (25, 16, 5)
    assert (votes.lengths.min(), votes.lengths.max()) == (620, 1192)
    assert implied_background(votes) is None
    table = votes.summary(labels_from_classes(data["gold"], 5)).to_dict()
    assert table["Coverage"] == [1.0] * 16
    assert min(table["Emp. Acc."]) > 0.7
    for kind in ("parquet", "npz"):
        votes.write(tmp_path / f"votes.{kind}")
        assert Votes.read(tmp_path / f"votes.{kind}").equals(votes)
    again = Votes.from_long(
        votes.to_long(), votes.lengths, ids=votes.sequence_ids, sources=meta["sources"], classes=meta["classes"]
    )
    assert again.equals(votes)


def test_tagging(shared_data):
    data, meta = load(shared_data / "ner-bc5cdr")
    votes = Votes.from_classes(data["votes"], lengths=data["lengths"], sources=meta["sources"], classes=meta["classes"])
    assert (votes.n_sequences, votes.n_elements, votes.n_sources) == (1500, 326508, 30)
    # O is never voted for, so it is the background; 14 sources say nothing about the test abstracts.
    assert implied_background(votes) == 1
    test = votes[data["split"] == 2]
    silent = [problem.source for problem in test.summary().problems if problem.kind == "never-votes"]
    assert len(silent) == 14
    assert not set(silent) & set(meta["recommended_sources"])
    assert votes.covered().mean() == pytest.approx((data["votes"] >= 0).any(axis=1).mean(), rel=1e-12)


def test_actions_at_different_frame_rates(shared_data):
    meta = json.loads((shared_data / "salads-mid" / "meta.json").read_text())
    with np.load(shared_data / "salads-mid" / "predictions.npz", allow_pickle=False) as stored:
        frames = {name[:-2]: stored[name] for name in stored.files if name.endswith("/P")}
    # The duration of a video is not recorded: it is the unit of time, and the finest source sets the elements.
    rate = {
        video: max(len(frames[f"{video}/{source}"]) for source in meta["sources"]) for video in meta["sequence_ids"]
    }
    rows = {name: [] for name in ("sequence", "source", "start", "end", "vote")}
    for video in meta["sequence_ids"]:
        for source in meta["sources"]:
            classes = frames[f"{video}/{source}"]
            borders = np.arange(len(classes) + 1) / len(classes)
            rows["sequence"] += [video] * len(classes)
            rows["source"] += [source] * len(classes)
            rows["start"] += borders[:-1].tolist()
            rows["end"] += borders[1:].tolist()
            rows["vote"] += classes.tolist()
    votes = Votes.from_long(rows, unit="second", rate=rate, classes=range(18))
    assert (votes.n_sequences, votes.n_sources, votes.n_classes) == (50, 4, 18)
    assert votes.source_names == tuple(meta["sources"])
    assert votes.sequence_ids.tolist() == meta["sequence_ids"]
    assert votes.lengths.tolist() == list(rate.values())
    assert all((column != 0).all() for column in votes.columns)
    assert votes.time.rounding.n_moved > 0
    assert votes.time.rounding.largest <= 0.5 / min(rate.values()) + 1e-9
    finest = np.concatenate([frames[f"{video}/SVM"] for video in meta["sequence_ids"]])
    assert np.array_equal(votes.column("SVM"), finest + 1)
    for place, video in enumerate(meta["sequence_ids"]):
        mine = votes.column("tCNN")[votes.layout().rows(place)]
        theirs = frames[f"{video}/tCNN"]
        middle = (2 * np.arange(len(mine)) + 1) * len(theirs) // (2 * len(mine))
        assert np.array_equal(mine, theirs[middle] + 1)
