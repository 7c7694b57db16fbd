"""What users meet (METHOD 6): every case has a defined answer, and never a NaN."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dugong.exceptions import GraphError, LabelError, NotIdentifiableError
from dugong.fit.learned import Learned, learn
from dugong.infer.answers import posterior
from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.tasks import Element, Sequence, Window
from dugong.types import MISSING
from dugong.votes import Votes
from dugong.worlds import lopsided

ELEMENT = Element()


def probabilities(votes: Votes, learned: Learned | None = None) -> np.ndarray:
    """Return the labels of elements, checked to be distributions."""
    found = (learned or learn(votes)).probabilities(votes)[ELEMENT]
    assert found.shape == (votes.n_elements, votes.n_classes)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    return found


def random_votes(rng, n_sources: int, n_classes: int, lengths=(50, 0, 1, 149)) -> Votes:
    codes = rng.integers(-1, n_classes, (sum(lengths), n_sources))
    return Votes.from_classes(codes, n_classes=n_classes, abstain=-1, lengths=np.array(lengths))


@pytest.mark.parametrize(("n_sources", "n_classes"), [(1, 2), (2, 2), (1, 5), (2, 4), (3, 2), (5, 3)])
def test_few_sources_and_short_sequences(rng, n_sources, n_classes):
    votes = random_votes(rng, n_sources, n_classes)
    learned = learn(votes)
    probabilities(votes, learned)
    assert learned.trust == 0
    notes = {note.kind: note.text for note in learned.diagnostics.notes}
    assert ("cannot confirm each other (3 can)" in notes["trust"]) == (n_sources < 3)


def test_no_elements_at_all():
    votes = Votes.from_dense(np.zeros((0, 3), dtype=np.int8), lengths=[0, 0])
    assert probabilities(votes).shape == (0, 2)


def test_nobody_ever_votes():
    votes = Votes.from_classes(np.full((20, 4), -1), n_classes=3, abstain=-1, lengths=[12, 8])
    np.testing.assert_allclose(probabilities(votes), 1 / 3, atol=1e-9)


@pytest.mark.parametrize("n_unnamed", [1, 2])
def test_classes_that_nobody_names_could_change_places(rng, n_unnamed):
    """Six sources that obey a model of five classes, some of which they never name: two of those have no names."""
    labels = rng.integers(0, 5, 8_000)
    codes = np.where(rng.random((8_000, 6)) < 0.75, labels[:, np.newaxis], rng.integers(0, 5, (8_000, 6)))
    codes[codes >= 5 - n_unnamed] = -1
    learned = learn(Votes.from_classes(codes, n_classes=5, abstain=-1, lengths=[5] * 1_600))
    text = next(note.text for note in learned.diagnostics.notes if note.kind == "trust")
    assert ("labels of 2 classes that no source on elements tells from each other" in text) == (n_unnamed == 2)
    assert (learned.trust == 0) == (n_unnamed == 2)


@pytest.mark.parametrize("told", ["never occur", "background", "tags", "partial"])
def test_classes_that_nobody_names_do_no_harm_where_they_hold_nothing_or_are_told_apart(rng, told):
    """A class that exists in name alone must not cost the trust in a model that holds."""
    labels = np.array([[0, 0, 0], [1, 1, 1], [1, 2, 2]])[rng.integers(0, 3, 2_000)].ravel()
    codes = np.where(rng.random((6_000, 6)) < 0.75, labels[:, np.newaxis], rng.integers(0, 3, (6_000, 6)))
    given = {
        "never occur": {"n_classes": 6},
        "background": {"n_classes": 4, "background": 0},
        "tags": {"n_classes": 5, "classes": ["O", "B-x", "I-x", "B-y", "I-y"]},
        "partial": {"n_classes": 6, "partial": {7: (0, 1)}},
    }[told]
    codes = np.where(codes == 0, -1, codes) if told == "background" else codes
    votes = Votes.from_classes(codes, abstain=-1, lengths=[3] * 2_000, **given)
    learned = learn(votes)
    right = (probabilities(votes, learned).argmax(axis=1) == labels).mean()
    notes = " ".join(note.text for note in learned.diagnostics.notes)
    assert "tells from each other" not in notes
    assert right > 0.95


def test_one_source_follows_its_votes(rng):
    codes = rng.choice([-1, 1], (200, 1)).astype(np.int8)
    found = probabilities(Votes.from_dense(codes, lengths=[200]))
    assert np.array_equal(found[:, 1] > 0.5, codes[:, 0] > 0)


def test_one_class_absent(rng):
    codes = np.where(rng.random((300, 4)) < 0.8, 1, 2)
    votes = Votes.from_tasks({f"s{j}": codes[:, j].astype(np.int8) for j in range(4)}, lengths=[300], n_classes=4)
    found = probabilities(votes)
    # Nobody names them, but votes without any information say little against them either.
    assert found[:, 2:].max() < 0.1


def test_only_one_class_is_voted_and_nobody_abstains():
    votes = Votes.from_dense(np.ones((30, 4), dtype=np.int8), lengths=[10, 20])
    assert (probabilities(votes)[:, 1] > 0.5).all()


def test_all_abstain_rows_belong_to_the_background(rng):
    codes = np.where(rng.random((500, 4)) < 0.1, 1, 0).astype(np.int8)
    votes = Votes.from_dense(codes, lengths=[500], coding="paper")
    learned = learn(votes)
    found = probabilities(votes, learned)
    assert learned.diagnostics.learned["background"] == "-1"
    assert found[(codes == 0).all(axis=1), 0].min() > 0.6
    assert any(note.kind == "background" for note in learned.diagnostics.notes)


def test_all_abstain_rows_without_a_background_get_the_class_balance(rng):
    world = lopsided(8, seed=1)
    votes, _ = world.sample(400, rng=1)
    silent = [np.where(np.arange(votes.n_elements) % 5 == 4, np.int8(0), column) for column in votes.columns]
    found = probabilities(replace(votes, columns=tuple(silent)))
    assert 0.05 < found[4::5, 1].mean() < 0.6


def test_a_silent_source_changes_next_to_nothing():
    votes, _ = lopsided(6, seed=2).sample(600, rng=2)
    silent = np.zeros(votes.n_elements, dtype=np.int8)
    info = replace(votes.sources[0], name="silent")
    more = replace(votes, sources=(*votes.sources, info), columns=(*votes.columns, silent))
    np.testing.assert_allclose(probabilities(more), probabilities(votes), atol=2e-3)


def test_a_constant_source_is_harmless():
    world = lopsided(6, seed=3)
    votes, labels = world.sample(800, rng=3)
    truth = labels["element"] > 0
    constant = np.ones(votes.n_elements, dtype=np.int8)
    info = replace(votes.sources[0], name="constant")
    more = replace(votes, sources=(*votes.sources, info), columns=(*votes.columns, constant))
    without, with_it = (np.mean((probabilities(v)[:, 1] - truth) ** 2) for v in (votes, more))
    assert with_it < 1.05 * without


def test_five_copies_count_as_one(rng):
    once = rng.choice([-1, 0, 1], (300, 1)).astype(np.int8)
    votes = Votes.from_dense(np.repeat(once, 5, axis=1), lengths=[300])
    learned = learn(votes)
    probabilities(votes, learned)
    weights = learned.diagnostics.learned["copy_weights"]
    assert sum(weights.values()) < 1.5


def test_one_sided_sources(rng):
    truth = rng.random(2000) < 0.3
    hits = [(rng.random(2000) < np.where(truth, hit, miss)) for hit, miss in ((0.7, 0.1), (0.6, 0.05), (0.8, 0.2))]
    codes = np.stack(
        [*(h.astype(np.int8) for h in hits), -(rng.random(2000) < np.where(truth, 0.1, 0.7)).astype(np.int8)], axis=1
    )
    found = probabilities(Votes.from_dense(codes.astype(np.int8), lengths=[100] * 20))
    assert np.mean((found[:, 1] > 0.5) == truth) > 0.85


def test_missing_votes_are_no_evidence(rng):
    world = lopsided(6, seed=4)
    votes, _ = world.sample(800, rng=4)
    learned = learn(votes)
    columns = tuple(np.where(rng.random(len(c)) < 0.5, np.int8(MISSING), c) for c in votes.columns)
    probabilities(replace(votes, columns=columns), learned)
    nothing = replace(votes, columns=tuple(np.full(len(c), MISSING, dtype=np.int8) for c in votes.columns))
    found = probabilities(nothing, learned)
    chain = learned.prior.chain()
    expected = np.stack([chain.initial @ np.linalg.matrix_power(chain.transition, t) for t in range(5)])
    np.testing.assert_allclose(found[:5], expected, atol=1e-9)
    part = learned.probabilities(votes.select(sources=votes.source_names[:3]))[ELEMENT]
    assert np.isfinite(part).all()
    probabilities(replace(votes, columns=columns))


def test_underspecified_votes_narrow_the_classes(rng):
    truth = np.repeat(rng.integers(1, 4, 400), 3)
    sure = [np.where(rng.random(1200) < 0.7, truth, rng.integers(1, 4, 1200)) for _ in range(4)]
    loose = np.where(truth == 3, 3, 4)  # 4: one of the classes 1 and 2
    columns = {f"s{j}": one.astype(np.int8) for j, one in enumerate([*sure, loose])}
    votes = replace(Votes.from_tasks(columns, lengths=[1200], n_classes=4), n_classes=3, partial={4: (1, 2)})
    learned = learn(votes)
    found = probabilities(votes, learned)
    assert learned.accuracies["s4"].shape == (3, 5)
    assert np.mean(found.argmax(axis=1) + 1 == truth) > 0.85


def test_known_labels_are_kept(rng):
    votes, labels = lopsided(6, seed=5).sample(300, rng=5)
    known = np.where(rng.random(votes.n_elements) < 0.1, labels["element"], 0).astype(np.int8)
    learned = learn(votes, evidence=known)
    found = learned.probabilities(votes, (ELEMENT,), evidence=known)[ELEMENT]
    rows = known != 0
    np.testing.assert_allclose(found[rows, (known[rows] > 0).astype(int)], 1, atol=1e-9)
    two = votes.select(sources=votes.source_names[:2])
    robust = learn(two, evidence=known).probabilities(two, (ELEMENT,), evidence=known)[ELEMENT]
    np.testing.assert_allclose(robust[rows, (known[rows] > 0).astype(int)], 1, atol=1e-9)
    with pytest.raises(LabelError, match="every element"):
        learn(votes, evidence=known[:-1])


def test_coarse_sources_alone(rng):
    resolutions = {"w": Window(3, link="any"), "q": Sequence("majority")}
    columns = {"w": rng.choice([-1, 0, 1], 40).astype(np.int8), "q": rng.choice([-1, 1], 20).astype(np.int8)}
    votes = Votes.from_tasks(columns, lengths=[6] * 20, resolutions=resolutions)
    learned = learn(votes)
    probabilities(votes, learned)
    found = learned.probabilities(votes, votes.resolutions)
    for resolution in votes.resolutions:
        assert np.isfinite(found[resolution]).all()
        np.testing.assert_allclose(found[resolution].sum(axis=1), 1, atol=1e-9)


def test_votes_never_seen_while_fitting_say_nothing():
    votes, _ = lopsided(4, seed=6).sample(400, rng=6)
    columns = (np.minimum(votes.columns[0], 0).astype(np.int8), *votes.columns[1:])
    learned = learn(replace(votes, columns=columns))
    new = replace(votes, columns=(np.ones(votes.n_elements, dtype=np.int8), *votes.columns[1:]))
    asked = posterior(learned.law.exact, new, (ELEMENT,))[ELEMENT]
    missing = replace(new, columns=(np.full(votes.n_elements, MISSING, dtype=np.int8), *votes.columns[1:]))
    np.testing.assert_allclose(asked, posterior(learned.law.exact, missing, (ELEMENT,))[ELEMENT], atol=1e-6)


def test_what_cannot_be_done_is_said(rng):
    votes = random_votes(rng, 2, 2)
    with pytest.raises(NotIdentifiableError, match="at least 3 groups") as caught:
        LabelModel(dependencies=()).fit(votes)
    assert 'dependencies="learn"' in str(caught.value)
    LabelModel(dependencies=(), prior=Markov(positive=0.4, stay=0.7)).fit(votes)
    with pytest.raises(GraphError, match=r"shape \(2, 3\); found \(2, 2\)"):
        learn(votes, accuracies={"s0": np.eye(2)})


def test_ten_near_copies_leave_the_labels_honest(rng):
    truth = rng.random(6000) < 0.4
    codes = np.where(rng.random((6000, 5)) < 0.75, truth[:, np.newaxis], ~truth[:, np.newaxis])
    copies = np.where(rng.random((6000, 10)) < 0.97, codes[:, :1], ~codes[:, :1])
    votes = Votes.from_dense((np.hstack([codes, copies]) * 2 - 1).astype(np.int8), lengths=[10] * 600)
    found = probabilities(votes)[:, 1]
    few = probabilities(Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[10] * 600))[:, 1]
    assert np.mean((found > 0.5) == truth) > np.mean((few > 0.5) == truth) - 0.02
    for low in np.arange(0, 1, 0.2):
        inside = (found >= low) & (found < low + 0.2)
        if inside.sum() > 200:
            assert abs(found[inside].mean() - truth[inside].mean()) < 0.12


def test_lexicons_that_are_silent_on_most_elements(rng):
    """Two kinds of words among many others: what nobody speaks about is not what one of the lexicons looks for."""
    kind = rng.choice(3, 6000, p=[0.9, 0.06, 0.04])  # other words, words of the class, words of another kind
    codes = np.zeros((6000, 6), dtype=np.int8)
    for place in range(6):
        wanted, said = (1, 1) if place < 4 else (2, -1)
        codes[(kind == wanted) & (rng.random(6000) < 0.7), place] = said
    votes = Votes.from_dense(codes, lengths=[30] * 200)
    learned = learn(votes)
    assert learned.trust == 0  # a model is tested where sources speak, and that is on one element of ten
    assert np.mean((probabilities(votes, learned)[:, 1] > 0.5) == (kind == 1)) > 0.97


def test_three_sources_that_share_errors_are_not_taken_at_their_word(rng):
    """Some label explains any three sources: that they agree with it says nothing about the truth."""
    truth, shared = rng.random((2, 3000)) < 0.4
    followed = np.where(rng.random(3000) < 0.4, shared, truth)
    codes = np.where(rng.random((3000, 3)) < 0.9, followed[:, np.newaxis], ~followed[:, np.newaxis])
    votes = Votes.from_dense((codes * 2 - 1).astype(np.int8), lengths=[10] * 300)
    learned = learn(votes)
    assert learned.trust == 0
    found = probabilities(votes, learned)
    assert found.max() < 0.99  # right on four of five where all agree


def test_few_long_sequences_are_few_observations(rng):
    """Gains of neighbours go together: three stretches that happen to suit a model do not prove it."""
    from dugong.fit.learned.trust import _two_errors

    gains = np.repeat(rng.normal(size=30), 64)
    apart, together = _two_errors(gains, np.arange(len(gains))), _two_errors(gains, np.arange(len(gains)) // 64)
    assert 6 < together / apart < 10  # sqrt(64) = 8, and Student's law
    assert _two_errors(gains, np.zeros(len(gains), dtype=int)) == np.inf
