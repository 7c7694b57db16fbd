"""What is the user's stays the user's, and two runs do not write into one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dugong as dg
from dugong.paths import FolderBusyError, PlaceError, Url, locked
from dugong.shards import VoteShards, apply_shards, fit_shards, label_shards
from dugong.shards.folder import digest_file, stamp_of


@dg.source
def high(x):
    return 1 if x > 2 else -1


@dg.source
def odd(x):
    return 1 if x % 2 else -1


@dg.source
def low(x):
    return -1 if x < 4 else 1


def apply_to(folder: Path, n_sequences: int) -> VoteShards:
    data = {f"v{n}": [(n + t) % 7 for t in range(9)] for n in range(n_sequences)}
    return apply_shards([high, odd, low], data, folder, shard_size=2, progress=False).shards


def given_model() -> dg.LabelModel:
    return dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.6), dependencies=())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dg.LabelModel, VoteShards, VoteShards]:
    """A model, many shards and few shards."""
    many, few = (apply_to(tmp_path_factory.mktemp("votes"), n) for n in (12, 4))
    return fit_shards(given_model(), many), many, few


def put_files_of_a_user(folder: Path, elsewhere: Path) -> dict[Path, str]:
    """Names that look like ours: no run wrote them, so none may touch them."""
    folder.mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir(parents=True, exist_ok=True)
    names = ("part-of-my-thesis.csv", "part-of-my-thesis.parquet", "part-of-my-thesis.json", "part-00077.csv")
    names += ("part-00088.json", ".thesis.part", "mine.npz", "part-of.moments.npz")
    files = [folder / name for name in names]
    files += [elsewhere / "linked.csv", elsewhere / "named.csv"]
    for file in files:
        file.write_text(f"my own: {file.name}")
    (folder / "part-00099.csv").symlink_to(elsewhere / "linked.csv")
    # A stamp as an attacker would write it: it names paths, none of which is a file of this folder.
    claims = f'{{"../elsewhere/named.csv": {{}}, "{elsewhere / "named.csv"}": {{}}}}'
    (folder / "part-00098.json").write_text(claims)
    (folder / "part-00098.csv").write_text("my own: claimed")
    files += [folder / "part-00099.csv", folder / "part-00098.csv", folder / "part-00098.json"]
    return {file: file.read_text() for file in files}


def check_untouched(files: dict[Path, str]) -> None:
    assert {file: file.read_text() for file in files} == files


def test_label_removes_what_it_wrote_before_and_nothing_else(made, tmp_path: Path) -> None:
    model, many, few = made
    folder = tmp_path / "labels"
    mine = put_files_of_a_user(folder, tmp_path / "elsewhere")
    label_shards(model, many, folder)
    assert len(list(folder.glob("part-0000?.parquet"))) == 6
    label_shards(model, few, folder)
    assert [file.name for file in sorted(folder.glob("part-0000?.*"))] == [
        f"part-0000{number}.{suffix}" for number in (0, 1) for suffix in ("json", "parquet")
    ]
    check_untouched(mine)
    assert (folder / "part-00099.csv").is_symlink()


def test_apply_and_write_remove_what_they_wrote_before_and_nothing_else(made, tmp_path: Path) -> None:
    folder = tmp_path / "votes"
    mine = put_files_of_a_user(folder, tmp_path / "elsewhere")
    assert len(apply_to(folder, 12)) == 6
    assert len(apply_to(folder, 4)) == 2
    assert len(VoteShards.write(iter(made[1]), folder)) == 6
    assert len(VoteShards.write(iter(made[2]), folder)) == 2
    assert not (folder / "part-00002.parquet").exists()
    assert not (folder / "part-00002.json").exists()
    check_untouched(mine)


def test_fit_removes_sums_of_lost_shards_and_nothing_else(made, tmp_path: Path) -> None:
    _, many, few = made
    mine = put_files_of_a_user(tmp_path / "keep", tmp_path / "elsewhere")
    fit_shards(given_model(), many, keep=tmp_path / "keep")
    assert (tmp_path / "keep" / "part-00005.moments.npz").exists()
    fit_shards(given_model(), few, keep=tmp_path / "keep")
    assert not list((tmp_path / "keep").glob("part-00005.*"))
    check_untouched(mine)


DIES = """
import os, signal, sys
import dugong as dg
from dugong.shards import VoteShards, fit_shards
from dugong.shards import folder as stamps
stamps.move = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.6), dependencies=())
fit_shards(model, VoteShards.open(sys.argv[1]), keep=sys.argv[2])
"""


def test_what_a_killed_fit_was_writing_goes_and_nothing_else(made, tmp_path: Path) -> None:
    _, many, _ = made
    keep = tmp_path / "model.parts"
    died = subprocess.run([sys.executable, "-c", DIES, str(many.folder), str(keep)], check=False)
    assert died.returncode == -signal.SIGKILL
    left = [file.name for file in keep.glob(".*.part")]
    assert len(left) == 1
    assert left[0].startswith(".part-00000.")
    mine = put_files_of_a_user(keep, tmp_path / "elsewhere")
    names = ("notes.0123abcd.part", ".thesis.0123.part", ".thesis.0123ABCD.part", ".thesis.0123abcd.part.csv", "a.part")
    for name in names:
        mine[keep / name] = "mine"
        (keep / name).write_text("mine")
    (keep / ".link.0123abcd.part").symlink_to(tmp_path / "elsewhere" / "linked.csv")
    (keep / ".folder.0123abcd.part").mkdir()
    fit_shards(given_model(), many, keep=keep).save(tmp_path / "kept.json")
    assert not (keep / left[0]).exists()
    check_untouched(mine)
    assert (keep / ".link.0123abcd.part").is_symlink()
    assert (keep / ".folder.0123abcd.part").is_dir()
    fit_shards(given_model(), many).save(tmp_path / "calm.json")
    assert (tmp_path / "kept.json").read_bytes() == (tmp_path / "calm.json").read_bytes()


@pytest.mark.parametrize("rows", [None, "12", -1.5])
def test_a_stamp_without_its_count_is_written_anew(made, tmp_path: Path, rows: object) -> None:
    model, many, _ = made
    wanted = label_shards(model, many, tmp_path)
    stamp = tmp_path / "part-00001.json"
    states = json.loads(stamp.read_text())
    stamp.write_text(json.dumps({digest: state | {"rows": rows} for digest, state in states.items()}))
    found = label_shards(model, many, tmp_path)
    assert (found.n_rows, found.n_kept, found.n_done) == (wanted.n_rows, 5, 1)


def test_stamps_that_name_or_link_to_foreign_files_remove_none_of_them(made, tmp_path: Path) -> None:
    """Stamps as a stranger would write them: they know the bytes of files outside, by paths and through links."""
    model, many, few = made
    outside, labels, keep = tmp_path / "outside", tmp_path / "labels", tmp_path / "keep"
    outside.mkdir()
    mine = {outside / name: f"mine: {name}" for name in ("a.csv", "b.csv", "c.json", "d.npz")}
    for file, text in mine.items():
        file.write_text(text)
    known = {digest_file(file): {"rows": 1, "files": [f"../outside/{file.name}", str(file)]} for file in mine}
    known |= {path: {} for file in mine for path in (f"../outside/{file.name}", str(file))}
    for folder, suffix in ((labels, ".csv"), (keep, ".npz")):
        folder.mkdir()
        for stem in ("part-00090", "part-00091", "part-00092"):
            (folder / f"{stem}.json").write_text(json.dumps(known))
        (folder / f"part-00090{suffix}").symlink_to(outside / "a.csv")  # a link whose bytes the stamp knows
        (folder / f"part-00091{suffix}").symlink_to("../outside/d.npz")
        (folder / "part-00093.json").symlink_to(outside / "c.json")  # a stamp that is a link
        (folder / "part-00094.json").symlink_to("part-00090.json")  # a link to a stamp that knows the user's bytes
        mine[folder / f"part-00094{suffix}"] = "mine: b.csv"
        (folder / f"part-00094{suffix}").write_text("mine: b.csv")
    before = {file: file.is_symlink() for folder in (labels, keep) for file in folder.iterdir()}
    for shards in (many, few):
        label_shards(model, shards, labels)
        fit_shards(given_model(), shards, keep=keep)
    check_untouched(mine)
    assert {file: file.is_symlink() for file in before} == before
    assert not (labels / "part-00005.parquet").exists()


def test_a_file_that_a_user_put_in_place_of_an_old_shard_stays(made, tmp_path: Path) -> None:
    model, many, few = made
    label_shards(model, many, tmp_path)
    (tmp_path / "part-00004.parquet").write_text("mine now")
    label_shards(model, few, tmp_path)
    assert (tmp_path / "part-00004.parquet").read_text() == "mine now"
    assert not (tmp_path / "part-00005.parquet").exists()


def test_labels_in_another_format_replace_the_old_ones(made, tmp_path: Path) -> None:
    model, many, _ = made
    label_shards(model, many, tmp_path, suffix=".csv")
    label_shards(model, many, tmp_path)
    assert {file.suffix for file in tmp_path.glob("part-*")} == {".parquet", ".json"}
    assert label_shards(model, many, tmp_path).n_kept == 6


def test_a_file_of_a_user_is_not_written_over(made, tmp_path: Path) -> None:
    model, many, _ = made
    (tmp_path / "part-00003.parquet").write_text("mine")
    said = r"holds part-00003.parquet, which Dugong did not write there.\n  Move it, or choose another folder."
    with pytest.raises(dg.VoteError, match=said):
        label_shards(model, many, tmp_path)
    with pytest.raises(dg.VoteError, match=said):
        apply_to(tmp_path, 12)
    with pytest.raises(dg.VoteError, match=said):
        VoteShards.write(iter(many), tmp_path)
    assert (tmp_path / "part-00003.parquet").read_text() == "mine"


@pytest.mark.parametrize("text", ['{"notes": "mine"}', "[1, 2]", "mine", '{"a": 1}\n{"a": 2}\n'])
def test_a_file_of_a_user_that_is_called_like_a_stamp_is_not_written_over(made, tmp_path: Path, text: str) -> None:
    """With a file beside it, as pairs of data and notes are, and without."""
    model, many, _ = made
    notes = {tmp_path / "part-00003.json": text, tmp_path / "part-00002.counts.json": text}
    for file in notes:
        file.write_text(text)
    calls = (
        lambda: label_shards(model, many, tmp_path),
        lambda: apply_to(tmp_path, 12),
        lambda: VoteShards.write(iter(many), tmp_path),
        lambda: fit_shards(given_model(), many, keep=tmp_path),
    )
    for call in calls:
        with pytest.raises(
            dg.VoteError, match=r"holds part-0000[23](\.counts)?\.json, which Dugong did not write there"
        ):
            call()
        check_untouched(notes)
    (tmp_path / "part-00003.parquet").write_text("mine too")
    for call in calls[:3]:
        with pytest.raises(dg.VoteError, match=r"holds part-00003\.json, which Dugong did not write there"):
            call()
    check_untouched(notes | {tmp_path / "part-00003.parquet": "mine too"})


def test_other_votes_are_not_mixed_in(made, tmp_path: Path) -> None:
    next(iter(made[1])).write(tmp_path / "other.parquet")
    with pytest.raises(dg.VoteError, match=r"holds other\.parquet, which Dugong did not write there"):
        apply_to(tmp_path, 4)


def test_labels_do_not_go_over_their_votes(made, tmp_path: Path) -> None:
    shards = apply_to(tmp_path, 12)
    with pytest.raises(dg.LabelError, match=r"labels need a folder of their own; .* holds the votes"):
        label_shards(made[0], shards, tmp_path)
    assert len(VoteShards.open(tmp_path)) == 6


def test_a_damaged_shard_of_ours_is_still_an_error(tmp_path: Path) -> None:
    apply_to(tmp_path, 12)
    (tmp_path / "part-00002.parquet").write_bytes(b"half")
    with pytest.raises(dg.VoteError, match=r"part-00002.parquet cannot be read"):
        VoteShards.open(tmp_path)


# --- locks ---------------------------------------------------------------------------------------------------------
HOLD = """
import sys, time
from pathlib import Path
from dugong.paths import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other_run(tmp_path: Path):
    """Another process that writes into a folder."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_second_run_is_told_in_one_line(made, tmp_path: Path, other_run) -> None:
    model, many, _ = made
    calls = (
        lambda: label_shards(model, many, tmp_path),
        lambda: apply_to(tmp_path, 4),
        lambda: VoteShards.write(iter(many), tmp_path),
        lambda: fit_shards(given_model(), many, keep=tmp_path),
    )
    for call in calls:
        with pytest.raises(FolderBusyError) as error:
            call()
        assert str(error.value) == (
            f"{tmp_path} is in use by another run or by a studio: wait until that has ended, or choose another folder."
        )
    assert [file.name for file in tmp_path.iterdir()] == [".dugong.lock"]


def test_the_lock_of_a_run_that_was_killed_holds_nothing(made, tmp_path: Path, other_run) -> None:
    os.kill(other_run.pid, signal.SIGKILL)
    other_run.wait()
    assert (tmp_path / ".dugong.lock").exists()
    assert label_shards(made[0], made[1], tmp_path).n_done == 6


def test_blocks_may_be_nested_but_threads_are_apart(tmp_path: Path) -> None:
    found = []

    def try_it() -> None:
        try:
            with locked(tmp_path):
                found.append("entered")
        except FolderBusyError:
            found.append("busy")

    with locked(tmp_path), locked(tmp_path / "." / "."):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    try_it()
    assert found == ["busy", "entered"]
    assert not list(tmp_path.iterdir())


def test_a_lock_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".dugong.lock").symlink_to(mine)
    with pytest.raises(PlaceError, match=r"out cannot be locked: .*\.dugong\.lock"), locked(tmp_path / "out"):
        pass
    assert mine.read_text() == "mine"


def test_a_url_knows_no_locks() -> None:
    with locked(Url("memory://bucket/votes")), locked(Url("memory://bucket/votes")):
        pass


def test_stamps_lie_beside_their_files(tmp_path: Path) -> None:
    apply_to(tmp_path, 2)
    assert stamp_of(tmp_path / "part-00000.parquet").is_file()
