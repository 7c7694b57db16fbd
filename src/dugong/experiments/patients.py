"""Patients differ: labels of real Gait by who the label model was fitted on.

In: an `ExperimentPlan` with the Daphnet recordings in its data folder. Out: F1 of the labels by patient, for three ways
to split: the official patients, one patient left out after the other, and blocks of time left out of every patient.
Gold labels of one patient (the dev part) give the prior of two ways, all give the scores; nothing is fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from dugong.baselines import DataProgramming, MajorityVote
from dugong.exceptions import LoaderError
from dugong.experiments.measure import ExperimentPlan, scores_of
from dugong.experiments.recipe import TaskCase, real
from dugong.experiments.tables import Reproduction, Table, formatted
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.gait import PUBLISHED, REPEATING
from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.types import BoolArray, FloatArray

N_BLOCKS = 5
# What somebody could have said who had not read the publication.
PRIORS = {
    f"{share:.0%} freezes of {bout} s": Markov(positive=share, bout=bout)
    for share in (0.03, 0.06, 0.1)
    for bout in (4, 6, 8, 10)
}
Way = Callable[[TaskCase, BoolArray, BoolArray], FloatArray]


def show_patients(plan: ExperimentPlan) -> Reproduction:
    """One row per split and way to fit, one column per patient who freezes; and what the last way but one rests on."""
    title = "F1 of labels by patient (Daphnet), by who the label model was fitted on"
    try:
        case = real(find_recipe("gait"), plan.data, quick=True)
    except LoaderError as error:
        said = {"split": "all", "labels": f"*not measured: {str(error).partition(chr(10))[0]}*"}
        return Reproduction(name="patients", tables=(_table("patients", title, [said]),))
    records = [record for split in SPLITS for record in _records(case, split)]
    others = "Other graphs and priors, fitted on all votes: how well they explain them, and F1 above the vote"
    tables = (_table("patients", title, records), _table("patients-choices", others, list(_choices(case))))
    return Reproduction(name="patients", tables=tables)


def _table(name: str, title: str, records: list[dict[str, Any]]) -> Table:
    found = dict.fromkeys(key for record in records for key in record)
    scores = [*sorted(key for key in found if key[0] == "S"), *(["mean"] if "mean" in found else [])]
    texts = {key: formatted(key) for key in found if key not in scores}
    return Table.of(name, title, records, texts | {key: formatted(key, ".1f", 100) for key in scores})


def _records(case: TaskCase, split: str) -> Iterator[dict[str, Any]]:
    """Labels of everything that a split tests, put together from its folds and scored by patient."""
    folds = list(SPLITS[split](case))
    tested = np.any([test for _, test in folds], axis=0)
    for what, way in WAYS.items():
        labels = np.full((case.all_votes.n_elements, 2), 0.5)
        for fitted, test in folds:
            labels[np.repeat(test, case.all_votes.lengths)] = way(case, fitted, test)
        yield {"split": split, "labels": what, **_by_patient(case, labels, tested)}


def _by_patient(case: TaskCase, labels: FloatArray, tested: BoolArray) -> dict[str, float]:
    """F1 of every patient who was labelled and freezes, and their mean."""
    owners = np.repeat(np.where(tested, _patients(case), ""), case.all_votes.lengths)
    gold = np.concatenate([case.material.gold[name] for name in case.material.sequences])
    scored = np.unique(owners[(gold == 1) & (owners != "")])
    own = {str(name): scores_of(labels[owners == name], gold[owners == name])["f1"] for name in scored}
    return own | {"mean": float(np.mean(list(own.values())))}


def _patients(case: TaskCase) -> Any:
    return np.array([case.material.groups[name] for name in case.material.sequences])


def _choices(case: TaskCase) -> Iterator[dict[str, Any]]:
    """Every graph of sources that repeat themselves under one prior, and the largest under every prior."""
    votes, patients, gained = case.all_votes, _patients(case).tolist(), _gain(case)
    graphs = [graph for size in range(len(REPEATING) + 1) for graph in combinations(REPEATING, size)]
    found: list[FloatArray] = []
    for graph, name in [*((graph, "published") for graph in graphs), *((REPEATING, name) for name in PRIORS)]:
        prior = PRIORS.get(name, PUBLISHED)
        model = LabelModel(prior=prior, dependencies=graph, estimator="em", sharing="group").fit(votes, groups=patients)
        found.append(model.predict_proba(votes, groups=patients))
        repeat = ", ".join(one.source for one in graph) or "none"
        likelihood = round(float(model.log_likelihood(votes, groups=patients).sum()))
        yield {"repeat themselves": repeat, "prior": name, "log-likelihood": likelihood, **gained(found[-1])}
    mixed = gained(np.mean(found[len(graphs) :], axis=0))
    yield {"repeat themselves": repeat, "prior": "mean of the labels of these priors", **mixed}


def _gain(case: TaskCase) -> Callable[[FloatArray], dict[str, float]]:
    """By how much labels of everybody are above the vote."""
    votes, everybody = case.all_votes, np.ones(case.all_votes.n_sequences, dtype=bool)
    vote = _by_patient(case, MajorityVote().fit(votes).predict_proba(votes), everybody)
    return lambda labels: {name: f1 - vote[name] for name, f1 in _by_patient(case, labels, everybody).items()}


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
