"""Groups whose tables differ: each its own law, leaning on the pooled one as far as groups are alike."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet
import pytest

import dugong as dg
from dugong.exceptions import GraphError, VoteError
from dugong.fit import fit
from dugong.fit.groups import concentrations
from dugong.infer.answers import posterior
from dugong.law import Law
from dugong.shards import VoteShards, fit_shards, label_shards
from dugong.tasks import Element
from dugong.votes.concat import concat
from dugong.worlds import Block, World, accurate, confusion

PRIOR = dg.priors.Markov(positive=0.3, stay=0.8)
SETTINGS = {
    "prior given": {"prior": PRIOR, "dependencies": ()},
    "em": {"prior": PRIOR, "dependencies": (), "estimator": "em"},
    "prior learned": {"dependencies": ()},
    "defaults": {},
}


def patients(seed, n=300, length=8, differ=True, prior=PRIOR):
    """Votes of four patients, truth, probabilities of who knows everything, and whose sequences these are."""
    rng = np.random.default_rng(seed)
    same = [accurate(*rng.uniform(0.55, 0.95, 2), *rng.uniform(0, 0.4, 2)) for _ in range(5)]
    parts, gold, best, groups = [], [], [], []
    for name in "abcd":
        own = [accurate(*rng.uniform(0.55, 0.95, 2), *rng.uniform(0, 0.4, 2)) for _ in range(5)] if differ else same
        world = World(prior=prior, blocks=tuple(Block(names=(f"s{j}",), table=t) for j, t in enumerate(own)))
        votes, truth = world.sample(n, length, rng=rng)
        parts.append(votes)
        gold.append(truth["element"] > 0)
        best.append(posterior(Law(parameters=world.parameters(), prior=prior), votes)[Element()][:, 1])
        groups += [name] * n
    return concat(parts, keys=list("abcd")), np.concatenate(gold), np.concatenate(best), groups


def brier(probabilities, gold):
    return float(((probabilities - gold) ** 2).mean())


@pytest.mark.parametrize("name", SETTINGS)
def test_four_patients_whose_tables_differ(name) -> None:
    ratios = []
    for seed in range(1 if name == "defaults" else 2):
        votes, gold, best, groups = patients(seed)
        models = [
            dg.LabelModel(**SETTINGS[name], sharing=sharing).fit(votes, groups=groups) for sharing in ("tied", "group")
        ]
        found = [model.predict_proba(votes, groups=groups)[:, 1] for model in models]
        ratios.append([brier(one, gold) / brier(best, gold) for one in found])
    pooled, grouped = np.mean(ratios, axis=0)
    assert grouped < (1.06 if name == "defaults" else 1.03)
    assert pooled > 1.15


def test_groups_that_are_alike_have_the_pooled_tables() -> None:
    votes, gold, best, groups = patients(3, differ=False)
    model = dg.LabelModel(**SETTINGS["prior given"], sharing="group").fit(votes, groups=groups)
    for law in model.law_.groups.values():
        for factor in law.parameters.factors:
            np.testing.assert_allclose(factor.table, model.law_.parameters[factor.source].table, rtol=0, atol=0.05)
    assert brier(model.predict_proba(votes, groups=groups)[:, 1], gold) / brier(best, gold) < 1.02


@pytest.mark.parametrize("name", SETTINGS)
def test_a_group_without_positives_does_not_invent_them(name) -> None:
    """One patient never freezes: labels say so no less than those of the pooled model do."""
    votes, gold, _, groups = patients(5, n=200)
    none = patients(6, n=100, prior=dg.priors.Markov(positive=1e-9, stay=0.5))[0][:100]
    votes, groups = concat([votes, none], keys=["some", "none"]), groups + ["none"] * none.n_sequences
    gold = np.concatenate([gold, np.zeros(none.n_elements, dtype=bool)])
    healthy = np.repeat(np.array(groups) == "none", votes.lengths)
    tied, grouped = (
        dg.LabelModel(**SETTINGS[name], sharing=sharing).fit(votes, groups=groups).predict_proba(votes, groups=groups)
        for sharing in ("tied", "group")
    )
    assert grouped[healthy, 1].mean() < tied[healthy, 1].mean() + 0.02
    assert (grouped[healthy, 1] > 0.5).mean() < (tied[healthy, 1] > 0.5).mean() + 0.02


def test_the_data_decide_how_far_tables_lean() -> None:
    """Rows that are drawn around a mean with so many votes' worth give about that number back."""
    rng = np.random.default_rng(0)
    mean = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    for truth in (10, 100):
        rows = np.stack([rng.dirichlet(truth * row, 200) for row in mean], axis=1)
        votes = np.array([[rng.multinomial(500, row) for row in group] for group in rows], dtype=float)
        assert (np.abs(np.log(concentrations(votes, mean) / truth)) < 0.3).all()
    alike = np.stack([rng.multinomial(500, row, 50) for row in mean], axis=1).astype(float)
    assert (concentrations(alike, mean) > 1000).all()


