"""The paper's claim on real votes: what votes at coarser resolutions, time and dependencies are worth.

In: an `ExperimentPlan` whose data folder has sets with votes on elements and on windows or sequences. Out: scores of
the labels of elements with everything and with one part left out. There are no parts to train on and no end models:
the label model sees the votes of all sequences, and gold labels are for scoring alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dugong.baselines import MajorityVote
from dugong.exceptions import LoaderError
from dugong.experiments.measure import ExperimentPlan
from dugong.experiments.recipe import find_folder
from dugong.experiments.store import library_digest
from dugong.experiments.tables import Reproduction, Table, formatted
from dugong.metrics import evaluate
from dugong.model import LabelModel
from dugong.tasks import Element, Resolution, Sequence, Window
from dugong.types import IntArray
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
