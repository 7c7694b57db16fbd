"""Shared preprocessing runs once per sequence, whatever the number of sources."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.exceptions import SourceError
from dugong.sources import apply, source
from dugong.tasks import Sequence, Window

CALLS: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def detect(sequence):
    CALLS.append(("detect", len(sequence)))
    return [number * 10 for number in sequence]


def track(boxes):
    CALLS.append(("track", len(boxes)))
    return [box + 1 for box in boxes]


def count(sequence):
    CALLS.append(("count", len(sequence)))
    return {"n": len(sequence)}


def voter(name, rule, **options):
    return source(name=name, **options)(rule)


def test_every_step_runs_once_per_sequence():
    sources = [
        voter("box", lambda box: 1 if box == 20 else -1, pre=[detect]),
        voter("again", lambda box: 1 if box == 20 else -1, pre=[detect]),
        voter("tracked", lambda track: 1 if track == 21 else -1, pre=[detect, track]),
        voter(
            "window", lambda window: 1 if 21 in window.elements else -1, pre=[detect, track], resolution=Window(size=2)
        ),
        voter("raw", lambda number: 1 if number == 2 else -1),
    ]
    votes = apply(sources, {"a": [1, 2, 3], "b": [2]}, progress=False)
    assert CALLS == [("detect", 3), ("track", 3), ("detect", 1), ("track", 1)]
    for name in ("box", "again", "tracked", "raw"):
        assert votes.column(name).tolist() == [-1, 1, -1, 1]
    assert votes.column("window").tolist() == [1, -1, 1]


def test_the_same_steps_in_another_order_are_another_chain():
    apply([voter("one", lambda _: 0, pre=[detect, track]), voter("two", lambda _: 0, pre=[track, detect])], {"a": [1]})
    assert [name for name, _ in CALLS] == ["detect", "track", "track", "detect"]


class Detector:
    """A model object: its bound method is a new object at each access, yet the same step."""

    def run(self, sequence):
        return detect(sequence)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, sequence):
        return detect(sequence)


def test_methods_and_objects_are_shared_too():
    model = Detector()
    apply([voter("one", lambda _: 0, pre=[model]), voter("two", lambda _: 0, pre=[model])], {"a": [1]}, progress=False)
    assert len(CALLS) == 1


def test_sequence_and_vectorised_sources_may_read_anything():
    sources = [
        voter("whole", lambda found: 1 if found["n"] == 2 else -1, pre=[count], resolution=Sequence()),
        voter("flat", lambda found: np.full(found["n"], -1), pre=[count], vectorized=True),
    ]
    votes = apply(sources, {"a": [1, 2]}, progress=False)
    assert votes.column("whole").tolist() == [1]
    assert votes.column("flat").tolist() == [-1, -1]
    assert CALLS == [("count", 2)]


def test_preprocessing_must_keep_the_number_of_elements():
    shorter = voter("s", lambda _: 0, pre=[lambda sequence: sequence[1:]])
    with pytest.raises(SourceError, match=r"sequence 'a' has 3, and '<lambda>' \(pre= of source 's'\) returned 2"):
        apply([shorter], {"a": [1, 2, 3]}, progress=False)
    nothing = voter("s", lambda _: 0, pre=[lambda _: None])
    with pytest.raises(SourceError, match=r"must have len\(\) .*sequence 'a' is NoneType"):
        apply([nothing], {"a": [1, 2, 3]}, progress=False)


def test_a_fault_in_preprocessing_is_a_fault_of_every_source_that_reads_it():
    def broken(sequence):
        CALLS.append(("broken", len(sequence)))
        raise OSError("no model")

    sources = [
        voter("one", lambda _: 1, pre=[broken]),
        voter("two", lambda _: 1, pre=[broken, track]),
        voter("three", lambda _: 1),
    ]
    with pytest.raises(SourceError, match=r"source 'one' raised OSError: no model on sequence 'a'"):
        apply(sources, {"a": [1, 2]}, progress=False)
    CALLS.clear()
    votes = apply(sources, {"a": [1, 2]}, on_fault="abstain", progress=False)
    assert CALLS == [("broken", 2)]
    assert [(fault.source, fault.task) for fault in votes.faults] == [("one", None), ("two", None)]
    assert all("in broken" in fault.traceback for fault in votes.faults)
    assert [votes.column(name).tolist() for name in votes.source_names] == [[0, 0], [0, 0], [1, 1]]
