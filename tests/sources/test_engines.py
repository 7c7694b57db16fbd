"""The local engine by itself: order, sizes, errors that travel, and the last words of a worker."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from dugong.engines import Processes, Serial, WorkerLostError, importable, local_engine, mark
from dugong.engines.protocol import SIZE, last_word, leaving_word


def run(function, items, **options):
    return list(Processes(n_jobs=2, **options).map(function, items))


def test_the_number_of_jobs_chooses_the_engine():
    assert local_engine(1) == Serial()
    assert local_engine(3) == Processes(n_jobs=3)
    assert local_engine(-1) in (Serial(), Processes(n_jobs=len(os.sched_getaffinity(0))))


def test_both_engines_map_in_order():
    square = [number * number for number in range(30)]
    assert list(Serial().map(lambda number: number * number, range(30))) == square
    assert run(lambda number: number * number, range(30)) == square
    assert run(len, []) == []


def test_large_items_and_results_pass_through():
    arrays = [np.full(300_000, value) for value in range(4)]
    for value, doubled in enumerate(run(lambda array: array * 2, arrays)):
        assert doubled.shape == (300_000,)
        assert (doubled == 2 * value).all()


def test_user_code_cannot_reach_the_pipes():
    def noisy(number):
        print("noise")
        os.write(1, b"noise")
        try:
            input()
        except EOFError:
            return number
        return None

    assert run(noisy, [1, 2, 3]) == [1, 2, 3]


def test_errors_come_back_as_they_were_with_the_traceback_of_the_worker():
    def fail(number):
        return {}[number]

    with pytest.raises(KeyError, match="7") as caught:
        run(fail, [7])
    assert "in fail" in caught.value.__notes__[0]


class StubbornError(Exception):
    """An error that pickles and then cannot be made again."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def test_errors_that_cannot_travel_come_back_in_words():
    def fail(number):
        raise StubbornError(number, "more")

    with pytest.raises(RuntimeError, match="StubbornError: 7 and more") as caught:
        run(fail, [7])
    assert "in fail" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="SystemExit: 5"):
        run(sys.exit, [5])


def test_an_error_of_the_items_ends_the_run():
    def items():
        yield 1
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        run(abs, items())


def test_a_lost_worker_leaves_its_last_words():
    def work(number):
        mark(f"step {number} ❤")
        if number == 5:
            os._exit(2)
        return number

    with pytest.raises(WorkerLostError, match=r"exit code 2 while it worked on 5 \(step 5 ❤\)") as caught:
        run(work, range(9))
    assert (caught.value.item, caught.value.step, caught.value.ending) == ("5", "step 5 ❤", "exit code 2")


def test_old_words_are_not_taken_for_new_ones():
    class Fatal:
        def __reduce__(self):
            return os._exit, (4,)

    def work(item):
        mark("the step before")
        return 0

    with pytest.raises(WorkerLostError) as caught:
        list(Processes(n_jobs=1).map(work, [1, Fatal()], describe=lambda item: type(item).__name__))
    assert (caught.value.item, caught.value.step) == ("Fatal", "")


def test_a_function_that_cannot_be_loaded_is_an_error():
    class Unloadable:
        def __reduce__(self):
            return int, ("nothing",)

        def __call__(self, item):
            return item

    with pytest.raises(ValueError, match="invalid literal"):
        run(Unloadable(), [1])


def test_marks_are_cut_to_their_slot(tmp_path):
    mark("outside a worker this does nothing")
    with leaving_word(str(tmp_path / "slot")):
        mark("é" * SIZE)
        assert last_word(str(tmp_path / "slot")) == "é" * (SIZE // 2)
    with leaving_word(str(tmp_path / "slot")):
        mark("step")
        mark("")
        assert last_word(str(tmp_path / "slot")) == ""


def test_the_last_word_of_a_worker_is_left_only_if_it_dies(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with leaving_word("a"):
        mark("source 'loud'")
        assert last_word("a") == "source 'loud'"  # and forgotten
    assert last_word("a") == ""
    with leaving_word("b"):
        mark("step")
    assert last_word("b") == ""
    assert list(tmp_path.iterdir()) == []
    mark("outside a worker this does nothing")


def test_what_a_fresh_interpreter_can_import():
    assert importable("os")
    assert importable("numpy.linalg")
    assert importable("dugong.engines")
    assert not importable("__main__")
    assert not importable("no_such_module")
    assert not importable(None)
