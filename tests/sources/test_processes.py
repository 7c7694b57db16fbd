"""Several processes give what one gives, from any kind of function, and leave nothing behind."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dugong.exceptions import SourceError
from dugong.sources import Deferred, apply, source
from dugong.tasks import Sequence, Spans, Window


def doubled(numbers):
    return numbers * 2


@source(pre=[doubled])
def high(number):
    return 1 if number > 1.2 else -1 if number < 0.4 else 0


@source(resolution=Window(size=4, stride=2), pre=[doubled])
def bursts(window):
    return 1 if window.elements.mean() > 1.2 else 0


@source(resolution=Sequence())
def long(numbers):
    return 1 if len(numbers) > 20 else -1


@source(resolution=Spans(name="third"), vectorized=True)
def thirds(numbers, tasks):
    return [1 if numbers[a:b].max() > 0.9 else -1 for a, b in zip(tasks.starts, tasks.stops, strict=True)]


def cut(numbers):
    return [(start, min(start + 3, len(numbers))) for start in range(0, len(numbers), 3)]


def equal(one, other):
    return (
        one.source_names == other.source_names
        and one.sequence_ids.tolist() == other.sequence_ids.tolist()
        and one.lengths.tolist() == other.lengths.tolist()
        and all(np.array_equal(a, b) for a, b in zip(one.columns, other.columns, strict=True))
        and all(np.array_equal(one.spans[name].starts, other.spans[name].starts) for name in one.spans)
        and one.faults == other.faults
    )


def test_two_processes_give_what_one_gives(rng):
    data = {f"v{index}": rng.random(int(rng.integers(0, 40))) for index in range(25)}
    options = {"spans": {"third": cut}, "progress": False}
    alone = apply([high, bursts, long, thirds], data, **options)
    together = apply([high, bursts, long, thirds], data, n_jobs=2, **options)
    assert equal(alone, together)
    assert len(np.unique(alone.column("high"))) == 3


def test_results_keep_their_order_when_the_first_is_slow():
    @source
    def sleepy(number):
        time.sleep(0.3 if number == 0 else 0)
        return 1 if number % 2 else -1

    votes = apply([sleepy], ((index, [index]) for index in range(12)), n_jobs=2, progress=False)
    assert votes.sequence_ids.tolist() == list(range(12))
    assert votes.column("sleepy").tolist() == [-1, 1] * 6


def test_functions_of_a_notebook_work():
    cell = {"__name__": "__main__"}
    code = """
    import numpy as np
    from dugong.sources import source
    BORDER = np.float64(2)
    def helper(number):
        return number > BORDER
    def prepare(numbers):
        return [number + 1 for number in numbers]
    @source(pre=[prepare])
    def above(number):
        return 1 if helper(number) else -1
    """
    exec(textwrap.dedent(code), cell)
    votes = apply([cell["above"]], {"a": [0, 1, 2, 3]}, n_jobs=2, progress=False)
    assert votes.column("above").tolist() == [-1, -1, 1, 1]


def test_shared_preprocessing_stays_shared_in_a_worker(tmp_path):
    log = tmp_path / "log"

    def prepare(numbers):
        with log.open("a") as file:
            file.write(f"{numbers}\n")
        return numbers

    sources = [source(name=name, pre=[prepare])(lambda _: 1) for name in "abc"]
    apply(sources, {0: [5], 1: [6]}, n_jobs=2, progress=False)
    assert sorted(log.read_text().split("\n")) == ["", "[5]", "[6]"]


def test_functions_of_a_file_off_the_path_work(tmp_path):
    file = tmp_path / "my_rules.py"
    file.write_text(
        "from dugong.sources import source\n"
        "class Element:\n    def __init__(self, value): self.value = value\n"
        "def prepare(values): return [Element(value) for value in values]\n"
        "@source(pre=[prepare])\ndef rule(element): return 1 if element.value else -1\n"
    )
    spec = importlib.util.spec_from_file_location("my_rules", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_rules"] = module
    try:
        spec.loader.exec_module(module)
        votes = apply([module.rule], {"a": [0, 1]}, n_jobs=2, progress=False)
    finally:
        del sys.modules["my_rules"]
    assert votes.column("rule").tolist() == [-1, 1]


def test_a_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from dugong.sources import apply, source\n"
        "@source\ndef odd(number):\n    print('to stderr')\n    return 1 if number % 2 else -1\n"
        "votes = apply([odd], {'a': [1, 2], 'b': [3]}, n_jobs=2)\n"
        "print(votes.column('odd').tolist())\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, -1, 1]\n"
    assert done.stderr.replace("\n", "") == 3 * "to stderr"  # two workers: ends of lines may change places


def test_a_generator_is_read_only_a_little_ahead():
    read = []

    def stream():
        for index in range(1000):
            read.append(index)
            yield index, [index]

    def stop(progress):
        if progress.done == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        apply([long_enough], stream(), n_jobs=2, progress=stop)
    assert len(read) < 20


@source
def long_enough(number):
    return 1


def test_deferred_sequences_are_loaded_by_the_worker():
    parent = os.getpid()

    def load(value):
        return [value, int(os.getpid() != parent)]

    @source
    def loaded_there(number):
        return 1 if number else -1

    votes = apply([loaded_there], {"a": Deferred(load, 1)}, n_jobs=2, progress=False)
    assert votes.column("loaded_there").tolist() == [1, 1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_sequence_that_cannot_be_loaded_is_named(n_jobs):
    def load():
        raise OSError("broken disk")

    with pytest.raises(SourceError, match=r"sequence 'a' cannot be loaded: OSError: broken disk"):
        apply([long_enough], {"a": Deferred(load)}, n_jobs=n_jobs, on_fault="abstain", progress=False)


def test_what_cannot_travel_is_named():
    lock = threading.Lock()

    @source
    def locked(number):
        with lock:
            return 1

    with pytest.raises(SourceError, match=r"source 'locked' cannot be sent to another process: TypeError.*lock"):
        apply([long_enough, locked], {"a": [1]}, n_jobs=2, progress=False)
    with pytest.raises(SourceError, match=r"sequence 'a' cannot be sent to another process: TypeError.*lock"):
        apply([long_enough], {"a": [lock]}, n_jobs=2, progress=False)


def worker_processes(parent):
    """Children of a process, as the kernel knows them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@needs_proc
