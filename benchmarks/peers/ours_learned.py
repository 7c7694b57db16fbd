"""Our own model with everything learned: prior and dependencies."""

import dugong as dg
from benchmarks.peers import ours

COLUMNS = True
EXTRA = ours.EXTRA


def warm(data):
    """Load what is compiled, on a few sequences of the same kind."""
    world = ours.make_world(str(data["scenario"]))
    votes, _ = world.sample(3000, lengths=5, rng=1)
    dg.LabelModel().fit(votes).predict_proba(votes)


def label(data):
    """P(+1) of every element."""
    _, votes = ours.make_votes(data)
    return dg.LabelModel().fit(votes).predict_proba(votes)[:, 1]
