"""Sources that misbehave are named and hurt nobody, with one process and with two."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import dugong as dg
from dugong.exceptions import SourceError
from dugong.sources.guarding import TooSlow, _limited

DATA = {"a": [1, 2, 3], "b": [4, 5], "c": [6]}


@dg.source
def good(value):
    return 1 if value > 3 else -1


@dg.source
def exits(value):
    if value == 5:
        sys.exit(3)
    return 1


@dg.source
def leaves(value):
    if value == 5:
        os._exit(3)
    return 1


@dg.source
def generator_ends(value):
    if value == 5:
        raise GeneratorExit
    return 1


@dg.source
def interrupts(value):
    if value == 5:
        raise KeyboardInterrupt
    return 1


@dg.source
def loops(value):
    while value == 5:
        pass
    return 1


@dg.source
def loops_and_catches(value):
    while value == 5:
        try:
            time.sleep(0.01)
        except Exception:  # noqa: BLE001 (what careless sources do)
            continue
    return 1


ALL = [exits, generator_ends, loops, loops_and_catches]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("bad", ALL, ids=[one.name for one in ALL])
def test_a_source_that_misbehaves_abstains_and_is_listed(bad, n_jobs):
    votes = dg.apply([good, bad], DATA, n_jobs=n_jobs, on_fault="abstain", timeout=0.5, progress=False)
    assert votes.column("good").tolist() == [-1, -1, -1, 1, 1, 1]
    assert votes.column(bad.name)[[0, 1, 2, 5]].tolist() == [1, 1, 1, 1]
    assert {(fault.source, fault.sequence) for fault in votes.faults} == {(bad.name, "b")}


def test_the_end_of_the_process_becomes_a_fault_where_it_is_the_only_one_and_is_reported_elsewhere():
    votes = dg.apply([good, leaves], DATA, on_fault="abstain", progress=False)
    assert [(fault.sequence, fault.error) for fault in votes.faults] == [("b", "SystemExit: os._exit(3)")]
    with pytest.raises(SourceError, match=r"exit code 3 while it worked on sequence 'b' \(source 'leaves'\)"):
        dg.apply([good, leaves], DATA, n_jobs=2, on_fault="abstain", progress=False)


def test_an_interrupt_of_the_source_itself_is_its_fault_in_a_worker():
    votes = dg.apply([good, interrupts], DATA, n_jobs=2, on_fault="abstain", progress=False)
    assert [(fault.source, fault.sequence) for fault in votes.faults] == [("interrupts", "b")]
    with pytest.raises(SourceError, match="'interrupts' raised KeyboardInterrupt on sequence 'b'"):
        dg.apply([good, interrupts], DATA, n_jobs=2, progress=False)


def test_the_time_limit_is_named():
    with pytest.raises(SourceError, match=r"source 'loops' raised .*it took longer than 0.2 s"):
        dg.apply([loops], DATA, timeout=0.2, progress=False)
    for wrong in (-1, 0, 1e-320, float("nan")):
        with pytest.raises(SourceError, match=r"must be a positive number of seconds, 0\.001 to"):
            dg.apply([good], DATA, timeout=wrong, progress=False)


def test_a_limit_that_rings_before_the_source_begins_leaves_no_alarm_behind():
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(20):
        with contextlib.suppress(TooSlow), _limited(1e-6):
            pass
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is before


def test_a_source_that_forks_does_not_multiply_the_job(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            import dugong as dg

            @dg.source
            def forks(value):
                if value == 5:
                    os.fork()
                return 1

            dg.apply([forks], {"a": [1, 5, 2]}, progress=False)
            print("done", flush=True)
            """
        )
    )
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.split() == ["done"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_crash_in_native_code_says_where(tmp_path, n_jobs):
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import ctypes
            import dugong as dg

            @dg.source
            def crashes(value):
                ctypes.string_at(0)

            dg.apply([crashes], {{"a": [1]}}, n_jobs={n_jobs}, progress=False)
            """
        )
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "crashes" in ended.stderr
