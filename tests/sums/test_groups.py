"""Groups by content: the same on any number of threads, for any order, and for lengths around a machine word."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.sums import assign_groups
from dugong.sums.groups import N_GROUPS
from dugong.votes import SourceInfo, Votes

SOURCES = tuple(SourceInfo(name=name) for name in "abc")


def some(n_sequences: int, lengths: np.ndarray) -> Votes:
    rng = np.random.default_rng(0)
    columns = tuple(rng.integers(-1, 2, int(lengths.sum())).astype(np.int8) for _ in SOURCES)
    assert len(lengths) == n_sequences
    return Votes(sources=SOURCES, columns=columns, lengths=lengths)


@pytest.mark.parametrize("lengths", [np.full(6000, 5), np.arange(6000) % 19])
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, lengths: np.ndarray) -> None:
    monkeypatch.setattr("dugong.sums.groups._WORTH_A_THREAD", 1)
    votes = some(6000, lengths)
    alone = assign_groups(votes, n_threads=1).base
    for n_threads in (2, 3):
        np.testing.assert_array_equal(assign_groups(votes, n_threads=n_threads).base, alone)
    assert set(np.unique(alone)) == set(range(1, N_GROUPS + 1))


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 23])
def test_groups_follow_the_content_wherever_it_stands(length: int) -> None:
    """Every vote counts, also the last one of the last sequence, and the order of sequences does not."""
    votes = some(400, np.full(400, length))
    order = np.random.default_rng(1).permutation(400)
    moved = tuple(column.reshape(400, length)[order].reshape(-1) for column in votes.columns)
    other = Votes(sources=SOURCES, columns=moved, lengths=votes.lengths)  # without ids, which would decide
    first, second = assign_groups(votes).base, assign_groups(other).base
    np.testing.assert_array_equal(np.bincount(first), np.bincount(second))
    contents = [tuple(np.concatenate([c[i * length : (i + 1) * length] for c in votes.columns])) for i in range(400)]
    for content in [c for c in set(contents) if contents.count(c) == 1][:50]:
        place = contents.index(content)
        assert first[place] == second[int(np.flatnonzero(order == place)[0])]


def test_one_vote_more_or_less_is_another_content() -> None:
    votes = some(2000, np.full(2000, 9))
    changed = [np.array(column) for column in votes.columns]
    last = changed[2][8::9]
    changed[2][8::9] = np.where(last == 1, -1, last + 1)
    other = Votes(sources=SOURCES, columns=tuple(changed), lengths=votes.lengths)
    same = assign_groups(votes).base == assign_groups(other).base
    assert same.mean() < 3 / N_GROUPS
