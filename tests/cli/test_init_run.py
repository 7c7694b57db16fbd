"""A new project runs at once; a run writes complete files, says what it did, and names what went wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command
from dugong.shards import VoteShards

DUGONG = str(Path(sys.executable).parent / "dugong")


@pytest.fixture(scope="module")
def walking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project as `dugong init` writes it."""
    folder = tmp_path_factory.mktemp("init") / "walking"
    subprocess.run([DUGONG, "init", str(folder)], check=True, capture_output=True)
    return folder


def test_init_writes_a_project_with_three_resolutions(walking: Path) -> None:
    assert {file.name for file in walking.iterdir()} == {"project.toml", "loader.py", "sources.py", "data", "gold.csv"}
    code = (walking / "sources.py").read_text()
    assert code.count("@dg.source") == 3
    assert "dg.Window(" in code
    assert "dg.Sequence(" in code


def test_init_then_run(cli: Command, walking: Path) -> None:
    outcome = cli("run", walking / "project.toml", "--json")
    assert outcome.code == 0, outcome.err
    result = outcome.json
    assert list(result["seconds"]) == ["apply", "fit", "label", "report"]
    assert {row["name"] for row in result["report"]["sources"]} == {"moves", "steps_heard", "heart_is_fast"}
    assert result["comparison"]["better"] is True
    for word in ("apply", "fit", "label"):
        assert word in outcome.err
    votes = dg.Votes.read(walking / "output" / "votes.parquet")
    assert {info.resolution.kind for info in votes.sources} == {"element", "window", "sequence"}
    labels = pq.read_table(walking / "output" / "labels.parquet")
    assert labels.num_rows == sum(votes.layout(resolution).n_tasks for resolution in votes.resolutions)
    model = dg.LabelModel.load(walking / "output" / "model.json")
    assert model.predict_proba(votes).shape == (votes.n_elements, 2)
    assert "Comparison with majority vote" in (walking / "output" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("like", ["video", "audio", "text"])
def test_a_project_of_every_kind_runs_and_beats_the_vote(cli: Command, tmp_path: Path, like: str) -> None:
    folder = tmp_path / like
    assert cli("init", folder, "--like", like).code == 0
    outcome = cli("run", folder, "--json")
    assert outcome.code == 0, outcome.err
    methods = outcome.json["comparison"]["methods"]
    assert methods["label model"]["scores"]["f1"]["value"] > methods["majority vote"]["scores"]["f1"]["value"]
    votes = dg.Votes.read(folder / "output" / "votes.parquet")
    assert (votes.time is not None) == (like != "text")


def test_run_prints_the_time_and_the_faults_of_every_source(cli: Command, walking: Path) -> None:
    outcome = cli("run", walking)
    assert outcome.code == 0, outcome.err
    head = next(line for line in outcome.out.splitlines() if line.startswith("source") and "faults" in line)
    assert head.split() == ["source", "resolution", "tasks", "votes", "faults", "time"]
    assert "label model is better than majority vote" in outcome.out


def test_init_refuses_to_overwrite(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("keep me")
    outcome = cli("init", folder)
    assert outcome.code == 1
    assert "must not exist yet, or be empty; nothing was written" in outcome.err
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_init_into_an_empty_folder(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    outcome = cli("init", folder, "--json")
    assert outcome.code == 0
    assert Path(outcome.json["project"]).is_file()
    assert [file.name for file in tmp_path.iterdir()] == ["empty"]


def test_run_in_its_own_folder_with_two_processes(
    cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small_project.parent)
    outcome = cli("run", "--jobs", 2, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["files"]["model"] == "out/model.json"


def test_what_sources_print_does_not_spoil_json(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text() + "\n\nprint('hello from a source file')\n")
    outcome = cli("run", small_project, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["model"]["n_sequences"] == 60
    assert "hello from a source file" in outcome.err


def test_declared_dependencies_are_used_when_the_project_gives_none(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    text = sources.read_text().replace("@dg.source\ndef one", '@dg.source(depends_on="two")\ndef one')
    sources.write_text(text + "\n\n@dg.source\ndef four(element):\n    return vote(element, 1)\n")
    small_project.write_text(small_project.read_text().replace("dependencies = []\n", ""))
    outcome = cli("run", small_project, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["model"]["dependencies"] == [["one", "two"]]
    assert "dependencies: the 1 that the sources declare" in outcome.err


def test_a_fault_stops_the_run_and_names_its_place(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    sources.write_text(sources.read_text().replace("return vote(element, 3)", "return 1 / 0"))
    outcome = cli("run", small_project)
    assert outcome.code == 1
    assert (
        "error: source 'three' raised ZeroDivisionError: division by zero on element 0 of sequence 'q00'" in outcome.err
    )
    assert not (small_project.parent / "out" / "votes.parquet").exists()


def test_faults_are_counted_when_sources_abstain_instead(cli: Command, small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    broken = "return 1 // (0 if element[3] < 0.01 else 1) * vote(element, 3)"
    sources.write_text(sources.read_text().replace("return vote(element, 3)", broken))
    outcome = cli("run", small_project, "--on-fault", "abstain", "--json")
    assert outcome.code == 0, outcome.err
    faults = {row["name"]: row["faults"] for row in outcome.json["report"]["sources"]}
    assert faults["one"] == faults["two"] == 0
    assert faults["three"] > 0


def test_what_the_project_does_not_say_is_learned(cli: Command, small_project: Path) -> None:
    lines = [line for line in small_project.read_text().splitlines() if not line.startswith(("prior", "dependencies"))]
    small_project.write_text("\n".join(lines))
    outcome = cli("run", small_project, "--json")
    assert outcome.code == 0, outcome.err
    votes = dg.Votes.read(small_project.parent / "out" / "votes.parquet")
    expected = dg.LabelModel().fit(votes).predict_proba(votes)
    labels = pq.read_table(small_project.parent / "out" / "labels.parquet")
    np.testing.assert_array_equal(labels.column("p_1").to_numpy(), expected[:, 1])


def test_a_write_that_fails_leaves_the_old_file(
    cli: Command, small_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("run", small_project).code == 0
    out = small_project.parent / "out"
    before = (out / "model.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = cli("fit", out / "votes.parquet", "-o", out / "model.json", "--prior", "markov:positive=0.4,stay=0.7",
                  "--dependencies", "none")  # fmt: skip
    assert outcome.code == 1
    assert "No space left on device" in outcome.err
    assert (out / "model.json").read_bytes() == before
    assert {file.name for file in out.iterdir()} == {
        "votes.parquet",
        "votes.parts",
        "model.json",
        "labels.parquet",
        "report.html",
    }


def test_ctrl_c_ends_quietly_and_leaves_only_what_is_needed_to_continue(small_project: Path) -> None:
    sources = small_project.parent / "sources.py"
    slow = "print('working', flush=True) or time.sleep(60)"
    sources.write_text("import time\n" + sources.read_text().replace("return vote(element, 3)", f"return {slow}"))
    process = subprocess.Popen(
        [DUGONG, "run", str(small_project)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline().strip() == "working"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert [file.name for file in (small_project.parent / "out").iterdir()] == ["votes.parts"]
    with pytest.raises(dg.VoteError, match="not complete"):
        VoteShards.open(small_project.parent / "out" / "votes.parts")


# --- how a run ends --------------------------------------------------------------------------------------------------
def test_a_run_says_what_changed_since_the_last_one(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "walking"
    assert cli("init", folder).code == 0
    first = cli("run", folder, "--json").json
    assert first["changes"] == []
    sources = folder / "sources.py"
    sources.write_text(sources.read_text().replace("second.movement > 0.6", "second.movement > 1.0"))
    again = cli("run", folder)
    assert again.code == 0, again.err
    assert "Since the last run:" in again.out
    assert "moves: accuracy 0.8" in again.out
    assert "flipped; accuracy" in again.out


def test_a_run_with_other_resolutions_than_the_last_one_compares_what_both_have(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "walking"
    assert cli("init", folder).code == 0
    project = (folder / "project.toml").read_text()
    for added in ("resolutions = []\n", 'resolutions = ["sequence"]\n', ""):
        (folder / "project.toml").write_text(added + project)
        outcome = cli("run", folder, "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["changes"] == []
        written = dg.Labels.read(outcome.json["files"]["labels"]).resolutions
        assert ("element" in written) == ("sequence" not in added)


def test_a_run_that_was_fitted_with_all_known_labels_says_so(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "walking"
    assert cli("init", folder).code == 0
    gold = next(folder.glob("gold*")).name
    project = (folder / "project.toml").read_text()
    (folder / "project.toml").write_text(f'train_gold = "{gold}"\n' + project)
    outcome = cli("run", folder)
    assert outcome.code == 0, outcome.err
    assert "every sequence that has some was fitted with" in " ".join(outcome.err.split())


def test_a_turned_rule_is_named_first(cli: Command, tmp_path: Path) -> None:
    folder = tmp_path / "walking"
    assert cli("init", folder).code == 0
    with (folder / "sources.py").open("a") as file:
        file.write("\n\n@dg.source\ndef still(second: Row) -> int:\n    return -moves(second)\n")
    outcome = cli("run", folder, "--json")
    assert outcome.code == 0, outcome.err
    assert any("'still' is worse than chance" in one for one in outcome.json["findings"])


def test_check_of_a_project_uses_what_its_run_left(cli: Command, walking: Path, tmp_path: Path) -> None:
    assert cli("run", walking).code == 0
    outcome = cli("check", walking / "project.toml")
    assert outcome.code == 0, outcome.err
    assert "No source sends data anywhere." in outcome.out
    fresh = tmp_path / "fresh"
    cli("init", fresh)
    missing = cli("check", fresh)
    assert missing.code == 1
    assert "has not been run yet" in missing.err


def test_fit_takes_known_labels_and_groups(cli: Command, walking: Path, tmp_path: Path) -> None:
    assert cli("run", walking).code == 0
    votes = walking / "output" / "votes.parquet"
    options = ("--prior", "markov:positive=0.15,stay=0.95", "--dependencies", "none")
    plain = cli("fit", votes, "-o", tmp_path / "a.json", *options)
    known = cli("fit", votes, "-o", tmp_path / "b.json", *options, "--gold", walking / "gold.csv", "--groups", "(..)$")
    assert (plain.code, known.code) == (0, 0), known.err
    models = [dg.LabelModel.load(tmp_path / f"{name}.json") for name in "ab"]
    assert not np.array_equal(models[0].accuracies_["moves"], models[1].accuracies_["moves"])
    wrong = cli("fit", votes, "-o", tmp_path / "c.json", *options, "--groups", "(patient)")
    assert wrong.code == 1
    assert "must find a group in every id" in wrong.err


def test_a_run_is_done_anew_where_its_elements_are_others(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name in "abc":
        rows = "".join(f"{i / 8},{(i // 40) % 2 + i % 3}\n" for i in range(400))
        (tmp_path / "raw" / f"{name}.csv").write_text(f"t,x\n{rows}")
    rules = ["x > .8", "x > 1.2", "x > 1.6"]
    code = "".join(f"@dg.source\ndef rule{i}(s):\n    return 1 if s.{rule} else -1\n" for i, rule in enumerate(rules))
    (tmp_path / "sources.py").write_text(f"import dugong as dg\n{code}")
    project = 'data = "raw"\ntime = "t"\nsources = "sources.py"\n'
    kept = []
    for settings in ('every = "1s"', 'every = "1s"', 'every = "1s"\nreduce = "max"', 'every = "0.5s"'):
        (tmp_path / "project.toml").write_text(f"{project}{settings}\n")
        kept.append("votes of an earlier run are kept" in cli("run", tmp_path / "project.toml").err)
    assert kept == [False, True, False, False]
    (tmp_path / "raw").rename(tmp_path / "other")
    (tmp_path / "project.toml").write_text((tmp_path / "project.toml").read_text().replace('"raw"', '"other"'))
    assert "votes of an earlier run are kept" not in cli("run", tmp_path / "project.toml").err
