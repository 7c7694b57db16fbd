"""Simulated votes that look like real ones and obey no model here: the default against the vote and simple peers.

A source sees a noisy score of every class. The noise has parts of its own, of its family (variants of one detector), of
all sources (elements that are hard for everybody), and lasts as long as it likes; a source speaks for its best class if
that is clear enough. Kinds: networks (dense), rules (some speak for one class only), raters (most were not asked) and
word lists (nobody names the first class). Seeds are split in advance: what is chosen is chosen on even seeds, and odd
ones are looked at once, at the end.

    python -m benchmarks.lifelike development|held-back [seeds]
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.signal import lfilter

import dugong as dg
from benchmarks.real_sets import LEVEL, make_table
from benchmarks.wide import HEAD, MISSING, PEERS, Table, of_library, scores, verdict

MOST = 6_000  # elements of a world
KINDS = ("networks", "rules", "rules", "raters", "lists", "patients")


def draw(seed: int) -> Table:
    """A world drawn with a seed."""
    rng = np.random.default_rng([77, seed])
    kind = KINDS[int(rng.integers(len(KINDS)))]
    k = 2 if kind == "patients" or rng.random() < 0.6 else int(rng.integers(3, 10))
    m = int(rng.integers(3, 9)) if kind in ("rules", "patients") else int(rng.integers(3, 26))
    lengths = draw_lengths(kind, rng)
    balance = draw_balance(kind, k, rng)
    labels = draw_labels(kind, balance, lengths, rng)
    if kind == "raters":
        m = max(m, 5)
    votes = draw_votes(kind, labels, lengths, k, m, rng)
    rare = 100 * np.bincount(labels, minlength=k).min() / len(labels)
    text = f"{kind}, {k} classes (least {rare:.0f} %), {m} sources, {len(lengths)} x {lengths.mean():.0f}"
    return Table(text=text, votes=votes, lengths=lengths, gold=labels, n_classes=k)


def draw_lengths(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Few long sequences, some of middle length, or many short ones."""
    if kind == "patients":
        return np.full(int(rng.integers(100, 1000)), 5)
    number, length = [(3, 1500), (25, 150), (120, 30), (600, 8)][int(rng.integers(4))]
    lengths = np.maximum(1, (length * rng.uniform(0.5, 1.5, int(number * rng.uniform(0.5, 1.5)) + 1)).astype(int))
    return lengths[np.cumsum(lengths) <= MOST]


def draw_balance(kind: str, k: int, rng: np.random.Generator) -> np.ndarray:
    """Rare positives in a third of the worlds with two classes; of several, one is often the largest."""
    if k == 2:
        low, high = [(0.01, 0.1), (0.1, 0.3), (0.3, 0.5)][int(rng.integers(3))]
        rare = rng.uniform(low, high)
        return np.array([1 - rare, rare])
    balance = rng.dirichlet(np.full(k, 2.0)) + 0.02
    if kind == "lists":
        balance[0] += rng.uniform(1, 6)
    return balance / balance.sum()


