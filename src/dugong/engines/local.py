"""One machine as an engine: in this process, or in several.

`Serial` is the plain loop. `Processes` reads items only a little ahead of its workers, gives results back
in order, and leaves no worker behind, whatever ends it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from dugong.engines.protocol import (
    Engine,
    ItemT,
    Naming,
    ResultT,
    ShippedEngine,
    Work,
    WorkerLostError,
    last_word,
    leaving_word,
    mark,
    open_outcome,
    ship,
    ship_item,
)
from dugong.exceptions import DugongError

_START = "import sys; sys.path[:] = {path!r}; from dugong.engines.local import serve; serve({slot!r})"
# Libraries that would otherwise start one thread per core in every worker.
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial:
    """One item after the other, in this process."""

    def map(
        self,
        function: Work[ItemT, ResultT],
        items: Iterable[ItemT],
        *,
        describe: Naming[ItemT] = repr,  # noqa: ARG002 (errors need no place here: they show it)
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        return map(function, items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes(ShippedEngine):
    """Several worker processes on this machine.

    Parameters
    ----------
    n_jobs : int
        How many workers.
    ahead : int
        Items per worker that are read before they are needed; bounds the memory.
    """

    n_jobs: int = 2
    ahead: int = 2

    def _map(
        self, function: Work[ItemT, ResultT], items: Iterable[ItemT], describe: Naming[ItemT]
    ) -> Iterator[ResultT]:
        pool = Pool(ship(function), n_jobs=self.n_jobs)
        threads = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="dugong-worker")
        pending: deque[Future[ResultT]] = deque()
        try:
            for item in items:
                pending.append(threads.submit(pool.call, item, describe(item)))
                while len(pending) >= self.n_jobs * (1 + self.ahead) or (pending and pending[0].done()):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
            pool.stop()
            threads.shutdown()
            pool.close()


def local_engine(n_jobs: int) -> Engine:
    """The engine for a number of processes: 1 is this one, -1 as many as there are cores for us."""
    if n_jobs == -1:
        n_jobs = usable_cores()
    return Serial() if n_jobs == 1 else Processes(n_jobs=n_jobs)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """At most `n_jobs` workers that all run one function; `stop` and `close` it in the end."""

    def __init__(self, function: bytes, *, n_jobs: int) -> None:
        self._function = function
        self._environment = _environment(n_jobs)
        self._folder = tempfile.TemporaryDirectory(prefix="dugong-")
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._closed = False

    def stop(self) -> None:
        """Kill every worker that is busy and start no others; their callers get a `WorkerLostError`."""
        with self._lock:
            self._closed = True
            for worker in self._workers:
                if worker not in self._idle:
                    worker.kill()

    def close(self) -> None:
        """Let all workers end and remove what the pool left on disk; no call may be under way."""
        for worker in self._workers:
            worker.end()
        self._folder.cleanup()

    def call(self, item: Any, name: str) -> Any:
        """Run the function on one item in some worker and wait for it; called from several threads."""
        payload = ship_item(item, name)
        worker = self._borrow(name)
        answer = worker.ask(payload, name)
        with self._lock:
            self._idle.append(worker)
        return open_outcome(answer)

    def _borrow(self, name: str) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._closed:
                raise WorkerLostError(item=name, step="", ending="the end of its pool")
            slot = Path(self._folder.name, f"worker{len(self._workers)}")
            worker = _Worker(str(slot), self._environment)
            self._workers.append(worker)
        worker.prepare(self._function, name)
        return worker


class _Worker:
    """One process with its pipes."""

    def __init__(self, slot: str, environment: dict[str, str]) -> None:
        self._slot = slot
        command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions), "-c"]
        command.append(_START.format(path=sys.path, slot=slot))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def prepare(self, function: bytes, name: str) -> None:
        """Send the function, and raise what went wrong with loading it."""
        open_outcome(self.ask(function, name))

    def ask(self, payload: bytes, name: str) -> bytes:
        """Send one message and wait for its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        answer = None
        with contextlib.suppress(OSError, ValueError):
            write_frame(self._process.stdin, payload)  # type: ignore[arg-type]
            answer = read_frame(self._process.stdout)  # type: ignore[arg-type]
        if answer is None:
            raise WorkerLostError(item=name, step=last_word(self._slot), ending=_ending(self._wait()))
        return answer

    def _wait(self) -> int:
        """How the process ended; one that lives on, because user code closed its pipes or left a thread, is ended."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()

    def end(self) -> None:
        """Close the pipes, which lets an idle process end, and wait for it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._wait()
        self._process.stdout.close()


def _environment(n_jobs: int) -> dict[str, str]:
    share = str(max(1, (os.cpu_count() or 1) // n_jobs))
    return dict.fromkeys(_THREAD_LIMITS, share) | os.environ


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


# --- the life of a worker process: read items, answer each, end when the parent is gone ------------------------------
# Messages come in through the standard input and leave through the standard output; both are taken away from user code
# first (what it prints goes to the standard error). The first message is the function, all others are items.
_LENGTH = struct.Struct("<Q")


def serve(slot: str) -> None:
    """Answer items until the standard input ends; `slot` is the file for marks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    inbound, outbound = take_pipes()
    with inbound, outbound, leaving_word(slot):
        problem: Exception | None = None
        try:
            function = pickle.loads(read_frame(inbound) or b"")
        except Exception as error:
            problem = portable(error)
        write_frame(outbound, pickle.dumps((problem is None, problem)))
        if problem is None:
            _answer_all(function, inbound, outbound)


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent, out of reach of what user code reads, prints and forks."""
    inbound, outbound = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # a copy must not hold the pipes: their end tells the parent of the worker's
        os.register_at_fork(after_in_child=lambda: [os.dup2(nothing, one.fileno()) for one in (inbound, outbound)])
    return inbound, outbound


def _answer_all(function: Callable[[Any], Any], inbound: BinaryIO, outbound: BinaryIO) -> None:
    items: SimpleQueue[bytes | None] = SimpleQueue()
    idle = threading.Event()
    idle.set()
    threading.Thread(target=_listen, args=(inbound, items, idle), daemon=True).start()
    while (payload := items.get()) is not None:
        answer = _answer(function, payload)
        idle.set()
        write_frame(outbound, answer)


def _listen(inbound: BinaryIO, items: SimpleQueue[bytes | None], idle: threading.Event) -> None:
    """Hand on what arrives; if the parent goes away in the middle of work, end at once."""
    while (payload := read_frame(inbound)) is not None:
        idle.clear()
        items.put(payload)
    if not idle.is_set():
        os._exit(1)
    items.put(None)


def _answer(function: Callable[[Any], Any], payload: bytes) -> bytes:
    try:
        return pickle.dumps((True, function(pickle.loads(payload))), protocol=5)
    except BaseException as error:  # a worker that dies without an answer says less than any answer
        return pickle.dumps((False, portable(error)), protocol=5)
    finally:
        mark("")
        with contextlib.suppress(OSError, ValueError):  # user code may have closed it
            sys.stdout.flush()


def portable(error: BaseException) -> Exception:
    """The same error if it survives pickling, else its words; with the worker's traceback as a note."""
    text = "".join(traceback.format_exception(error)).rstrip()
    if not isinstance(error, DugongError):
        error.add_note(f"It was raised in a worker process:\n{text}")
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    if isinstance(copy, Exception):
        return copy
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    plain.add_note(f"It was raised in a worker process:\n{text}")
    return plain


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Send one message."""
    stream.write(_LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Receive one message; None if the other side is gone, also in the middle of a message."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    payload = stream.read(length)
    return payload if len(payload) == length else None
