"""Files of votes: identities, versions, and what happens to broken ones."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.codec import encode
from dugong.exceptions import VoteError
from dugong.paths import write_atomically
from dugong.votes import Votes
from dugong.votes.files import pack, write_npz
from dugong.votes.parquet import write_parquet
from strategies import votes as any_votes

KINDS = ("parquet", "npz")
VOTES = Votes.from_dense(np.random.default_rng(0).integers(-1, 2, (4000, 3)), [1000, 3000], ids=["a", "b"])


@given(any_votes(), st.sampled_from(KINDS))
def test_write_then_read_is_the_identity(votes, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"votes.{kind}")
        votes.write(path)
        again = Votes.read(path)
        assert again.equals(votes)
        assert again.faults == votes.faults
        assert [source.resolution.name for source in again.sources] == [s.resolution.name for s in votes.sources]
        if votes.time is not None:
            assert again.time.rounding == votes.time.rounding
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize("kind", KINDS)
def test_the_rounding_report_is_kept(tmp_path, kind):
    rows = {"sequence": ["a"], "source": ["x"], "start": [0.0], "end": [1.26], "vote": [1]}
    votes = Votes.from_long(rows, unit="second", rate=10)
    votes.write(tmp_path / f"votes.{kind}")
    again = Votes.read(tmp_path / f"votes.{kind}")
    assert again.time.rounding == votes.time.rounding
    assert again.time.rounding.n_moved == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_file_says_so(tmp_path, kind, share):
    path = tmp_path / f"votes.{kind}"
    VOTES.write(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(VoteError, match=r"cannot be read(.|\n)*truncated or damaged: write it again, or copy it again"):
        Votes.read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_byte_is_noticed(tmp_path, kind):
    path = tmp_path / f"votes.{kind}"
    VOTES.write(path)
    data = bytearray(path.read_bytes())
    noticed = 0
    for place in range(200, 700, 50):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        path.write_bytes(broken)
        try:
            same = Votes.read(path).equals(VOTES)
        except VoteError:
            noticed += 1
        else:
            assert same  # the byte did not matter (padding of a page or an archive)
    assert noticed >= 5


def newer(kind: str, path: Path, **changes: object) -> None:
    stored = pack(VOTES)
    header = {**encode(stored.header), **changes}
    write = write_parquet if kind == "parquet" else write_npz
    with path.open("wb") as handle:
        write(type(stored)(header=header, arrays=stored.arrays), handle)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("changes", [{"version": 2}, {"storage": "bits"}])
def test_a_newer_file_says_what_to_do(tmp_path, kind, changes):
    path = tmp_path / f"votes.{kind}"
    newer(kind, path, **changes)
    with pytest.raises(VoteError, match=r"written by a newer version(.|\n)*pip install --upgrade dugong-ws"):
        Votes.read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_header_without_its_facts_is_damaged(tmp_path, kind):
    path = tmp_path / f"votes.{kind}"
    newer(kind, path, sources=[{"name": "other", "resolution": {"kind": "element"}, "shares": None}])
    with pytest.raises(VoteError, match=r"lacks 'vote:other'(.|\n)*truncated or damaged"):
        Votes.read(path)


def test_foreign_files_say_what_they_are(tmp_path):
    table = pa.table({"sequence": ["a"], "source": ["x"], "start": [0], "end": [1], "vote": [1]})
    pq.write_table(table, tmp_path / "long.parquet")
    with pytest.raises(VoteError, match=r"holds no votes written by Dugong\.\n.*Votes\.from_long"):
        Votes.read(tmp_path / "long.parquet")
    np.savez(tmp_path / "plain.npz", votes=np.zeros(3))
    with pytest.raises(VoteError, match=r"holds no votes written by Dugong\.\n.*Votes\.from_dense"):
        Votes.read(tmp_path / "plain.npz")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive, archive.open("header.npy", "w") as member:
        np.lib.format.write_array(member, np.frombuffer(json.dumps({"format": "x"}).encode(), dtype=np.uint8))
    with pytest.raises(VoteError, match="something else than votes"):
        Votes.read(tmp_path / "other.npz")


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([{"format": "dugong-votes"}], dtype=object))
    with pytest.raises(VoteError, match="allow_pickle=False"):
        Votes.read(tmp_path / "evil.npz")


def test_absent_files_and_folders(tmp_path):
    with pytest.raises(VoteError, match="there is no file"):
        Votes.read(tmp_path / "votes.npz")
    with pytest.raises(VoteError, match="there is no folder"):
        VOTES.write(tmp_path / "absent" / "votes.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "votes.npz"
    VOTES.write(path)

    def fail(handle):
        handle.write(b"half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_atomically(path, fail)
    assert Votes.read(path).equals(VOTES)
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_is_a_plain_matrix_for_other_tools(tmp_path):
    VOTES.write(tmp_path / "votes.parquet")
    table = pq.read_table(tmp_path / "votes.parquet", columns=["vote:s0", "vote:s1", "vote:s2"])
    assert np.array_equal(np.stack([column.to_numpy() for column in table.columns]), np.stack(VOTES.columns))


def test_names_with_dots_do_not_mix_columns(tmp_path):
    votes = Votes.from_tasks({"a": [1, 0], "a.b": [-1, 1], "a.b.npy": [0, 1]}, [2])
    for kind in KINDS:
        votes.write(tmp_path / f"votes.{kind}")
        assert Votes.read(tmp_path / f"votes.{kind}").equals(votes)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("vote:s0", pa.array([None] + [1] * 3999, pa.int8()), "vote:s0 must have 4,000 values; found empty ones"),
        ("vote:s0", pa.array([0.9] * 4000), "'vote:s0' must hold int8; found double"),
        ("vote:s0", pa.array([257] * 4000), "'vote:s0' must hold int8; found int64"),
        ("vote:s0", pa.array(["1"] * 4000), "'vote:s0' must hold int8; found string"),
        ("lengths", pa.array([1000.7, 3000.2] + [None] * 3998), "'lengths' must hold int64; found double"),
        ("ids", pa.array(["a", None] + [None] * 3998), "ids must have 2 values; found empty ones"),
    ],
)
def test_columns_of_parquet_are_never_cast(tmp_path, name, values, message):
    path = tmp_path / "votes.parquet"
    VOTES.write(path)
    table = pq.read_table(path)
    other = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(other.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(VoteError, match=message):
        Votes.read(path)


def test_row_groups_of_any_size_are_the_same_votes(tmp_path):
    VOTES.write(tmp_path / "votes.parquet")
    table = pq.read_table(tmp_path / "votes.parquet")
    with pq.ParquetWriter(tmp_path / "ragged.parquet", table.schema) as writer:
        for start in range(0, 4000, 700):
            writer.write_table(table.slice(start, 700), row_group_size=93)
    assert Votes.read(tmp_path / "ragged.parquet").equals(VOTES)


def test_a_column_that_ends_before_its_rows_is_refused(tmp_path, monkeypatch):
    """Room that nothing was written to must never be taken for votes."""
    VOTES.write(tmp_path / "votes.parquet")
    whole = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, **options: (one.slice(0, 100) for one in whole(self, **options))
    )
    with pytest.raises(VoteError, match="vote:s0 must have 4,000 values; found 100"):
        Votes.read(tmp_path / "votes.parquet")