def test_every_verb_knows_groups_and_unknown_ones_get_the_pooled_tables(tmp_path) -> None:
    votes, _, _, groups = patients(7, n=20)
    model = dg.LabelModel(**SETTINGS["prior given"], sharing="group").fit(votes, groups=groups)
    pooled, own = model.predict_proba(votes), model.predict_proba(votes, groups=groups)
    assert np.abs(pooled - own).max() > 0.05
    np.testing.assert_array_equal(model.predict_proba(votes, groups=["nobody"] * votes.n_sequences), pooled)
    mixed = np.where(np.arange(votes.n_sequences) % 2, groups, "nobody")
    chosen = np.repeat(np.arange(votes.n_sequences) % 2 == 1, votes.lengths)[:, np.newaxis]
    np.testing.assert_array_equal(model.predict_proba(votes, groups=mixed), np.where(chosen, own, pooled))
    # The group may also be a part of the votes, which keep it when some of them are chosen.
    some = votes.in_groups(groups)[np.array([70, 3])]
    np.testing.assert_allclose(model.predict_proba(some), own.reshape(-1, 8, 2)[[70, 3]].reshape(-1, 2), rtol=1e-12)
    assert (model.predict(votes, groups=groups) == np.where(own[:, 1] > 0.5, 1, -1)).all()
    table = model.labels(votes, groups=groups).table
    np.testing.assert_allclose(table["p_1" if "p_1" in table.column_names else table.column_names[-2]], own[:, 1])
    assert (model.decode(votes, groups=groups) != model.decode(votes)).any()
    assert model.sample(votes, 3, groups=groups).shape == (3, votes.n_elements)
    assert model.log_likelihood(votes, groups=groups).sum() > model.log_likelihood(votes).sum()
    explained = model.explain(votes, sequence=45, task=2, groups=groups)
    np.testing.assert_allclose(explained.probability, own[45 * 8 + 2, 1], rtol=1e-9)
    assert model.report(votes, groups=groups, n_sequences=2).versus
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(votes, groups=groups), own)
    assert again.law_.fingerprint == model.law_.fingerprint


@pytest.mark.parametrize("name", ["prior given", "em", "prior learned"])
def test_shards_and_memory_give_the_same_groups(name, tmp_path) -> None:
    votes, _, _, groups = patients(8, n=30, length=5)
    members = dict(zip(map(str, votes.sequence_ids.tolist()), groups, strict=True))
    pieces = [votes[np.arange(start, votes.n_sequences, 3)] for start in range(3)]
    # A shard in which one group has nothing at all.
    pieces[0] = pieces[0][np.flatnonzero([members[str(one)] != "b" for one in pieces[0].sequence_ids.tolist()])]
    shards = VoteShards.write(pieces, tmp_path / "votes")
    whole = concat(pieces)
    settings = {**SETTINGS[name], "sharing": "group"}
    streamed = fit_shards(dg.LabelModel(**settings), shards, groups=members)
    own = [members[str(one)] for one in whole.sequence_ids.tolist()]
    direct = dg.LabelModel(**settings).fit(whole, groups=own)
    for group, law in direct.law_.groups.items():
        for factor in law.parameters.factors:
            np.testing.assert_allclose(
                streamed.law_.groups[group].parameters[factor.source].table, factor.table, rtol=0, atol=1e-8
            )
    done = label_shards(streamed, shards, tmp_path / "labels", groups=members)
    assert done.n_rows == whole.n_elements