def test_no_worker_is_left_behind():
    before = set(worker_processes(os.getpid()))
    apply([long_enough], {index: [1] for index in range(5)}, n_jobs=2, progress=False)

    def fail(progress):
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        apply([long_enough], {index: [1] for index in range(50)}, n_jobs=2, progress=fail)
    assert set(worker_processes(os.getpid())) <= before


FOREVER = """
import os, time
from dugong.sources import apply, source
@source
def forever(number):
    os.write(2, b"busy\\n")  # in one piece: two workers share the pipe
    while True:
        time.sleep(0.01)
apply([forever], {0: [1], 1: [1], 2: [1]}, n_jobs=2)
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_killed_parent_leave_no_worker(tmp_path, number):
    script = tmp_path / "forever.py"
    script.write_text(FOREVER)
    with subprocess.Popen(
        [sys.executable, script], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        for _ in range(2):
            assert process.stderr.readline() == "busy\n"
        workers = worker_processes(process.pid)
        assert len(workers) == 2
        # Ctrl-C reaches the whole group of the terminal, a kill only the parent.
        os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
        begin = time.monotonic()
        rest = process.stderr.read()
        process.wait()
    assert time.monotonic() - begin < 10
    if number == signal.SIGINT:
        assert rest.count("KeyboardInterrupt") == 1
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_any_engine_will_do():
    class Backwards:
        def map(self, function, items, *, describe=repr):  # noqa: ARG002 (the promise of an engine)
            results = [function(item) for item in reversed(list(items))]
            return reversed(results)

    votes = apply([high], {"a": np.array([0.1, 0.9]), "b": np.array([0.5])}, engine=Backwards(), progress=False)
    assert votes.column("high").tolist() == [-1, 1, 0]
