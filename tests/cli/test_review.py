"""The verb `review`: a table to fill in, and its answers used."""

import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import dugong as dg


@pytest.fixture
def project(tmp_path, cli):
    world = dg.worlds.multiresolution(seed=3)
    votes, truth = world.sample(40, rng=3)
    votes.write(tmp_path / "votes.parquet")
    dg.LabelModel(prior=world.prior, dependencies=()).fit(votes).save(tmp_path / "model.json")
    files = [str(tmp_path / "model.json"), str(tmp_path / "votes.parquet")]

    def call(verb, *options):
        done = cli(verb, *files, *options)
        assert done.code == 0, done.err
        return done

    return tmp_path, call, truth[dg.Element()]


def test_a_table_is_filled_in_and_used(project):
    folder, call, truth = project
    path = folder / "to-check.csv"
    call("review", "--budget", "6", "-o", str(path))
    table = csv.read_csv(path)
    assert table.num_rows == 6
    assert set(table.column_names) >= {"sequence", "start", "end", "label", "guess", "probability", "worth"}
    rows = [
        5 * int(one) + at for one, at in zip(table["sequence"].to_pylist(), table["start"].to_pylist(), strict=True)
    ]
    lines = ["sequence,start,end,label"]  # the last row stays empty: not looked at
    for k, row in enumerate(rows):
        lines.append(f"{row // 5},{row % 5},{row % 5 + 1},{truth[row] if k < 5 else ''}")
    path.write_text("\n".join(lines) + "\n")
    out = folder / "labels.parquet"
    call("label", "--known", str(path), "-o", str(out), "--resolution", "element")
    confidence = np.array(parquet.read_table(out)["confidence"].to_pylist())
    assert (confidence[rows[:5]] > 1 - 1e-9).all()
    assert confidence[rows[5]] < 1
    again = call("review", "--budget", "6", "--known", str(path), "--json").json
    asked = {(int(one), at) for one, at in zip(again["sequences"], again["elements"], strict=True)}
    assert not asked & {(row // 5, row % 5) for row in rows[:5]}


def test_whole_sequences_by_entropy(project):
    folder, call, _ = project
    path = folder / "to-check.parquet"
    call("review", "--by", "entropy", "--budget", "3", "-o", str(path))
    assert parquet.read_table(path)["end"].to_pylist() == [5, 5, 5]


def test_a_project_is_asked_about_its_last_run(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("init", "walking").code == 0
    not_yet = cli("review", "walking/project.toml")
    assert not_yet.code == 2
    assert "`dugong run` writes them" in not_yet.err
    assert cli("run", "walking/project.toml").code == 0
    first = cli("review", "walking/project.toml", "--budget", "3", "--json").json
    known = [f"{one},{at},{at + 1},1" for one, at in zip(first["sequences"], first["elements"], strict=True)]
    (tmp_path / "walking" / "looked.csv").write_text("\n".join(["sequence,start,end,label", *known]) + "\n")
    with (tmp_path / "walking" / "project.toml").open("a") as file:
        file.write('train_gold = "looked.csv"\n')
    again = cli("review", "walking/project.toml", "--budget", "3", "--json").json
    asked = [set(zip(one["sequences"], one["elements"], strict=True)) for one in (first, again)]
    assert len(asked[1]) == 3
    assert not asked[0] & asked[1]
