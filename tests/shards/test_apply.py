"""Applying in shards: continues after anything, runs what is new, never leaves half a file under its name."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.shards import VoteShards, apply_shards
from dugong.sources import Deferred
from dugong.types import MISSING

DATA = {f"v{n:02d}": list(np.random.default_rng(n).normal(size=6 + n % 4)) for n in range(23)}


@dg.source
def high(x):
    return 1 if x > 0.3 else -1


@dg.source(resolution=dg.Window(size=3))
def mean(window):
    return 1 if sum(window) > 0 else 0


@dg.source(name="high")
def other_high(x):
    return 1 if x > 0.4 else -1


@dg.source
def low(x):
    return -1 if x < -0.2 else 0


@dg.source
def breaks(x):
    raise KeyError("no model")


def run(sources, folder: Path, data=DATA, **options):
    return apply_shards(sources, data, folder, shard_size=5, progress=False, **options)


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_shards_hold_what_apply_returns(tmp_path: Path) -> None:
    done = run([high, mean], tmp_path / "votes")
    assert dg.Votes.concat(done.shards).equals(dg.apply([high, mean], DATA, progress=False))
    assert (len(done.shards), done.n_written, done.n_kept) == (5, 5, 0)
    assert done.report.n_sequences == 23
    assert [one.votes for one in done.report.sources] == [sum(map(len, DATA.values())), done.report.sources[1].votes]


def test_the_same_call_again_runs_nothing(tmp_path: Path) -> None:
    run([high, mean], tmp_path)
    before = files_of(tmp_path)
    again = run([high, mean], tmp_path)
    assert again.ran == {"high": 0, "mean": 0}
    assert (again.n_written, again.n_kept) == (0, 5)
    assert files_of(tmp_path) == before
    assert run([high, mean], tmp_path, restart=True).ran == {"high": 23, "mean": 23}
    assert files_of(tmp_path) == before


def test_a_new_source_runs_alone_and_a_changed_one_again(tmp_path: Path) -> None:
    run([high, mean], tmp_path / "a")
    assert run([high, mean, low], tmp_path / "a").ran == {"high": 0, "mean": 0, "low": 23}
    assert run([other_high, mean, low], tmp_path / "a").ran == {"high": 23, "mean": 0, "low": 0}
    assert run([low, other_high], tmp_path / "a").ran == {"low": 0, "high": 0}
    run([low, other_high], tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_new_sequences_run_alone(tmp_path: Path) -> None:
    run([high, mean], tmp_path / "a", dict(list(DATA.items())[:13]))
    assert run([high, mean], tmp_path / "a").ran == {"high": 10, "mean": 10}
    run([high, mean], tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    run([high, mean], tmp_path / "a", dict(list(DATA.items())[:7]))
    assert VoteShards.open(tmp_path / "a").n_sequences == 7


def test_only_one_source(tmp_path: Path) -> None:
    run([high, mean], tmp_path / "a")
    assert run([other_high, mean, low], tmp_path / "a", only="low").ran == {"high": 0, "mean": 0, "low": 23}
    assert run([other_high, mean, low], tmp_path / "a").ran == {"high": 23, "mean": 0, "low": 0}
    alone = dg.Votes.concat(run([high, low], tmp_path / "b", only="low").shards)
    assert (alone.column("high") == dg.MISSING).all()
    assert run([high, low], tmp_path / "b").ran == {"high": 23, "low": 0}


def test_faults_are_kept_and_stop_a_run_that_does_not_want_them(tmp_path: Path) -> None:
    run([high, breaks], tmp_path, on_fault="abstain")
    again = run([high, breaks], tmp_path, on_fault="abstain")
    assert again.ran == {"high": 0, "breaks": 0}
    assert again.report.n_faults == sum(map(len, DATA.values())) == again.report.sources[1].faults
    with pytest.raises(dg.SourceError, match="'breaks' raised KeyError"):
        run([high, breaks], tmp_path)
    with pytest.raises(dg.VoteError, match="not complete"):
        VoteShards.open(tmp_path)


def test_damaged_and_foreign_files_are_made_again(tmp_path: Path) -> None:
    run([high, mean], tmp_path)
    before = files_of(tmp_path)
    (tmp_path / "part-00001.parquet").write_bytes(before["part-00001.parquet"][:500])
    (tmp_path / "part-00003.json").write_bytes(before["part-00003.json"][:60])
    (tmp_path / ".part-00004.parquet.0a0a1b1b.part").write_bytes(b"half")
    assert run([high, mean], tmp_path).ran == {"high": 10, "mean": 10}
    assert files_of(tmp_path) == before


def test_other_settings_run_anew(tmp_path: Path) -> None:
    run([high], tmp_path)
    assert run([high], tmp_path, background=-1).ran == {"high": 23}


def test_another_way_from_files_to_elements_runs_anew(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name in "ab":
        rows = "".join(f"{i / 4},{i % 7}\n" for i in range(40))
        (tmp_path / "raw" / f"{name}.csv").write_text(f"t,x\n{rows}")

    @dg.source
    def large(second):
        return 1 if second.x > 3 else -1

    def read(**timing):
        return dg.loaders.csv_folder(tmp_path / "raw", time="t", **timing)

    ran = [
        run([large], tmp_path / "votes", read(**timing)).ran["large"]
        for timing in (
            {"every": "1s"},
            {"every": "1s"},
            {"every": "1s", "reduce": "max"},
            {"every": "1s", "reduce": np.ptp},
            {"every": "0.5s", "reduce": np.ptp},
            {"every": "0.5s", "reduce": np.ptp},
        )
    ]
    assert ran == [2, 0, 2, 2, 2, 0]
    (tmp_path / "raw" / "A.csv").write_text((tmp_path / "raw" / "a.csv").read_text())  # the new first file, alone
    assert run([large], tmp_path / "votes", read(every="0.5s", reduce=np.ptp)).ran == {"large": 1}


def test_a_file_that_changes_is_voted_on_anew_and_one_that_is_touched_is_not(tmp_path: Path) -> None:
    raw, votes = tmp_path / "raw", tmp_path / "votes"
    raw.mkdir()
    for number in range(12):
        np.save(raw / f"v{number:02d}.npy", DATA[f"v{number:02d}"])

    def again(sources, **options) -> tuple[dict[str, int], dg.Votes]:
        done = run(sources, votes, dg.loaders.npy_folder(raw), **options)
        return dict(done.ran), dg.Votes.concat(done.shards)

    assert again([high, low])[0] == {"high": 12, "low": 12}
    for file in raw.iterdir():
        os.utime(file, (1, 1))
    before = files_of(votes)
    assert again([high, low])[0] == {"high": 0, "low": 0}
    assert files_of(votes) == before
    np.save(raw / "v07.npy", -np.array(DATA["v07"]))  # of the same size
    ran, found = again([high, low])
    assert ran == {"high": 1, "low": 1}
    turned = DATA | {"v07": [-x for x in DATA["v07"]]}
    expected = dg.apply([high, low], {key: turned[key] for key in sorted(turned)[:12]}, progress=False)
    assert found.equals(expected)
    np.save(raw / "v03.npy", np.ones(5))  # of another length: no vote of the old file stays
    ran, found = again([high, low], only="high")
    assert ran == {"high": 1, "low": 0}
    assert (found[[3]].column("low") == MISSING).all()


def test_the_file_behind_a_deferred_sequence_is_watched(tmp_path: Path) -> None:
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.ones(4))
    data = {name: Deferred(np.load, str(tmp_path / f"{name}.npy")) for name in "ab"}
    assert run([high], tmp_path / "votes", data).ran == {"high": 2}
    np.save(tmp_path / "b.npy", np.zeros(4))
    assert run([high], tmp_path / "votes", data).ran == {"high": 1}


def test_lines_that_change_are_voted_on_anew(tmp_path: Path) -> None:
    @dg.source
    def long_word(word):
        return 1 if len(word) > 3 else -1

    (tmp_path / "notes.txt").write_text("a note\nof three\nlines\n")
    run([long_word], tmp_path / "votes", dg.loaders.text_lines(tmp_path / "notes.txt"))
    (tmp_path / "notes.txt").write_text("a note\nof seven\nlines\n")
    assert run([long_word], tmp_path / "votes", dg.loaders.text_lines(tmp_path / "notes.txt")).ran == {"long_word": 1}


def test_a_loader_whose_code_changes_runs_anew(tmp_path: Path) -> None:
    def halves():
        return {key: [x / 2 for x in values] for key, values in DATA.items()}

    def doubles():
        return {key: [x * 2 for x in values] for key, values in DATA.items()}

    ran = [run([high], tmp_path, make(), made_by=make).ran["high"] for make in (halves, halves, doubles, doubles)]
    assert ran == [23, 0, 23, 0]


def test_data_that_change_under_their_id(tmp_path: Path) -> None:
    run([high], tmp_path)
    longer = DATA | {"v03": [1.0] * 99}
    with pytest.raises(dg.SourceError, match=r"'v03' must be what it was.*99 elements now, and had 9(.|\n)*--restart"):
        run([high, low], tmp_path, longer)
    assert run([high, low], tmp_path, longer, restart=True).ran == {"high": 23, "low": 23}


def test_a_source_that_ends_the_interpreter_names_its_sequence_and_the_rest_resumes(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    @dg.source
    def deadly(x, flag=str(flag)):
        return os._exit(9) if x == DATA["v12"][0] and not Path(flag).exists() else 1

    with pytest.raises(dg.SourceError, match=r"exit code 9 while it worked on sequence 'v12' \(source 'deadly'\)"):
        run([high, deadly], tmp_path / "a", n_jobs=2)
    flag.touch()
    again = run([high, deadly], tmp_path / "a", n_jobs=2)
    assert 0 < again.n_kept < 5
    run([high, deadly], tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


SCRIPT = """
import sys, time
import dugong as dg
from dugong.shards import apply_shards, fit_shards, label_shards

