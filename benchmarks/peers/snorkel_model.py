"""Snorkel's LabelModel: elements one by one, the class balance given, default training."""

import numpy as np
import torch
from snorkel.labeling.model import LabelModel

torch.set_num_threads(1)


def label(data):
    """P(+1) of every element."""
    votes = data["dense"]
    codes = np.where(votes == 0, -1, (votes + 1) // 2).astype(np.int64)
    model = LabelModel(cardinality=2, verbose=False)
    model.fit(codes, class_balance=list(data["initial"]), seed=0, progress_bar=False)
    return model.predict_proba(codes)[:, 1]
