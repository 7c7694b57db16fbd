"""The paper's claim on real votes: what votes at coarser resolutions, time and dependencies are worth.

In: an `ExperimentPlan` whose data folder has sets with votes on elements and on windows or sequences. Out: scores of
the labels of elements with everything and with one part left out. There are no parts to train on and no end models:
the label model sees the votes of all sequences, and gold labels are for scoring alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dugong.baselines import DataProgramming, MajorityVote
from dugong.exceptions import LoaderError
from dugong.experiments.measure import ExperimentPlan, scores_of
from dugong.experiments.recipe import TaskCase, find_folder, real
from dugong.experiments.tables import Reproduction, Table, formatted, library_digest
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.gait import PUBLISHED, REPEATING
from dugong.metrics import evaluate
from dugong.model import LabelModel
from dugong.priors import Markov
from dugong.tasks import Element, Resolution, Sequence, Window
from dugong.types import BoolArray, FloatArray, IntArray
from dugong.votes import Votes

SETS = ("sed-speech", "occupancy", "sentiment")
SCORES = {"accuracy": "accuracy", "f1": "F1", "brier": "Brier", "log_loss": "log loss"}
# What is left out must not pay by more than this, in any score.
LEVEL = 0.003


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VotedSet:
    """Votes at several resolutions, and gold labels of the elements (0 where unknown)."""

    votes: Votes
    gold: IntArray


def show_resolutions(plan: ExperimentPlan) -> Reproduction:
    """Scores of the labels on every set that is there; a set that is absent is a row that says so."""
    records: list[dict[str, Any]] = []
    for name in SETS:
        try:
            records += _scored(plan, name)
            plan.tell(f"{name}: {len(WAYS)} ways to label it")
        except LoaderError as error:
            records.append({"set": name, "labels": f"*not measured: {str(error).partition(chr(10))[0]}*"})
    title = "Labels of real elements, with votes at several resolutions and without"
    texts = {"set": formatted("set"), "labels": formatted("labels")}
    texts |= {column: formatted(score, ".4f") for score, column in SCORES.items()}
    table = Table.of("resolutions", title, records, texts, ("\n".join(_sentences(records)),))
    return Reproduction(name="resolutions", tables=(table,))


def _scored(plan: ExperimentPlan, name: str) -> list[dict[str, Any]]:
    if plan.data is None:
        raise LoaderError("no folder with real data was named (--data or DUGONG_DATA)")
    folder = find_folder(plan.data, name, ("meta.json", "votes.npz", "coarse.npz"))
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()
    settings = {"set": name, "content": content, "library": library_digest("resolutions")}
    found = plan.store.kept(f"resolutions-{name}", settings, lambda: _scores(read_voted_set(folder)))
    return [{"set": name, "labels": label, **scores} for label, scores in found.items()]


def _scores(case: VotedSet) -> dict[str, dict[str, float | None]]:
    """Scores of the labels by each way to make them."""
    lengths, names = case.votes.lengths, case.votes.class_names
    found = {one: evaluate(way(case.votes), case.gold, lengths=lengths, classes=names) for one, way in WAYS.items()}
    return {label: {name: one.value(name) for name in SCORES} for label, one in found.items()}


# --- ways to label ----------------------------------------------------------------------------------------------------
def on_elements(votes: Votes) -> Votes:
    """The votes on elements alone."""
    return votes.select(sources=[info.name for info in votes.sources if isinstance(info.resolution, Element)])


def without_time(votes: Votes) -> Votes:
    """The votes on elements alone, every element a sequence of its own."""
    fine, n = on_elements(votes), int(votes.lengths.sum())
    return replace(fine, lengths=np.ones(n, dtype=np.int64), ids=None)


def _labels(choose: Callable[[Votes], Votes] = lambda votes: votes, **options: Any) -> Callable[[Votes], Any]:
    return lambda votes: LabelModel(**options).fit(choose(votes)).predict_proba(choose(votes))


WAYS: Mapping[str, Callable[[Votes], Any]] = {
    "majority vote": lambda votes: MajorityVote().fit(votes).predict_proba(votes),
    "`LabelModel()`": _labels(),
    "without coarse sources": _labels(on_elements),
    "without coarse sources and time": _labels(without_time),
    "without dependencies": _labels(dependencies=()),
}


# --- words ------------------------------------------------------------------------------------------------------------
def _sentences(records: list[dict[str, Any]]) -> list[str]:
    """What leaving a part out does to each set: the scores that change by more than what counts as level."""
    lines = []
    whole = {one["set"]: one for one in records if one["labels"] == "`LabelModel()`"}
    for one in records:
        full = whole.get(one["set"])
        if full is None or one is full:
            continue
        gaps = {title: _gain(full, one, score) for score, title in SCORES.items() if full[score] is not None}
        better = ", ".join(f"{title} by {gap:.4f}" for title, gap in gaps.items() if gap > LEVEL)
        worse = ", ".join(f"{title} by {-gap:.4f}" for title, gap in gaps.items() if gap < -LEVEL)
        said = [f"better in {better}"] * bool(better) + [f"worse in {worse}"] * bool(worse)
        lines.append(f"- *{one['set']}*: beside {one['labels']}, `LabelModel()` is {' and '.join(said) or 'level'}.")
    return lines


def _gain(full: Mapping[str, Any], part: Mapping[str, Any], score: str) -> float:
    gap = float(full[score] - part[score])
    return -gap if score in ("brier", "log_loss") else gap


# --- reading ----------------------------------------------------------------------------------------------------------
def read_voted_set(folder: Path) -> VotedSet:
    """Votes and gold of a folder with ``meta.json``, ``votes.npz`` and ``coarse.npz`` (class numbers, -1 = abstain)."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    with np.load(folder / "votes.npz", allow_pickle=False) as stored:
        codes, lengths, gold = (stored[key] for key in ("votes", "lengths", "gold"))
    n_classes = len(meta["classes"])
    votes = Votes.from_classes(
        codes, n_classes=n_classes, lengths=lengths, sources=meta["sources"], classes=meta["classes"]
    )
    known = gold.astype(np.int64) + 1 if n_classes > 2 else 2 * gold.astype(np.int64) - 1
    return VotedSet(votes=with_coarse(votes, folder, meta), gold=np.where(gold < 0, 0, known))


