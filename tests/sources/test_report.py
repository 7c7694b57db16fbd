"""The report of a run, its progress, and the bar."""

from __future__ import annotations

import io
import json
import sys
import time

from dugong.sources import Progress, apply, apply_with_report, source
from dugong.tasks import Window


def slow(numbers):
    time.sleep(0.1)
    return numbers


@source(pre=[slow])
def quick(number):
    return 1 if number else 1 / number


@source(resolution=Window(size=2))
def silent(window):
    time.sleep(0.01)


def test_time_votes_and_faults_per_source():
    data = {"a": [1, 0, 1], "b": [1]}
    done = apply_with_report([quick, silent], data, on_fault="abstain", progress=False)
    first, second = done.report.sources
    assert (first.name, first.resolution, first.tasks, first.votes, first.faults) == ("quick", "element", 4, 3, 1)
    assert (second.name, second.tasks, second.votes, second.faults) == ("silent", 3, 0, 0)
    assert second.resolution.startswith("window2")
    assert second.seconds >= 0.03
    assert done.report.pre_seconds["slow"] >= 0.2 > first.seconds  # preprocessing is counted apart
    assert (done.report.n_sequences, done.report.n_elements, done.report.n_faults) == (2, 4, 1)
    assert done.report.seconds >= 0.23
    assert done.votes.column("quick").tolist() == [1, 0, 1, 1]
    assert json.loads(json.dumps(done.report.to_dict()))["sources"][0]["name"] == "quick"


def test_two_processes_report_the_same_counts():
    data = {"a": [1, 0, 1], "b": [1]}
    one = apply_with_report([quick, silent], data, on_fault="abstain", progress=False).report
    two = apply_with_report([quick, silent], data, on_fault="abstain", progress=False, n_jobs=2).report
    for alone, together in zip(one.sources, two.sources, strict=True):
        assert (alone.tasks, alone.votes, alone.faults) == (together.tasks, together.votes, together.faults)
    assert two.pre_seconds["slow"] >= 0.2


def test_progress_calls_back_after_every_sequence():
    seen: list[Progress] = []
    apply([quick], {"a": [1, 0], "b": [1]}, on_fault="abstain", progress=seen.append)
    assert [(now.done, now.total, now.sequence, now.elements, now.faults) for now in seen] == [
        (1, 2, "a", 2, 1),
        (2, 2, "b", 3, 1),
    ]
    apply([quick], iter([("a", [1])]), progress=seen.append, limit=5)
    assert seen[-1].total is None
    apply([quick], {"a": [1], "b": [1]}, progress=seen.append, limit=1)
    assert seen[-1].total == 1


def test_the_bar_is_shown_on_terminals_only(monkeypatch, capsys):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    apply([quick], {"a": [1]})
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    apply([quick], {"a": [1]}, progress=False)
    assert terminal.getvalue() == ""
    apply([quick], {"a": [1], "b": [0]}, on_fault="abstain")
    assert "Applying sources" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    assert "1 faults" in terminal.getvalue()
    assert capsys.readouterr().out == ""