def draw_labels(kind: str, balance: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A chain that stays or draws anew; of patients, one label for all."""
    stay = 1.0 if kind == "patients" else float(rng.choice([0.0, 0.5, 0.8, 0.95, 0.99]))
    if kind == "patients":  # at least a few positives
        own = (np.arange(len(lengths)) < max(3, round(balance[1] * len(lengths)))).astype(int)
        return np.repeat(rng.permutation(own), lengths)
    n = int(lengths.sum())
    fresh = rng.choice(len(balance), n, p=balance)
    new = rng.random(n) >= stay
    new[np.cumsum(lengths) - lengths] = True
    return fresh[np.maximum.accumulate(np.where(new, np.arange(n), 0))]


def noise(shape: tuple[int, ...], lengths: np.ndarray, memory: float, rng: np.random.Generator) -> np.ndarray:
    """Gaussian noise of variance one whose correlation with the element before is `memory`, (n, ...)."""
    flat = rng.standard_normal(shape)
    if memory == 0:
        return flat
    ends = np.cumsum(lengths)
    parts = []
    for begin, end in zip(ends - lengths, ends, strict=True):
        part = flat[begin:end] * np.sqrt(1 - memory**2)
        part[0] = flat[begin]
        parts.append(lfilter([1], [1, -memory], part, axis=0))
    return np.concatenate(parts)


def draw_votes(
    kind: str, labels: np.ndarray, lengths: np.ndarray, k: int, m: int, rng: np.random.Generator
) -> np.ndarray:
    """Votes (n, m): class indices, -1 abstain, -2 not asked."""
    n = len(labels)
    memory = {"patients": 0.8, "raters": 0.3}.get(kind, float(rng.choice([0.0, 0.3, 0.8, 0.95])))
    hard, related = float(rng.choice([0.0, 0.2, 0.4])), float(rng.choice([0.0, 0.3, 0.6]))
    hard, related = (hard, related) if hard + related < 0.9 else (0.2, 0.6)
    families = rng.integers(0, max(2, m // 2), m)
    everyone = noise((n, k), lengths, memory, rng)
    ease = np.exp(0.5 * noise((n, 1), lengths, memory, rng)) if rng.random() < 0.5 else np.ones((n, 1))
    typical = rng.uniform(1.2, 3.0)
    shares = {place: noise((n, k), lengths, memory, rng) for place in np.unique(families).tolist()}
    votes = np.full((n, m), -1, dtype=np.int64)
    for j in range(m):
        skill = max(0.3, rng.normal(typical, 0.5))
        own = noise((n, k), lengths, memory if rng.random() < 0.7 else 0.0, rng)
        score = np.sqrt(hard) * everyone + np.sqrt(related) * shares[int(families[j])]
        score = score + np.sqrt(1 - hard - related) * own + rng.normal(0, 0.4, k)
        score[np.arange(n), labels] += skill * ease[:, 0]
        votes[:, j] = _spoken(kind, score, k, rng)
    if kind == "raters":
        owner = np.repeat(np.arange(len(lengths)), lengths)
        asked = np.argsort(rng.random((len(lengths), m)), axis=1) < int(rng.integers(2, 6))
        votes[~asked[owner]] = MISSING
    return votes


def _spoken(kind: str, score: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """What a source says: its best class where that is clear enough; of a rule, perhaps of one class only."""
    best = score.argmax(axis=1)
    top = np.sort(score, axis=1)
    clear = top[:, -1] - top[:, -2]
    said = best.copy()
    if kind == "lists":
        said[(best == 0) | (clear < rng.uniform(0, 2))] = -1
        if rng.random() < 0.5:
            said[best != int(rng.integers(1, k))] = -1
    elif kind == "rules":
        if rng.random() < 0.5:
            said[clear < np.quantile(clear, rng.uniform(0, 0.7))] = -1
        if rng.random() < 0.3:
            only = int(rng.integers(k))
            said[best != only] = -1
    return said


def measure(seeds: range) -> str:
    """The table over worlds, and every one that falls far behind the vote."""
    tables = [draw(seed) for seed in seeds]
    methods = {"`LabelModel()`": of_library(dg.LabelModel), **PEERS}
    found = {name: np.stack([scores(table, label(table)) for table in tables]) for name, label in methods.items()}
    peers = {name: found[name] for name in PEERS}
    rows = [(name, *verdict(found[name], peers)) for name in methods]
    ours, vote = found["`LabelModel()`"], peers["vote"]
    worst = [
        (seed, table.text, *(f"{a - b:+.4f}" for a, b in zip(one, other, strict=True)))
        for seed, table, one, other in zip(seeds, tables, ours, vote, strict=True)
        if min(one[0] - other[0], one[1] - other[1]) < -2 * LEVEL
    ]
    head = ("seed", "world", "accuracy over the vote", "F1", "Brier", "log loss")
    return f"{make_table(HEAD, rows)}\n\n{make_table(head, worst)}"


if __name__ == "__main__":
    number = int((sys.argv[2:] or ("200",))[0])
    print(measure(range({"development": 0, "held-back": 1}[sys.argv[1]], number, 2)))
