"""Many tables that resemble votes nobody has seen: the default against the vote and simple peers on all of them.

Each is drawn with a seed from one of the eight sets: one class against the rest, some of the sources, a few short
sequences, a lower rate, rules that speak for one class only, raters who were asked about some sequences only. The
sets are split in advance: what is chosen is chosen on `DEVELOPMENT`, and `HELD_BACK` is looked at once, at the end.

    python -m benchmarks.wide development [first seed, seeds]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dugong as dg
from benchmarks.real_sets import DATA, LEVEL, make_table
from learned_cases import real_votes

DEVELOPMENT = ("occupancy", "sentiment", "crowd-ner", "sleep-dodh")
HELD_BACK = ("tennis", "sed-speech", "salads-mid", "ner-bc5cdr")
MOST = 20_000  # elements of a table
MISSING = -2
SMALLEST = 1e-12


@dataclass(frozen=True, kw_only=True)
class Table:
    """Class indices (n, m) of votes, -1 abstain, -2 not asked; lengths; gold, -1 unknown."""

    text: str
    votes: np.ndarray
    lengths: np.ndarray
    gold: np.ndarray
    n_classes: int
    classes: tuple[str, ...] | None = None

    def public(self) -> dg.Votes:
        """The same as votes of the library."""
        return dg.Votes.from_classes(
            self.votes,
            n_classes=self.n_classes,
            abstain=-1,
            missing=MISSING,
            lengths=self.lengths,
            classes=self.classes,
        )


def whole(name: str) -> Table:
    """A set as it is."""
    case = real_votes(DATA, name, every_source=name == "sleep-dodh")
    votes, k = case.votes, case.votes.n_classes
    codes, gold = np.stack(votes.columns, axis=1).astype(np.int64), case.gold[case.rows]
    codes = codes[case.rows]
    asked = codes != dg.types.MISSING
    if k == 2:
        index, gold = (
            np.where(codes > 0, 1, np.where(codes < 0, 0, -1)),
            np.where(gold > 0, 1, np.where(gold < 0, 0, -1)),
        )
    else:
        index, gold = codes - 1, gold - 1
    index = np.where(asked, index, MISSING)
    return Table(
        text=name,
        votes=index,
        lengths=votes.lengths[case.scored],
        gold=gold,
        n_classes=k,
        classes=votes.class_names if k > 2 else None,
    )


def chosen(table: Table, keep: np.ndarray, lengths: np.ndarray, text: str) -> Table:
    """Some of the elements."""
    return Table(
        text=f"{table.text}, {text}" if text else table.text,
        votes=table.votes[keep],
        lengths=lengths,
        gold=table.gold[keep],
        n_classes=table.n_classes,
        classes=table.classes,
    )


def against_rest(table: Table, rng: np.random.Generator) -> Table:
    """One class, or everything that is not O, against the rest."""
    share = np.bincount(table.gold[table.gold >= 0], minlength=table.n_classes) / max((table.gold >= 0).sum(), 1)
    names = table.classes or tuple(map(str, range(table.n_classes)))
    place = int(rng.choice(np.flatnonzero((share > 0.02) & (share < 0.98))))
    kind = names[place].split("-")[-1]
    wanted = np.array([(kind == "O" and name != "O") or name.split("-")[-1] == kind != "O" for name in names])
    votes = np.where(table.votes < 0, table.votes, wanted[table.votes].astype(np.int64))
    gold = np.where(table.gold < 0, -1, wanted[table.gold].astype(np.int64))
    return Table(text=f"{table.text}, {kind}", votes=votes, lengths=table.lengths, gold=gold, n_classes=2)


def pieces(table: Table, rng: np.random.Generator) -> Table:
    """A few sequences; of long ones, pieces of 60 to 600 elements."""
    length, number = int(rng.choice([60, 200, 600])), int(rng.choice([3, 10, 30]))
    ends = np.cumsum(table.lengths)
    bounds = [
        (s, min(s + length, e)) for b, e in zip(ends - table.lengths, ends, strict=True) for s in range(b, e, length)
    ]
    places = np.sort(rng.choice(len(bounds), min(number, len(bounds)), replace=False))
    keep = np.concatenate([np.arange(*bounds[place]) for place in places])
    lengths = np.array([bounds[place][1] - bounds[place][0] for place in places])
    return chosen(table, keep, lengths, f"{len(places)} pieces of {length}")


def slower(table: Table, rng: np.random.Generator) -> Table:
    """Every second, fifth or tenth element."""
    step = int(rng.choice([2, 5, 10]))
    within = np.concatenate([np.arange(n) for n in table.lengths])
    return chosen(table, within % step == 0, -(-table.lengths // step), f"every {step}th")


def fewer(table: Table, rng: np.random.Generator) -> Table:
    """Some sources, and the elements about which one of them was asked."""
    m = table.votes.shape[1]
    places = np.sort(rng.choice(m, int(rng.integers(2, m + 1)), replace=False))
    votes = table.votes[:, places]
    some = Table(
        text=f"{table.text}, sources {' '.join(map(str, places))}",
        votes=votes,
        lengths=table.lengths,
        gold=table.gold,
        n_classes=table.n_classes,
        classes=table.classes,
    )
    owner = np.repeat(np.arange(len(table.lengths)), table.lengths)
    asked = np.bincount(owner, (votes != MISSING).any(axis=1), len(table.lengths)) > 0
    return chosen(some, asked[owner], table.lengths[asked], "")


def one_sided(table: Table, rng: np.random.Generator) -> Table:
    """About half of the sources speak for one class only."""
    votes = table.votes.copy()
    for place in np.flatnonzero(rng.random(votes.shape[1]) < 0.5):
        votes[votes[:, place] == int(rng.random() < 0.3), place] = -1
    return Table(
        text=f"{table.text}, one-sided", votes=votes, lengths=table.lengths, gold=table.gold, n_classes=table.n_classes
    )


def asked_few(table: Table, rng: np.random.Generator) -> Table:
    """Three sources for every sequence; the others were not asked."""
    votes, m = table.votes.copy(), table.votes.shape[1]
    ends = np.cumsum(table.lengths)
    for begin, end in zip(ends - table.lengths, ends, strict=True):
        votes[begin:end, rng.choice(m, m - 3, replace=False)] = MISSING
    return Table(
        text=f"{table.text}, three asked",
        votes=votes,
        lengths=table.lengths,
        gold=table.gold,
        n_classes=table.n_classes,
        classes=table.classes,
    )


def derive(seed: int, sets: dict[str, Table]) -> Table:
    """A table drawn with a seed."""
    rng = np.random.default_rng([15, seed])
    names = tuple(sets)
    table = sets[names[seed % len(names)]]
    if table.n_classes > 2 and rng.random() < 0.6:
        table = against_rest(table, rng)
    if rng.random() < 0.7:
        table = fewer(table, rng)
    if rng.random() < 0.4:
        table = pieces(table, rng)
    if "ner" not in table.text and rng.random() < 0.25:
        table = slower(table, rng)
    if table.n_classes == 2 and rng.random() < 0.25:
        table = one_sided(table, rng)
    if (table.votes != MISSING).all() and table.votes.shape[1] > 4 and rng.random() < 0.2:
        table = asked_few(table, rng)
    inside = np.cumsum(table.lengths) <= max(MOST, int(table.lengths[0]))
    return chosen(table, np.repeat(inside, table.lengths), table.lengths[inside], "")


# --- peers -----------------------------------------------------------------------------------------------------------
def shares(table: Table) -> np.ndarray:
    """Share of the votes by class, even where nobody votes."""
    counts = np.stack([(table.votes == k).sum(axis=1) for k in range(table.n_classes)], axis=1) + 1e-9
    return counts / counts.sum(axis=1, keepdims=True)


def dawid_skene(table: Table, *, coins: bool = False, rounds: int = 50) -> np.ndarray:
    """EM with a table for every source, or one accuracy."""
    k, votes = table.n_classes, table.votes
    q = shares(table)
    spoken = votes >= 0
    for _ in range(rounds):
        logs = np.tile(np.log(q[spoken.any(axis=1)].mean(axis=0) + SMALLEST), (len(votes), 1))
        for j in range(votes.shape[1]):
            own, said = spoken[:, j], votes[spoken[:, j], j]
            if not len(said):
                continue
            if coins:
                right = np.clip(q[own, said].mean(), 0.01, 0.99)
                confusion = np.full((k, k), (1 - right) / (k - 1)) + (right - (1 - right) / (k - 1)) * np.eye(k)
            else:
                confusion = np.stack([np.bincount(said, q[own, y], k) for y in range(k)]) + 0.01
                confusion /= confusion.sum(axis=1, keepdims=True)
            logs[own] += np.log(confusion[:, said].T)
        q = np.exp(logs - logs.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q


def wawa(table: Table) -> np.ndarray:
    """Votes weighed by how often their source agrees with the vote."""
    first = shares(table).argmax(axis=1)
    counts = np.full((len(first), table.n_classes), 1e-9)
    for column in table.votes.T:
        own = column >= 0
        skill = (column == first)[own].mean() if own.any() else 0.0
        counts[own, column[own]] += skill
    return counts / counts.sum(axis=1, keepdims=True)


def of_library(make: Callable[[], object]) -> Callable[[Table], np.ndarray]:
    """An estimator with the contract of the library."""

    def label(table: Table) -> np.ndarray:
        votes = table.public()
        return make().fit(votes).predict_proba(votes)

    return label


PEERS: dict[str, Callable[[Table], np.ndarray]] = {
    "vote": of_library(dg.MajorityVote),
    "Dawid-Skene": dawid_skene,
    "one coin": lambda table: dawid_skene(table, coins=True),
    "Wawa": wawa,
    "HMM": of_library(dg.HiddenMarkov),
}


def scores(table: Table, probabilities: np.ndarray) -> np.ndarray:
    """Accuracy, F1 of two classes (else accuracy), Brier, log loss."""
    known = table.gold >= 0
    q, gold = probabilities[known], table.gold[known]
    best = q.argmax(axis=1)
    accuracy = (best == gold).mean()
    f1 = 2 * (best & gold).sum() / max((best + gold).sum(), 1) if table.n_classes == 2 else accuracy
    brier = ((q - np.eye(table.n_classes)[gold]) ** 2).sum(axis=1).mean()
    return np.array([accuracy, f1, brier, -np.log(np.maximum(q[np.arange(len(gold)), gold], SMALLEST)).mean()])


def verdict(ours: np.ndarray, peers: dict[str, np.ndarray]) -> tuple[object, ...]:
    """Over tables (n, 4): how often far below the vote, how often level with the best peer, mean changes."""
    vote, best = peers["vote"], np.stack(list(peers.values()))
    change = ours[:, 0] - vote[:, 0]
    level = [
        (ours[:, 0] >= best[:, :, 0].max(axis=0) - LEVEL).mean(),
        (ours[:, 1] >= best[:, :, 1].max(axis=0) - LEVEL).mean(),
        (ours[:, 2] <= best[:, :, 2].min(axis=0)).mean(),
        (ours[:, 3] <= best[:, :, 3].min(axis=0)).mean(),
    ]
    ratio = np.log((ours[:, 2] + 1e-3) / (best[:, :, 2].min(axis=0) + 1e-3)).mean()
    loss = (ours[:, 3] - best[:, :, 3].min(axis=0)).mean()
    return (
        f"{(change < -LEVEL).mean():.1%}",
        f"{(change < -0.02).mean():.1%}",
        f"{change.mean():+.4f}",
        *(f"{value:.0%}" for value in level),
        f"{ratio:+.3f}",
        f"{loss:+.3f}",
    )


HEAD = (
    "method",
    "> .003 below the vote",
    "> .02",
    "accuracy over the vote",
    "accuracy level",
    "F1",
    "Brier",
    "log loss",
)
HEAD = (*HEAD, "mean log of Brier over the best", "log loss less the best")


def measure(names: tuple[str, ...], seeds: range) -> str:
    """The table of one half, and every case that falls far behind the vote."""
    sets = {name: whole(name) for name in names}
    drawn = {seed: derive(seed, sets) for seed in seeds}
    tables = {seed: one for seed, one in drawn.items() if (one.gold >= 0).any()}  # short pieces may have none
    methods = {"`LabelModel()`": of_library(dg.LabelModel), **PEERS}
    found = {
        name: np.stack([scores(table, label(table)) for table in tables.values()]) for name, label in methods.items()
    }
    peers = {name: found[name] for name in PEERS}
    rows = [(name, *verdict(found[name], peers)) for name in methods]
    lost = found["`LabelModel()`"][:, 0] - peers["vote"][:, 0]
    worst = [
        (seed, table.text, f"{one:+.4f}")
        for (seed, table), one in zip(tables.items(), lost, strict=True)
        if one < -LEVEL
    ]
    return f"{make_table(HEAD, rows)}\n\n{make_table(('seed', 'table', 'accuracy over the vote'), worst)}"


if __name__ == "__main__":
    half = {"development": DEVELOPMENT, "held-back": HELD_BACK}[sys.argv[1]]
    first, number = (int(one) for one in (sys.argv[2:] or ("0", "120")))
    print(measure(half, range(first, first + number)))
