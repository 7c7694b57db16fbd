"""Two threads against one: wall time of fit plus labels on 1,000,000 x 5, processes of either kind in turn.

`python -m benchmarks.threads 2` is one such process. Wall time means little on a busy machine, so the load average is
kept with the result.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.peers_setup import ONE_THREAD, ROOT

N_SEQUENCES, N_REPEATS, N_ROUNDS = 1_000_000, 5, 3


def measure_threads() -> dict[str, float]:
    """Least wall seconds with one thread and with two, and the mean load of the machine meanwhile."""
    times: dict[int, list[float]] = {1: [], 2: []}
    loads = [os.getloadavg()[0]]
    for _ in range(N_ROUNDS):
        for threads, found in times.items():
            environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "NUMBA_NUM_THREADS": str(threads)}
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.threads", str(threads)],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            found.append(float(done.stdout))
            loads.append(os.getloadavg()[0])
    one, two = min(times[1]), min(times[2])
    return {"one": one, "two": two, "ratio": one / two, "load": sum(loads) / len(loads)}


def main(threads: int) -> None:
    """Print the wall seconds of the fastest of some runs."""
    import dugong as dg
    from dugong.worlds.standard import lopsided

    world = lopsided(10)
    votes, _ = world.sample(N_SEQUENCES, rng=3)
    model = dg.LabelModel(prior=world.prior, dependencies=(), n_threads=threads)
    times = []
    for _ in range(N_REPEATS + 1):
        start = time.perf_counter()
        model.fit(votes).predict_proba(votes)
        times.append(time.perf_counter() - start)
    print(min(times[1:]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
