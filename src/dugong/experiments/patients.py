"""Patients differ: labels of real Gait by who the label model was fitted on.

In: an `ExperimentPlan` with the Daphnet recordings in its data folder. Out: F1 of the labels by patient, for three ways
to split: the official patients, one patient left out after the other, and blocks of time left out of every patient.
Gold labels of one patient (the dev part) give the prior of two ways, all give the scores; nothing is fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dugong.baselines import DataProgramming, MajorityVote
from dugong.exceptions import LoaderError
from dugong.experiments.case import TaskCase, real
from dugong.experiments.measure import ExperimentPlan, scores_of
from dugong.experiments.tables import Reproduction, Table
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.gait import PUBLISHED, REPEATING
from dugong.model import LabelModel
from dugong.types import BoolArray, FloatArray

N_BLOCKS = 5
Way = Callable[[TaskCase, BoolArray, BoolArray], FloatArray]


def show_patients(plan: ExperimentPlan) -> Reproduction:
    """One row per split and way to fit, one column per patient who freezes."""
    try:
        case = real(find_recipe("gait"), plan.data, quick=True)
        records = [record for split in SPLITS for record in _records(case, split)]
    except LoaderError as error:
        records = [{"split": "all", "labels": f"*not measured: {str(error).partition(chr(10))[0]}*"}]
    found = dict.fromkeys(name for record in records for name in record)
    names = tuple(sorted(found, key=lambda name: (name == "mean", name[0] == "S", name if name[0] == "S" else "")))
    rows = [{name: _text(record.get(name)) for name in names} for record in records]
    title = "F1 of labels by patient (Daphnet), by who the label model was fitted on"
    table = Table(name="patients", title=title, columns=names, rows=tuple(rows), records=tuple(records))
    return Reproduction(name="patients", tables=(table,))


def _text(value: object) -> str:
    return f"{100 * value:.1f}" if isinstance(value, float) else str(value or "")


def _records(case: TaskCase, split: str) -> Iterator[dict[str, Any]]:
    """Labels of everything that a split tests, put together from its folds and scored by patient."""
    patients = _patients(case)
    owners = np.repeat(patients, case.all_votes.lengths)
    gold = np.concatenate([case.material.gold[name] for name in case.material.sequences])
    folds = list(SPLITS[split](case))
    tested = np.repeat(np.any([test for _, test in folds], axis=0), case.all_votes.lengths)
    scored = [name for name in np.unique(owners[tested]) if (gold[tested & (owners == name)] == 1).any()]
    for what, way in WAYS.items():
        labels = np.full((len(gold), 2), 0.5)
        for fitted, test in folds:
            labels[np.repeat(test, case.all_votes.lengths)] = way(case, fitted, test)
        own = {str(name): scores_of(labels[owners == name], gold[owners == name])["f1"] for name in scored}
        yield {"split": split, "labels": what, **own, "mean": float(np.mean(list(own.values())))}


def _patients(case: TaskCase) -> Any:
    return np.array([case.material.groups[name] for name in case.material.sequences])


# --- who is fitted on, and who is labelled ----------------------------------------------------------------------------


def _official(case: TaskCase) -> Iterator[tuple[BoolArray, BoolArray]]:
    parts = np.array([case.material.parts[name] for name in case.material.sequences])
    yield parts == "train", parts == "test"


def _one_patient(case: TaskCase) -> Iterator[tuple[BoolArray, BoolArray]]:
    patients = _patients(case)
    for name in np.unique(patients):
        yield patients != name, patients == name


def _blocks(case: TaskCase) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Successive pieces of every patient's recordings, so that all patients are fitted on and labelled."""
    patients = _patients(case)
    block = np.empty(len(patients), dtype=np.int64)
    for name in np.unique(patients):
        own = np.flatnonzero(patients == name)
        block[own] = np.arange(len(own)) * N_BLOCKS // len(own)
    for number in np.unique(block):
        yield block != number, block == number


SPLITS: dict[str, Callable[[TaskCase], Iterator[tuple[BoolArray, BoolArray]]]] = {
    "official patients": _official,
    "one patient left out": _one_patient,
    "blocks of time left out": _blocks,
}

# --- ways to label ----------------------------------------------------------------------------------------------------


def _others(make: Callable[[TaskCase], Any]) -> Way:
    """Fitted on the votes of those who are not labelled."""

    def way(case: TaskCase, fitted: BoolArray, test: BoolArray) -> FloatArray:
        votes = case.all_votes
        found: FloatArray = (
            make(case).fit(votes.select(np.flatnonzero(fitted))).predict_proba(votes.select(np.flatnonzero(test)))
        )
        return found

    return way


def _with_own_votes(make: Callable[..., LabelModel]) -> Way:
    """Fitted on all votes, those to be labelled among them, with tables by patient that lean on each other."""

    def way(case: TaskCase, fitted: BoolArray, test: BoolArray) -> FloatArray:
        patients, both, asked = _patients(case), np.flatnonzero(fitted | test), np.flatnonzero(test)
        model = make(case, sharing="group").fit(case.all_votes.select(both), groups=patients[both].tolist())
        return model.predict_proba(case.all_votes.select(asked), groups=patients[asked].tolist())

    return way


def _dugong(case: TaskCase, **options: Any) -> LabelModel:
    recipe = case.recipe
    prior = recipe.user_prior(case.gold_sequences("dev"))
    return LabelModel(prior=prior, dependencies=recipe.dependencies, **options)


def _repeating(_: TaskCase, **options: Any) -> LabelModel:
    """All sources on seconds repeat themselves, which a likelihood can tell; the prior is not from anybody's labels."""
    return LabelModel(prior=PUBLISHED, dependencies=REPEATING, estimator="em", **options)


WAYS: dict[str, Way] = {
    "majority vote": _others(lambda _: MajorityVote()),
    "data programming": _others(lambda _: DataProgramming()),
    "Dugong": _others(_dugong),
    "Dugong by patient, own votes in the fit": _with_own_votes(_dugong),
    "published prior, sources that repeat themselves": _others(_repeating),
    "the same by patient, own votes in the fit": _with_own_votes(_repeating),
    "defaults by patient, own votes in the fit": _with_own_votes(lambda _, **options: LabelModel(**options)),
}
