"""From a file of votes to a model, and from both to labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command
from dugong.worlds import tv_news

PRIOR = "markov:positive=0.03,bout=10"


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("votes") / "votes.parquet"
    tv_news().sample(300, rng=1)[0].write(file)
    return file


@pytest.fixture(scope="module")
def model_file(votes_file: Path) -> Path:
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.03, bout=10), dependencies=())
    model.fit(dg.Votes.read(votes_file)).save(votes_file.parent / "model.json")
    return votes_file.parent / "model.json"


def test_fit_equals_the_library(cli: Command, votes_file: Path, model_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.json"
    outcome = cli("fit", votes_file, "-o", target, "--prior", PRIOR, "--dependencies", "none", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["model"] == str(target)
    ours, theirs = dg.LabelModel.load(target), dg.LabelModel.load(model_file)
    for name, table in theirs.accuracies_.items():
        np.testing.assert_array_equal(ours.accuracies_[name], table)
    rows = {row["name"]: row for row in outcome.json["summary"]["sources"]}
    assert rows["guest_on_screen"]["resolution"] == "element"
    assert rows["interview_programme"]["resolution"] == "sequence"


def test_fit_with_declared_dependencies(cli: Command, votes_file: Path, tmp_path: Path) -> None:
    edges = "host_on_screen+two_people,studio_light@1"
    outcome = cli("fit", votes_file, "-o", tmp_path / "m.json", "--prior", PRIOR, "--dependencies", edges, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.json["summary"]["dependencies"]
    assert found == [["host_on_screen", "two_people"], ["studio_light", "studio_light"]]


def test_fit_says_what_is_wrong(cli: Command, votes_file: Path, tmp_path: Path) -> None:
    outcome = cli("fit", votes_file, "-o", tmp_path / "m.json", "--prior", PRIOR, "--dependencies", "host+guest")
    assert outcome.code == 1
    assert "a dependency names the source 'host', which does not vote here" in outcome.err
    outcome = cli("fit", votes_file, "-o", tmp_path / "m.txt", "--prior", PRIOR, "--dependencies", "none")
    assert (outcome.code, "models are kept in .json files" in outcome.err) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_label_equals_the_library(
    cli: Command, votes_file: Path, model_file: Path, tmp_path: Path, ending: str
) -> None:
    target = tmp_path / f"labels{ending}"
    outcome = cli("label", model_file, votes_file, "-o", target, "--resolution", "element", "--json")
    assert outcome.code == 0, outcome.err
    table = pq.read_table(target) if ending == ".parquet" else pyarrow.csv.read_csv(target)
    votes = dg.Votes.read(votes_file)
    expected = dg.LabelModel.load(model_file).predict_proba(votes)
    np.testing.assert_array_equal(table.column("p_1").to_numpy(), expected[:, 1])
    assert outcome.json["rows"] == votes.n_elements


def test_label_all_resolutions_by_default(cli: Command, votes_file: Path, model_file: Path, tmp_path: Path) -> None:
    outcome = cli("label", model_file, votes_file, "-o", tmp_path / "labels.parquet")
    assert outcome.code == 0, outcome.err
    assert "at element, caption, sequence are in" in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resolution", "shot"], "there is no resolution 'shot' here"),
        (["-o", "labels.xlsx"], "labels are written as .parquet or .csv"),
    ],
)
def test_label_says_what_is_wrong(
    cli: Command, votes_file: Path, model_file: Path, options: list[str], message: str
) -> None:
    outcome = cli("label", model_file, votes_file, *options)
    assert outcome.code == 1
    assert message in outcome.err


def test_label_refuses_votes_of_another_source(cli: Command, model_file: Path, tmp_path: Path) -> None:
    dg.Votes.from_dense([np.array([[1], [-1]])], sources=["stranger"]).write(tmp_path / "votes.parquet")
    outcome = cli("label", model_file, tmp_path / "votes.parquet", "-o", tmp_path / "labels.csv")
    assert outcome.code == 1
    assert "source 'stranger' was not there when the model was fitted" in outcome.err
