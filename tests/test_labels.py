"""Labels: one tidy table, the label by name, and intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

import dugong as dg
from dugong.archives import from_arrow, read_table, to_arrow
from dugong.exceptions import LabelError
from dugong.tasks import TimeAxis


@pytest.fixture(scope="module")
def made() -> tuple[dg.Votes, dg.LabelModel]:
    rng = np.random.default_rng(0)
    truth = np.where(np.repeat(rng.random((6, 10)) < 0.3, 20, axis=1), 1, -1)
    table = np.stack([np.where(rng.random(truth.shape) < 0.85, truth, -truth) for _ in range(4)], axis=2)
    time = TimeAxis.from_rate(10.0, n_sequences=6, start=1.0)
    votes = dg.Votes.from_dense(table, classes=("rest", "walk"), time=time)
    prior = dg.priors.Markov(positive=0.3, stay=0.95)
    return votes, dg.LabelModel(prior=prior, dependencies=()).fit(votes)


def test_the_table_holds_names_confidence_and_the_best_path(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    labels = model.labels(votes)
    assert len(labels) == votes.n_elements
    chosen = np.where(model.predict(votes) == 1, "walk", "rest")
    np.testing.assert_array_equal(labels.label, chosen)
    np.testing.assert_allclose(labels.confidence, model.predict_proba(votes).max(axis=1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(labels.to_numpy(), model.predict_proba(votes), rtol=0, atol=1e-12)
    path = labels.table.column("best_path").to_pylist()
    assert path == np.where(model.decode(votes) == 1, "walk", "rest").tolist()
    assert labels.seconds is not None
    assert labels.seconds[0].tolist() == pytest.approx([1.0, 1.1])
    assert labels.background == "rest"


def test_it_is_read_by_any_data_frame_library_and_by_old_code(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    labels = model.labels(votes, resolutions=["element"])
    assert pa.table(labels).equals(labels.table)
    assert labels.to_pandas().shape[0] == votes.n_elements
    with pytest.warns(DeprecationWarning, match="labels.table.num_rows"):
        assert labels.num_rows == votes.n_elements
    with pytest.warns(DeprecationWarning, match="labels.table"):
        assert labels["p_walk"].to_pylist()[0] == pytest.approx(model.predict_proba(votes)[0, 1])
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        labels.nonsense  # noqa: B018


def runs(codes: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int, int]]:
    """Runs of +1 by brute force: sequence, start, end."""
    found, place = [], 0
    for sequence, length in enumerate(lengths.tolist()):
        row, start = codes[place : place + length].tolist(), None
        for element, code in enumerate([*row, -1]):
            if code == 1 and start is None:
                start = element
            elif code != 1 and start is not None:
                found.append((sequence, start, element))
                start = None
        place += length
    return found


def test_intervals_are_runs_of_the_best_path(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    found = model.labels(votes).segments()
    expected = runs(model.decode(votes), votes.lengths)
    assert [(int(one.sequence), one.start, one.end) for one in found] == expected
    assert set(found.label) == {"walk"}
    offsets = np.concatenate([[0], np.cumsum(votes.lengths)])
    shares = model.predict_proba(votes)[:, 1]
    sequence, start, end = expected[0]
    assert found.probability[0] == pytest.approx(shares[offsets[sequence] + start : offsets[sequence] + end].mean())
    seconds = found.to_unit("second")
    assert seconds.start[0] == pytest.approx(1 + start / 10)


def test_a_threshold_switches_decoding_off(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    found = model.labels(votes).segments(threshold=0.9)
    expected = runs(np.where(model.predict_proba(votes)[:, 1] > 0.9, 1, -1), votes.lengths)
    assert [(int(one.sequence), one.start, one.end) for one in found] == expected
    plain = model.labels(votes).segments(decode=False)
    assert [(int(one.sequence), one.start, one.end) for one in plain] == runs(model.predict(votes), votes.lengths)


def test_short_ones_are_left_out_after_near_ones_are_joined(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    labels = model.labels(votes)
    every = labels.segments(decode=False)
    joined = labels.segments(decode=False, merge_gap=3, min_length=6)
    assert len(joined) < len(every)
    assert ((joined.end - joined.start) >= 6).all()
    same = np.array(joined.sequence[1:]) == np.array(joined.sequence[:-1])
    assert (joined.start[1:][same] - joined.end[:-1][same] > 3).all()


def test_whole_sequences_and_windows(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    votes, model = made
    labels = model.labels(votes, resolutions=["element", dg.Sequence(), dg.Window(5)])
    whole = labels.segments("sequence")
    assert len(whole) == votes.n_sequences
    assert set(whole.label) <= {"walk", "rest"}
    windows = labels.segments(dg.Window(5).name)
    assert (windows.start % 5 == 0).all()
    with pytest.raises(LabelError, match="no labels of 'shot' here"):
        labels.segments("shot")


def test_more_than_two_classes_take_the_likeliest(made: tuple[dg.Votes, dg.LabelModel]) -> None:
    rng = np.random.default_rng(1)
    truth = np.repeat(rng.integers(0, 3, (4, 6)), 10, axis=1)
    noisy = np.stack([np.where(rng.random(truth.shape) < 0.8, truth, 0) for _ in range(3)], axis=2)
    votes = dg.Votes.from_classes(noisy, 3, classes=("O", "a", "b"), background=0)
    labels = dg.LabelModel(dependencies=()).fit(votes).labels(votes)
    assert set(labels.segments().label) <= {"a", "b"}
    assert (labels.segments(threshold=0.9).probability > 0.9).all()
    about = dg.Window(5, of="a")
    shares = {about: np.tile([[0.2, 0.8], [0.9, 0.1]], (24, 1))}
    assert set(dg.Labels.of(votes, shares).segments(about).label) == {"positive"}


def test_labels_are_written_and_read(made: tuple[dg.Votes, dg.LabelModel], tmp_path: Path) -> None:
    votes, model = made
    labels = model.labels(votes)
    labels.write(tmp_path / "labels.parquet")
    again = dg.Labels.read(tmp_path / "labels.parquet")
    assert again.table.equals(labels.table)
    assert again.segments().equals(labels.segments())
    labels.write(tmp_path / "labels.csv")
    assert dg.Labels.read(tmp_path / "labels.csv").segments().equals(labels.segments(), tolerance=1e-12)
    with pytest.raises(LabelError, match=r"\.parquet or \.csv"):
        labels.write(tmp_path / "labels.xlsx")


def test_labels_with_timestamps_have_seconds() -> None:
    time = TimeAxis.from_timestamps([[0.0, 1.0, 3.0], [0.5, 0.75]])
    votes = dg.Votes.from_dense([np.array([[1], [1], [-1]]), np.array([[-1], [1]])], time=time)
    labels = dg.Labels.of(votes, {dg.Element(): np.array([[0.1, 0.9]] * 2 + [[0.8, 0.2]] * 2 + [[0.3, 0.7]])})
    found = labels.segments(decode=False).to_unit("second")
    assert found.start.tolist() == [0.0, 0.75]
    assert found.end.tolist() == [3.0, 1.0]


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_arrow_reads_no_file_of_python_whose_end_it_could_miss(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow that lets go of a Python file while the interpreter ends aborts the process."""
    handed = []
    for module, reader in ((pyarrow.parquet, "ParquetFile"), (pyarrow.csv, "read_csv")):
        reads = getattr(module, reader)
        monkeypatch.setattr(
            module, reader, lambda file, reads=reads, **more: handed.append(file) or reads(file, **more)
        )
    table = pa.table({"sequence": ["007"], "start": [0], "end": [1], "resolution": ["element"], "p": [0.25]})
    (pyarrow.csv.write_csv if name.endswith("csv") else pyarrow.parquet.write_table)(table, tmp_path / name)
    assert read_table(tmp_path / name)["sequence"].to_pylist() == ["007"]
    if name.endswith("parquet"):
        assert read_table((tmp_path / name).read_bytes()).equals(table)
    assert all(isinstance(one, pa.OSFile | pa.BufferReader) for one in handed)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, 0.0, -2.0]),
        np.arange(7, dtype=np.int8),
        np.arange(6)[::2],
        np.empty(0),
        np.array(["a", "", "größer"]),
        np.array([True, False]),
    ],
    ids=["floats", "bytes", "strided", "none", "words", "truths"],
)
def test_columns_go_to_arrow_and_back(values: np.ndarray) -> None:
    column = to_arrow(values)
    assert column.equals(pa.array(values))
    for found in (column, pa.chunked_array([column[:1], column[1:]])):
        assert_array_equal(from_arrow(found), values)
    assert_array_equal(from_arrow(column[1:]), values[1:])


def test_empty_cells_are_nan() -> None:
    assert_array_equal(from_arrow(pa.array([1, None])), [1, np.nan])
