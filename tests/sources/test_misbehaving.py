"""Sources that misbehave are named and hurt nobody, with one process and with two."""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import dugong as dg
from dugong.exceptions import SourceError
from dugong.sources import inputs
from dugong.sources.inputs import TooSlow, _limited

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


class Odd(BaseException):
    """No `Exception`, as some libraries raise."""


@dg.source
def cancelled(value):
    if value == 5:
        raise asyncio.CancelledError
    return 1


@dg.source
def raises_no_exception(value):
    if value == 5:
        raise BaseExceptionGroup("several", [Odd("one"), KeyboardInterrupt()])
    return 1


@dg.source
def loops_in_native_code(value):
    return 1 if value != 5 else sum(itertools.repeat(0)) and 1


@dg.source
def closes_all_files(value):
    if value == 5:
        os.closerange(3, 256)
    return 1


@dg.source
def closes_its_output(value):
    if value == 5:
        sys.stdout.close()
        os.close(0)
        os.close(1)
    return 1


@dg.source
def leaves_a_copy_behind_and_dies(value):
    if value == 5:
        if os.fork() == 0:
            time.sleep(30)
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


ALL = [exits, generator_ends, loops, loops_and_catches, cancelled, raises_no_exception]


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


def test_a_loop_in_native_code_ends_with_its_worker():
    """Nothing in this process can end it, and no signal in the worker."""
    with pytest.raises(SourceError, match=r"exit code 1 while it worked on sequence 'b' \(source 'loops_in_native"):
        dg.apply([good, loops_in_native_code], DATA, n_jobs=2, timeout=0.5, on_fault="abstain", progress=False)


def test_a_worker_that_dies_is_missed_though_a_copy_of_it_lives():
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"signal SIGKILL while it worked on sequence 'b'"):
        dg.apply([good, leaves_a_copy_behind_and_dies], DATA, n_jobs=2, progress=False)
    assert time.monotonic() - began < 25


def test_a_worker_whose_pipes_were_closed_is_missed():
    with pytest.raises(SourceError, match=r"ended with (signal SIGKILL|exit code 1) while it worked on sequence 'b'"):
        dg.apply([good, closes_all_files], DATA, n_jobs=2, progress=False)


def test_a_source_that_closes_the_standard_output_of_a_worker_votes_on():
    votes = dg.apply([good, closes_its_output], DATA, n_jobs=2, progress=False)
    assert votes.column("closes_its_output").tolist() == [1] * 6


def test_an_alarm_that_rings_while_a_limit_ends_is_put_off(monkeypatch):
    """As after a deep recursion, whose frames take longer to leave than the alarm takes to ring again."""
    text = """
        def slowly(which, seconds, interval=0.0):
            if seconds == 0.0:
                signal.raise_signal(signal.SIGALRM)
            return put_off(which, seconds, interval)
    """
    names = {"signal": signal, "put_off": signal.setitimer}
    exec(compile(textwrap.dedent(text), inputs.__file__, "exec"), names)  # as a line of the guard itself
    monkeypatch.setattr(signal, "setitimer", names["slowly"])
    with _limited(60.0):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_sequence_or_spans_whose_loading_leaves_the_interpreter_are_named():
    def leave(*_):
        sys.exit(0)

    with pytest.raises(SourceError, match="sequence 'b' cannot be loaded: SystemExit: 0"):
        dg.apply([good], {"a": [1], "b": dg.sources.Deferred(leave)}, progress=False)
    with pytest.raises(SourceError, match="the function that finds the spans 'scene' raised SystemExit: 0 on sequence"):
        dg.apply([good], DATA, spans={"scene": leave}, progress=False)


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


@pytest.mark.parametrize("wrong", [2**63, -(2**63) - 1, 2**70])
def test_a_number_that_no_file_holds_is_no_id(wrong):
    with pytest.raises(SourceError, match=r"a word or a whole number; found .* at place 0\.\n  Use str"):
        dg.apply([good], {wrong: [1]}, progress=False)
