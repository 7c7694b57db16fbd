"""Folders of files and lines of text as sequences; what is absent stays absent."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dugong.sources import apply, source
from dugong.sources.loaders import (
    LoaderError,
    Rows,
    csv_folder,
    folder,
    npy_folder,
    parquet_folder,
    text_lines,
)
from dugong.tasks import Window


def write(place, **files):
    for name, text in files.items():
        (place / f"{name}.csv").write_text(text)
    return place


# --- rows -----------------------------------------------------------------------------------------------------------
def test_rows_are_read_by_row_by_slice_and_by_column():
    rows = Rows({"x": np.array([1.0, 2.0, 3.0]), "name": np.array(["a", None, "c"], dtype=object)})
    assert (len(rows), rows[1].x, rows[1]["x"], rows[-1].name, rows[1].name) == (3, 2.0, 2.0, "c", None)
    assert rows["x"].tolist() == [1.0, 2.0, 3.0]
    assert [row.x for row in rows[1:]] == [2.0, 3.0]
    assert rows[0].to_dict() == {"x": 1.0, "name": "a"}
    assert list(rows[0]) == [1.0, "a"]
    assert repr(rows[0]) == "Row(x=1.0, name='a')"
    assert not rows["x"].flags.writeable


def test_a_column_may_have_any_name():
    rows = Rows({"to_dict": np.array([4]), "heart rate": np.array([60]), "class": np.array([2])})
    assert rows[0]["to_dict"] == 4
    assert rows[0]["heart rate"] == 60
    assert rows[0].to_dict() == {"to_dict": 4, "heart rate": 60, "class": 2}


def test_unknown_columns_and_rows_are_explained():
    rows = Rows({"x": np.array([1.0])})
    with pytest.raises(AttributeError, match="there is no column 'y'; known are 'x'"):
        _ = rows[0].y
    with pytest.raises(KeyError, match="there is no column 'y'; known are 'x'"):
        rows[0]["y"]
    with pytest.raises(KeyError, match="there is no column 'y'; known are 'x'"):
        rows["y"]
    with pytest.raises(IndexError, match="row 1 of a table with 1 rows"):
        rows[1]
    with pytest.raises(LoaderError, match="must have one length"):
        Rows({"x": np.zeros(1), "y": np.zeros(2)})


def test_rows_and_row_can_be_pickled():
    rows = Rows({"x": np.array([1.0, 2.0])}, missing=np.array([False, True]), clock=(3.0, 2.0))
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301 (our own bytes)
    assert again["x"].tolist() == [1.0, 2.0]
    assert again.missing.tolist() == [False, True]
    assert again[1:].clock == (3.5, 2.0)
    assert pickle.loads(pickle.dumps(rows[1])).x == 2.0  # noqa: S301 (our own bytes)


# --- csv and parquet ------------------------------------------------------------------------------------------------
def test_csv_files_are_sequences_by_name(tmp_path):
    write(tmp_path, b="x,word\n1,hello\n2,\n", a="x,word\n,hi\n5,there\n7,NA\n")
    (tmp_path / ".hidden.csv").write_text("junk")
    (tmp_path / "notes.txt").write_text("junk")
    data = csv_folder(tmp_path)
    assert list(data) == ["a", "b"]
    assert len(data) == 2
    assert math.isnan(data["a"][0].x)  # an empty cell is missing, not zero
    assert data["a"]["x"].tolist()[1:] == [5.0, 7.0]
    assert data["a"]["word"].tolist() == ["hi", "there", None]
    assert data["b"]["word"].tolist() == ["hello", None]
    assert data["b"]["x"].dtype == np.int64
    assert [key for key, _ in data.items()] == ["a", "b"]


def test_files_are_read_only_when_needed(tmp_path):
    write(tmp_path, a="x\n1\n", b="x\n2\n")
    data = csv_folder(tmp_path)
    (tmp_path / "b.csv").write_text("")
    assert data["a"]["x"].tolist() == [1]
    with pytest.raises(LoaderError, match=r"b\.csv: cannot be read: .*[Ee]mpty"):
        data["b"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_loaders_feed_sources(tmp_path, n_jobs):
    write(tmp_path, a="x,y\n1,2\n,2\n3,0\n", b="x,y\n5,1\n")

    @source
    def rising(row):
        return None if math.isnan(row.x) else 1 if row.x > row.y else -1

    @source(vectorized=True)
    def known(rows):
        return np.where(np.isnan(rows["x"]), 0, 1)

    @source(resolution=Window(size=2))
    def mean(window):
        return 1 if np.nanmean(window["x"]) > 2 else -1

    votes = apply([rising, known, mean], csv_folder(tmp_path), n_jobs=n_jobs, progress=False)
    assert votes.sequence_ids.tolist() == ["a", "b"]
    assert votes.column("rising").tolist() == [-1, 0, 1, 1]
    assert votes.column("known").tolist() == [1, 0, 1, 1]
    assert votes.column("mean").tolist() == [-1, 1, 1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bad_file_stops_a_run_with_its_name(tmp_path, n_jobs):
    write(tmp_path, a="x\n1\n", b="y\n2\n")
    one = source(name="one")(lambda _: 1)
    with pytest.raises(LoaderError, match=r"b\.csv: must have the columns of a\.csv; it lacks 'x' and has 'y'"):
        apply([one], csv_folder(tmp_path), n_jobs=n_jobs, on_fault="abstain", progress=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,2\n3\n", r"b\.csv: cannot be read: .*2 columns"),
        ("x,x\n1,2\n", "unique; found 'x' more than once"),
        ("x\n1\n", r"must have the columns of a\.csv; it lacks 'y'\."),
        ("x,y,z\n1,2,3\n", r"it has 'z' in addition\."),
        (
            "x,y\n1,2\n3,oops\n",
            r"column 'y' must hold numbers, as in a\.csv; found words, the first is 'oops' in row 1",
        ),
        ("1,2\n3,4\n", r"the first line must name the columns.*names="),
    ],
)
def test_files_that_do_not_fit_are_explained(tmp_path, text, words):
    write(tmp_path, a="x,y\n1,2\n", b=text)
    with pytest.raises(LoaderError, match=words):
        csv_folder(tmp_path)["b"]


def test_headerless_files_need_names(tmp_path):
    write(tmp_path, a="1 2\n3 4\n")
    assert csv_folder(tmp_path, delimiter=" ", names=["t", "x"])["a"]["x"].tolist() == [2, 4]


def test_an_empty_column_fits_everywhere(tmp_path):
    write(tmp_path, a="x,y\n1,\n", b="x,y\n1,word\n", c="x,y\n,word\n")
    data = csv_folder(tmp_path)
    assert math.isnan(data["a"][0].y)
    assert data["b"][0].y == "word"
    assert math.isnan(data["c"][0].x)


def test_parquet_keeps_types_and_nulls(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "b": pa.array([True, None]),
            "t": pa.array([0, None], pa.timestamp("ms")),
            "d": pa.array(["u", "v"]).dictionary_encode(),
            "e": pa.array([[1.0, 2.0], [3.0, 4.0]]),
            "n": pa.nulls(2),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    rows = parquet_folder(tmp_path)["a"]
    assert rows["i"].tolist()[0] == 1.0
    assert all(math.isnan(rows[name][1]) for name in ("i", "b", "n"))
    assert np.isnat(rows["t"][1])
    assert rows["d"].tolist() == ["u", "v"]
    assert rows["e"].shape == (2, 2)
    assert rows[1].e.tolist() == [3.0, 4.0]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(LoaderError, match=r"b\.parquet: cannot be read"):
        parquet_folder(tmp_path)["b"]


# --- gaps -----------------------------------------------------------------------------------------------------------
def test_a_gap_of_a_sensor_becomes_missing_rows(tmp_path):
    write(tmp_path, a="ms,x,n,word\n100,1.5,1,a\n150,2.5,2,b\n300,3.5,3,c\n")
    rows = csv_folder(tmp_path, time="ms", rate=20, time_unit="ms")["a"]
    assert len(rows) == 5
    assert rows.missing.tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(rows["x"], [1.5, 2.5, np.nan, np.nan, 3.5])
    np.testing.assert_array_equal(rows["n"], [1, 2, np.nan, np.nan, 3])
    assert rows["word"].tolist() == ["a", "b", None, None, "c"]
    np.testing.assert_allclose(rows["ms"], [100, 150, 200, 250, 300], rtol=1e-12, atol=0)
    assert rows.clock == pytest.approx((0.1, 20))


def test_gaps_in_timestamps(tmp_path):
    write(tmp_path, a="t,x\n2024-01-01 00:00:00,1\n2024-01-01 00:00:03,2\n")
    rows = csv_folder(tmp_path, time="t", rate=1)["a"]
    np.testing.assert_array_equal(rows["x"], [1, np.nan, np.nan, 2])
    assert rows["t"].astype("datetime64[s]").astype(str).tolist()[2] == "2024-01-01T00:00:02"


def test_jitter_without_gaps_changes_nothing(tmp_path):
    write(tmp_path, a="t,x\n0,1\n15,2\n31,3\n46,4\n62,5\n")
    rows = csv_folder(tmp_path, time="t", rate=64, time_unit="ms")["a"]
    assert rows["x"].tolist() == [1, 2, 3, 4, 5]
    assert rows["x"].dtype == np.int64
    assert not rows.missing.any()


def test_the_time_axis_goes_into_the_votes(tmp_path):
    write(tmp_path, a="t,x\n10,1\n10.5,2\n11.5,1\n", b="t,x\n0,1\n")
    one = source(name="one")(lambda row: None if math.isnan(row.x) else 1)
    votes = apply([one], csv_folder(tmp_path, time="t", rate=2), progress=False)
    assert votes.column("one").tolist() == [1, 1, 0, 1, 1]
    assert votes.time.start.tolist() == [10, 0]
    assert votes.time.rate.tolist() == [2, 2]
    assert apply([one], csv_folder(tmp_path), progress=False).time is None


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("t,x\n0,1\n1,2\n1,3\n", {}, r"a\.csv: times must go forward.*1 rows.*row 2: 1 s after 1 s"),
        ("t,x\n0,1\n2,2\n1,3\n", {}, "row 2: 1 s after 2 s"),
        ("t,x\n0,1\n,2\n", {}, r"every row needs a time; column 't' has none in 1 rows, the first is row 1"),
        ("t,x\n0,1\n1.4,2\n", {}, r"within 0.25 rows of a grid of 1 per second; row 1 is 0.40 away"),
        ("t,x\n0,1\n900000,2\n", {}, r"2 rows cover 900000 s.*\n.*time_unit="),
        ("t,x\na,1\nb,2\n", {}, "'t' must hold numbers, or dates such as .*; found 'a'"),
        ("x\n1\n", {}, "there is no time column 't'; known are 'x'"),
        ("t,x\n0,1\n", {"rate": None}, "time='t' needs every= .* or rate= .*never guessed"),
        ("t,x\n0,1\n", {"rate": 0}, "rate= must be a positive number"),
        ("t,x\n0,1\n", {"time_unit": "h"}, "time_unit= must be one of 's', 'ms', 'us', 'ns'; found 'h'"),
    ],
)
def test_times_that_do_not_fit_are_explained(tmp_path, text, options, words):
    write(tmp_path, a=text)
    with pytest.raises(LoaderError, match=words):
        csv_folder(tmp_path, **({"time": "t", "rate": 1} | options))["a"]


def test_a_file_without_rows_is_an_empty_sequence(tmp_path):
    write(tmp_path, a="t,x\n0,1\n", b="t,x\n")
    data = csv_folder(tmp_path, time="t", rate=1)
    assert len(data["b"]) == 0


# --- npy ------------------------------------------------------------------------------------------------------------
def test_npy_files_are_arrays(tmp_path):
    np.save(tmp_path / "b.npy", np.arange(6.0).reshape(3, 2))
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    data = npy_folder(tmp_path)
    assert list(data) == ["a", "b"]
    assert data["b"][1].tolist() == [2.0, 3.0]
    assert not data["b"].flags.writeable


def test_structured_npy_files_are_rows(tmp_path):
    array = np.array([(1.5, 2)], dtype=[("x", float), ("n", int)])
    np.save(tmp_path / "a.npy", array)
    assert npy_folder(tmp_path)["a"][0].to_dict() == {"x": 1.5, "n": 2}


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 3)), r"b\.npy: must hold elements of shape \(2,\).*as a\.npy does; found .*\(3,\)"),
        (np.array(["x", "y"]), r"b\.npy: must hold"),
        (np.array(3.0), r"b\.npy: must hold an array whose first axis"),
        (np.array([None, {}], dtype=object), r"b\.npy: cannot be read as an array.*objects"),
    ],
)
def test_npy_files_that_do_not_fit_are_explained(tmp_path, array, words):
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    np.save(tmp_path / "b.npy", array, allow_pickle=True)
    with pytest.raises(LoaderError, match=words):
        npy_folder(tmp_path)["b"]


def test_a_truncated_npy_file_is_named(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(whole[:-30])
    with pytest.raises(LoaderError, match=r"b\.npy: cannot be read as an array"):
        npy_folder(tmp_path)["b"]


# --- folders in general ---------------------------------------------------------------------------------------------
def test_a_folder_of_one_kind_is_recognised(tmp_path):
    write(tmp_path, a="x\n1\n")
    assert folder(tmp_path)["a"]["x"].tolist() == [1]
    assert folder(tmp_path, delimiter=";")["a"]["x"].tolist() == [1]
    np.save(tmp_path / "b.npy", np.zeros(3))
    with pytest.raises(LoaderError, match=r"files of one kind.*found 1 \.csv, 1 \.npy"):
        folder(tmp_path)


def test_folders_that_are_empty_absent_or_ambiguous_are_explained(tmp_path):
    with pytest.raises(LoaderError, match=r"there are no files \*\.csv in this folder"):
        csv_folder(tmp_path)
    with pytest.raises(LoaderError, match=r"must hold files of one kind.*found none"):
        folder(tmp_path)
    with pytest.raises(LoaderError, match="nowhere: is not a folder"):
        csv_folder(tmp_path / "nowhere")
    (tmp_path / "sub").mkdir()
    write(tmp_path, a="x\n1\n")
    write(tmp_path / "sub", a="x\n1\n")
    assert list(csv_folder(tmp_path)) == ["a"]
    assert list(csv_folder(tmp_path, pattern="**/*.csv")) == ["a", "sub-a"]
    write(tmp_path, **{"sub-a": "x\n1\n"})
    with pytest.raises(LoaderError, match="found 'sub-a' twice"):
        csv_folder(tmp_path, pattern="**/*.csv")


# --- as people and instruments write tables -------------------------------------------------------------------------
TABLE = [["t", "force", "pulse"], ["0", "0.5", "1.25"], ["1", "-2.5", "3"], ["2", "", "4e-1"]]


def spelled(rows, sign=",", decimal=".", end="\n"):
    return "".join(sign.join(cell.replace(".", decimal) for cell in row) + end for row in rows)


@pytest.mark.parametrize(
    ("text", "encoding", "ending"),
    [
        (spelled(TABLE), "utf-8", ".csv"),
        (spelled(TABLE, ";", ","), "utf-8", ".csv"),
        (spelled(TABLE, ";", "."), "utf-8", ".csv"),
        (spelled(TABLE, ";", ",", "\r\n"), "utf-8-sig", ".csv"),
        (spelled(TABLE, "\t", ",", "\r\n"), "utf-16", ".csv"),
        (spelled(TABLE, "\t"), "utf-8", ".tsv"),
        (spelled(TABLE, "\t"), "utf-8", ".txt"),
        (spelled(TABLE, ", "), "utf-8", ".CSV"),
        ("# device 7; firmware 2\n# exported\n" + spelled(TABLE), "utf-8", ".csv"),
    ],
)
def test_tables_are_read_as_they_are_written(tmp_path, text, encoding, ending):
    (tmp_path / f"a{ending}").write_bytes(text.encode(encoding))
    rows = folder(tmp_path)["a"]
    np.testing.assert_allclose(rows["force"], [0.5, -2.5, math.nan])
    np.testing.assert_allclose(rows["pulse"], [1.25, 3, 0.4])


def test_what_is_said_of_a_table_counts_more_than_what_it_looks_like(tmp_path):
    (tmp_path / "a.csv").write_bytes("Gerät 7\nt|größe\n1|0,5\n2|1,5\n".encode("cp1252"))
    options = {"delimiter": "|", "decimal": ",", "encoding": "cp1252", "skip": 1}
    assert csv_folder(tmp_path, **options)["a"]["größe"].tolist() == [0.5, 1.5]
    for name, value, words in (
        ("encoding", None, "its text is not UTF-8.*cp1252"),
        ("encoding", "klingon", "one that Python knows"),
        ("skip", 0, r"pass skip="),
        ("skip", -1, "number of lines"),
        ("delimiter", "||", "one sign"),
    ):
        with pytest.raises(LoaderError, match=words):
            csv_folder(tmp_path, **(options | {name: value}))
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(LoaderError, match="it is empty"):
        csv_folder(tmp_path)


def test_a_folder_of_folders_and_files_of_other_kinds(tmp_path):
    for patient in ("p1", "p2"):
        (tmp_path / patient).mkdir()
        write(tmp_path / patient, walk="t,x\n0,1\n1,2\n")
    (tmp_path / ".hidden").mkdir()
    write(tmp_path / ".hidden", walk="t,x\n0,1\n")
    assert list(folder(tmp_path)) == ["p1-walk", "p2-walk"]
    (tmp_path / "sheets").mkdir()
    (tmp_path / "sheets" / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(LoaderError, match=r"found 1 \.xlsx\.\n.*saved as CSV"):
        folder(tmp_path / "sheets")
    np.save(tmp_path / "sheets" / "a.npy", np.zeros(3))
    with pytest.raises(LoaderError, match=r"\.npy are loaded without time=; leave it out"):
        folder(tmp_path / "sheets", time="t")


def test_milliseconds_since_1970_are_not_taken_for_seconds(tmp_path):
    write(tmp_path, a="t,x\n1709294400000,1\n1709294400500,3\n1709294401000,5\n")
    with pytest.raises(LoaderError, match=r'1709294400000, which is no date in seconds.*time_unit="ms"'):
        csv_folder(tmp_path, time="t", every="1s")["a"]
    assert csv_folder(tmp_path, time="t", every="1s", time_unit="ms")["a"]["x"].tolist() == [2, 5]


# --- text -----------------------------------------------------------------------------------------------------------
def test_lines_are_sequences_of_tokens(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_bytes("\ufeffThe cat sat\r\n\nnaïve words".encode())
    lines = text_lines(file)
    assert len(lines) == 3
    assert list(lines.values()) == [["The", "cat", "sat"], [], ["naïve", "words"]]
    assert lines[2] == ["naïve", "words"]
    with pytest.raises(KeyError):
        lines[3]
    assert text_lines(file, tokenize=list)[2][:3] == ["n", "a", "ï"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_lines_feed_sources(tmp_path, n_jobs):
    file = tmp_path / "corpus.txt"
    file.write_text("The cat sat\n\nOn Mats\n")
    capital = source(name="capital")(lambda token: 1 if token[0].isupper() else -1)
    votes = apply([capital], text_lines(file), n_jobs=n_jobs, progress=False)
    assert votes.column("capital").tolist() == [1, -1, -1, 1, 1]
    assert votes.lengths.tolist() == [3, 0, 2]
    assert votes.sequence_ids.tolist() == [0, 1, 2]


def test_text_that_cannot_be_read_is_explained(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(LoaderError, match=r"corpus\.txt: line 1 must be utf-8 text.*\n.*encoding="):
        text_lines(file)[1]
    assert text_lines(file, encoding="latin-1")[1] == ["ÿþ"]
    with pytest.raises(LoaderError, match="is not a file"):
        text_lines(tmp_path)


# --- real data ------------------------------------------------------------------------------------------------------
@pytest.mark.data
def test_real_abstracts_and_accelerometers(shared_data, tmp_path):
    chemical = source(name="chemical")(lambda token: 1 if token.endswith("ine") else 0)
    votes = apply([chemical], text_lines(shared_data / "ner-bc5cdr" / "text.txt"), progress=False)
    assert votes.n_sequences == 1500
    assert 0 < (votes.column("chemical") == 1).mean() < 0.1
    with np.load(shared_data / "gait-daphnet" / "recordings.npz") as archive:
        times, ankle = archive["S01R02/time_ms"][:2000], archive["S01R02/acceleration"][:2000, 0]
    keep = np.r_[0:500, 564:2000]
    pq.write_table(pa.table({"ms": times[keep], "ankle": ankle[keep]}), tmp_path / "S01R02.parquet")
    rows = parquet_folder(tmp_path, time="ms", rate=64, time_unit="ms")["S01R02"]
    assert len(rows) == 2000
    assert np.flatnonzero(rows.missing).tolist() == list(range(500, 564))
    np.testing.assert_array_equal(rows["ankle"][keep], ankle[keep])
    assert np.isnan(rows["ankle"][500:564]).all()


def test_an_array_that_claims_to_be_too_large_is_refused(tmp_path):
    with (tmp_path / "a.npy").open("wb") as handle:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**20, 2)}
        np.lib.format.write_array_header_1_0(handle, header)
    with pytest.raises(LoaderError, match=r"a\.npy: cannot be read as an array"):
        npy_folder(tmp_path)
