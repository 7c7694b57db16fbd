"""The EHR task: words, eleven vocabularies and a list of stopwords."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.baselines import DataProgramming, MajorityVote
from dugong.exceptions import LoaderError
from dugong.experiments.measure import scores_of
from dugong.experiments.recipe import PARTS, Size, TaskCase, TaskMaterial, real
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.ehr import AGAINST, VOCABULARIES, Text
from dugong.metrics import evaluate

RECIPE = find_recipe("ehr")
SIZE = Size(train=600, dev=100, test=30, small=True)


@pytest.fixture(scope="module")
def material() -> TaskMaterial:
    return RECIPE.generate(SIZE, 0, Path())


def votes_and_gold(material: TaskMaterial, names: list[str]) -> tuple[dg.Votes, np.ndarray]:
    votes = dg.apply(RECIPE.sources, {name: material.sequences[name] for name in names}, progress=False)
    return votes, np.concatenate([material.gold[name] for name in names])


def test_shapes_parts_and_balance(material: TaskMaterial) -> None:
    assert [len(material.ids(part)) for part in ("train", "dev", "test")] == [600, 100, 30]
    assert all(len(text) == len(material.gold[name]) for name, text in material.sequences.items())
    assert len(RECIPE.sources) == RECIPE.facts.sources[0]
    positive = np.mean(np.concatenate(list(material.gold.values())) > 0)
    assert positive == pytest.approx(RECIPE.facts.positive, abs=0.03)


def test_same_seed_same_data() -> None:
    one, again, other = (RECIPE.generate(Size(train=3, dev=1, test=1), seed, Path()) for seed in (1, 1, 2))
    assert one.sequences["train-0"].words == again.sequences["train-0"].words
    assert np.array_equal(one.sequences["train-0"].entries, again.sequences["train-0"].entries)
    assert one.sequences["train-0"].words != other.sequences["train-0"].words


def test_the_same_words_get_the_same_votes(material: TaskMaterial) -> None:
    """Errors belong to words, not to luck: a single word is listed the same way wherever it stands alone."""
    said: dict[str, set[int]] = {}
    column = list(VOCABULARIES).index("chemicals")
    for text in material.sequences.values():
        for word, entry in zip(text.words, text.entries[:, column].tolist(), strict=True):
            said.setdefault(word, set()).add(entry)
    assert {frozenset(entries) for entries in said.values()} == {frozenset({0}), frozenset({-1})}


def test_a_slice_of_a_text_is_a_text() -> None:
    text = Text(words=("of", "Pain"), entries=np.zeros((2, len(VOCABULARIES)), dtype=np.int8))
    assert text[1].words == text[1:].words == ("Pain",)
    stopwords = RECIPE.sources[-1]
    assert stopwords(text).tolist() == [-1, 0]


def test_the_model_is_better_than_the_vote(material: TaskMaterial) -> None:
    votes, gold = votes_and_gold(material, material.ids("train"))
    for row in votes.summary(gold=gold).sources:
        assert 0 < row.coverage < 0.5
        assert row.accuracy > 0.4
        assert row.polarity == ((-1,) if row.name in (*AGAINST, "stopwords") else (1,))
    prior = RECIPE.user_prior([material.gold[name] for name in material.ids("dev")])
    model = dg.LabelModel(prior=prior, dependencies=RECIPE.dependencies).fit(votes)
    vote = dg.MajorityVote().fit(votes)
    assert evaluate(model.predict_proba(votes), gold).f1 > evaluate(vote.predict_proba(votes), gold).f1 + 0.03


def test_absent_abstracts_are_named(tmp_path: Path) -> None:
    assert RECIPE.load is not None
    with pytest.raises(LoaderError, match=r"votes\.npz and meta\.json and text\.txt"):
        RECIPE.load(tmp_path)


@pytest.mark.data
def test_real_abstracts_keep_their_parts(shared_data: Path) -> None:
    assert RECIPE.load is not None
    material = RECIPE.load(shared_data)
    assert sum(map(len, material.sequences.values())) == 326_508
    assert all(len(text) == len(material.gold[name]) for name, text in material.sequences.items())
    assert [len(material.ids(part)) for part in ("train", "dev", "test")] == [500, 500, 500]
    votes, gold = votes_and_gold(material, material.ids("dev")[:250])
    assert (gold > 0).mean() == pytest.approx(0.063, abs=0.01)
    prior = RECIPE.user_prior([material.gold[name] for name in material.ids("dev")])
    declared, none = (dg.LabelModel(prior=prior, dependencies=given) for given in (RECIPE.dependencies, ()))
    # Lists of what is no disease exclude each other; who does not say so loses nearly everything.
    assert evaluate(declared.fit(votes).predict_proba(votes), gold).f1 > 0.75
    assert evaluate(none.fit(votes).predict_proba(votes), gold).f1 < 0.5


@pytest.fixture(scope="module")
def abstracts(shared_data: Path) -> TaskCase:
    return real(RECIPE, shared_data, quick=True)


@pytest.mark.data
def test_the_vote_on_real_abstracts_is_at_the_ceiling(abstracts: TaskCase) -> None:
    """A table of all combinations of votes that is fitted with gold labels is hardly better."""
    said = {part: [tuple(row) for row in np.stack(abstracts.votes(part).columns, axis=1).tolist()] for part in PARTS}
    counts = Counter(said["train"])
    positive = Counter(row for row, label in zip(said["train"], abstracts.gold("train"), strict=True) if label == 1)
    share = np.array([positive[row] / max(counts[row], 1) for row in said["test"]])
    ceiling, vote = (
        scores_of(labels, abstracts.gold("test"))["f1"]
        for labels in (
            np.column_stack([1 - share, share]),
            MajorityVote().fit(abstracts.votes("train")).predict_proba(abstracts.votes("test")),
        )
    )
    assert vote > 0.82
    assert ceiling < vote + 0.003


@pytest.mark.data
def test_data_programming_turns_a_source_that_meets_nobody(abstracts: TaskCase) -> None:
    """Stopwords hardly meet another source: the sign of their weight depends on the part, and F1 with it."""
    found = {}
    for part in ("train", "dev"):
        votes = abstracts.votes(part)
        spoken = np.stack(votes.columns, axis=1) != 0
        assert spoken[:, -1].mean() > 0.4
        assert (spoken[:, -1] & spoken[:, :-1].any(axis=1)).mean() < 0.002
        model = DataProgramming(seed=0).fit(votes)
        found[part] = scores_of(model.predict_proba(abstracts.votes("test")), abstracts.gold("test"))["f1"]
    assert found["train"] > 0.8
    assert found["dev"] < 0.3
