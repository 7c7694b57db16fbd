"""What keeps a run alive beside a source that misbehaves: it may raise, exit, fork, or never come back.

A source is the user's own code, so this is no sandbox: it turns accidents into faults that name the source.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from dugong.engines import in_worker


class TooSlow(BaseException):
    """A source took longer on a sequence than it may; no `Exception`, so that the source's own handlers let it pass."""


def raised_by_source() -> tuple[type[BaseException], ...]:
    """What counts as a fault of the source: everything but a Ctrl-C of the user.

    Workers ignore the signal of Ctrl-C, so there a KeyboardInterrupt is the source's own.
    """
    own = (Exception, SystemExit, GeneratorExit, TooSlow)
    return (*own, KeyboardInterrupt) if in_worker() else own


@contextlib.contextmanager
def guarded(timeout: float | None = None) -> Iterator[None]:
    """Run a source's code: a fork ends here, time is limited, and ``os._exit`` becomes SystemExit.

    The latter only where nobody else would notice the end of the process: that of a worker is reported by its parent.
    The limit needs the signals of a main thread (not on Windows, not in threads of a cluster's worker).
    """
    home, leave = os.getpid(), os._exit

    def exit_here(status: int) -> NoReturn:
        if os.getpid() == home:
            raise SystemExit(f"os._exit({status})")
        leave(status)

    if not in_worker():
        os._exit = exit_here
    try:
        with _limited(timeout):
            yield
    finally:
        os._exit = leave
        if os.getpid() != home:
            leave(0)  # a copy of this process that the source forked: the job must not run twice


@contextlib.contextmanager
def _limited(timeout: float | None) -> Iterator[None]:
    if timeout is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise TooSlow(f"it took longer than {timeout:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        # Rings again every second: a handler of the source itself may have caught the first one.
        signal.setitimer(signal.ITIMER_REAL, timeout, 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def last_words() -> Iterator[None]:
    """Say where native code crashed (a segmentation fault), if nobody else does."""
    already = faulthandler.is_enabled()
    if not already:
        with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):  # a standard error that is no file
            faulthandler.enable(sys.stderr)
    try:
        yield
    finally:
        if not already:
            faulthandler.disable()
