"""Versions and headers, simulated votes, and the demo."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command
from dugong.cli.gold import read_gold
from dugong.cli.worlds import writable
from dugong.worlds import STANDARD


# --- info ----------------------------------------------------------------------------------------------------------
def test_versions(cli: Command) -> None:
    result = cli("info", "--json").json
    assert result["dugong"] == dg.__version__
    assert result["packages"]["numpy"] == np.__version__
    assert f"dugong        {dg.__version__}" in cli("info").out


def test_what_files_hold(cli: Command, tmp_path: Path) -> None:
    assert cli("simulate", "tv_news", "--sequences", 200, "--folder", tmp_path).code == 0
    votes = dg.Votes.read(tmp_path / "votes.parquet")
    votes.write(tmp_path / "votes.npz")
    model = dg.LabelModel(prior=STANDARD["tv_news"]().prior, dependencies=()).fit(votes)
    model.save(tmp_path / "model.json")
    assert (
        cli("label", tmp_path / "model.json", tmp_path / "votes.parquet", "-o", tmp_path / "labels.parquet").code == 0
    )
    names = ["votes.parquet", "votes.npz", "model.json", "labels.parquet", "gold.parquet"]
    outcome = cli("info", *(tmp_path / name for name in names), "--json")
    assert outcome.code == 0, outcome.err
    found = [outcome.json["files"][str(tmp_path / name)] for name in names]
    assert [one["kind"] for one in found] == ["votes", "votes", "model", "labels", "gold labels"]
    assert found[0]["sequences"] == found[1]["sequences"] == 200
    assert found[2]["sources"]["thank_you"] == "caption"
    assert found[2]["prior"] == "markov"
    assert found[3]["rows"] == pq.read_metadata(tmp_path / "labels.parquet").num_rows
    assert "kind          model" in cli("info", tmp_path / "model.json").out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("votes.parquet", b"PAR1", "truncated, damaged, or none of ours"),
        ("votes.npz", b"PK", "truncated, damaged, or none of ours"),
        ("model.json", b"{", "truncated, damaged, or none of ours"),
        ("model.json", b"{}", "holds no model written by Dugong"),
        ("notes.txt", b"", "is none of our files"),
    ],
)
def test_files_that_are_not_ours(cli: Command, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = cli("info", tmp_path / name)
    assert outcome.code == 1
    assert message in outcome.err


# --- simulate ------------------------------------------------------------------------------------------------------
def test_worlds_are_listed(cli: Command) -> None:
    assert set(cli("simulate", "--list", "--json").json["worlds"]) == set(STANDARD)


@pytest.mark.parametrize("world", STANDARD)
def test_every_world_can_be_simulated_and_fitted(cli: Command, tmp_path: Path, world: str) -> None:
    outcome = cli("simulate", world, "--sequences", 3000, "--seed", 4, "--folder", tmp_path, "--json")
    assert outcome.code == 0, outcome.err
    expected, labels = STANDARD[world]().sample(3000, rng=4)
    votes = dg.Votes.read(tmp_path / "votes.parquet")
    assert votes.equals(expected)
    assert read_gold(tmp_path / "gold.parquet", votes).tolist() == labels["element"].tolist()
    edges = ",".join("+".join(one) if isinstance(one, list) else one for one in outcome.json["dependencies"])
    fitted = cli(
        "fit", tmp_path / "votes.parquet", "-o", tmp_path / "model.json", "--prior", tmp_path / "prior.json",
        "--dependencies", edges or "none",
    )  # fmt: skip
    assert fitted.code == 0, fitted.err


def test_an_unknown_world_is_wrong_usage(cli: Command, tmp_path: Path) -> None:
    outcome = cli("simulate", "atlantis", "--folder", tmp_path)
    assert outcome.code == 2
    assert "there is no world 'atlantis'; known are" in outcome.err


# --- demo ----------------------------------------------------------------------------------------------------------
def test_demo_does_the_whole_job(cli: Command, tmp_path: Path) -> None:
    outcome = cli("demo", tmp_path / "demo", "--broadcasts", 400, "--json")
    assert outcome.code == 0, outcome.err
    result = outcome.json
    assert len(result["sources"]) == 8
    assert {row["resolution"] for row in result["sources"]} == {"element", "caption", "sequence"}
    for row in result["sources"]:
        for part in row["classes"].values():
            assert 0 <= part["estimated"] <= 1
    assert result["scores"]["label model"]["f1"] > result["scores"]["majority vote"]["f1"]
    assert result["scores"]["label model"]["brier"] < result["scores"]["majority vote"]["brier"]
    votes = dg.Votes.read(result["files"]["votes"])
    model = dg.LabelModel.load(result["files"]["label model"])
    gold = read_gold(result["files"]["true labels"], votes)
    again = dg.evaluate(model.predict_proba(votes), gold, lengths=votes.lengths, classes=[-1, 1])
    assert again.f1 == pytest.approx(result["scores"]["label model"]["f1"], abs=1e-12)
    assert all(Path(file).is_file() for file in result["files"].values())
    assert "def host_on_screen" in Path(result["files"]["the eight sources"]).read_text()


def test_demo_ends_with_a_readable_table(cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("demo", "--broadcasts", 400)
    assert outcome.code == 0, outcome.err
    for words in ("host_on_screen", "coverage", "true", "majority vote", "label model", "F1", "Brier", "dugong-demo"):
        assert words in outcome.out
    assert max(map(len, outcome.out.split("Label model is")[0].splitlines())) <= 100
    assert (tmp_path / "dugong-demo" / "labels.parquet").is_file()
    assert outcome.out.rstrip().endswith(str(Path("dugong-demo") / "report.html")), "the demo ends with the report"
    assert (tmp_path / "dugong-demo" / "report.html").stat().st_size < 5_000_000


def test_demo_is_the_same_every_time(cli: Command, tmp_path: Path) -> None:
    first = cli("demo", tmp_path / "a", "--broadcasts", 200, "--json").json
    second = cli("demo", tmp_path / "b", "--broadcasts", 200, "--jobs", 2, "--json").json
    assert json.dumps(first["sources"]) == json.dumps(second["sources"])
    assert (tmp_path / "a" / "model.json").read_bytes() == (tmp_path / "b" / "model.json").read_bytes()


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    other = writable(tmp_path / "file" / "demo")
    assert other.is_dir()
    assert "dugong-demo-" in other.name
    assert "cannot be written" in capsys.readouterr().err
    other.rmdir()
