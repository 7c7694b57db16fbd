"""From a recipe to a table: what is measured, kept, found again, and said when something is absent."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny_task as tiny
from dugong.exceptions import DugongError, PriorError, TaskError
from dugong.experiments import Reproduction, measure, reproduce, training
from dugong.experiments.methods import ABLATIONS, PRIORS, TABLE1, certain, fit_labels, with_estimator
from dugong.experiments.recipe import prepare
from dugong.experiments.training import TrainingRows, decided, examples
from dugong.graph import temporal
from dugong.law.parameters import Conditional, Temporal
from dugong.priors import Markov, Patterns, Uniform

FOLDER = Path(__file__).parent.parent


def run(output: Path, what="table1", **options) -> Reproduction:
    settings = {"tasks": [tiny.RECIPE], "quick": True, "seeds": 2, "jobs": 1, "output": output} | options
    return reproduce(what, **settings)


@pytest.fixture(scope="module", autouse=True)
def no_folder_is_named() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DUGONG_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    output = tmp_path_factory.mktemp("finished")
    return output, run(output)


@pytest.fixture
def case(tmp_path: Path):
    return prepare(tiny.RECIPE, tiny.generate(tiny.SIZE, 0, tmp_path), small=True)


def test_table1_has_a_row_per_method_with_scores_above_chance(finished) -> None:
    output, made = finished
    records = [line for line in made.tables[0].records if line["data"] == "simulated"]
    assert [line["method"] for line in records] == [method.name for method in TABLE1]
    assert all(line["f1_mean"] > 70 for line in records)
    without_labels = [line["method"] for line in records if line["labels_f1_mean"] is None]
    assert (
        without_labels == [line["method"] for line in records if line["train_labels_f1_mean"] is None] == ["TS", "gold"]
    )
    kept = [path.name for path in (output / "cells").iterdir()]
    assert len([name for name in kept if "-end-" in name]) == len(kept) / 2 == 2 * len(TABLE1)
    assert (output / "table1.md").read_text() == f"{made}\n"


def test_a_second_run_computes_nothing(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    output, made = finished
    monkeypatch.setattr(measure, "_measured", None)
    monkeypatch.setattr(measure, "simulated", None)
    assert str(run(output)) == str(made)


def count_trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds of the end models that are trained from now on."""
    seen: list[int] = []
    train = training.end_model_probabilities

    def watched(case, labels, seed, **options):
        seen.append(seed)
        return train(case, labels, seed, **options)

    monkeypatch.setattr(measure, "end_model_probabilities", watched)
    return seen


def test_methods_whose_labels_agree_share_one_end_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = count_trainings(monkeypatch)
    made = run(tmp_path, "ablations", seeds=1)
    scores = {line["method"]: line["f1_mean"] for line in made.tables[0].records if line["data"] == "simulated"}
    # No dependency is declared, so leaving all of them out changes nothing.
    assert scores["Dugong"] == scores["without dependencies"]
    assert len(trained) == 2
    run(tmp_path, "priors", seeds=1)
    assert len(trained) == 4


