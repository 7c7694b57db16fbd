"""Measure methods on one task: fit the label model, train the end model, score both on the test part.

In: an `ExperimentPlan`, the settings that all tables and figures share, as `MeasureJob`s: one task with one seed and
all methods that are asked for. Out: one `Cell` per method. Cells that are in the store are not computed again, and the
raw data is only made when some cell is missing. End models are kept by the labels that they learn from: methods that
agree share one, and a changed label model trains only what its labels change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from dugong.engines import local_engine
from dugong.exceptions import DugongError, LoaderError, MissingExtraError
from dugong.experiments.methods import Estimator, Method, certain, fit_labels
from dugong.experiments.recipe import PARTS, Recipe, TaskCase, real, simulated, size_of
from dugong.experiments.tables import LEARNING, Store, library_digest, recipe_digest
from dugong.experiments.tasks import recipe_of
from dugong.experiments.training import end_model_probabilities, examples, has_end_model
from dugong.metrics import evaluate
from dugong.shards.code import digest_code
from dugong.types import AnyArray, FloatArray, Int8Array

SCORES = ("precision", "recall", "f1")
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What all of a run has in common: among it the folder with real data, and whether no end model is trained."""

    quick: bool
    data: Path | None
    store: Store
    device: str | None = None
    labels_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureJob(RunSettings):
    """One task with one seed (of the simulated data, of sampling, and of the weights).

    `shares` are the parts of the train sequences to use, one after the other.
    """

    task: str | Recipe
    methods: tuple[Method, ...]
    seed: int
    real: bool
    shares: tuple[float, ...] = (1.0,)

    @property
    def recipe(self) -> Recipe:
        """The recipe itself."""
        return recipe_of(self.task)

    def name(self, what: str) -> str:
        """How one of its files is called."""
        return f"{self.recipe.name}-{'real' if self.real else 'simulated'}-{what}-{self.seed}"

    @property
    def title(self) -> str:
        """How the job is called while it runs."""
        return f"{self.recipe.name} ({'real' if self.real else 'simulated'} data), seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one method reached.

    Attributes
    ----------
    origin : "simulated", or the name of the real data
    share, n_train : part of the train sequences, and how many these are
    end : precision, recall and F1 of the end model on the test part; None where there is none
    labels : the same of the label model's own labels on the test votes; None where there is no label model
    train_labels : the same on the train part: what the end model learns from
    problem : why there are no numbers; empty if there are
    seconds : processor time
    """

    task: str
    method: str
    origin: str
    seed: int
    share: float = 1.0
    n_train: int = 0
    end: Scores | None = None
    labels: Scores | None = None
    train_labels: Scores | None = None
    problem: str = ""
    seconds: float = 0.0


def measure(job: MeasureJob) -> list[Cell]:
    """All cells of a job; a cell that cannot be computed says why."""
    with ExitStack() as stack:
        try:
            cases = _Cases(job, stack)
        except LoaderError as error:
            reason, name = str(error).partition("\n")[0].rstrip("."), job.recipe.name
            return [Cell(task=name, method=m.name, origin="real", seed=job.seed, problem=reason) for m in job.methods]
        stack.callback(examples.cache_clear)
        return [_cell(job, cases, share, method) for share in job.shares for method in job.methods]


def _cell(job: MeasureJob, cases: _Cases, share: float, method: Method) -> Cell:
    # What a method does, whatever it is called in a table.
    plain = {key: value for key, value in asdict(method).items() if key != "name"}
    settings = {**cases.settings, "share": share, "method": plain}
    name = job.name(method.name)
    # Labels that an end model was trained on are not made again for who asks for labels alone.
    whole = job.store.get(name, settings) if job.labels_only else None
    settings |= {"labels_only": True} if job.labels_only else {}
    checkpoint = None if job.quick else job.store.path(name, settings).with_suffix(".pt")
    result = whole or job.store.kept(name, settings, _measured, cases, share, method, job, checkpoint)
    cell = Cell(task=job.recipe.name, method=method.name, seed=job.seed, share=share, **result)
    return replace(cell, end=None) if job.labels_only else cell


class _Cases:
    """The case of a job, made when it is first needed; its settings are known before."""

    def __init__(self, job: MeasureJob, stack: ExitStack) -> None:
        self._job, self._stack, recipe = job, stack, job.recipe
        self._case = real(recipe, job.data, quick=job.quick) if job.real else None
        size = asdict(size_of(recipe, quick=job.quick))
        given: dict[str, Any] = {
            "task": recipe.name,
            "data": size if self._case is None else content_digest(self._case),
            "small": size["small"] if self._case is None else job.quick,
            "recipe": recipe_digest(recipe),
            "seed": job.seed,
        }
        self.settings = given | {"library": library_digest("measure", "methods", "recipe", "training")}
        self.learning = given | {"library": library_digest("recipe", "training", stages=LEARNING)}

    def find(self) -> TaskCase:
        """The case."""
        if self._case is None:
            made = simulated(self._job.recipe, quick=self._job.quick, seed=self._job.seed)
            self._case = self._stack.enter_context(made)
        return self._case


def content_digest(case: TaskCase) -> str:
    """Hash of votes, gold labels and parts."""
    votes, material = case.all_votes, case.material
    known = [(material.gold[name], material.parts[name]) for name in material.sequences]
    return digest_code([votes.lengths, votes.columns, known, material.origin])


def _measured(cases: _Cases, share: float, method: Method, job: MeasureJob, checkpoint: Path | None) -> dict[str, Any]:
    """One cell as plain data."""
    case = cases.find().with_train_share(share)
    if job.store.fresh and checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    result: dict[str, Any] = {"origin": case.material.origin, "n_train": len(case.material.ids("train"))}
    begin = process_time()
    try:
        result |= _scored(case, method, job, cases.learning | {"share": share}, checkpoint)
    except MissingExtraError:
        raise
    except DugongError as error:
        result["problem"] = str(error).partition("\n")[0]
    result["seconds"] = process_time() - begin
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return result


def _scored(
    case: TaskCase, method: Method, job: MeasureJob, learning: dict[str, Any], checkpoint: Path | None
) -> dict[str, Any]:
    model, train = fit_labels(method, case, job.seed), None
    found: dict[str, Any] = {"labels": None, "train_labels": None, "end": None}
    if model is not None:
        train = model.predict_proba(case.votes("train"), case.resolution)
        test = model.predict_proba(case.votes("test"), case.resolution)
        found["labels"] = scores_of(test, case.gold("test"))
        found["train_labels"] = scores_of(train, case.gold("train"))
    if method.kind == "gold":
        train = certain(case.gold("train"))
    if has_end_model(case) and not job.labels_only:
        content: list[AnyArray] = [case.gold(part) for part in PARTS]
        content += [] if train is None else [np.round(train, 9) + 0.0]
        settings = learning | {"labels": digest_code(content)}
        found["end"] = job.store.kept(job.name("end"), settings, _learned, case, train, job, checkpoint)
    return found


def _learned(case: TaskCase, labels: FloatArray | None, job: MeasureJob, checkpoint: Path | None) -> dict[str, float]:
    """Scores of the end model on the test part."""
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
    said = end_model_probabilities(case, labels, job.seed, device=job.device, checkpoint=checkpoint)
    return scores_of(said, case.gold("test"))


def scores_of(probabilities: FloatArray, gold: Int8Array) -> dict[str, float]:
    """Precision, recall and F1 of +1, undefined ones as 0: nothing was found.

    Even odds are no label of +1, and are not decided by the last digit.
    """
    found = evaluate(np.round(probabilities, 9), gold)
    return {name: float(np.nan_to_num(found.value(name) or 0.0)) for name in SCORES}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan(RunSettings):
    """Settings of a run; no tasks stand for all that a table has, and `tell` is told what was finished."""

    tasks: tuple[str | Recipe, ...]
    estimator: Estimator
    seeds: int
    jobs: int
    tell: Callable[[str], None]


def make_jobs(
    plan: ExperimentPlan, tasks: Sequence[str | Recipe], methods: tuple[Method, ...], shares: tuple[float, ...] = (1.0,)
) -> list[MeasureJob]:
    """One job per task, kind of data and seed."""
    common: dict[str, Any] = {one.name: getattr(plan, one.name) for one in fields(RunSettings)}
    return [
        MeasureJob(task=task, methods=methods, seed=seed, real=is_real, shares=shares, **common)
        for task in tasks
        for is_real in ((False, True) if recipe_of(task).load is not None else (False,))
        for seed in range(plan.seeds)
    ]


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
