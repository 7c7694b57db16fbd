"""Places: paths stay paths, URLs behave like them, and files appear whole."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

import dugong as dg
from dugong.exceptions import VoteError
from dugong.paths import DeniedError, PlaceError, Url, locked, place_of, write_atomically


@pytest.fixture(params=["memory://", "local://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Url:
    """A folder that is reached through fsspec."""
    place = place_of(f"{request.param}{tmp_path}")
    assert isinstance(place, Url)
    return place


def test_what_is_a_url() -> None:
    assert place_of("votes") == Path("votes")
    assert place_of("file:///data/votes") == Path("/data/votes")
    assert place_of(Path("a") / "b") == Path("a/b")
    assert place_of("s3://bucket/votes/") == Url("s3://bucket/votes")
    assert place_of(Url("s3://bucket")) == Url("s3://bucket")


def test_names() -> None:
    place = place_of("s3://bucket/votes/part-1.parquet")
    assert (place.name, place.stem, place.suffix) == ("part-1.parquet", "part-1", ".parquet")
    assert str(place.with_suffix(".json")) == "s3://bucket/votes/part-1.json"
    assert place.parent / "x" == place.with_name("x") == Url("s3://bucket/votes/x")
    assert place.absolute() == place


def test_files_and_folders(root: Url) -> None:
    folder, file = root / "new", root / "new" / "a.txt"
    assert not folder.exists()
    assert list(folder.glob("*")) == []
    write_atomically(file, lambda handle: handle.write(b"abc"))
    write_atomically(root / "new" / ".hidden", lambda handle: handle.write(b""))
    assert (folder.is_dir(), file.is_file(), file.is_dir()) == (True, True, False)
    assert file.read_bytes() == b"abc"
    assert list(folder.glob("*.txt")) == [file]
    file.unlink()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        file.unlink()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()


def test_what_fails_leaves_what_was_there(root: Url) -> None:
    def fail(handle: object) -> None:
        raise OSError("no space left")

    file = root / "a.txt"
    write_atomically(file, lambda handle: handle.write(b"old"))
    with pytest.raises(OSError, match="no space"):
        write_atomically(file, fail)
    assert file.read_bytes() == b"old"


def test_votes_moments_and_models(root: Url) -> None:
    votes = dg.Votes.from_dense([[[1, -1, 1], [1, 1, 1], [-1, -1, 0]]] * 30)
    for suffix in (".parquet", ".npz"):
        votes.write(f"{root}/votes{suffix}")
        assert dg.Votes.read(f"{root}/votes{suffix}").equals(votes)
    model = dg.LabelModel(prior=dg.priors.Markov(positive=0.5, stay=0.5), dependencies=()).fit(votes)
    model.save(f"{root}/model.json")
    assert dg.LabelModel.load(f"{root}/model.json").accuracies_["s0"] == pytest.approx(model.accuracies_["s0"])
    model.moments_.save(f"{root}/moments.npz")
    assert dg.Moments.load(f"{root}/moments.npz").plan == model.moments_.plan
    with pytest.raises(dg.VoteError, match=r"there is no file .*://"):
        dg.Votes.read(f"{root}/none.parquet")


def _has_no_keys(*_: object) -> bool:
    raise RuntimeError("no keys")


def test_storage_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlaceError, match=r"foo://a cannot be reached(.|\n)*s3fs"):
        place_of("foo://a").exists()
    with monkeypatch.context() as patch:
        patch.setattr("fsspec.implementations.memory.MemoryFileSystem.exists", _has_no_keys)
        with pytest.raises(PlaceError, match=r"memory://a cannot be reached: RuntimeError: no keys\."):
            place_of("memory://a").exists()
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(dg.MissingExtraError, match=r"dugong-ws\[cloud\]"):
        place_of("memory://a").exists()


def test_a_device_or_a_pipe_is_never_replaced_by_a_file(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VoteError, match="must be a file; it is a device or a pipe"):
        write_atomically(tmp_path / "pipe", lambda handle: handle.write(b"x"))
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_where_nobody_may_write_the_place_is_named_and_not_the_file_beside_it(tmp_path, monkeypatch) -> None:
    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", denied)
    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(
        DeniedError, match=r"votes\.npz cannot be written: Permission denied\.\n  Choose another folder"
    ) as one:
        write_atomically(tmp_path / "votes.npz", lambda handle: handle.write(b"x"))
    assert ".part" not in str(one.value)
    with pytest.raises(DeniedError, match="out cannot be written"), locked(tmp_path / "out"):
        pass


@pytest.mark.parametrize("name", ["file", "file/out"])
def test_a_file_in_place_of_a_folder_is_said(tmp_path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PlaceError, match=f"{name} must be a folder; a file is there"), locked(tmp_path / name):
        pass
    assert (tmp_path / "file").read_text() == "mine"
