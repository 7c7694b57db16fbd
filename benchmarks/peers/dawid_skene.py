"""crowd-kit's Dawid-Skene: elements one by one, default settings."""

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene


def label(data):
    """P(+1) of every element."""
    votes = data["dense"]
    task, worker = np.nonzero(votes)
    table = pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})
    found = DawidSkene(n_iter=100).fit_predict_proba(table)
    result = np.full(len(votes), data["initial"][1])
    result[found.index.to_numpy()] = found[1].to_numpy() if 1 in found.columns else 0.0
    return result