def test_a_changed_label_model_trains_only_what_its_labels_change(
    finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, made = finished
    shutil.copytree(output, tmp_path / "later")
    fitted, digest_of = [], measure.library_digest
    monkeypatch.setattr(measure, "library_digest", lambda *files, **more: digest_of(*files, **more) + "," * (not more))

    def fit(method, case, seed):
        fitted.append(method.name)
        return fit_labels(replace(method, prior="dev") if method.name == "Dugong" else method, case, seed)

    monkeypatch.setattr(measure, "fit_labels", fit)
    trained = count_trainings(monkeypatch)
    again = run(tmp_path / "later")
    assert fitted == 2 * [method.name for method in TABLE1]
    assert trained == [0, 1]
    rows = [[row for row in one.tables[0].rows if row["method"] != "Dugong"] for one in (again, made)]
    assert rows[0] == rows[1]


def test_restart_computes_all_and_finds_the_same(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    output, made = finished
    seen = []
    real = measure._measured
    monkeypatch.setattr(measure, "_measured", lambda *args: seen.append(args) or real(*args))
    assert str(run(output, seeds=1, restart=True)) == str(run(output, seeds=1))
    assert len(seen) == len(TABLE1)
    assert str(run(output)) == str(made)


def test_a_full_run_keeps_checkpoints_only_while_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    train = training.end_model_probabilities

    def watched(case, labels, seed, **options):
        found = train(case, labels, seed, **options)
        seen.append((options["checkpoint"], options["checkpoint"].is_file()))
        return found

    monkeypatch.setattr(measure, "end_model_probabilities", watched)
    run(tmp_path, quick=False, seeds=1)
    assert [(path.suffix, there) for path, there in seen] == [(".pt", True)] * len(TABLE1)
    assert {path.suffix for path in (tmp_path / "cells").iterdir()} == {".json"}


def test_absent_data_is_a_row_that_says_so(finished, tmp_path: Path) -> None:
    output, made = finished
    assert "not measured: no folder with real data was named" in str(made)
    assert "not measured: the real data must be in" in str(run(output, data=tmp_path))


def test_real_data_is_cached_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUGONG_DATA", str(tmp_path))
    found = []
    for seed in (3, 3, 4):
        np.save(tmp_path / "tiny.npy", seed)
        records = run(tmp_path / "out", seeds=1).tables[0].records
        found.append([line["labels_f1_mean"] for line in records if line["data"] == "Tiny"])
    assert found[0] == found[1] != found[2]


def test_a_killed_run_goes_on_and_ends_with_the_same_table(tmp_path: Path) -> None:
    tasks, output = [tiny.LABELS_ONLY], tmp_path / "killed"
    script = [
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import tiny_task; from dugong.experiments import reproduce",
        f"reproduce('table1', tasks=[tiny_task.LABELS_ONLY], quick=True, seeds=2, jobs=1, output={str(output)!r})",
    ]
    process = subprocess.Popen([sys.executable, "-c", "\n".join(script)], stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while not list(output.glob("cells/*.json")) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in (output / "cells").glob("*.json")}
    assert 0 < len(kept) < 2 * len(TABLE1)
    assert str(run(output, tasks=tasks)) == str(run(tmp_path / "whole", tasks=tasks))
    assert {name: (output / "cells" / name).stat().st_mtime_ns for name in kept} == kept


def test_a_method_that_fails_says_why_and_the_others_stand(tmp_path: Path) -> None:
    def refuse(gold):
        raise PriorError("no prior today.\n  Try again.")

    made = run(tmp_path, tasks=[replace(tiny.RECIPE, user_prior=refuse, load=None)], seeds=1)
    rows = {row["method"]: row for row in made.tables[0].rows}
    failed = {"Algorithm 1", "Dugong"}
    assert list(rows) == [one.name + " (*no prior today.*)" * (one.name in failed) for one in TABLE1]
    assert rows["Dugong (*no prior today.*)"]["F1"] == "-"


def test_without_an_end_model_the_labels_are_scored(tmp_path: Path) -> None:
    made = run(tmp_path, tasks=[tiny.LABELS_ONLY], seeds=1)
    rows = {row["method"]: row for row in made.tables[0].rows}
    assert rows["TS"]["F1"] == "-"
    assert rows["Dugong"]["F1"] == rows["Dugong"]["F1 of labels"] != "-"


def test_labels_only_trains_nothing(finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, made = finished
    monkeypatch.setattr(measure, "end_model_probabilities", None)
    fresh = run(tmp_path, labels_only=True)
    lines = fresh.tables[0].records[1:-1]
    assert [line["f1_mean"] for line in lines] == [line["labels_f1_mean"] for line in made.tables[0].records[1:-1]]
    # Where end models were trained, their labels are there.
    monkeypatch.setattr(measure, "fit_labels", None)
    assert str(run(output, labels_only=True)) == str(fresh)


def test_the_ceiling_learns_from_gold_labels_of_the_train_part(case) -> None:
    gold = np.array([-1, 1, 0], dtype=np.int8)
    np.testing.assert_array_equal(certain(gold), [[1, 0], [0, 1], [0.5, 0.5]])
    assert fit_labels(TABLE1[-1], case, 0) is None


def test_another_estimator_leaves_algorithm_1_as_it_is() -> None:
    chosen = {method.name: method.estimator for method in with_estimator(TABLE1, "sgd")}
    assert (chosen["Dugong"], chosen["Algorithm 1"]) == ("sgd", "paper")


def test_methods_use_the_prior_that_they_name(case) -> None:
    kinds = [type(fit_labels(method, case, 0).prior_) for method in PRIORS]
    assert kinds == [Uniform, Patterns, Markov]
    assert fit_labels(TABLE1[0], case, 0) is None


def test_ablations_change_one_part(case) -> None:
    recipe = replace(tiny.RECIPE, dependencies=(temporal("first"), ("second", "third")))
    whole, untied, free = (fit_labels(method, replace(case, recipe=recipe), 0) for method in ABLATIONS)
    assert whole.accuracies_["first"].shape == free.accuracies_["first"].shape == (2, 3)
    assert untied.accuracies_["first"].shape == (4, 2, 3)
    # Untying keeps every dependence, self-dependence as well.
    assert [list(model.correlations_) for model in (untied, free)] == [[("second", "third")], []]
    assert [type(model.parameters_["first"]) for model in (whole, untied, free)] == [Temporal, Temporal, Conditional]
    ragged = replace(case, all_votes=_shorter(case.all_votes))
    with pytest.raises(TaskError, match="found 3 to 4 elements"):
        fit_labels(ABLATIONS[1], ragged, 0)


def _shorter(votes):
    lengths = votes.lengths.copy()
    lengths[0] = 3
    return replace(votes, lengths=lengths, columns=tuple(np.delete(column, 3) for column in votes.columns))


def test_rows_are_the_elements_in_order(case) -> None:
    rows = TrainingRows(case, tiny.RECIPE.end_model, "dev")
    assert len(rows) == len(case.gold("dev")) == 80
    np.testing.assert_array_equal(np.stack([rows[i] for i in range(80)]), examples(case, "dev"))
    whole = TrainingRows(case, replace(tiny.RECIPE.end_model, unit="sequence"), "dev")
    assert len(whole) == 20
    assert whole[3].shape == (4, 4)


def test_a_share_of_the_train_part_leaves_the_others(case) -> None:
    less = case.with_train_share(0.25)
    assert [len(less.material.ids(part)) for part in ("train", "dev", "test")] == [30, 20, 40]
    assert less.votes("test").equals(case.votes("test"))
    assert case.with_train_share(1.0) is case


@pytest.mark.parametrize(("options", "message"), [({"what": "table9"}, "there are table1"), ({"seeds": 0}, "at least")])
def test_what_cannot_be_reproduced_is_refused(tmp_path: Path, options, message) -> None:
    with pytest.raises(DugongError, match=message):
        run(tmp_path, **options)


def test_the_timeline_counts_false_positives(tmp_path: Path) -> None:
    made = run(tmp_path, "timeline", seeds=1)
    (record,) = made.tables[0].records
    assert record["n_elements"] == 160
    assert 0 <= record["DP false positives"] <= 160 - record["positive"]
    assert (tmp_path / "timeline.svg").stat().st_size > 1000
    stored = json.loads(next((tmp_path / "cells").iterdir()).read_text())
    assert {len(track) for track in stored["result"]["stretch"].values()} == {160}


def test_even_odds_count_as_negative_in_scores_and_in_training() -> None:
    labels = np.array([[0.5 - 1e-12, 0.5 + 1e-12], [0.3, 0.7], [0.5, 0.5]])
    np.testing.assert_array_equal(decided(labels), [[1, 0], [0.3, 0.7], [1, 0]])
    found = measure.scores_of(labels, np.array([-1, 1, -1], dtype=np.int8))
    assert found == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
