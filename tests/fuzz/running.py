"""Runs cases in a child process and says what became of each.

A case may do anything: the child has limits of memory, an alarm of ten seconds per case, and dies alone. Every case is
drawn from the seed, its group and its number, so that one can be repeated (``python -m fuzz GROUP NUMBER``).
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dugong.exceptions import DugongError

SECONDS = 10.0  # of the processor: a case that takes longer hangs
PATIENCE = 12 * SECONDS  # on the clock, where other programs are at work, or where a case sleeps
ROOM = 8 << 30  # bytes of addresses that a child may have: beyond, memory is refused to it
SPARE = 200_000_000  # bytes that a refused file may take beside ten times its own size
Case = tuple[Callable[[], Any], int]  # what to do, and the size of the file that it reads (0: none)
Group = Callable[[random.Random, Path], Case]
GOOD = ("fine", "refused")


class Hang(BaseException):
    """A case took too long."""


class ForeignError(Exception):
    """What a case says itself of an ending that is not allowed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case; `size` is that of the file it read."""

    group: str
    number: int
    what: str
    detail: str = ""
    seconds: float = 0.0
    memory: int = 0
    size: int = 0

    @property
    def refused_file(self) -> bool:
        """Whether a file was refused, for too much memory or not."""
        return self.size > 0 and self.what in ("refused", "memory")

    @property
    def allowed(self) -> int:
        """Bytes that it may take to refuse the file."""
        return 10 * self.size + SPARE


def run(groups: dict[str, Group], n_cases: dict[str, int], seed: int) -> Iterator[Outcome]:
    """The outcomes of all cases, one group after the other."""
    for name, group in groups.items():
        start = 0
        while start < n_cases[name]:
            for found in _in_child(name, group, range(start, n_cases[name]), seed):
                yield found
                start = found.number + 1


def _in_child(name: str, group: Group, numbers: range, seed: int) -> Iterator[Outcome]:
    """Outcomes until the child ends, by itself or because of a case."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _serve(name, group, numbers, seed, writer)
    os.close(writer)
    number, ended = numbers.start, False
    with os.fdopen(reader, "rb") as lines:
        while not ended:
            ready, _, _ = select.select([lines], [], [], PATIENCE)
            line = lines.readline() if ready else b""
            if line == b"end\n" or not line:
                ended = True
            else:
                yield Outcome(**json.loads(line))
                number += 1
    if not line:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not line:
        how = "hang" if not ready else "crash"
        yield Outcome(name, number, how, f"exit {os.waitstatus_to_exitcode(status)}")


def _serve(name: str, group: Group, numbers: range, seed: int, writer: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, hard))
    faulthandler.disable()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _ring)
    folder = Path(tempfile.mkdtemp(prefix="dugong-fuzz-"))
    os.chdir(folder)
    try:
        for number in numbers:
            try:
                found = one_case(name, group, number, seed, folder)
            except BaseException as error:  # noqa: BLE001 (the suite itself is wrong)
                found = Outcome(name, number, "foreign", f"PREPARING {type(error).__name__}: {error} {_where()}"[:500])
            os.write(writer, json.dumps({part: getattr(found, part) for part in found.__slots__}).encode() + b"\n")
        os.write(writer, b"end\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _ring(_signal: int, _frame: Any) -> None:
    raise Hang


def one_case(name: str, group: Group, number: int, seed: int, folder: Path) -> Outcome:
    """Prepare a case and run it."""
    for left in folder.iterdir():
        shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * usual)  # deep things must be made before they can be refused
    with contextlib.redirect_stdout(io.StringIO()):
        case, size = group(random.Random(f"{seed}/{name}/{number}"), folder)
    sys.setrecursionlimit(usual)
    before = _measure_anew()
    began = time.process_time()
    what, detail = _ending(case)
    seconds, memory = time.process_time() - began, max(_peak() - before, 0)
    found = Outcome(name, number, what, detail, round(seconds, 3), memory, size)
    if found.refused_file and memory > found.allowed:
        return replace(found, what="memory", detail=f"{memory:,} bytes for a file of {size:,}: {detail}")
    return found


def _ending(case: Callable[[], Any]) -> tuple[str, str]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = case()
        except DugongError as error:
            return "refused", str(error)[:300]
        except Hang:
            return "hang", _where()
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is reported)
            return "foreign", f"{type(error).__name__}: {str(error)[:600]} {_where()}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return _judged(found)


def _judged(found: Any) -> tuple[str, str]:
    """Whether arrays that a case returns are probabilities."""
    for array in found if isinstance(found, list | tuple) else [found]:
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            whole = np.isfinite(array).all() and array.min(initial=0) >= 0 and array.max(initial=0) <= 1 + 1e-9
            if not whole or (array.ndim > 1 and np.abs(array.sum(axis=-1) - 1).max(initial=0) > 1e-6):
                return "no probabilities", f"from {array.min()} to {array.max()}"
    return "fine", ""


def _where() -> str:
    """The last line of ours on the way to an error."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [frame for frame in frames if f"{os.sep}dugong{os.sep}" in frame.filename] or frames
    return f"at {ours[-1].filename.partition('src/')[2] or ours[-1].filename}:{ours[-1].lineno}"


def _measure_anew() -> int:
    """Forget the peak of memory so far; what is in use now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])
