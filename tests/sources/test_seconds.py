"""Elements and windows in seconds: from loaders and rates to windows of elements."""

import copy
import pickle

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError, SourceError, TaskError
from dugong.sources.inputs import WindowView
from dugong.sources.loaders import Blocks, Rows, csv_folder


def write(folder, rows=256, rate=64.0, start=0.0, name="a"):
    times = start + np.arange(rows) / rate
    text = "\n".join(["t,x,word", *(f"{t:.6f},{i},w{i // 64}" for i, t in enumerate(times))])
    (folder / f"{name}.csv").write_text(text + "\n")


@dg.source(resolution=dg.Window(seconds=2, stride_seconds=1, link="majority"))
def late(window):
    return 1 if window["x"][-1] > 100 else -1


# --- windows in seconds ----------------------------------------------------------------------------------------------
def test_a_window_in_seconds_equals_the_window_of_elements_at_a_rate():
    window = dg.Window(seconds=4, stride_seconds=0.5, link="majority")
    assert window.at(64) == dg.Window(256, 32, link="majority")
    assert window.at(64).name == "window4s"
    assert dg.Window(seconds=1).at(29.97) == dg.Window(30)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "a size in elements or in seconds"),
        ({"size": 3, "seconds": 1}, "a size in elements or in seconds"),
        ({"seconds": 0}, "positive number of seconds; found 0"),
        ({"seconds": float("nan")}, "positive number of seconds"),
        ({"size": float("nan")}, "positive number of elements; found nan"),
        ({"seconds": 1, "stride": 2}, "stride= goes with size="),
        ({"size": 4, "stride_seconds": 2}, "stride_seconds= goes with seconds="),
        ({"seconds": 1, "stride_seconds": 2}, "at most its length; found 2 s and 1 s"),
    ],
)
def test_windows_that_make_no_sense_are_refused(options, words):
    with pytest.raises(TaskError, match=words):
        dg.Window(**options)


def test_three_and_a_half_elements_are_not_a_window():
    with pytest.raises(
        TaskError, match=r"whole number of elements; at 10 elements per second it is 3.5.\n  Use 0.3 or 0.4 s"
    ):
        dg.Window(seconds=0.35).at(10)


def test_without_a_rate_the_error_says_what_to_give():
    with pytest.raises(TaskError, match=r"window of 2 s needs to know how many elements.*\n.*rate="):
        dg.apply([late], {"a": [1, 2, 3]}, progress=False)


def test_votes_with_a_clock_know_windows_in_seconds():
    @dg.source
    def odd(value):
        return 1 if value % 2 else -1

    votes = dg.apply([odd], {"a": list(range(20)), "b": list(range(10))}, rate=2.0, progress=False)
    assert votes.time.common_rate == 2.0
    found = dg.LabelModel(
        prior=dg.priors.Uniform(), accuracies={"odd": [[0.9, 0.1, 0], [0.1, 0.9, 0]]}, dependencies=()
    )
    found.fit(votes)
    assert found.predict_proba(votes, dg.Window(seconds=5)).shape == (3, 2)


def test_regular_timestamps_have_a_rate_and_irregular_ones_do_not():
    from dugong.tasks import TimeAxis

    assert TimeAxis.from_timestamps([[0, 0.5, 1.0], [3.0, 3.5]]).common_rate == pytest.approx(2.0, rel=1e-9)
    assert TimeAxis.from_timestamps([[0, 0.5, 1.7]]).common_rate is None
    assert TimeAxis.from_rate([2.0, 3.0]).common_rate is None


# --- elements in seconds ---------------------------------------------------------------------------------------------
def test_rows_become_one_element_per_second(tmp_path):
    write(tmp_path, start=100.0)
    folder = csv_folder(tmp_path, time="t", every="1s")
    rows = folder["a"]
    assert folder.rate == 1.0
    assert rows.clock == (100.0, 1.0)
    np.testing.assert_allclose(rows["x"], [31.5, 95.5, 159.5, 223.5], rtol=1e-12)
    np.testing.assert_allclose(rows["t"], [100, 101, 102, 103], rtol=1e-12)
    assert rows["word"].tolist() == ["w0", "w1", "w2", "w3"]


@pytest.mark.parametrize(("reduce", "expected"), [("max", 63.0), ("median", 31.5), (lambda x: x[0], 0.0)])
def test_a_block_becomes_what_reduce_says(tmp_path, reduce, expected):
    write(tmp_path)
    assert csv_folder(tmp_path, time="t", every="1s", reduce=reduce)["a"]["x"][0] == expected


def test_without_reduce_an_element_is_the_block_of_rows(tmp_path):
    write(tmp_path, rows=150)
    blocks = csv_folder(tmp_path, rate=64, every="1s", reduce=None)["a"]
    assert isinstance(blocks, Blocks)
    assert [len(block) for block in blocks] == [64, 64, 22]
    assert blocks[1:][0]["x"][0] == 64
    assert blocks[-1]["x"][0] == 128
    np.testing.assert_array_equal(blocks[1:]["x"], np.arange(64, 150))