def test_more_than_two_classes() -> None:
    rng = np.random.default_rng(2)
    chain = dg.priors.Markov(initial=[0.5, 0.3, 0.2], transition=[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    parts, gold, groups = [], [], []
    for name in "ab":
        blocks = [Block(names=(f"s{j}",), table=confusion(3, rng.uniform(0.4, 0.95, 3), 0.1)) for j in range(4)]
        votes, truth = World(prior=chain, blocks=tuple(blocks)).sample(200, 6, rng=rng)
        parts.append(votes)
        gold.append(truth["element"])
        groups += [name] * 200
    votes, truth = concat(parts, keys=list("ab")), np.concatenate(gold)
    scores = [
        dg.LabelModel(prior=chain, dependencies=(), sharing=sharing)
        .fit(votes, groups=groups)
        .score(votes, truth, groups=groups)
        for sharing in ("tied", "group")
    ]
    assert scores[1] > scores[0]


def test_on_the_command_line(tmp_path, cli) -> None:
    votes, _, _, groups = patients(9, n=20)
    votes.write(tmp_path / "votes.parquet")
    model, labels, page = (str(tmp_path / name) for name in ("model.json", "labels.parquet", "report.txt"))
    common = ["--groups", "^([a-d])"]
    cli("fit", str(tmp_path / "votes.parquet"), "-o", model, "--sharing", "group", *common)
    cli("label", model, str(tmp_path / "votes.parquet"), "-o", labels, *common)
    cli("report", model, str(tmp_path / "votes.parquet"), "-o", page, *common)
    fitted = dg.LabelModel.load(model)
    assert sorted(fitted.law_.groups) == list("abcd")
    found = pyarrow.parquet.read_table(labels)
    expected = fitted.labels(votes, groups=groups).table
    assert found.equals(expected)


def test_every_group_is_learned_once_and_few_votes_take_the_exponents_of_all(monkeypatch) -> None:
    """Tables of their own on little data do not cost labels that are worse than the pooled ones."""
    learn, ratios = fit.learn, []
    for seed in (0, 2):
        votes, gold, best, groups = patients(seed, n=20, length=30)
        seen: list[int] = []
        monkeypatch.setattr(
            fit, "learn", lambda own, seen=seen, **rest: seen.append(own.n_sequences) or learn(own, **rest)
        )
        model = dg.LabelModel(sharing="group").fit(votes, groups=groups)
        assert sorted(seen) == [20, 20, 20, 20, 80]
        pooled, own = model.predict_proba(votes)[:, 1], model.predict_proba(votes, groups=groups)[:, 1]
        ratios.append([brier(one, gold) / brier(best, gold) for one in (pooled, own)])
    pooled, own = np.mean(ratios, axis=0)
    assert own < pooled * 1.02


def test_what_cannot_be() -> None:
    votes, _, _, groups = patients(1, n=3)
    with pytest.raises(GraphError, match="needs to know which sequences belong together"):
        dg.LabelModel(sharing="group").fit(votes)
    with pytest.raises(VoteError, match="one group per sequence"):
        dg.LabelModel(sharing="group").fit(votes, groups=groups[1:])
    with pytest.raises(GraphError, match="nor tables by group"):
        dg.LabelModel(sharing="group", prior=PRIOR, dependencies=()).partial_fit(votes, groups)
