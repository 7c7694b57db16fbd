"""The Gait task: accelerometers, five sources, a window of context for the end model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError
from dugong.experiments.recipe import Size, TaskMaterial
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.gait import calibrated
from dugong.metrics import evaluate

RECIPE = find_recipe("gait")
SIZE = Size(train=300, dev=60, test=30, small=True)


@pytest.fixture(scope="module")
def material() -> TaskMaterial:
    return RECIPE.generate(SIZE, 0, Path())


def votes_and_gold(material: TaskMaterial, names: list[str]) -> tuple[dg.Votes, np.ndarray]:
    votes = dg.apply(RECIPE.sources, {name: material.sequences[name] for name in names}, progress=False)
    return votes, np.concatenate([material.gold[name] for name in names])


def test_shapes_parts_and_balance(material: TaskMaterial) -> None:
    assert [len(material.ids(part)) for part in ("train", "dev", "test")] == [300, 60, 30]
    assert {sequence.shape for sequence in material.sequences.values()} == {(5, 64, 9)}
    groups = {part: {material.groups[name] for name in material.ids(part)} for part in ("train", "test")}
    assert not groups["train"] & groups["test"]
    positive = np.mean(np.concatenate(list(material.gold.values())) > 0)
    assert positive == pytest.approx(RECIPE.facts.positive, abs=0.06)


def test_same_seed_same_data() -> None:
    one, again, other = (RECIPE.generate(Size(train=3, dev=1, test=1), seed, Path()) for seed in (1, 1, 2))
    name = one.ids("train")[0]
    assert np.array_equal(one.sequences[name], again.sequences[name])
    assert not np.array_equal(one.sequences[name], other.sequences[name])


def test_sources_are_better_than_chance_and_the_model_better_than_the_vote(material: TaskMaterial) -> None:
    votes, gold = votes_and_gold(material, material.ids("train"))
    assert [source.resolution for source in RECIPE.sources].count(dg.Element()) == RECIPE.facts.sources[0]
    for row in votes.summary(gold=gold).sources:
        assert row.coverage > 0.5
        assert row.accuracy > 0.6
    prior = RECIPE.user_prior([material.gold[name] for name in material.ids("dev")])
    model = dg.LabelModel(prior=prior, dependencies=RECIPE.dependencies).fit(votes)
    vote = dg.MajorityVote().fit(votes)
    assert evaluate(model.predict_proba(votes), gold).f1 > evaluate(vote.predict_proba(votes), gold).f1
    assert evaluate(model.predict_proba(votes), gold).brier < evaluate(vote.predict_proba(votes), gold).brier


def test_inputs_hold_three_seconds_before_and_one_after(material: TaskMaterial) -> None:
    sequence = material.sequences[material.ids("dev")[0]]
    assert RECIPE.end_model is not None
    full, small = RECIPE.end_model.inputs(sequence, False), RECIPE.end_model.inputs(sequence, True)
    assert full.shape == (5, 5 * 64, 9)
    assert small.shape == (5, 5 * 4, 18)
    assert np.allclose(full[3, 64:128], full[4, :64])
    assert not full[0, : 3 * 64].any()  # nothing lies before the first second
    assert not full[4, 4 * 64 :].any()


def test_units_are_those_of_the_patient_and_a_dead_sensor_is_not_asked(rng: np.random.Generator) -> None:
    sequence = rng.normal(0, 100, (20, 64, 9)).astype(np.int16)
    sequence[..., 3:6] = 0
    both = calibrated({"a": sequence, "b": 3 * sequence}, {"a": "p", "b": "q"})
    assert np.allclose(both["a"], both["b"], atol=1e-3)
    votes = dg.apply(RECIPE.sources, both, progress=False)
    assert set(votes.column("small_swing").tolist()) == {dg.types.MISSING}
    assert set(votes.column("leg_varies").tolist()) == {dg.types.MISSING}


def test_the_network_reads_the_inputs(material: TaskMaterial) -> None:
    torch = pytest.importorskip("torch")
    assert RECIPE.end_model is not None
    inputs = RECIPE.end_model.inputs(material.sequences[material.ids("dev")[0]], True)
    assert RECIPE.end_model.network(True)(torch.from_numpy(inputs)).shape == (5, 2)


def test_absent_recordings_are_named(tmp_path: Path) -> None:
    assert RECIPE.load is not None
    with pytest.raises(LoaderError, match=r"recordings\.npz"):
        RECIPE.load(tmp_path)


@pytest.mark.data
def test_real_recordings_are_split_by_patient(shared_data: Path) -> None:
    assert RECIPE.load is not None
    material = RECIPE.load(shared_data)
    patients = {part: {material.groups[name] for name in material.ids(part)} for part in ("train", "dev", "test")}
    assert patients == {"train": {"S02", "S06"}, "dev": {"S01"}, "test": {"S03", "S07"}}
    votes, gold = votes_and_gold(material, material.ids("train"))
    prior = RECIPE.user_prior([material.gold[name] for name in material.ids("dev")])
    model = dg.LabelModel(prior=prior, dependencies=RECIPE.dependencies).fit(votes)
    vote = dg.MajorityVote().fit(votes)
    assert evaluate(model.predict_proba(votes), gold).f1 > evaluate(vote.predict_proba(votes), gold).f1
