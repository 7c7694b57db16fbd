"""FlyingSquid on chains of five frames; its import of pgmpy's MarkovModel is renamed to what pgmpy has today."""

import itertools
import logging

import numpy as np
import pgmpy.models

if not hasattr(pgmpy.models, "MarkovModel"):
    pgmpy.models.MarkovModel = getattr(pgmpy.models, "DiscreteMarkovNetwork", None) or pgmpy.models.MarkovNetwork

from flyingsquid.label_model import LabelModel

logging.disable(logging.CRITICAL)
FRAMES = 5


def label(data):
    """P(+1) of every element."""
    votes = data["dense"]
    m, cut = votes.shape[1], len(votes) // FRAMES * FRAMES
    chains = votes[:cut].reshape(-1, FRAMES * m).astype(np.int64)
    model = LabelModel(
        FRAMES * m,
        v=FRAMES,
        y_edges=[(t, t + 1) for t in range(FRAMES - 1)],
        lambda_y_edges=[(t * m + j, t) for t in range(FRAMES) for j in range(m)],
    )
    model.fit(chains, class_balance=balance(data["initial"], data["transition"]))
    found = np.full(len(votes), data["initial"][1])
    found[:cut] = np.asarray(model.predict_proba_marginalized(chains)).reshape(-1)
    return found


def balance(initial, transition):
    """P of all label patterns of five frames, in lexicographical order."""
    patterns = np.array(list(itertools.product((0, 1), repeat=FRAMES)))
    law = initial[patterns[:, 0]]
    for t in range(1, FRAMES):
        law = law * transition[patterns[:, t - 1], patterns[:, t]]
    return law
