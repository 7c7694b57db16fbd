"""A source that raises stops the run with its place and traceback, or becomes part of the result."""

from __future__ import annotations

import os
import sys

import pytest

from dugong.exceptions import SourceError
from dugong.sources import apply, source
from dugong.tasks import Sequence, Window
from dugong.votes import count_faults


@source
def inverse(number):
    return 1 if 1 / number > 0.3 else -1


@source(resolution=Window(size=2))
def window_inverse(window):
    return 1 if 1 / window[0] > 0.3 else -1


@source(resolution=Sequence())
def first_inverse(numbers):
    return 1 if 1 / numbers[0] > 0.3 else -1


@source(vectorized=True)
def all_inverse(numbers):
    return [1 if 1 / number > 0.3 else -1 for number in numbers]


DATA = {"a": [1, 2], "b": [3, 0, 4, 0], "c": [0]}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("one", "place"),
    [
        (inverse, "element 1 of sequence 'b'"),
        (window_inverse, r"window2 0 \(elements 0 to 0\) of sequence 'c'"),
        (first_inverse, "sequence 'c'"),
        (all_inverse, "sequence 'b'"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_raise_names_source_place_and_cause(one, place, n_jobs):
    with pytest.raises(SourceError, match=f"source '{one.name}' raised ZeroDivisionError.* on {place}") as caught:
        apply([one], DATA, n_jobs=n_jobs, progress=False)
    text = str(caught.value)
    assert 'on_fault="abstain"' in text
    assert f"in {one.function.__name__}" in text  # the original traceback, from the source on
    assert "voting.py" not in text
    if n_jobs == 1:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_abstain_keeps_every_fault(n_jobs):
    sources = [inverse, window_inverse, first_inverse, all_inverse]
    votes = apply(sources, DATA, on_fault="abstain", n_jobs=n_jobs, progress=False)
    assert votes.column("inverse").tolist() == [1, 1, 1, 0, -1, 0, 0]
    assert votes.column("window_inverse").tolist() == [1, 1, -1, 0]
    assert votes.column("first_inverse").tolist() == [1, 1, 0]
    assert votes.column("all_inverse").tolist() == [1, 1, 0, 0, 0, 0, 0]
    found = [(fault.source, fault.sequence, fault.task) for fault in votes.faults]
    assert found == [
        ("inverse", "b", 1),
        ("inverse", "b", 3),
        ("all_inverse", "b", None),
        ("inverse", "c", 0),
        ("window_inverse", "c", 0),
        ("first_inverse", "c", 0),
        ("all_inverse", "c", None),
    ]
    assert count_faults(votes.faults) == {"inverse": 3, "all_inverse": 2, "window_inverse": 1, "first_inverse": 1}
    assert votes.faults[0].error == "ZeroDivisionError: division by zero"
    assert "in inverse" in votes.faults[0].traceback


def test_equal_tracebacks_are_kept_once():
    votes = apply([inverse], {"a": [0] * 50, "b": [0] * 50}, on_fault="abstain", progress=False)
    assert len(votes.faults) == 100
    assert len({id(fault.traceback) for fault in votes.faults}) == 1


@pytest.mark.parametrize("error", [StopIteration("done"), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_strange_exceptions_are_faults_too(error):
    @source
    def strange(number):
        if number == 2:
            raise error
        return 1

    votes = apply([strange], {"a": [1, 2, 3, 2]}, on_fault="abstain", progress=False)
    assert votes.column("strange").tolist() == [1, 0, 1, 0]
    assert [fault.task for fault in votes.faults] == [1, 3]
    assert votes.faults[0].error.startswith(type(error).__name__)


def test_an_interrupt_is_no_fault():
    @source
    def interrupted(number):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply([interrupted], {"a": [1]}, on_fault="abstain", progress=False)


def test_a_source_that_ends_the_interpreter_is_named():
    @source
    def deadly(number):
        if number == 13:
            os._exit(7)
        return 1

    data = {f"video{index}": [index] for index in range(20)}
    with pytest.raises(
        SourceError, match=r"ended with exit code 7 while it worked on sequence 'video13' \(source 'deadly'\)"
    ):
        apply([deadly], data, n_jobs=2, on_fault="abstain", progress=False)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_killed_worker_is_named_with_its_signal():
    import signal

    @source(resolution=Sequence(), pre=[lambda _: os.kill(os.getpid(), signal.SIGKILL)])
    def killed(numbers):
        return 1

    with pytest.raises(SourceError, match=r"signal SIGKILL while it worked on sequence 'a' \(preprocessing <lambda>\)"):
        apply([killed], {"a": [1]}, n_jobs=2, progress=False)
