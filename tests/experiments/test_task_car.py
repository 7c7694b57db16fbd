"""The Car task: boxes of a detector, four sources, a prior without rare patterns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError
from dugong.experiments.recipe import Size, TaskMaterial
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.car import DetectedBox
from dugong.metrics import evaluate

RECIPE = find_recipe("car")
SIZE = Size(train=1000, dev=100, test=200, small=True)


@pytest.fixture(scope="module")
def material() -> TaskMaterial:
    return RECIPE.generate(SIZE, 0, Path())


def votes_and_gold(material: TaskMaterial, names: list[str]) -> tuple[dg.Votes, np.ndarray]:
    votes = dg.apply(RECIPE.sources, {name: material.sequences[name] for name in names}, progress=False)
    return votes, np.concatenate([material.gold[name] for name in names])


def test_shapes_parts_and_balance(material: TaskMaterial) -> None:
    assert [len(material.ids(part)) for part in ("train", "dev", "test")] == [1000, 100, 200]
    assert {len(sequence) for sequence in material.sequences.values()} == {RECIPE.facts.n_elements}
    positive = np.mean(np.concatenate(list(material.gold.values())) > 0)
    assert positive == pytest.approx(RECIPE.facts.positive, abs=0.06)


def test_dev_and_test_take_turns_in_one_video(material: TaskMaterial) -> None:
    starts = {part: {int(name.split("-")[1]) for name in material.ids(part)} for part in ("dev", "test")}
    assert {start % 10 for start in starts["dev"]} == {0}
    assert {start % 10 for start in starts["test"]} == {5}


def test_same_seed_same_data() -> None:
    one, again, other = (RECIPE.generate(Size(train=40, dev=4, test=4), seed, Path()) for seed in (1, 1, 2))
    assert one.sequences == again.sequences
    assert one.sequences != other.sequences


def test_sources_read_boxes() -> None:
    def near(kind: str, width: float = 0.1) -> DetectedBox:
        return DetectedBox(kind, 0.9, 0.5, 0.7, width, 0.25)

    said = [
        [source(frame) for source in RECIPE.sources]
        for frame in ((near("bicycle"), near("person", 0.15)), (near("person"),), ())
    ]
    assert said == [[1, 1, 0, 1], [-1, 1, 0, -1], [-1, -1, 0, -1]]


def test_the_prior_drops_rare_patterns() -> None:
    often, rarely = np.full(5, -1, dtype=np.int8), np.array([-1, 1, -1, 1, -1], dtype=np.int8)
    prior = RECIPE.user_prior([*[often] * 20, *[rarely] * 5])
    assert prior.probability(tuple(often.tolist())) == pytest.approx(1.0)


def test_the_model_is_better_than_the_vote_and_than_data_programming(material: TaskMaterial) -> None:
    votes, gold = votes_and_gold(material, material.ids("train"))
    for row in votes.summary(gold=gold).sources:
        assert row.coverage > 0.1
        assert row.accuracy > 0.6
    test, truth = votes_and_gold(material, material.ids("test"))
    prior = RECIPE.user_prior([material.gold[name] for name in material.ids("dev")])
    model = dg.LabelModel(prior=prior, dependencies=RECIPE.dependencies).fit(votes)
    ours = evaluate(model.predict_proba(test), truth).f1
    assert ours > evaluate(dg.MajorityVote().fit(votes).predict_proba(test), truth).f1 + 0.05
    assert ours > evaluate(dg.DataProgramming().fit(votes).predict_proba(test), truth).f1 + 0.05


def test_detections_of_real_videos_are_read(tmp_path: Path) -> None:
    assert RECIPE.load is not None
    with pytest.raises(LoaderError, match=r"frames\.csv and detections\.csv"):
        RECIPE.load(tmp_path)
    labels = [f"known,{frame},{1 if frame < 7 else -1}" for frame in range(12)]
    unknown = [f"unknown,{frame},0" for frame in range(5)]
    (tmp_path / "frames.csv").write_text("\n".join(["video,frame,label", *labels, *unknown]))
    (tmp_path / "detections.csv").write_text(
        "video,frame,kind,score,x,bottom,width,height\nknown,6,bicycle,0.8,0.5,0.7,0.1,0.1\n"
    )
    material = RECIPE.load(tmp_path)
    assert [len(material.ids(part)) for part in ("train", "dev", "test")] == [1, 2, 1]
    assert material.gold["known-5"].tolist() == [1, 1, -1, -1, -1]
    assert material.sequences["known-5"][1] == (DetectedBox("bicycle", 0.8, 0.5, 0.7, 0.1, 0.1),)
