"""Votes shard by shard: time and peak memory of fit and label against the size of the data.

``python benchmarks/shards.py 10 500`` makes 10 and 500 million votes (10 sources), one shard of 200,000 elements after
the other, fits and labels each data set in a process of its own, and prints seconds (of the clock, and of the
processor, which hardly depend on who else is busy), rows that were labelled, peak memory, how busy the machine was, and
how much more time a data set took than the first, for its size.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import dugong as dg
from dugong.shards import VoteShards, fit_shards, label_shards

N_SOURCES, LENGTH, ELEMENTS = 10, 100, 200_000
PRIOR = {"positive": 0.3, "stay": 0.9}


def make_shards(n_elements: int) -> Iterator[dg.Votes]:
    """Votes that are right four times in five on labels that last, and abstain three times in ten."""
    for number in range(max(1, n_elements // ELEMENTS)):
        rng = np.random.default_rng(number)
        n_sequences = ELEMENTS // LENGTH
        labels = np.where(rng.random((n_sequences, LENGTH // 10)) < 0.3, 1, -1).astype(np.int8).repeat(10, axis=1)
        right = rng.random((n_sequences, LENGTH, N_SOURCES), dtype=np.float32) < 0.8
        votes = np.where(right, labels[..., None], -labels[..., None])
        votes[rng.random(votes.shape, dtype=np.float32) < 0.3] = 0
        ids = np.arange(number * n_sequences, (number + 1) * n_sequences)
        yield replace(dg.Votes.from_dense(votes), ids=ids)


def measure(folder: Path) -> dict[str, float]:
    """Seconds and peak memory of this process for one data set."""
    label_warm = dg.LabelModel(prior=dg.priors.Markov(**PRIOR), dependencies=())
    label_warm.fit(next(make_shards(ELEMENTS))[:50]).labels(next(make_shards(ELEMENTS))[:5])  # compiles the kernels
    shards, begin, cpu = VoteShards.open(folder / "votes"), time.perf_counter(), time.process_time()
    model = dg.LabelModel(prior=dg.priors.Markov(**PRIOR), dependencies=())
    fit_shards(model, shards, keep=folder / "keep")
    fitted = time.perf_counter()
    done = label_shards(model, shards, folder / "labels")
    return {
        "elements": shards.n_elements,
        "rows": done.n_rows,
        "fit": round(fitted - begin, 2),
        "label": round(time.perf_counter() - fitted, 2),
        "wall": round(time.perf_counter() - begin, 2),
        "cpu": round(time.process_time() - cpu, 2),
        "peak_mb": round(peak()),
        "load": round(os.getloadavg()[0], 1),
    }


def peak() -> float:
    """Peak memory of this process in megabytes; the system's own number counts from before it was this program."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure every size in a process of its own."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
        return
    first: dict[str, float] = {}
    for millions in map(float, sys.argv[1:] or ["10", "500"]):
        with tempfile.TemporaryDirectory() as name:
            begin, n_elements = time.perf_counter(), int(millions * 1e6) // N_SOURCES
            shards = VoteShards.write(make_shards(n_elements), Path(name) / "votes")
            made = time.perf_counter() - begin
            done = subprocess.run(
                [sys.executable, __file__, "--measure", name], check=True, capture_output=True, text=True
            )
            found = json.loads(done.stdout)
            first = first or found
            size = found["elements"] / first["elements"]
            ratios = ", ".join(f"{name} x {found[name] / first[name] / size:.2f}" for name in ("wall", "cpu"))
            print(f"{millions:g} million votes, {len(shards)} shards, made in {made:.1f} s: {json.dumps(found)}")
            print(f"  {size:g} times the first; time for its size: {ratios}", flush=True)


if __name__ == "__main__":
    main()
