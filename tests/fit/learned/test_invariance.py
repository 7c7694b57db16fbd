"""Order is no information: sources and sequences may come in any order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import VoteError
from dugong.fit.learned import case, choose_part, learn
from dugong.fit.learned.families import content_order
from dugong.fit.learned.folded import fold
from dugong.fit.learned.panel import Coding, Reader
from dugong.fit.learned.sample import read_sample, thin
from dugong.tasks import Element
from dugong.votes import Votes
from dugong.worlds import lopsided, multiresolution, self_dependent
from learned_cases import REAL, real_votes

ELEMENT = Element()


def labels_of(votes: Votes) -> np.ndarray:
    return learn(votes).probabilities(votes)[ELEMENT]


def check_orders(votes: Votes, rng: np.random.Generator) -> None:
    """Shuffle sources (with and without their names) and sequences."""
    first = labels_of(votes)
    order = rng.permutation(votes.n_sources)
    shuffled = votes.select(sources=[votes.source_names[place] for place in order])
    np.testing.assert_allclose(labels_of(shuffled), first, atol=1e-9)
    names = (replace(info, name=f"x{place}") for place, info in enumerate(shuffled.sources))
    np.testing.assert_allclose(labels_of(replace(shuffled, sources=tuple(names))), first, atol=1e-9)
    sequences = rng.permutation(votes.n_sequences)
    rows = np.concatenate([np.arange(votes.n_elements)[votes.layout().rows(int(place))] for place in sequences])
    np.testing.assert_allclose(labels_of(votes[sequences]), first[rows], atol=1e-9)


@pytest.mark.parametrize("make", [lopsided, multiresolution, self_dependent], ids=lambda make: make.__name__)
def test_worlds(make, rng):
    check_orders(make(seed=1).sample(800, rng=1)[0], rng)


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in REAL if name != "ner-bc5cdr"])
def test_real_votes(name, shared_data, rng):
    check_orders(real_votes(shared_data, name).votes, rng)


def test_the_sample_depends_on_content_alone(rng):
    votes, _ = lopsided(6, seed=2).sample(3000, rng=2)
    sequences, sources = rng.permutation(votes.n_sequences), rng.permutation(votes.n_sources)
    shuffled = votes[sequences].select(sources=[votes.source_names[place] for place in sources])

    def sampled(given: Votes) -> list[bytes]:
        panel, _ = read_sample(Reader(given, given.sources, Coding.of(given)), most=2500)
        panel = panel.columns(content_order(fold(panel), given.source_names))
        starts = np.flatnonzero(panel.starts)
        return sorted(part.tobytes() for part in np.split(panel.codes, starts[1:]))

    first = sampled(votes)
    assert 350 < len(first) < 700
    assert sampled(shuffled) == first


def test_the_search_looks_at_pieces_of_a_large_panel(rng):
    votes = Votes.from_dense(rng.choice([-1, 0, 1], (20_000, 3)).astype(np.int8), lengths=[4] * 5000)
    panel, _ = read_sample(Reader(votes, votes.sources, Coding.of(votes)))
    two = (panel.codes < 2).sum(axis=1) > 1
    folded = fold(panel)
    assert thin(folded) is folded
    part = thin(folded, most=2000).panel
    assert 1500 < ((part.codes < 2).sum(axis=1) > 1).sum() < 2500 < two.sum()
    assert (np.diff(np.flatnonzero(part.starts)) == 4).all()


def test_long_sequences_are_sampled_in_pieces(rng):
    votes = Votes.from_dense(rng.choice([-1, 0, 1], (60_000, 3)).astype(np.int8), lengths=[60_000])
    panel, _ = read_sample(Reader(votes, votes.sources, Coding.of(votes)), most=20_000)
    assert 4096 <= len(panel.codes) < 50_000
    assert np.diff(np.flatnonzero(panel.starts)).max() <= 4096


def test_departures_from_the_vote_are_counted_on_the_sample_that_was_learned_from(monkeypatch):
    """A trusted model of a few long sequences: its labels and the vote are compared on the same elements."""
    monkeypatch.setattr(case, "read_sample", partial(read_sample, most=12_000))
    votes, _ = replace(lopsided(6, seed=5), lengths=10_000).sample(3, rng=3)
    model = dg.LabelModel().fit(votes)
    assert model.diagnostics_.learned["trust"] > 0.98
    ours, theirs = (one.fit(votes).predict_proba(votes).argmax(axis=1) for one in (model, dg.MajorityVote()))
    heard = np.stack(votes.columns).any(axis=0)
    assert abs(model.diagnostics_.notes[0].size - (ours != theirs)[heard].mean()) < 0.02


def test_labels_of_a_sequence_do_not_depend_on_its_company():
    votes, _ = multiresolution(seed=3).sample(600, rng=3)
    learned = learn(votes)
    whole = learned.probabilities(votes, votes.resolutions)
    part = learned.probabilities(votes[100:200], votes.resolutions)
    for resolution in votes.resolutions:
        offsets = votes.layout(resolution).offsets
        np.testing.assert_allclose(part[resolution], whole[resolution][offsets[100] : offsets[200]], atol=1e-12)


# --- the part of very many votes -----------------------------------------------------------------------------------
def test_few_votes_are_used_whole():
    votes, _ = lopsided(4, seed=1).sample(300, rng=1)
    part = choose_part(votes)
    assert part.votes is votes


def test_the_part_depends_on_content_alone(rng):
    votes, _ = multiresolution(seed=2).sample(1600, rng=2)
    sequences, sources = rng.permutation(votes.n_sequences), rng.permutation(votes.n_sources)
    shuffled = votes[sequences].select(sources=[votes.source_names[place] for place in sources])

    def contents(given: Votes) -> list[bytes]:
        found = choose_part(given, most=2600).votes.select(sources=votes.source_names)
        assert 1700 < found.n_elements < 2300
        return sorted(b"".join(column.tobytes() for column in found[place].columns) for place in range(len(found.ids)))

    votes, shuffled = (replace(one, ids=np.arange(one.n_sequences)) for one in (votes, shuffled))
    assert contents(shuffled) == contents(votes)


def test_the_part_of_one_content_is_a_share_of_it():
    votes = Votes.from_dense(np.ones((3000, 2), dtype=np.int8), lengths=[1] * 3000)
    assert 290 < choose_part(votes, most=300).votes.n_sequences < 310


def test_the_part_keeps_known_labels_and_rare_votes():
    codes = np.ones((4000, 3), dtype=np.int8)
    codes[1234, 0], codes[777, 2] = -1, 0
    votes = Votes.from_dense(codes, lengths=[1] * 4000)
    known = np.zeros(4000, dtype=np.int8)
    known[[5, 3999]] = 1, -1
    part = choose_part(votes, known, groups=[f"g{place}" for place in range(4000)], most=400)
    assert {"g5", "g3999", "g1234", "g777"} <= set(part.groups)
    assert part.evidence.tolist().count(1) == 1
    assert part.evidence.tolist().count(-1) == 1
    assert len(part.groups) == part.votes.n_sequences == len(part.evidence) < 500
    with pytest.raises(VoteError, match="one group per sequence"):
        choose_part(votes, groups=["a"])


def test_labels_learned_from_a_part_are_as_good(monkeypatch):
    votes, labels = lopsided(8, seed=1).sample(8000, rng=1)
    truth = labels["element"] > 0
    whole = dg.LabelModel().fit(votes)
    monkeypatch.setattr(choose_part, "__defaults__", (None, None, 10_000))
    part = dg.LabelModel().fit(votes)
    first, second = (np.mean((model.predict_proba(votes)[:, 1] - truth) ** 2) for model in (whole, part))
    assert first != second
    assert second < 1.02 * first
