"""The first `dugong demo` after installation: nothing is compiled yet. CPU seconds of the process."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers_setup import ONE_THREAD


def measure_cold() -> dict[str, float]:
    """CPU seconds of a demo with an empty cache of compiled code, and of the next one."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: _demo(Path(folder)) for name in ("first", "second")}


def _demo(folder: Path) -> float:
    environment = {**os.environ, **ONE_THREAD, "NUMBA_CACHE_DIR": str(folder / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(Path(sys.executable).with_name("dugong")), "demo", str(folder / "demo")]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
