"""Freezing of gait from raw accelerometers: five sources, no labels used for fitting, majority vote beside it.

Run it from the root of the project: ``python examples/gait.py [FOLDER]``; the folder holds ``recordings.npz`` of the
Daphnet data set (``../shared/data/gait-daphnet`` by default). Elements are seconds. Three sources look at single
seconds, two at windows of five; they live with the paper's task in ``dugong.experiments.tasks.gait``. Gold labels of
one patient give the prior of the third method; besides they score, patient by patient.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dugong as dg
from dugong.experiments.tasks import find_recipe

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "gait-daphnet"


def main(folder: Path = FOLDER) -> dg.metrics.Comparison:
    """Apply the sources, fit, and compare with majority vote, patient by patient."""
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
    }
    print(votes.summary(gold=gold))
    comparison = dg.compare(labels, gold, lengths=votes.lengths, groups=patients)
    print(comparison)
    return comparison


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
