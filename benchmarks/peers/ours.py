"""Our own model with the prior and the dependencies given."""

import time

import numpy as np

import dugong as dg
from benchmarks.scenes import make_world

COLUMNS = True
EXTRA = {}


def make_votes(data):
    """The world of a scene and its votes."""
    world = make_world(str(data["scenario"]))
    columns = tuple(data[f"column{place}"] for place in range(len(world.sources)))
    return world, dg.Votes(sources=world.sources, columns=columns, lengths=data["lengths"])


def model(world):
    """The model that is measured."""
    return dg.LabelModel(prior=world.prior, dependencies=world.dependencies)


def warm(data):
    """Load what is compiled, on a few sequences of the same kind."""
    world = make_world(str(data["scenario"]))
    for n_sequences in (3000, 30):
        votes, _ = world.sample(n_sequences, lengths=5, rng=1)
        model(world).fit(votes).predict_proba(votes)


def label(data):
    """P(+1) of every element."""
    times = [time.process_time()]
    world, votes = make_votes(data)
    times.append(time.process_time())
    fitted = model(world).fit(votes)
    times.append(time.process_time())
    labels = fitted.predict_proba(votes)[:, 1]
    times.append(time.process_time())
    EXTRA.update(zip(("cpu_votes", "cpu_fit", "cpu_labels"), np.diff(times).tolist(), strict=True))
    return labels
