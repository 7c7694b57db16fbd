"""One measurement in a process of its own: `python child.py ADAPTER DATA OUT CAP`. Runs in either environment.

CPU seconds of fit plus labels after a warm-up on a few sequences, peak memory, and the Brier score over the optimum.
"""

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

WARM = 200
# A virtual machine pays for a page when it is touched for the first time ever: up to twenty times what it costs later.
# Every run therefore touches about as much as the largest competitor needs for a file of votes, and gives it back,
# before anything is measured.
SETTLED_MB, SETTLED_BY_SIZE, MOST_SETTLED_MB = 256, 30, 4096


def memory(field):
    """A field of the process's status, in MB: VmRSS now, VmHWM the highest so far."""
    with Path("/proc/self/status").open() as lines:
        found = next(line for line in lines if line.startswith(field + ":"))
    return int(found.split()[1]) / 1024


def settle_memory(path):
    """Touch free memory once, in pieces, so that nobody is the first to pay for it."""
    size = Path(path).stat().st_size / 2**20
    with Path("/proc/meminfo").open() as lines:
        found = next(line for line in lines if line.startswith("MemAvailable:"))
    free = int(found.split()[1]) // 1024
    wanted = min(SETTLED_MB + SETTLED_BY_SIZE * size, MOST_SETTLED_MB, free / 2)
    pieces = [np.empty(1 << 25, dtype=np.uint8) for _ in range(int(wanted) // 32)]
    for piece in pieces:
        piece[::4096] = 1


def head(data, n_sequences):
    """The first sequences, at most 64 elements of each, for the warm-up."""
    length = int(min(data["lengths"][0], 64))
    n_sequences = min(n_sequences, len(data["lengths"]))
    starts = np.cumsum(data["lengths"])[:n_sequences] - data["lengths"][:n_sequences]
    rows = (starts[:, None] + np.arange(length)).reshape(-1)
    small = dict(data)
    small["dense"] = data["dense"][rows]
    small["lengths"] = np.full(n_sequences, length)
    for name in [name for name in data if name.startswith("column")]:
        del small[name]
    return small


def main(adapter, path, out, cap):
    """Measure one adapter on one file; the system ends the process when its CPU time passes the cap."""
    settle_memory(path)
    limit = int(float(cap) + time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    spec = importlib.util.spec_from_file_location("adapter", adapter)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.load(path, allow_pickle=False) as stored:
        data = {name: stored[name] for name in stored.files if name != "truth"}
        if getattr(module, "COLUMNS", False):
            del data["dense"]
        else:
            data = {name: value for name, value in data.items() if not name.startswith("column")}
    warm = getattr(module, "warm", None)
    if warm is not None:
        warm(data)
    else:
        module.label(head(data, WARM))
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest memory so far is counted anew from here
    wall, cpu = time.perf_counter(), time.process_time()
    found = module.label(data)
    result = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    result |= {"peak_mb": memory("VmHWM"), "base_mb": before}
    result |= getattr(module, "EXTRA", {})
    with np.load(path, allow_pickle=False) as stored:
        truth = stored["truth"]
        result["brier"] = float(((np.asarray(found).reshape(-1) - truth) ** 2).mean())
        result["ratio"] = result["brier"] / float(stored["optimum"])
    Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
