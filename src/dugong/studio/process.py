"""A process for the user's code: asked one thing at a time, ended when it takes too long, and started anew.

In: what to do, and how long it may take. Out: the answer, or a `LostError` in words; events come on the way. The
process is not a sandbox: it may do what the user may do. It protects the page from accidents, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from dugong.engines.local import read_frame, write_frame
from dugong.exceptions import DugongError

_START = "import sys; sys.path[:] = {path!r}; from dugong.studio.bench import serve; serve()"
Event = Callable[[dict[str, Any]], None]


class LostError(DugongError, RuntimeError):
    """The process of the user's code ended without an answer."""


def ignore(_: dict[str, Any]) -> None:
    """Listen to nothing."""


class UserProcess:
    """One process that answers, whoever asks first; `close` it in the end."""

    def __init__(self, *, memory: int, started: Event = ignore) -> None:
        self._memory = memory
        self._started = started
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._opening: tuple[str, dict[str, Any]] | None = None
        self._why = ""
        self._closed = False

    def prepare(self, task: str, **words: Any) -> None:
        """Say what every new process is told first."""
        self._opening = (task, words)

    def ask(self, task: str, *, limit: float | None = None, event: Event = ignore, **words: Any) -> Any:
        """Let the process do something; `limit` is in seconds. Called from threads."""
        with self._turn:
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                return self._exchange(task, words, limit, event)
            except LostError:
                threading.Thread(target=self.revive, daemon=True).start()
                raise

    def revive(self) -> None:
        """Start a process if there is none, so that the next one to ask need not wait."""
        with self._turn, contextlib.suppress(Exception):  # whoever asks next is told what is wrong
            if not self._closed and (self._process is None or self._process.poll() is not None):
                self._start()

    def end(self, why: str) -> None:
        """End what is under way; whoever waits for it gets a `LostError` with this reason."""
        self._why = why
        if self._process is not None:
            _kill(self._process)

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.end("the studio has ended")
        if self._process is not None:
            self._process.wait()

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def _start(self) -> None:
        if self._closed:
            raise LostError("the studio has ended.")
        self._reap()
        self._started({"state": "starting", "why": self._why})
        command = [sys.executable, *(f"-W{one}" for one in sys.warnoptions), "-c", _START.format(path=sys.path)]
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | os.environ
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        self._why = ""
        self._exchange("begin", {"memory": self._memory}, 60.0, ignore)
        if self._opening is not None:
            self._exchange(self._opening[0], self._opening[1], 60.0, ignore)
        self._started({"state": "ready", "why": ""})

    def _exchange(self, task: str, words: dict[str, Any], limit: float | None, event: Event) -> Any:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()
        timer = None if limit is None else threading.Timer(limit, _end_late, (process, late))
        if timer is not None:
            timer.daemon = True
            timer.start()
        answer: tuple[str, Any] | None = None
        try:
            with contextlib.suppress(OSError, ValueError):
                write_frame(process.stdin, pickle.dumps((task, words), protocol=5))  # type: ignore[arg-type]
                while (frame := read_frame(process.stdout)) is not None:  # type: ignore[arg-type]
                    kind, value = pickle.loads(frame)
                    if kind != "event":
                        answer = (kind, value)
                        break
                    event(value)
        finally:
            if timer is not None:
                timer.cancel()
        if late.is_set():
            process.wait()  # it answered in the very last moment, and is gone all the same
        if answer is None:
            raise LostError(self._last_words(process, limit if late.is_set() else None))
        if answer[0] == "raised":
            raise answer[1]
        return answer[1]

    def _last_words(self, process: subprocess.Popen[bytes], limit: float | None) -> str:
        code = process.wait()
        if self._why:
            return f"{self._why}."
        if limit is not None:
            self._why = f"it took longer than {limit:g} s"
        elif code == -9:
            self._why = "it was killed, which is what a lack of memory does"
        else:
            self._why = f"it ended with exit code {code}" if code >= 0 else f"it crashed (signal {-code})"
        return f"the process of your sources was ended: {self._why}. It is started anew."

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    if process.poll() is None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