def with_coarse(votes: Votes, folder: Path, meta: Mapping[str, Any]) -> Votes:
    """Votes on elements, joined by those of ``coarse.npz`` on windows and sequences (1 yes, 0 no, -1 abstain)."""
    columns = dict(zip(votes.source_names, votes.columns, strict=True))
    resolutions: dict[str, Resolution] = {}
    with np.load(folder / "coarse.npz", allow_pickle=False) as stored:
        for place, one in enumerate(meta["coarse"]):
            of = meta["classes"][one["of"]] if "of" in one else None
            whole = one["level"] == "sequence"
            resolutions[one["name"]] = (
                Sequence(one["link"], of=of) if whole else Window(one["level"], None, one["link"], of=of)
            )
            said = stored[str(place)].astype(np.int8)
            columns[one["name"]] = np.where(said < 0, 0, 2 * said - 1).astype(np.int8)
    return Votes.from_tasks(columns, votes.lengths, resolutions=resolutions, classes=votes.class_names)


# --- Patients differ: labels of real Gait by who the label model was fitted on ----------------------------------------
# In: an `ExperimentPlan` with the Daphnet recordings in its data folder. Out: F1 of the labels by patient, for three
# ways to split: the official patients, one patient left out after the other, and blocks of time left out of every
# patient. Gold labels of one patient (the dev part) give the prior of two ways, all give the scores; nothing is fitted
# to them.
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
    for what, way in PATIENT_WAYS.items():
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
    votes, patients, gained = case.all_votes, _patients(case).tolist(), _gains(case)
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


def _gains(case: TaskCase) -> Callable[[FloatArray], dict[str, float]]:
    """By how much labels of everybody are above the vote."""
    votes, everybody = case.all_votes, np.ones(case.all_votes.n_sequences, dtype=bool)
    vote = _by_patient(case, MajorityVote().fit(votes).predict_proba(votes), everybody)
    return lambda labels: {name: f1 - vote[name] for name, f1 in _by_patient(case, labels, everybody).items()}


# --- who is fitted on, and who is labelled ----------------------------------------------------------------------------
def _official(case: TaskCase) -> Iterator[tuple[BoolArray, BoolArray]]:
    parts = np.array([case.material.parts[name] for name in case.material.sequences])
    yield parts == "train", parts == "test"


def _one_by_one(owners: Any) -> Iterator[tuple[BoolArray, BoolArray]]:
    for one in np.unique(owners):
        yield owners != one, owners == one


def _blocks(case: TaskCase) -> IntArray:
    """Successive pieces of every patient's recordings, so that all patients are fitted on and labelled."""
    patients = _patients(case)
    block = np.empty(len(patients), dtype=np.int64)
    for name in np.unique(patients):
        own = np.flatnonzero(patients == name)
        block[own] = np.arange(len(own)) * N_BLOCKS // len(own)
    return block


SPLITS: dict[str, Callable[[TaskCase], Iterator[tuple[BoolArray, BoolArray]]]] = {
    "official patients": _official,
    "one patient left out": lambda case: _one_by_one(_patients(case)),
    "blocks of time left out": lambda case: _one_by_one(_blocks(case)),
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


PATIENT_WAYS: dict[str, Way] = {
    "majority vote": _others(lambda _: MajorityVote()),
    "data programming": _others(lambda _: DataProgramming()),
    "Dugong": _others(_dugong),
    "Dugong by patient, own votes in the fit": _with_own_votes(_dugong),
    "published prior, sources that repeat themselves": _others(_repeating),
    "the same by patient, own votes in the fit": _with_own_votes(_repeating),
    "defaults by patient, own votes in the fit": _with_own_votes(lambda _, **options: LabelModel(**options)),
}
