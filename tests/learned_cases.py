"""Real votes with their gold, as the tests and the benchmark of the learned defaults read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dugong.experiments.resolutions import with_coarse
from dugong.votes import Votes

REAL = ("tennis", "sleep-dodh", "salads-mid", "ner-bc5cdr")
EVERY = (*REAL, "crowd-ner", "sed-speech", "occupancy", "sentiment")
WITH_COARSE = ("sed-speech", "occupancy", "sentiment")


@dataclass(frozen=True, kw_only=True)
class RealVotes:
    """Votes, gold (0 = unknown), and which sequences are scored."""

    votes: Votes
    gold: np.ndarray
    scored: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Whether an element is scored."""
        return np.repeat(self.scored, self.votes.lengths)


def real_votes(folder: Path, name: str, every_source: bool = False, coarse: bool = False) -> RealVotes:
    """Read one set; `every_source` takes more than the recommended or base sources, `coarse` votes on windows too."""
    path = folder / name
    meta = json.loads((path / "meta.json").read_text())
    if name == "salads-mid":
        return _salads(path, meta)
    with np.load(path / "votes.npz", allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    chosen = list(range(arrays["votes"].shape[1]))
    if not every_source:
        chosen = {"tennis": chosen, "sleep-dodh": chosen[:6]}.get(
            name, [meta["sources"].index(one) for one in meta.get("recommended_sources", meta["sources"])]
        )
    votes = Votes.from_classes(
        arrays["votes"][:, chosen],
        n_classes=len(meta["classes"]),
        lengths=arrays["lengths"],
        sources=[meta["sources"][place] for place in chosen],
        classes=meta["classes"],
        **({"abstain": -2, "missing": -1} if meta.get("missing") else {}),
    )
    if coarse:
        votes = with_coarse(votes, path, meta)
    gold = arrays["gold"].astype(int)
    gold = np.where(gold < 0, 0, gold + 1) if len(meta["classes"]) > 2 else np.where(gold < 0, 0, 2 * gold - 1)
    scored = arrays["split"] == 2 if name == "ner-bc5cdr" else np.ones(len(arrays["lengths"]), dtype=bool)
    return RealVotes(votes=votes, gold=gold, scored=scored)


def _salads(path: Path, meta: dict) -> RealVotes:
    """Four networks at their own frame rates, on the grid of the finest."""
    with np.load(path / "predictions.npz", allow_pickle=False) as stored:
        data = {key: stored[key] for key in stored.files}
    rows, gold, lengths = [], [], []
    for video in meta["sequence_ids"]:
        said = [data[f"{video}/{source}/P"] for source in meta["sources"]]
        n = max(map(len, said))
        middle = (np.arange(n) + 0.5) / n
        rows.append(np.stack([one[np.minimum((middle * len(one)).astype(int), len(one) - 1)] for one in said], axis=1))
        finest = next(source for source, one in zip(meta["sources"], said, strict=True) if len(one) == n)
        gold.append(data[f"{video}/{finest}/Y"].astype(int) + 1)
        lengths.append(n)
    votes = Votes.from_classes(np.vstack(rows), n_classes=18, lengths=lengths, sources=meta["sources"])
    return RealVotes(votes=votes, gold=np.concatenate(gold), scored=np.ones(len(lengths), dtype=bool))
