"""The command line over folders of votes: continue, run what is new, stream."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command, Outcome
from dugong.paths import locked, place_of
from dugong.shards import VoteShards

PRIOR = ("--prior", "markov:positive=0.4,stay=0.8", "--dependencies", "none")
USERS = ("part-of-my-thesis.csv", "part-00077.csv", ".thesis.part", "notes.json", "mine.npz")


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
    assert "votes of an earlier run are kept; no source ran now" in again.err
    assert files_of(out / "votes") | files_of(out / "labels") == before
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text() + "\n\n@dg.source\ndef four(element):\n    return vote(element, 1)\n")
    more = cli("run", small_project, "--shard-size", 7)
    assert more.code == 0, more.err
    assert "votes of an earlier run are kept; four ran now" in more.err
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


def write_gold(project: Path, n_sequences: int = 40) -> Path:
    """The labels of the first sequences, as their loader draws them."""
    numbers, rows = random.Random(3), ["sequence,start,end,label"]
    for name in range(60):
        halves = [numbers.random() < 0.4 for _ in range(2)]
        _ = [numbers.random() for _ in range(18)]
        if name < n_sequences:
            rows += [f"q{name:02d},{3 * k},{3 * k + 3},{1 if y else -1}" for k, y in enumerate(halves)]
    gold = project.parent / "gold.csv"
    gold.write_text("\n".join(rows) + "\n")
    return gold


def scores_of(outcome: Outcome) -> dict[str, float]:
    """Scores of majority vote and of the model, by name."""
    found = {
        f"{one['name']} {method}": one[method]
        for one in outcome.json["comparison"]["differences"]
        for method in ("first", "last")
        if one[method] is not None
    }
    assert len(found) >= 10
    return found


def test_a_folder_is_checked_against_gold_like_a_file(cli: Command, small_project: Path, tmp_path: Path) -> None:
    whole, folder, gold = tmp_path / "whole.parquet", tmp_path / "votes", write_gold(small_project)
    assert cli("apply", small_project, "-o", whole).code == 0
    assert cli("apply", small_project, "-o", folder, "--shard-size", 25).code == 0
    file, shards = (cli("check", votes, "--gold", gold, *PRIOR, "--json") for votes in (whole, folder))
    assert "compared on the 40 sequences with known labels" in shards.err
    assert shards.json["summary"] == file.json["summary"]
    assert sum(shards.json["summary"]["Correct"]) > 500
    assert shards.json["identifiability"] == file.json["identifiability"]
    assert scores_of(shards) == pytest.approx(scores_of(file), abs=1e-9)
    flat = np.zeros(360, dtype=np.int8)
    flat[:6] = [1, 1, 1, -1, -1, -1]
    np.save(tmp_path / "flat.npy", flat)
    few = cli("check", folder, "--gold", tmp_path / "flat.npy", *PRIOR)
    assert "compared on the 1 sequences" in few.err
    np.save(tmp_path / "flat.npy", flat[1:])
    assert "360 in all; found (359,)" in cli("check", folder, "--gold", tmp_path / "flat.npy").err
    (tmp_path / "flat.npy").write_bytes(b"\x93NUMPY")
    damaged = cli("check", folder, "--gold", tmp_path / "flat.npy")
    assert (damaged.code, "flat.npy cannot be read" in damaged.err) == (1, True)
    gold.write_text(gold.read_text() + "q99,0,3,1\n")
    wrong = cli("check", folder, "--gold", gold)
    assert wrong.code == 1
    assert "'q99' is none, and 1 rows are like this" in wrong.err


def test_more_gold_than_memory_should_hold(cli: Command, small_project: Path, tmp_path: Path) -> None:
    from dugong.cli.gold import read_known, with_others

    assert cli("apply", small_project, "-o", tmp_path / "votes", "--shard-size", 25).code == 0
    shards = VoteShards.open(tmp_path / "votes")
    known = read_known(write_gold(small_project), shards, n_elements=100)
    assert 5 <= known.votes.n_sequences <= 30
    assert f"{known.votes.n_sequences} of the 40 sequences" in known.remark
    assert len(known.gold) == known.votes.n_elements
    assert (known.gold != 0).all()
    every, gold = with_others(known, dg.Votes.concat(shards))
    assert every.n_sequences == 60
    assert np.count_nonzero(gold) == known.votes.n_elements


def test_run_in_shards_compares_with_gold_and_reports(cli: Command, small_project: Path) -> None:
    write_gold(small_project)
    small_project.write_text(small_project.read_text() + 'gold = "gold.csv"\n')
    outcome = cli("run", small_project, "--shard-size", 7, "--json")
    assert outcome.code == 0, outcome.err
    assert "compared on the 40 sequences" in outcome.err
    plain = cli("run", small_project, "--restart", "--json")
    assert scores_of(outcome) == pytest.approx(scores_of(plain), abs=1e-9)
    report = (small_project.parent / "out" / "report.html").read_text()
    assert "Label report" in report


def test_run_in_shards_has_the_intervals_of_groups(cli: Command, small_project: Path) -> None:
    write_gold(small_project, n_sequences=60)
    small_project.write_text(small_project.read_text() + 'gold = "gold.csv"\ngroups = "q([0-9])"\n')
    whole = cli("run", small_project, "--json").json["comparison"]["differences"]
    parts = cli("run", small_project, "--shard-size", 7, "--json").json["comparison"]["differences"]
    bounds = [[(one["low"], one["high"]) for one in found if one["low"] is not None] for found in (whole, parts)]
    assert bounds[0]
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=0, atol=1e-9)


def test_wrong_groups_are_an_error_for_folders_too(cli: Command, small_project: Path, tmp_path: Path) -> None:
    for place, options in ((tmp_path / "whole.parquet", ()), (tmp_path / "votes", ("--shard-size", 25))):
        assert cli("apply", small_project, "-o", place, *options).code == 0
        outcome = cli("check", place, "--groups", "(patient)")
        assert outcome.code == 1
        assert "must find a group in every id" in outcome.err
    ids = [str(one) for one in dg.Votes.read(tmp_path / "whole.parquet").sequence_ids]
    write_gold(small_project, n_sequences=2)  # the last sequence is not among those that are compared
    known = ("--gold", small_project.parent / "gold.csv")
    for left_out, code in ((None, 0), (-1, 1)):
        rows = [f"{one},{one[-1]}" for one in ids[:left_out]]
        (tmp_path / "groups.csv").write_text("\n".join(["sequence,group", *rows]))
        outcome = cli("check", tmp_path / "votes", "--groups", tmp_path / "groups.csv", *known)
        assert outcome.code == code, outcome.err
    assert f"{ids[-1]!r} is missing" in outcome.err


def test_what_works_on_folders_is_refused_on_files(cli: Command, small_project: Path, tmp_path: Path) -> None:
    votes = tmp_path / "whole.parquet"
    assert cli("apply", small_project, "-o", votes).code == 0
    assert cli("fit", votes, "-o", tmp_path / "model.json", *PRIOR).code == 0
    for words in (("fit", votes, *PRIOR), ("label", tmp_path / "model.json", votes)):
        for option in (("--engine", "dask"), ("--jobs", 2), ("--memory", "2GB")):
            outcome = cli(*words, *option)
            assert outcome.code == 2
            assert f"{option[0]} works on a folder of votes, and VOTES is one file" in outcome.err
    assert cli("label", tmp_path / "model.json", votes, "--restart").code == 2
    tried = cli("apply", small_project, "--limit", 3, "--engine", "slurm")
    assert "one of local, dask, ray, spark" in tried.err


def test_a_limit_on_memory(cli: Command, small_project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "votes"
    assert cli("apply", small_project, "-o", folder, "--shard-size", 25).code == 0
    small = cli("fit", folder, *PRIOR, "--memory", "250MB", "-o", tmp_path / "m.json")
    assert small.code == 1
    assert "the memory must hold one shard; shard part-00000.parquet has 150 elements" in small.err
    assert cli("fit", folder, *PRIOR, "--memory", "much").code == 1
    good = cli("fit", folder, *PRIOR, "--memory", "0.5 GB", "--jobs", -1, "-o", tmp_path / "m.json")
    assert good.code == 0, good.err
    assert cli("label", tmp_path / "m.json", folder, "-o", tmp_path / "l", "--memory", "300MB").code == 1
    whole = cli("run", small_project, "--memory", "100MB")
    assert whole.code == 2
    assert "with --shard-size, one file of votes is held at a time" in whole.err


@pytest.mark.parametrize("kind", ["memory://", "local://"])
def test_everything_at_a_url(cli: Command, small_project: Path, tmp_path: Path, kind: str) -> None:
    root = f"{kind}{tmp_path}/bucket"
    for words in (
        ("apply", small_project, "-o", f"{root}/votes", "--shard-size", 25),
        ("fit", f"{root}/votes", "-o", f"{root}/model.json", *PRIOR),
        ("label", f"{root}/model.json", f"{root}/votes", "-o", f"{root}/labels"),
        ("check", f"{root}/votes"),
    ):
        outcome = cli(*words)
        assert outcome.code == 0, outcome.err
    assert f"The model is in {root}/model.json" not in outcome.out
    small_project.write_text(small_project.read_text().replace('"out"', f'"{root}/out"'))
    for options in ((), ("--shard-size", 25)):
        outcome = cli("run", small_project, *options, "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["files"]["model"] == f"{root}/out/model.json"
    assert place_of(f"{root}/out/report.html").is_file()
    assert len(list(place_of(f"{root}/out/labels").glob("*.parquet"))) == 3


def test_only_one_source_of_a_folder(cli: Command, small_project: Path) -> None:
    assert cli("apply", small_project, "--shard-size", 20).code == 0
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text().replace("< 0.8", "< 0.7"))
    outcome = cli("apply", small_project, "--shard-size", 20, "--only", "two")
    assert outcome.code == 0, outcome.err
    assert "votes of an earlier run are kept; two ran now" in outcome.err


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


def test_a_second_run_gets_one_line(cli: Command, small_project: Path) -> None:
    """Two runs of one project: the first, here a thread, holds the folder of its results."""
    out = small_project.parent / "out"
    entered, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(out):
            entered.set()
            ended.wait(60)

    first = threading.Thread(target=hold)
    first.start()
    assert entered.wait(60)
    try:
        outcomes = [cli("run", small_project), cli("apply", small_project), cli("demo", out, "--broadcasts", 50)]
    finally:
        ended.set()
        first.join()
    said = "is in use by another run or by a studio: wait until that has ended, or choose another folder."
    assert [(one.code, one.err) for one in outcomes] == [(1, f"error: {out} {said}\n")] * 3
    assert not list(out.iterdir())
    assert cli("run", small_project).code == 0


@pytest.mark.parametrize("output", ["", ".", "/"])
def test_a_folder_in_place_of_a_file_is_refused_before_the_work(cli: Command, small_project: Path, output: str) -> None:
    outcome = cli("apply", small_project, "-o", output)
    assert (outcome.code, outcome.err) == (1, f"error: {Path(output)} is a folder; name a file to write.\n")


@pytest.mark.parametrize("output", ["../thesis", "{}/thesis", "link"])
def test_a_project_whose_output_lies_elsewhere_removes_no_file_there(
    cli: Command, small_project: Path, tmp_path: Path, output: str
) -> None:
    thesis = tmp_path / "thesis"
    mine = [thesis / place / name for place in ("votes", "labels", "model.parts", "") for name in USERS]
    for file in mine:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (small_project.parent / "link").symlink_to(thesis)
    text = small_project.read_text()
    assert 'output = "out"' in text
    small_project.write_text(text.replace('output = "out"', f'output = "{output.format(tmp_path)}"'))
    for size, n_shards in ((10, 6), (25, 3)):
        assert cli("run", small_project, "--shard-size", size).code == 0
        assert len(list((thesis / "votes").glob("part-0*.parquet"))) == n_shards
    assert [file.read_text() for file in mine] == ["mine"] * len(mine)
    assert (small_project.parent / "link").is_symlink()


def test_files_of_the_user_stay_in_the_folder(cli: Command, small_project: Path, tmp_path: Path) -> None:
    folder, labels, model = tmp_path / "votes", tmp_path / "labels", tmp_path / "model.json"
    mine = [place / f"part-of-my-thesis{suffix}" for place in (folder, labels) for suffix in (".csv", ".parquet")]
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    for size, n_shards in ((10, 6), (25, 3)):
        assert cli("apply", small_project, "-o", folder, "--shard-size", size).code == 0
        assert cli("fit", folder, "-o", model, *PRIOR).code == 0
        assert cli("label", model, folder, "-o", labels).code == 0
        assert len(list(folder.glob("part-0*.parquet"))) == len(list(labels.glob("part-0*.parquet"))) == n_shards
        assert [file.read_text() for file in mine] == ["mine"] * 4


def test_logs_as_json(cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("dugong.cli.output._EVERY_JSON", 0.0)
    outcome = cli("run", small_project, "--log-json", "--json")
    assert outcome.code == 0, outcome.err
    events = [json.loads(line) for line in outcome.err.splitlines()]
    assert [one["step"] for one in events if one["event"] == "done"] == ["apply", "fit", "label", "report"]
    assert len([one for one in events if one["event"] == "progress"]) == 60
    assert events[0]["elements_per_second"] > 0


def test_lines_of_progress_where_nobody_watches(
    cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr("dugong.cli.output._EVERY", 0.0)
    outcome = cli("apply", small_project)
    assert "60 sequences" in outcome.err
    assert "elements/s, 0 faults" in outcome.err
    assert "elements/s, 0 faults." in outcome.out


def test_time_left_counts_what_ran_now() -> None:
    from dugong.cli.output import time_left
    from dugong.sources import Progress

    now = Progress(done=10, total=40, sequence="a", elements=100, faults=0, seconds=5.0)
    assert time_left(now) == pytest.approx(15.0)
    assert now.rate == pytest.approx(20.0)
    resumed = Progress(done=20, total=40, sequence="a", elements=100, faults=0, seconds=5.0, kept=10)
    assert time_left(resumed) == pytest.approx(10.0)
    assert time_left(Progress(done=9, total=40, sequence="a", elements=0, faults=0, seconds=1.0, kept=9)) is None


def test_fit_and_label_tell_how_far_they_are(
    cli: Command, small_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr("dugong.cli.output._EVERY_JSON", 0.0)
    folder, model = tmp_path / "votes", tmp_path / "model.json"
    assert cli("apply", small_project, "-o", folder, "--shard-size", 25).code == 0
    fitted = cli("fit", folder, "-o", model, *PRIOR, "--log-json")
    labelled = cli("label", model, folder, "-o", tmp_path / "labels", "--log-json")
    events = [json.loads(line) for outcome in (fitted, labelled) for line in outcome.err.splitlines()]
    told = [(one["step"], one["done"], one["total"]) for one in events if one["event"] == "progress"]
    sums = [(step, 3, 3) for step in ("moments", "balance", "counts")]
    assert told == [*sums, ("label", 1, 3), ("label", 2, 3), ("label", 3, 3)]
    assert all(one["seconds_left"] == 0 for one in events if one.get("done") == one.get("total", -1))
    assert len(list((tmp_path / "model.parts").glob("*.npz"))) == 9
    before = model.read_bytes()
    monkeypatch.setattr("dugong.cli.output._EVERY", 0.0)
    again = cli("fit", folder, "-o", model, *PRIOR)
    assert "3 of 3 shards" in again.err
    assert model.read_bytes() == before


def test_the_pace_of_a_run_that_continues_counts_what_ran(cli: Command, small_project: Path) -> None:
    assert cli("apply", small_project, "--shard-size", 20).code == 0
    again = cli("apply", small_project, "--shard-size", 20)
    assert " in all, 0 faults." in again.out


@pytest.mark.parametrize("verb", ["apply", "run", "fit", "label"])
def test_help_names_the_engines(cli: Command, verb: str) -> None:
    text = " ".join(cli(verb, "--help").out.split())
    assert "local processes (the default), dask, ray or spark" in text


def test_an_unknown_engine(cli: Command, small_project: Path) -> None:
    outcome = cli("apply", small_project, "--engine", "slurm")
    assert outcome.code == 1
    assert "one of local, dask, ray, spark" in outcome.err
