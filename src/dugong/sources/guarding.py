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

GRACE = 5.0  # seconds beyond its limit after which a source that did not notice it is ended with its worker


class TooSlow(BaseException):
    """A source took longer on a sequence than it may; no `Exception`, so that the source's own handlers let it pass."""


def is_interrupt(error: BaseException) -> bool:
    """Whether it is a Ctrl-C of the user; whatever else may be raised is a fault of the source.

    Workers ignore the signal of Ctrl-C, so there a KeyboardInterrupt is the source's own.
    """
    return isinstance(error, KeyboardInterrupt) and not in_worker()


@contextlib.contextmanager
def guarded(timeout: float | None = None) -> Iterator[None]:
    """Run a source's code: a fork ends here, time is limited, and ``os._exit`` becomes SystemExit.

    The latter only where nobody else would notice the end of the process: that of a worker is reported by its parent.
    The limit needs the signals of a main thread (not on Windows, not in threads of a cluster's worker). Native code
    notices no signals: a worker is ended then, but a process that is the only one waits.
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

    def ring(_signal: int, frame: FrameType | None) -> None:
        # Never inside of the guard itself, where the alarm is set and put off: it would go on ringing elsewhere.
        if frame is None or frame.f_code.co_filename not in (__file__, contextlib.__file__):
            raise TooSlow(f"it took longer than {timeout:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        # Rings again every second: a handler of the source itself may have caught the first one.
        signal.setitimer(signal.ITIMER_REAL, timeout, 1.0)
        if in_worker():  # a loop of native code is out of reach of signals; the parent says where it was
            faulthandler.dump_traceback_later(timeout + GRACE, exit=True)
        yield
    finally:
        if in_worker():
            faulthandler.cancel_dump_traceback_later()
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
