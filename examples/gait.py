"""Freezing of gait from raw accelerometers: five sources, no labels used for fitting, majority vote beside it.

Run it from the root of the project: ``python examples/gait.py [FOLDER]``; the folder holds ``recordings.npz`` of the
Daphnet data set (``../shared/data/gait-daphnet`` by default). Elements are seconds. Three sources look at single
seconds, two at windows of five; they live with the paper's task in ``dugong.experiments.tasks.gait``. Gold labels of
one patient give the prior of one method; besides they score, patient by patient. Two methods learn tables for every
patient, from votes alone: what a trembling sensor means differs from one patient to the next. One of them is told
nothing; the other what the publication says of how often and how long patients freeze, and that every source on
seconds repeats itself, as each reads three seconds of which the next one reads two.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import dugong as dg
from dugong.experiments.tasks import find_recipe
from dugong.experiments.tasks.gait import PUBLISHED, REPEATING

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "gait-daphnet"


def f1_by_patient(probabilities: np.ndarray, gold: np.ndarray, patients: np.ndarray) -> dict[str, float]:
    """F1 of every patient who froze at least once; `patients` has one name per second."""
    frozen = [name for name in np.unique(patients).tolist() if (gold[patients == name] > 0).any()]
    return {name: dg.evaluate(probabilities[patients == name], gold[patients == name]).f1 for name in frozen}


def _by_patient(votes: dg.Votes, patients: list[str], **options: Any) -> np.ndarray:
    """Labels under tables for every patient, fitted with the patient's own votes."""
    model = dg.LabelModel(sharing="group", **options).fit(votes, groups=patients)
    return model.predict_proba(votes, groups=patients)


def main(folder: Path = FOLDER) -> tuple[dg.metrics.Comparison, dict[str, dict[str, float]]]:
    """Apply the sources, fit, and compare with majority vote, all together and patient by patient."""
    recipe = find_recipe("gait")
    assert recipe.load is not None
    material = recipe.load(folder)
    votes = dg.apply(recipe.sources, material.sequences, progress=False)
    gold = np.concatenate([material.gold[name] for name in material.sequences])
    patients = [material.groups[name] for name in material.sequences]
    prior = recipe.user_prior([material.gold[name] for name in material.ids("dev")])
    labels = {
        "majority vote": dg.MajorityVote().fit(votes).predict_proba(votes),
        "prior given": dg.LabelModel(prior=prior, dependencies=()).fit(votes, groups=patients).predict_proba(votes),
        "learned": dg.LabelModel().fit(votes, groups=patients).predict_proba(votes),
        "by patient": _by_patient(votes, patients),
        "told and by patient": _by_patient(votes, patients, prior=PUBLISHED, dependencies=REPEATING, estimator="em"),
    }
    print(votes.summary(gold=gold))
    comparison = dg.compare(labels, gold, lengths=votes.lengths, groups=patients)
    print(comparison)
    owners = np.repeat(patients, votes.lengths)
    by_patient = {name: f1_by_patient(one, gold, owners) for name, one in labels.items()}
    for name, scores in by_patient.items():
        print(f"{name:20}", "  ".join(f"{patient} {f1:.3f}" for patient, f1 in scores.items()))
    return comparison, by_patient


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
