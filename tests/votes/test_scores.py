"""Scores beside votes: constructors, files, parts, and functions that return probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import SourceError, VoteError

NAN = float("nan")


@pytest.fixture
def votes():
    scores = {"detector": [0.9, 0.2, NAN, 0.5], "whole": [[0.3, 0.7], [NAN, NAN]]}
    return dg.Votes.from_scores(
        scores, [3, 1], votes={"rule": [1, 0, -1, 1]}, resolutions={"whole": dg.Sequence()}, ids=["a", "b"]
    )


def test_scores_bring_the_votes_that_they_mean(votes):
    assert votes.column("detector").tolist() == [1, -1, 0, 0]
    assert votes.column("whole").tolist() == [1, 0]
    assert set(votes.scores) == {"detector", "whole"}
    assert votes.scores["detector"].dtype == np.float32


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_both_files_keep_them(votes, tmp_path, suffix):
    votes.write(tmp_path / f"votes{suffix}")
    again = dg.Votes.read(tmp_path / f"votes{suffix}")
    assert again.equals(votes)
    np.testing.assert_array_equal(again.scores["detector"], votes.scores["detector"])


def test_parts_and_joins_keep_them(votes):
    assert votes[1].scores["detector"].shape == (1, 2)
    assert set(votes.select(sources=["rule", "whole"]).scores) == {"whole"}
    joined = dg.Votes.concat([votes[[1]], votes[[0]]])
    np.testing.assert_allclose(joined.scores["detector"][:, 1], [0.5, 0.9, 0.2, NAN], rtol=1e-6)
    without = dg.Votes.from_tasks({"detector": [1, 1]}, [2], ids=["c"])
    both = dg.Votes.concat([votes, without])
    assert np.isnan(both.scores["detector"][-2:]).all()


def test_what_is_no_probability_is_refused():
    with pytest.raises(VoteError, match=r"scores must be probabilities.*first at row 1, source 'd'.*\n.*Squash"):
        dg.Votes.from_scores({"d": [0.2, 3.5]}, [2])
    with pytest.raises(VoteError, match=r"'d' must have the shape \(n_tasks, 3\); found \(2,\)"):
        dg.Votes.from_scores({"d": [0.2, 0.5]}, [2], n_classes=3)


def test_the_summary_names_soft_sources_and_does_not_call_them_idle(votes):
    summary = votes.summary()
    assert summary.to_dict()["Soft"] == [True, True, False]
    detector = dg.Votes.from_scores({"detector": [0.01, 0.2, 0.4]}, [3])
    assert not [one for one in detector.summary().problems if one.kind == "always-same"]


@dg.source(soft=True)
def loudness(sample):
    return None if sample < 0 else min(sample, 1.0)


@dg.source(soft=True, vectorized=True, resolution=dg.Window(2))
def in_pairs(sequence, tasks):
    return [max(0.0, *sequence[a:b]) for a, b in zip(tasks.starts, tasks.stops, strict=True)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_soft_sources_return_probabilities(n_jobs):
    found = dg.apply([loudness, in_pairs], {"a": [0.1, 0.9, -1.0], "b": [0.75]}, progress=False, n_jobs=n_jobs)
    np.testing.assert_allclose(found.scores["loudness"][:, 1], [0.1, 0.9, NAN, 0.75], rtol=1e-6)
    assert found.column("loudness").tolist() == [-1, 1, 0, 1]
    assert found.column("in_pairs").tolist()[0] == 1


def test_soft_sources_with_classes_faults_and_wrong_values():
    @dg.source(soft=True)
    def three(sample):
        return [0.2, 0.5, 0.3]

    @dg.source(soft=True)
    def two(sample):
        return (0.25, 0.75)

    @dg.source(soft=True)
    def wrong(sample):
        return sample

    @dg.source(soft=True)
    def broken(sample):
        raise RuntimeError("no sound")

    assert dg.apply([three], {"a": [1, 2]}, n_classes=3, progress=False).column("three").tolist() == [2, 2]
    assert dg.apply([two], {"a": [1]}, progress=False).scores["two"].tolist() == [[0.25, 0.75]]
    for value in (3.5, True, "loud", [0.2, 0.9]):
        with pytest.raises(SourceError, match=r"'wrong' must return P\(positive\), 2 probabilities.*None"):
            dg.apply([wrong], {"a": [value]}, progress=False)
    found = dg.apply([broken], {"a": [1, 2]}, progress=False, on_fault="abstain")
    assert found.column("broken").tolist() == [0, 0]
    assert np.isnan(found.scores["broken"]).all()


def test_shards_keep_scores_and_learn_from_them(tmp_path):
    from dugong.shards import apply_shards, fit_shards

    rng = np.random.default_rng(1)
    data = {f"v{k}": rng.random(20).tolist() for k in range(30)}

    @dg.source
    def high(sample):
        return 1 if sample > 0.6 else -1

    @dg.source
    def higher(sample):
        return 1 if sample > 0.8 else 0

    shards = apply_shards([loudness, high, higher], data, tmp_path / "votes", shard_size=10, progress=False)
    whole = dg.apply([loudness, high, higher], data, progress=False)
    assert dg.Votes.concat([shard.read() for shard in shards.shards.shards]).equals(whole)
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.3, stay=0.3), dependencies=())
    assert [one.source for one in fit_shards(model, shards.shards).law_.soft] == ["loudness"]