@dg.source
def a(x):
    time.sleep(0.0005)
    return 1 if x[0] > 0 else -1

@dg.source
def b(x):
    return 1 if x[1] > 0 else -1

@dg.source
def c(x):
    return 1 if x[2] > 0 else 0

def data():
    for n in range(60):
        yield f"v{n}", [[((n * 7 + t * k) % 11) - 5 for k in (1, 2, 3)] for t in range(12)]

done = apply_shards([a, b, c], data(), sys.argv[1] + "/votes", shard_size=3, progress=False)
model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.6), dependencies=())
fit_shards(model, done.shards, keep=sys.argv[1] + "/keep")
model.save(sys.argv[1] + "/model.json")
label_shards(model, done.shards, sys.argv[1] + "/labels")
print("done")
"""


def outputs(folder: Path) -> dict[str, bytes]:
    return files_of(folder / "votes") | files_of(folder / "labels") | {"model": (folder / "model.json").read_bytes()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], check=True, capture_output=True)
    return folder


def test_kill_9_at_random_moments(undisturbed: Path, tmp_path: Path) -> None:
    """The undisturbed run and one that is killed in every step leave the same bytes; `make bench-kills` is longer."""
    command, killed, chance = [sys.executable, "-c", SCRIPT], tmp_path, random.Random(5)
    for part in ("votes", "votes", "keep", "labels"):
        moment = len(list((killed / part).glob("part-*"))) + chance.randint(1, 12)
        with subprocess.Popen([*command, str(killed)], stdout=subprocess.PIPE) as process:
            while process.poll() is None and len(list((killed / part).glob("part-*"))) < moment:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            assert b"done" not in process.communicate()[0]
        if part == "votes":
            with pytest.raises(dg.VoteError, match="not complete"):
                VoteShards.open(killed / "votes")
    subprocess.run([*command, str(killed)], check=True, capture_output=True)
    assert outputs(killed) == outputs(undisturbed)


def test_a_full_disk(undisturbed: Path, tmp_path: Path) -> None:
    """No file may be larger than a few kilobytes: the error says so, nothing half-written counts, then it goes on."""
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
    head, _, body = SCRIPT.partition("import dugong")
    command = [sys.executable, "-c", f"{head}{limited}import dugong{body}"]
    largest = max(len(one) for one in files_of(undisturbed / "votes").values())
    for limit in (1000, largest - 1):
        stopped = subprocess.run([*command, str(tmp_path), str(limit)], capture_output=True, text=True, check=False)
        assert stopped.returncode == 1
        assert "DiskFullError: there is no room for " in stopped.stderr
        assert "make room, and run the same again" in stopped.stderr
        assert not list(tmp_path.rglob("*.part"))
    subprocess.run([*command, str(tmp_path), "-1"], check=True, capture_output=True)
    assert outputs(tmp_path) == outputs(undisturbed)
