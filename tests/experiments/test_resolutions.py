"""Real votes at several resolutions: how a set is read, labelled with parts left out, and put into words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dugong.experiments import reproduce
from dugong.experiments.resolutions import SETS, WAYS, on_elements, read_voted_set, without_time
from dugong.tasks import Sequence, Window


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small set of the shape of `sed-speech`: frames of clips, tags of clips, and one window source."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(6, 10, 80)
    on = [np.repeat(rng.random(5) < 0.4, 2)[:length] & (rng.random() < 0.7) for length in lengths]
    gold = np.concatenate(on).astype(int)
    folder = tmp_path / "sed-speech"
    folder.mkdir()
    votes = np.where(rng.random((len(gold), 4)) < 0.75, gold[:, None], 1 - gold[:, None])
    votes[rng.random(votes.shape) < 0.2] = -1
    windows = [one[start : start + 4].any() for one in on for start in range(0, len(one), 4)]
    coarse = {"0": np.array([int(one.any()) for one in on]), "1": np.array(windows, dtype=int)}
    np.savez(folder / "votes.npz", votes=votes, lengths=lengths, gold=np.where(np.arange(len(gold)) == 3, -1, gold))
    np.savez(folder / "coarse.npz", **coarse)
    meta = {
        "classes": ["off", "on"],
        "sources": ["a", "b", "c", "d"],
        "coarse": [{"name": "tag", "level": "sequence", "link": "any"}, {"name": "near", "level": 4, "link": "any"}],
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    return tmp_path


def test_a_set_is_read_with_its_coarse_votes(data: Path) -> None:
    case = read_voted_set(data / "sed-speech")
    levels = {info.name: info.resolution for info in case.votes.sources}
    assert (levels["tag"], levels["near"]) == (Sequence("any"), Window(4, None, "any"))
    assert case.gold[3] == 0
    assert set(np.delete(case.gold, 3)) == {-1, 1}
    assert on_elements(case.votes).source_names == ("a", "b", "c", "d")
    alone = without_time(case.votes)
    assert set(alone.lengths) == {1}
    np.testing.assert_array_equal(alone.columns[2], case.votes.columns[2])


def test_every_way_is_scored_and_kept(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = reproduce("resolutions", data=data, output=tmp_path / "out")
    (table,) = made.tables
    found = {row["labels"]: row for row in table.rows if row["set"] == "sed-speech"}
    assert list(found) == list(WAYS)
    # Perfect tags and windows must help four sources that are right on three votes of four.
    assert float(found["`LabelModel()`"]["Brier"]) < float(found["without coarse sources"]["Brier"])
    assert "*sed-speech*: beside without coarse sources, `LabelModel()` is better in" in str(table)
    absent = [row for row in table.rows if row["set"] != "sed-speech"]
    assert len(absent) == len(SETS) - 1
    assert all("not measured: the real data must be in" in row["labels"] for row in absent)
    monkeypatch.setattr("dugong.experiments.resolutions.read_voted_set", None)
    assert str(reproduce("resolutions", data=data, output=tmp_path / "out")) == str(made)
