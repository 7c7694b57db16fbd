"""Nothing moves by accident: tables, standard errors and labels are what they were, to 1e-9.

A change that is meant goes into a commit of its own that says why: ``make golden ARGS=learned`` writes one group anew.
"""

from __future__ import annotations

import numpy as np
import pytest

from golden.cases import CASES, GROUPS
from golden.values import differences, measure, pack, read_values

pytest.importorskip("torch")  # estimator="sgd"

WORLDS = [name for name, case in CASES.items() if not case.real]
REAL = [name for name, case in CASES.items() if case.real]


def check(name: str, folder=None) -> None:
    case = CASES[name]
    moved = differences(read_values(case.group)[name], measure(case, folder))
    assert not moved, f"{name} (group {case.group}):\n  " + "\n  ".join(moved)


@pytest.mark.parametrize("name", WORLDS)
def test_worlds(name):
    check(name)


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_sets(name, shared_data):
    check(name, shared_data)


def test_every_case_is_pinned_and_none_besides():
    for group in GROUPS:
        assert set(read_values(group)) == {name for name, case in CASES.items() if case.group == group}


@pytest.mark.parametrize("size", [6, 500])
def test_a_small_change_anywhere_is_told(size):
    before = np.linspace(0.1, 0.9, size)
    pinned = {"labels": pack(before)}
    assert differences(pinned, {"labels": before + 1e-12}) == []
    for place in range(size):
        after = before.copy()
        after[place] += 1e-5
        (line,) = differences(pinned, {"labels": after})
        assert line.startswith("labels: moved by ")
    assert "shape" in differences(pinned, {"labels": before[:-1]})[0]
    assert differences(pinned, {}) == ["labels: is gone"]
    assert differences(pinned, {"labels": before, "more": before}) == ["more: is new"]
