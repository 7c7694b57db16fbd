"""The closed form against our own compiled Gibbs sampler on the same votes: 10,000 sequences of 5 elements, 10 sources.

`python -m benchmarks.gibbs` prints one JSON line and one Markdown row per world (CPU seconds, one thread). The closed
form is counting and solving; the sampler is `DataProgramming` with its defaults, after a warm-up of the compiler.
Two worlds: `plain` is the one of the other benchmarks, with lopsided sources, which a factor graph of one accuracy per
source cannot describe; `even` is made of the sampler's own assumptions, where it is a maximum-likelihood estimate and
the closed form is not. `stopped` is the sampler stopped, by somebody who knows the truth, as soon as its error is no
larger than that of the closed form.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass

os.environ.update(dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import numpy as np

from benchmarks.floors import best
from dugong.baselines import DataProgramming
from dugong.fit.moments import estimate_centred, solve_tables
from dugong.fit.moments.equations import Given
from dugong.fit.result import Estimate
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.priors import Markov
from dugong.sums import count
from dugong.types import FloatArray
from dugong.votes import Votes
from dugong.worlds import Block, World, accurate
from dugong.worlds.standard import lopsided

N_SEQUENCES, N_ELEMENTS, N_SOURCES = 10_000, 5, 10
EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 100, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class GibbsRow:
    """CPU seconds and mean absolute error of P(vote | label) on one world; medians over the seeds."""

    world: str
    closed_seconds: float
    closed_error: float
    sampler_seconds: float
    sampler_error: float
    stopped_seconds: float | None
    epochs_to_equal: int | None

    @property
    def ratio(self) -> float:
        """CPU time of the sampler over that of the closed form."""
        return self.sampler_seconds / self.closed_seconds


def even(n_sources: int = N_SOURCES, seed: int = 0) -> World:
    """Sources that err evenly and abstain whatever the label is; both classes are as likely."""
    rng = np.random.default_rng(seed)
    right, silence = rng.uniform(0.6, 0.9, n_sources), rng.uniform(0.0, 0.5, n_sources)
    tables = [accurate(p, p, a, a) for p, a in zip(right, silence, strict=True)]
    blocks = tuple(Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables))
    return World(prior=Markov(positive=0.5, stay=0.8), blocks=blocks, lengths=N_ELEMENTS, name="even")


def closed_form(world: World, votes: Votes) -> Estimate:
    """Count and solve."""
    design = make_design(world.sources, SourceGraph.of(world.source_names, ()))
    moments = count(votes, design.plan, n_threads=1)
    return estimate_centred(solve_tables(Given.under(world.prior, design, moments)))


def sampled(world: World, votes: Votes, n_epochs: int, seed: int) -> tuple[float, dict[str, FloatArray]]:
    """CPU seconds and tables of the sampler."""
    chances = world.prior.joint_law([("element", 0)], 1)
    model = DataProgramming(n_epochs=n_epochs, balance=chances.tolist(), seed=seed)
    start = time.process_time()
    tables = model.fit(votes).accuracies_
    return time.process_time() - start, tables


def mean_error(found: dict[str, FloatArray], truth: dict[str, FloatArray]) -> float:
    """Mean absolute error over all entries of all tables."""
    return float(np.mean([np.abs(found[name] - table).mean() for name, table in truth.items()]))


def measure_gibbs(n_seeds: int = 3) -> list[GibbsRow]:
    """Both worlds."""
    return [_measure(world, n_seeds) for world in (lopsided(N_SOURCES), even())]


def _measure(world: World, n_seeds: int) -> GibbsRow:
    truth, rows = world.accuracies(N_ELEMENTS), []
    for seed in range(n_seeds):
        votes, _ = world.sample(N_SEQUENCES, rng=seed)
        seconds = best(lambda votes=votes: closed_form(world, votes), 9)  # type: ignore[misc]
        error = mean_error(dict(closed_form(world, votes).accuracies), truth)
        sampled(world, votes, 1, seed)
        runs = {n: sampled(world, votes, n, seed) for n in EPOCHS}
        errors = {n: mean_error(tables, truth) for n, (_, tables) in runs.items()}
        enough = next((n for n in EPOCHS if errors[n] <= error), None)
        whole, tables = sampled(world, votes, DataProgramming().n_epochs, seed)
        rows.append((seconds, error, whole, mean_error(tables, truth), enough and runs[enough][0], enough))
    medians = [float(np.median([row[place] for row in rows])) for place in range(4)]
    reached = [row for row in rows if row[5] is not None]
    stopped = sorted(reached, key=lambda row: row[5] or 0)[len(reached) // 2] if len(reached) == len(rows) else None
    return GibbsRow(
        world=world.name,
        closed_seconds=medians[0],
        closed_error=medians[1],
        sampler_seconds=medians[2],
        sampler_error=medians[3],
        stopped_seconds=None if stopped is None else stopped[4],
        epochs_to_equal=None if stopped is None else stopped[5],
    )


def render(rows: list[GibbsRow]) -> str:
    """The rows as a Markdown table."""
    head = "| world | closed form, s | error | sampler, s | error | times | stopped at equal error, s | times |"
    lines = [head, "|" + " --- |" * 8]
    for row in rows:
        stopped = (
            "never" if row.stopped_seconds is None else f"{row.stopped_seconds:.3f} ({row.epochs_to_equal} epochs)"
        )
        times = "" if row.stopped_seconds is None else f"{row.stopped_seconds / row.closed_seconds:.0f}"
        lines.append(
            f"| {row.world} | {row.closed_seconds:.4f} | {row.closed_error:.4f} | {row.sampler_seconds:.2f} | "
            f"{row.sampler_error:.4f} | {row.ratio:.0f} | {stopped} | {times} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print one JSON line and the table."""
    rows = measure_gibbs()
    print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows]))
    print(render(rows))


if __name__ == "__main__":
    main()
