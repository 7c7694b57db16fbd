"""The command line over folders of votes: continue, run what is new, stream."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command
from dugong.shards import VoteShards

PRIOR = ("--prior", "markov:positive=0.4,stay=0.8", "--dependencies", "none")


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_run_in_shards_then_again_then_with_one_more_source(cli: Command, small_project: Path) -> None:
    out = small_project.parent / "out"
    first = cli("run", small_project, "--shard-size", 7, "--json")
    assert first.code == 0, first.err
    assert first.json["files"]["labels"] == str(out / "labels")
    before = files_of(out / "votes") | files_of(out / "labels")
    assert len(VoteShards.open(out / "votes")) == 9
    again = cli("run", small_project, "--shard-size", 7)
    assert again.code == 0, again.err
    assert "continued: 9 shards of 9 were done already; no source ran now" in again.err
    assert files_of(out / "votes") | files_of(out / "labels") == before
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text() + "\n\n@dg.source\ndef four(element):\n    return vote(element, 1)\n")
    more = cli("run", small_project, "--shard-size", 7)
    assert more.code == 0, more.err
    assert "0 shards of 9 were done already; four ran now" in more.err
    labels = pq.read_table(sorted((out / "labels").glob("*.parquet")))
    assert labels.num_rows == 360


def test_a_run_in_one_file_continues_too(cli: Command, small_project: Path) -> None:
    assert cli("run", small_project).code == 0
    again = cli("run", small_project, "--json")
    assert "no source ran now" in again.err
    assert again.json["report"]["n_sequences"] == 60
    anew = cli("run", small_project, "--restart")
    assert "continued" not in anew.err


def test_fit_label_and_check_stream_over_a_folder(cli: Command, small_project: Path, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole.parquet", tmp_path / "votes"
    assert cli("apply", small_project, "-o", whole).code == 0
    assert cli("apply", small_project, "-o", folder, "--shard-size", 25).code == 0
    for votes, name in ((whole, "a"), (folder, "b")):
        outcome = cli("fit", votes, "-o", tmp_path / f"{name}.json", *PRIOR)
        assert outcome.code == 0, outcome.err
    tables = [dg.LabelModel.load(tmp_path / f"{name}.json").accuracies_["one"] for name in "ab"]
    assert tables[1] == pytest.approx(tables[0], abs=1e-12)
    outcome = cli("label", tmp_path / "b.json", folder, "-o", tmp_path / "labels", "--jobs", 2, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["rows"] == 360
    checked = [cli("check", votes, "--json").json for votes in (whole, folder)]
    assert checked[0]["summary"] == checked[1]["summary"]
    assert checked[0]["findings"] == checked[1]["findings"]
    assert cli("check", folder, "--gold", "gold.csv").code == 2


def test_only_one_source_of_a_folder(cli: Command, small_project: Path) -> None:
    assert cli("apply", small_project, "--shard-size", 20).code == 0
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text().replace("< 0.8", "< 0.7"))
    outcome = cli("apply", small_project, "--shard-size", 20, "--only", "two")
    assert outcome.code == 0, outcome.err
    assert "0 shards of 3 were done already; two ran now" in outcome.err


def test_an_unfinished_folder_is_refused(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    good = sources.read_text()
    sources.write_text(good.replace("return vote(element, 3)", "return 1 / 0"))
    assert cli("apply", small_project, "--shard-size", 20).code == 1
    votes = small_project.parent / "out" / "votes"
    outcome = cli("fit", votes, *PRIOR)
    assert outcome.code == 1
    assert "is not complete" in outcome.err
    sources.write_text(good)
    assert cli("apply", small_project, "--shard-size", 20).code == 0


def test_logs_as_json(cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dugong.cli import watching

    monkeypatch.setattr(watching, "_EVERY_JSON", 0.0)
    outcome = cli("run", small_project, "--log-json", "--json")
    assert outcome.code == 0, outcome.err
    events = [json.loads(line) for line in outcome.err.splitlines()]
    assert [one["step"] for one in events if one["event"] == "done"] == ["apply", "fit", "label", "report"]
    assert len([one for one in events if one["event"] == "progress"]) == 60
    assert events[0]["elements_per_second"] > 0


def test_lines_of_progress_where_nobody_watches(
    cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dugong.cli import watching

    monkeypatch.setattr(watching, "_EVERY", 0.0)
    outcome = cli("apply", small_project)
    assert "60 sequences" in outcome.err
    assert "elements/s, 0 faults" in outcome.err
    assert "elements/s, 0 faults." in outcome.out


def test_time_left() -> None:
    from dugong.cli.watching import time_left
    from dugong.sources import Progress

    now = Progress(done=10, total=40, sequence="a", elements=100, faults=0, seconds=5.0)
    assert time_left(now) == pytest.approx(15.0)


@pytest.mark.parametrize("verb", ["apply", "run", "fit", "label"])
def test_help_names_the_engines(cli: Command, verb: str) -> None:
    text = " ".join(cli(verb, "--help").out.split())
    assert "local processes (the default), dask, ray or spark" in text


def test_an_unknown_engine(cli: Command, small_project: Path) -> None:
    outcome = cli("apply", small_project, "--engine", "slurm")
    assert outcome.code == 1
    assert "one of local, dask, ray, spark" in outcome.err
