"""What is to be reproduced, and how: the settings that all tables and figures share, and how work is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dugong.engines import local_engine
from dugong.experiments.measure import Cell, MeasureJob, measure
from dugong.experiments.methods import Estimator, Method
from dugong.experiments.recipe import Recipe
from dugong.experiments.store import Store
from dugong.experiments.tasks import find_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan:
    """Settings of a run.

    Attributes
    ----------
    tasks : tuple of str or Recipe
        Empty for all that a table has.
    quick : bool
    estimator : str
    seeds : int
    data : Path or None
    store : Store
    jobs : int
    device : str or None
    labels_only : bool
    tell : function of a line
        Is told what was finished.
    """

    tasks: tuple[str | Recipe, ...]
    quick: bool
    estimator: Estimator
    seeds: int
    data: Path | None
    store: Store
    jobs: int
    device: str | None
    labels_only: bool
    tell: Callable[[str], None]


def make_jobs(
    plan: ExperimentPlan, tasks: Sequence[str | Recipe], methods: tuple[Method, ...], shares: tuple[float, ...] = (1.0,)
) -> list[MeasureJob]:
    """One job per task, kind of data and seed."""
    found = []
    for task in tasks:
        recipe = find_recipe(task) if isinstance(task, str) else task
        for real in (False, True) if recipe.load is not None else (False,):
            found += [
                MeasureJob(
                    task=task,
                    methods=methods,
                    seed=seed,
                    quick=plan.quick,
                    real=real,
                    data=plan.data,
                    store=plan.store,
                    shares=shares,
                    device=plan.device,
                    labels_only=plan.labels_only,
                )
                for seed in range(plan.seeds)
            ]
    return found


def run_jobs(plan: ExperimentPlan, jobs: Sequence[MeasureJob]) -> list[Cell]:
    """Do all jobs and collect their cells, in order."""
    cells: list[Cell] = []
    found = local_engine(plan.jobs).map(measure, jobs, describe=lambda job: job.title)
    for number, (job, done) in enumerate(zip(jobs, found, strict=True), 1):
        cells += done
        seconds = sum(cell.seconds for cell in done)
        problem = next((f": {cell.problem}" for cell in done if cell.problem), "")
        plan.tell(f"[{number}/{len(jobs)}] {job.title}: {seconds:.1f} s of processor time{problem}")
    return cells
