"""What is in votes, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from command_line import Command
from dugong.cli.findings import find_all
from dugong.cli.gold import write_gold
from dugong.worlds import lopsided


@pytest.fixture
def odd_votes(rng: np.random.Generator) -> dg.Votes:
    """Votes with one of each oddity."""
    good = rng.choice([-1, 1], size=400).astype(np.int8)
    near = good.copy()
    near[:3] *= -1
    columns = {
        "good": good,
        "copy": good.copy(),
        "near": near,
        "silent": np.zeros(400, dtype=np.int8),
        "constant": np.ones(400, dtype=np.int8),
        "unipolar": np.maximum(good, 0),
    }
    return dg.Votes.from_tasks(columns, lengths=[100, 300])


def test_every_oddity_is_found(odd_votes: dg.Votes) -> None:
    found = {(one.kind, one.source) for one in find_all(odd_votes, odd_votes.summary().problems)}
    assert found == {
        ("never-votes", "silent"),
        ("always-same", "constant"),
        ("copy", "copy"),
        ("near-copy", "near"),
        ("unipolar", "unipolar"),
    }


def test_classes_for_which_nobody_votes() -> None:
    votes = dg.Votes.from_classes(np.array([[0], [-1], [0]]), n_classes=4, lengths=[3])
    texts = [one.text for one in find_all(votes, ())]
    assert sum("nothing but the prior speaks for this class" in text for text in texts) == 3
    votes = dg.Votes.from_classes(np.array([[0], [1], [-1]]), n_classes=3, lengths=[3])
    (background,) = [one for one in find_all(votes, ()) if one.kind == "background"]
    assert background.text.startswith("3 is the only class that no source votes for")


def test_check_prints_them(cli: Command, odd_votes: dg.Votes, tmp_path: Path) -> None:
    odd_votes.write(tmp_path / "votes.parquet")
    outcome = cli("check", tmp_path / "votes.parquet")
    assert outcome.code == 0, outcome.err
    for words in ("never votes", "always votes +1", "votes exactly as 'good'", "vote alike", "votes +1 or abstains"):
        assert words in outcome.out
    kinds = {one["kind"] for one in cli("check", tmp_path / "votes.parquet", "--json").json["findings"]}
    assert kinds == {"never-votes", "always-same", "copy", "near-copy", "unipolar"}


def test_nothing_wrong(cli: Command, tmp_path: Path) -> None:
    lopsided(seed=3).sample(50, 40, rng=0)[0].write(tmp_path / "votes.parquet")
    assert "Nothing is wrong with these votes." in cli("check", tmp_path / "votes.parquet").out


def test_with_gold_the_model_is_compared_with_majority_vote(cli: Command, tmp_path: Path) -> None:
    world = lopsided(seed=3)
    votes, labels = world.sample(400, 20, rng=0)
    votes.write(tmp_path / "votes.parquet")
    write_gold(labels["element"], votes, tmp_path / "gold.parquet")
    prior = f"markov:positive={world.prior.positive},stay={world.prior.stay}"
    options = ["--gold", tmp_path / "gold.parquet", "--prior", prior, "--dependencies", "none"]
    outcome = cli("check", tmp_path / "votes.parquet", *options)
    assert outcome.code == 0, outcome.err
    assert "Identifiability" in outcome.out
    assert "label model is better than majority vote on these labels" in outcome.out
    result = cli("check", tmp_path / "votes.parquet", *options, "--json").json
    assert result["comparison"]["better"] is True
    f1 = result["comparison"]["methods"]["label model"]["scores"]["f1"]
    assert f1["low"] < f1["value"] < f1["high"]
    assert all(row["empirical"] is not None for row in result["model"]["sources"])


def test_it_says_plainly_when_the_model_is_not_better(cli: Command, tmp_path: Path) -> None:
    """Sources that are equally good and independent, on single elements: there is nothing for a model to add."""
    rng = np.random.default_rng(5)
    gold = rng.choice([-1, 1], size=3000).astype(np.int8)
    columns = {f"s{j}": np.where(rng.random(3000) < 0.9, gold, -gold).astype(np.int8) for j in range(5)}
    votes = dg.Votes.from_tasks(columns, lengths=[1] * 3000)
    votes.write(tmp_path / "votes.parquet")
    np.save(tmp_path / "gold.npy", gold)
    outcome = cli(
        "check", tmp_path / "votes.parquet", "--gold", tmp_path / "gold.npy", "--prior", "uniform",
        "--dependencies", "none", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    accuracy = next(one for one in outcome.json["comparison"]["differences"] if one["name"] == "accuracy")
    assert accuracy["finding"] in {"equal", "level"}
    assert "no clear difference in accuracy" in outcome.json["comparison"]["verdict"]


def test_votes_that_determine_nothing(cli: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {name: rng.choice([-1, 1], size=50).astype(np.int8) for name in ("one", "two")}
    dg.Votes.from_tasks(columns, lengths=[1] * 50).write(tmp_path / "votes.parquet")
    np.save(tmp_path / "gold.npy", rng.choice([-1, 1], size=50))
    options = ["--prior", "uniform", "--dependencies", "none"]
    outcome = cli("check", tmp_path / "votes.parquet", *options)
    assert outcome.code == 0, outcome.err
    assert "cannot tell 'one' and 'two' apart" in outcome.out
    outcome = cli("check", tmp_path / "votes.parquet", *options, "--gold", tmp_path / "gold.npy", "--json")
    assert outcome.code == 0, outcome.err
    assert "cannot tell 'one' and 'two' apart" in outcome.json["model_error"]
    assert 0 < outcome.json["majority"]["scores"]["accuracy"]["value"] < 1


def test_a_fitted_model_can_be_checked(cli: Command, tmp_path: Path) -> None:
    world = lopsided(seed=3)
    votes, labels = world.sample(300, 20, rng=0)
    votes.write(tmp_path / "votes.parquet")
    write_gold(labels["element"], votes, tmp_path / "gold.csv")
    dg.LabelModel(prior=world.prior, dependencies=()).fit(votes).save(tmp_path / "model.json")
    outcome = cli("check", tmp_path / "votes.parquet", "--gold", tmp_path / "gold.csv", "--model",
                  tmp_path / "model.json", "--json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert outcome.json["comparison"]["last"] == "label model"


def test_files_that_are_no_votes(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "votes.parquet").write_bytes(b"PAR1 and then nothing")
    outcome = cli("check", tmp_path / "votes.parquet")
    assert outcome.code == 1
    assert "truncated or damaged" in outcome.err


def test_many_classes_are_scored_and_measured_one_by_one(cli: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    gold = rng.integers(1, 6, size=1000).astype(np.int8)
    columns = {
        f"s{j}": np.where(rng.random(1000) < 0.7, gold, rng.integers(1, 6, 1000)).astype(np.int8) for j in range(4)
    }
    votes = dg.Votes.from_tasks(columns, lengths=[50] * 20, n_classes=5, classes=["a", "b", "c", "d", "e"])
    votes.write(tmp_path / "votes.parquet")
    np.save(tmp_path / "gold.npy", gold)
    text = cli("check", tmp_path / "votes.parquet", "--gold", tmp_path / "gold.npy").out
    known = int((gold == 3).sum())
    assert re.search(rf"^c +{known} +0\.\d+ +0\.\d+$", text, flags=re.MULTILINE)
    right = np.mean(columns["s0"][gold == 3] == 3)
    assert re.search(rf"^s0 .*c 0\.\d\d/{right:.2f}, ", text, flags=re.MULTILINE)


def test_a_project_is_checked_by_its_groups_and_without_what_it_was_fitted_with(
    cli: Command, small_project: Path
) -> None:
    names = [f"q{place:02d}" for place in range(60)]
    labels = "".join(f"{name},0,6,{1 if place % 3 else -1}\n" for place, name in enumerate(names))
    (small_project.parent / "gold.csv").write_text("sequence,start,end,label\n" + labels)
    (small_project.parent / "known.csv").write_text(
        "sequence,start,end,label\n" + "".join(labels.splitlines(True)[:30])
    )
    text = small_project.read_text() + 'gold = "gold.csv"\ntrain_gold = "known.csv"\ngroups = "q([0-9])"\n'
    small_project.write_text(text)
    ran = cli("run", small_project, "--json").json["comparison"]
    checked = cli("check", small_project, "--json").json["comparison"]
    assert checked["differences"] == ran["differences"]
    assert checked["methods"] == ran["methods"]
    alone = cli("check", small_project, "--json", "--groups", "(q[0-9]+)").json["comparison"]
    assert alone["differences"] != ran["differences"]