def test_a_column_is_an_attribute_of_elements_blocks_and_windows(tmp_path):
    write(tmp_path, rows=150)
    sequences = csv_folder(tmp_path, rate=64, every="1s", reduce=None)

    @dg.source
    def of_blocks(second):
        return 1 if second.x.mean() == second["x"].mean() else -1

    @dg.source(resolution=dg.Window(2, link="any"))
    def of_windows(window):
        return 1 if window.x.mean() == window["x"].mean() and len(window.x) > 20 else -1

    votes = dg.apply([of_blocks, of_windows], sequences, progress=False)
    assert [column.tolist() for column in votes.columns] == [[1, 1, 1], [1, 1]]
    blocks = sequences["a"]
    for whole in (blocks, blocks[0]):
        np.testing.assert_array_equal(copy.deepcopy(whole).x, whole["x"])
        with pytest.raises(AttributeError, match="there is no column 'y'; known are 't', 'x'"):
            _ = whole.y


def test_a_window_without_such_a_column_says_so():
    for sequence in (np.zeros(4), [1, 2, 3, 4], Rows({"x": np.zeros(4)})):
        window = WindowView(sequence, 0, 2, 0, 4)
        with pytest.raises(AttributeError, match="a window has no 'y'"):
            _ = window.y
        again = pickle.loads(pickle.dumps(copy.deepcopy(window)))  # noqa: S301
        assert (again.start, again.stop, len(again.elements)) == (0, 2, 2)


def test_what_slicing_raises_is_what_is_told():
    class Odd(list):
        def __getitem__(self, key):
            raise AttributeError("no cache")

    with pytest.raises(dg.SourceError, match="no cache"):
        dg.apply([late], {"a": Odd([1.0] * 4)}, rate=1, progress=False)


def test_a_rule_that_takes_one_number_for_many_rows_is_told_what_keeps_them(tmp_path):
    write(tmp_path, rows=150)

    @dg.source
    def shaky(second):
        return 1 if second.x.std() > 3 else -1

    with pytest.raises(SourceError, match=r'no attribute .std.(?s:.*)many rows wants a window(?s:.*)reduce="none"'):
        dg.apply([shaky], csv_folder(tmp_path, rate=64, every="1s"), progress=False)


def test_a_pause_is_missing_and_not_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n0,1\n0.5,3\n3.2,5\n")
    rows = csv_folder(tmp_path, time="t", every="1s")["a"]
    np.testing.assert_array_equal(rows["x"], [2, np.nan, np.nan, 5])
    assert rows.missing.tolist() == [False, True, True, False]


def test_files_of_different_rates_have_the_same_elements_when_they_are_cut(tmp_path):
    write(tmp_path, rows=256, rate=64, name="a")
    write(tmp_path, rows=200, rate=50, name="b")
    votes = dg.apply([late], csv_folder(tmp_path, time="t", every="1s"), progress=False)
    assert votes.lengths.tolist() == [4, 4]
    assert votes.sources[0].resolution == dg.Window(2, 1, link="majority")


def test_rates_that_differ_are_an_error(tmp_path):
    write(tmp_path, name="a")
    sequences = {"a": csv_folder(tmp_path, rate=64)["a"], "b": csv_folder(tmp_path, rate=50)["a"]}

    @dg.source
    def high(row):
        return 1 if row.x > 3 else -1

    with pytest.raises(SourceError, match=r"one rate.*64 elements per second, and sequence 'b' has 50.\n.*every="):
        dg.apply([high], sequences, progress=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": "1s"}, "every='1s' needs time= .* or rate="),
        ({"every": "soon", "rate": 1}, 'every= must be a time such as "1s"'),
        ({"every": "0s", "rate": 1}, "longer than nothing"),
        ({"every": "1s", "rate": 1, "reduce": "mode"}, "reduce= must be 'mean'"),
    ],
)
def test_cutting_that_cannot_work_is_explained(tmp_path, options, words):
    write(tmp_path)
    with pytest.raises(LoaderError, match=words):
        csv_folder(tmp_path, **options)


# --- the last short window -------------------------------------------------------------------------------------------
def votes_on_short(short, values=(1, 2, 3, 4, 5)):
    seen = []

    @dg.source(resolution=dg.Window(2), short=short)
    def rule(window):
        seen.append((list(window), window.full))
        return 1

    votes = dg.apply([rule], {"a": list(values)}, progress=False)
    return seen, votes.column("rule").tolist()


def test_a_short_window_is_announced():
    seen, votes = votes_on_short("give")
    assert seen[-1] == ([5], False)
    assert seen[0] == ([1, 2], True)
    assert votes == [1, 1, 1]


def test_a_short_window_is_padded_with_its_last_element():
    assert votes_on_short("pad")[0][-1] == ([5, 5], False)


def test_a_short_window_is_skipped_and_counts_as_not_asked():
    seen, votes = votes_on_short("skip")
    assert len(seen) == 2
    assert votes == [1, 1, dg.MISSING]


def test_vectorised_sources_see_which_windows_are_full():
    @dg.source(resolution=dg.Window(2), vectorized=True, short="skip")
    def rule(sequence, tasks):
        assert tasks.full.tolist() == [True, True, False]
        return [1] * len(tasks)

    assert dg.apply([rule], {"a": [1, 2, 3, 4, 5]}, progress=False).column("rule").tolist() == [1, 1, dg.MISSING]
    with pytest.raises(SourceError, match="must be without vectorized=True"):
        dg.source(resolution=dg.Window(2), vectorized=True, short="pad")(len)


@pytest.mark.parametrize("reduce", ["mean", None])
def test_times_that_no_number_of_blocks_covers_are_refused(tmp_path, reduce):
    (tmp_path / "a.csv").write_text("t,x\n0,1\n1e300,2\n")
    with pytest.raises(LoaderError, match=r"2 rows cover 1e\+300 s, which is [0-9]+ blocks"):
        csv_folder(tmp_path, time="t", every="1s", reduce=reduce)["a"]
