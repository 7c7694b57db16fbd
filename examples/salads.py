"""Four networks that watch cooking at different frame rates meet on one time axis: 18 actions, no labels for fitting.

Run it from the root of the project: ``python examples/salads.py [FOLDER]``; the folder holds ``predictions.npz``
(``../shared/data/salads-mid`` by default). Every network is a source that says what happens from when to when, in
seconds; `Votes.from_long` puts all of them on the grid of the finest one. Gold labels of that grid score, by video.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dugong as dg

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "salads-mid"
NETWORKS = ("DilatedTCN", "ED-TCN", "SVM", "tCNN")
FINEST = "SVM"  # it sees about one frame per second, and its frames are our seconds
N_ACTIONS = 18


def spans(actions: np.ndarray, seconds: int) -> Iterator[tuple[float, float, int]]:
    """Begin, end and action of what a network says, frame after frame of equal length."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(actions)) + 1, [len(actions)]])
    for first, last in pairwise(edges.tolist()):
        yield first * seconds / len(actions), last * seconds / len(actions), int(actions[first])


def load(folder: Path) -> tuple[dict[str, list[Any]], dict[str, int], np.ndarray]:
    """The table of what all networks say, the seconds of every video, and the gold action of every second."""
    table: dict[str, list[Any]] = {name: [] for name in ("sequence", "source", "start", "end", "vote")}
    seconds, gold = {}, []
    with np.load(folder / "predictions.npz") as stored:
        for video in sorted({key.split("/")[0] for key in stored.files}):
            seconds[video] = len(stored[f"{video}/{FINEST}/P"])
            gold.append(stored[f"{video}/{FINEST}/Y"])
            for network in NETWORKS:
                for start, end, action in spans(stored[f"{video}/{network}/P"], seconds[video]):
                    for name, value in zip(table, (video, network, start, end, action), strict=True):
                        table[name].append(value)
    return table, seconds, np.concatenate(gold)


def main(folder: Path = FOLDER) -> dg.metrics.Comparison:
    """Read the table, fit the defaults, and compare with every network and with their majority."""
    table, seconds, gold = load(folder)
    votes = dg.Votes.from_long(table, lengths=seconds, unit="second", rate=1.0, classes=range(N_ACTIONS))
    truth = gold.astype(np.int8) + 1  # actions count from 0, classes from 1
    model = dg.LabelModel().fit(votes)
    labels = {
        "majority vote": dg.MajorityVote().fit(votes).predict_proba(votes),
        **{network: votes.column(network) for network in NETWORKS},
        "learned": model.predict_proba(votes),
    }
    comparison = dg.compare(labels, truth, lengths=votes.lengths, classes=votes.classes)
    print(comparison)
    print(model.summary())
    return comparison


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
