"""`make bench-public`: the default on votes of weak sources over real labelled data, beside the vote and simple peers.

A case is a data set of `public_sets`, a kind of sources and a seed. Sources are what people make in an afternoon: rules
with one threshold, keywords for one class, small models trained on a few labelled rows of other sequences, variants of
one model, answers smoothed in time, raters who were asked about a few sequences; now and then one that is useless or
the wrong way round. No error is drawn: all of them come from real features and real classes, and are shared as in life.

    python -m benchmarks.public development [seeds] [--only NAME]
    python -m benchmarks.public constants      # every belief moved, on these sets and the eight of ../shared/data

Votes of cases and scores of the peers are kept in .cache/public, so that another run fits the default alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import dugong as dg
from benchmarks.public_sets import DEVELOPMENT, HELD_OUT, HOME, Data
from benchmarks.real_sets import DATA, EVERY, LEVEL, ROOT, left_out, make_table, moved, real_votes
from benchmarks.real_sets import scores as real_scores
from benchmarks.wide import MISSING, Table, dawid_skene, of_library

VERSION = 2  # of the votes: a change here makes them anew
PARTS = {"development": DEVELOPMENT, "held-out": HELD_OUT}
KINDS = ("rules", "models", "family", "keywords", "smoothed", "mixed", "crowd", "few")
SEEDS = 2
MOST = 3_000  # elements of a case
PROTOTYPE = ROOT.parent / "shared" / "reference" / "peers.py"

Source = Callable[[np.ndarray, np.ndarray], np.ndarray]  # features, lengths -> classes, -1 abstains


# --- sources ---------------------------------------------------------------------------------------------------------
def few_rows(data: Data, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """30 to 300 labelled rows, two of every class at least."""
    order = rng.permutation(len(data.labels))
    number = min(int(np.exp(rng.uniform(np.log(30), np.log(300)))), len(order))
    twice = [order[data.labels[order] == k][:2] for k in range(data.n_classes)]
    chosen = np.unique(np.concatenate([order[:number], *twice]))
    return data.features[chosen], data.labels[chosen]


def telling(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> int:
    """One of the features in which the classes differ most, as far as a few rows show."""
    means = np.stack([x[y == k].mean(axis=0) for k in np.unique(y)])
    spread = means.std(axis=0) / (x.std(axis=0) + 1e-9)
    useful = np.flatnonzero(x.std(axis=0) > 0)
    best = useful[np.argsort(-spread[useful])][: max(3, len(useful) // 3)]
    return int(rng.choice(best))


def lifted(y: np.ndarray, inside: np.ndarray, power: float = 0.5) -> int:
    """The class that is frequent here, and more so than elsewhere; a higher power names rare classes more often."""
    here, there = (np.bincount(y[part], minlength=y.max() + 1) + 0.5 for part in (inside, ~inside))
    return int(np.argmax(here / here.sum() / (there / there.sum()) ** power))


def tried(make: Callable[..., Source], data: Data, rng: np.random.Generator) -> Source:
    """Of four tries the one that beats chance the most on a few rows, as a person would choose it."""
    x, y = few_rows(data, rng)
    share = np.bincount(y, minlength=data.n_classes) / len(y)

    def gain(source: Source) -> float:
        votes = source(x, np.array([len(x)]))
        own = votes >= 0
        return float(((votes == y)[own] - share[votes[own]]).sum() / np.sqrt(own.sum() + 1))

    return max((make(x, y, rng) for _ in range(4)), key=gain)


def rule(data: Data, rng: np.random.Generator) -> Source:
    """Low values mean one class, high ones another; between them it abstains."""
    return tried(two_thresholds, data, rng)


def two_thresholds(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Source:
    """Two cuts of one feature."""
    feature = telling(x, y, rng)
    low, high = np.quantile(x[:, feature], np.sort(rng.uniform(0.15, 0.85, 2)))
    below, above = lifted(y, x[:, feature] <= low), lifted(y, x[:, feature] > high)
    return lambda f, _: np.where(f[:, feature] > high, above, np.where(f[:, feature] <= low, below, -1))


def keyword(data: Data, rng: np.random.Generator) -> Source:
    """A threshold that names one class, or says nothing."""
    return tried(one_threshold, data, rng)


def one_threshold(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Source:
    """One cut of one feature, from above or from below."""
    feature = telling(x, y, rng)
    sign = 1 if rng.random() < 0.7 else -1
    cut = np.quantile(sign * x[:, feature], rng.uniform(0.6, 0.95))
    named = lifted(y, sign * x[:, feature] > cut, rng.choice([0.5, 1.0]))
    return lambda f, _: np.where(sign * f[:, feature] > cut, named, -1)


def classifier(rng: np.random.Generator) -> object:
    """A small model."""
    seed = int(rng.integers(1 << 30))
    return [
        lambda: DecisionTreeClassifier(max_depth=int(rng.integers(1, 4)), random_state=seed),
        lambda: LogisticRegression(C=float(10 ** rng.uniform(-2, 1)), max_iter=200),
        GaussianNB,
        NearestCentroid,
        lambda: KNeighborsClassifier(int(rng.choice([1, 3, 7]))),
        lambda: MLPClassifier((int(rng.choice([4, 12])),), max_iter=60, random_state=seed),
    ][int(rng.integers(6))]()


def model(
    data: Data, rng: np.random.Generator, rows: tuple[np.ndarray, np.ndarray] | None = None, *, smooth: bool = False
) -> Source:
    """A small model of some of the features; half of them abstain where they are unsure."""
    x, y = few_rows(data, rng) if rows is None else rows
    d = x.shape[1]
    kept = np.sort(rng.choice(d, max(min(d, 3), int(d * rng.uniform(0.2, 1))), replace=False))
    centre, scale = x[:, kept].mean(axis=0), x[:, kept].std(axis=0) + 1e-6
    fitted = classifier(rng).fit((x[:, kept] - centre) / scale, y)
    doubt = rng.uniform(0.5, 0.9) if rng.random() < 0.5 else 0.0
    window = int(rng.choice([3, 7, 15])) if smooth else 1

    def vote(f: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        inputs = np.clip((f[:, kept] - centre) / scale, -10, 10)
        if not hasattr(fitted, "predict_proba"):
            sure = np.eye(data.n_classes)[fitted.predict(inputs)]
        else:
            sure = np.zeros((len(f), data.n_classes))
            sure[:, fitted.classes_] = fitted.predict_proba(inputs)
        sure = smoothed(sure, lengths, window)
        return np.where(sure.max(axis=1) >= doubt * sure.max(), sure.argmax(axis=1), -1)

    return vote


def smoothed(values: np.ndarray, lengths: np.ndarray, window: int) -> np.ndarray:
    """Means over a window that stays inside its sequence."""
    if window == 1:
        return values
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    ends = np.repeat(np.cumsum(lengths), lengths)
    begins = ends - np.repeat(lengths, lengths)
    place = np.arange(len(values))
    first, last = np.maximum(place - window // 2, begins), np.minimum(place + window // 2 + 1, ends)
    return (total[last] - total[first]) / (last - first)[:, None]


def spoiled(data: Data, rng: np.random.Generator) -> Source:
    """A rule the wrong way round, or a model that learned from shuffled classes."""
    if rng.random() < 0.5:
        right = rule(data, rng)
        return lambda f, n: np.where(right(f, n) < 0, -1, (right(f, n) + 1) % data.n_classes)
    x, y = few_rows(data, rng)
    return model(data, rng, (x, rng.permutation(y)))


def sources_of(kind: str, data: Data, rng: np.random.Generator) -> list[Source]:
    """3 to 15 sources; a crowd has 15 to 40, `few` 2 to 4."""
    number = int(rng.integers(3, 16))
    if kind == "rules":
        return [rule(data, rng) for _ in range(number)]
    if kind == "models":
        return [model(data, rng) for _ in range(number)]
    if kind == "keywords":
        return [keyword(data, rng) for _ in range(max(number, data.n_classes + 2))]
    if kind == "smoothed":
        return [model(data, rng, smooth=rng.random() < 0.6) for _ in range(number)]
    if kind == "crowd":
        return [model(data, rng) for _ in range(int(rng.integers(15, 41)))]
    if kind == "family":
        shared = few_rows(data, rng)
        relatives = [model(data, rng, shared) for _ in range(max(number // 2, 2))]
        return [*relatives, *(model(data, rng) for _ in range(number - len(relatives)))]
    makers = (rule, model, keyword, lambda data, rng: model(data, rng, smooth=True))
    if kind == "few":
        return [makers[int(rng.integers(3))](data, rng) for _ in range(int(rng.integers(2, 5)))]
    some = [makers[int(rng.integers(4))](data, rng) for _ in range(number)]
    return some if rng.random() < 0.5 else [*some, spoiled(data, rng)]


# --- cases -----------------------------------------------------------------------------------------------------------
def taken(data: Data, chosen: np.ndarray) -> Data:
    """Some of the sequences, in the order of the data."""
    mask = np.isin(np.arange(len(data.lengths)), chosen)
    rows = np.repeat(mask, data.lengths)
    return Data(features=data.features[rows], labels=data.labels[rows], lengths=data.lengths[mask])


def build(data: Data, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, Data]:
    """Votes of sources that were made on two fifths of the sequences, on others."""
    order = rng.permutation(len(data.lengths))
    n_made = max(int(0.4 * len(order)), 1)
    enough = np.cumsum(data.lengths[order[n_made:]]) <= MOST
    enough[0] = True
    other = taken(data, order[n_made:][enough])
    made = taken(data, order[:n_made])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = [make(other.features, other.lengths) for make in sources_of(kind, made, rng)]
    votes = np.stack([column for column in columns if (column >= 0).any()], axis=1)
    if kind == "crowd":
        m, asked = votes.shape[1], int(rng.integers(2, 5))
        who = np.argsort(rng.random((len(other.lengths), m)), axis=1) < asked
        votes = np.where(np.repeat(who, other.lengths, axis=0), votes, MISSING)
    return votes, other


@lru_cache(maxsize=1)
def loaded(part: str, name: str) -> Data:
    """A data set; the one used last is kept."""
    return PARTS[part][name]()


def tables(part: str, seeds: int = SEEDS, only: str | None = None) -> Iterator[Table]:
    """All cases of a part; ``text`` is "set/kind/seed"."""
    for name in PARTS[part]:
        for kind, seed in ((kind, seed) for kind in KINDS for seed in range(seeds)):
            text = f"{name}/{kind}/{seed}"
            if only and only not in text:
                continue
            path = HOME / f"votes-{VERSION}" / f"{text.replace('/', '-')}.npz"
            if not path.exists():
                data = loaded(part, name)
                if kind == "smoothed" and (data.lengths == 1).all():
                    continue
                votes, other = build(data, kind, np.random.default_rng([zlib.crc32(text.encode()), VERSION]))
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(
                    path, votes=votes, gold=other.labels, lengths=other.lengths, n_classes=data.n_classes
                )
            with np.load(path) as kept:
                n_classes = int(kept["n_classes"])
                yield Table(
                    text=text,
                    votes=kept["votes"].astype(np.int64),
                    lengths=kept["lengths"],
                    gold=kept["gold"],
                    n_classes=n_classes,
                    classes=tuple(f"c{k}" for k in range(n_classes)) if n_classes > 2 else None,
                )


def cases(part: str, seeds: int = SEEDS, only: str | None = None) -> Iterator[tuple[str, dg.Votes, np.ndarray, int]]:
    """Name, votes, classes 0..K-1 and their number."""
    for table in tables(part, seeds, only):
        yield table.text, table.public(), table.gold, table.n_classes


# --- scores ----------------------------------------------------------------------------------------------------------
@lru_cache
def reference() -> ModuleType:
    """The module of the prototype, known by name to the cache of its kernels."""
    spec = importlib.util.spec_from_file_location("prototype", PROTOTYPE)
    module = sys.modules["prototype"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prototype(table: Table) -> np.ndarray:
    """The reference of the method, where it is at hand."""
    missing = bool((table.votes == MISSING).any())
    return reference().label(np.maximum(table.votes, -1), table.lengths, table.n_classes, missing=missing)


PEERS: dict[str, Callable[[Table], np.ndarray]] = {
    "vote": of_library(dg.MajorityVote),
    "Dawid-Skene": dawid_skene,
    "HMM": of_library(dg.HiddenMarkov),
}
if PROTOTYPE.exists():
    PEERS["prototype"] = prototype


def scores(table: Table, q: np.ndarray) -> np.ndarray:
    """Accuracy, F1 (of the second of two classes, else the mean over classes), Brier score, log loss."""
    best, gold = q.argmax(axis=1), table.gold
    truth = np.eye(table.n_classes)[gold]
    hits = np.bincount(gold[best == gold], minlength=table.n_classes)
    size = np.bincount(gold, minlength=table.n_classes) + np.bincount(best, minlength=table.n_classes)
    f1 = (2 * hits / np.maximum(size, 1))[1] if table.n_classes == 2 else (2 * hits / np.maximum(size, 1))[size > 0]
    loss = -np.log(np.maximum(q[truth > 0], 1e-12)).mean()
    return np.array([(best == gold).mean(), f1.mean(), ((q - truth) ** 2).sum(axis=1).mean(), loss])


def scores_of_peers(table: Table) -> np.ndarray:
    """(peers, 4), computed once."""
    path = HOME / f"votes-{VERSION}" / f"{table.text.replace('/', '-')}-peers.npz"
    found = dict(np.load(path)) if path.exists() else {}
    if set(PEERS) - set(found):
        found |= {name: scores(table, label(table)) for name, label in PEERS.items() if name not in found}
        np.savez(path, **found)
    return np.stack([found[name] for name in PEERS])


HEAD = (
    "cases", "> .003 below the vote", "> .02", "accuracy over the vote", "F1", "Brier", "log loss",
    "accuracy over the best other", "F1", "Brier", "log loss", "cells held",
)  # fmt: skip


def verdict(ours: np.ndarray, others: np.ndarray, binary: np.ndarray) -> tuple[object, ...]:
    """Of cases (n, 4) beside (n, peers, 4): how often behind the vote, mean changes, share of cells held."""
    best = np.concatenate([others[:, :, :2].max(axis=1), others[:, :, 2:].min(axis=1)], axis=1)
    over_vote, over_best = ours - others[:, 0], ours - best
    headline = np.where(binary, over_best[:, 1], over_best[:, 0]) >= -LEVEL
    held = np.stack([headline, over_best[:, 2] <= 0, over_best[:, 3] <= 0])
    behind = (f"{(over_vote[:, 0] < -bound).mean():.0%}" for bound in (LEVEL, 0.02))
    changes = (f"{value:+.4f}" for value in (*over_vote.mean(axis=0), *over_best.mean(axis=0)))
    cells = " + ".join(str(int(row.sum())) for row in held)
    return (len(ours), *behind, *changes, f"{cells} ({held.mean():.0%})")


def constants() -> str:
    """Every belief moved: mean relative change of the Brier score of sets, and who would choose it without one set."""
    label, real = of_library(dg.LabelModel), {name: real_votes(DATA, name) for name in EVERY}

    def briers() -> dict[str, float]:
        found = {
            name: [real_scores(c, dg.LabelModel().fit(c.votes).predict_proba(c.votes))[2]] for name, c in real.items()
        }
        for table in tables("development"):
            found.setdefault(table.text.split("/")[0], []).append(scores(table, label(table))[2])
        return {name: float(np.mean(values)) for name, values in found.items()}

    (_, shipped), *others = moved(briers)
    rows = []
    for text, found in others:
        relative = {name: np.log(found[name] / shipped[name]) for name in shipped}
        eight = np.mean([relative[name] for name in EVERY])
        chosen = (left_out(shipped, found, EVERY, errors) for errors in (0, 1))
        rows.append((text, f"{eight:+.2%}", f"{np.mean([*relative.values()]):+.2%}", *chosen))
    head = (
        "moved",
        "Brier, the eight sets",
        f"all {len(shipped)} sets",
        "preferred by the other sets; the left-out one then",
        "by a standard error",
    )
    return make_table(head, rows)


def main() -> None:
    """Print the tables by data set, by kind and by method, and the cases far behind the vote."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=(*PARTS, "constants"))
    parser.add_argument("seeds", nargs="?", type=int, default=SEEDS, help="of every set and kind")
    parser.add_argument("--only", help='a part of "set/kind/seed"')
    chosen = parser.parse_args()
    if chosen.part == "constants":
        print(constants())
        return
    label = of_library(dg.LabelModel)
    keys, binary, ours, others, begin = [], [], [], [], time.process_time()
    for table in tables(chosen.part, chosen.seeds, chosen.only):
        binary.append(table.n_classes == 2)
        others.append(scores_of_peers(table))
        ours.append(scores(table, label(table)))
        above = others[-1][0, 0] > np.bincount(table.gold).max() / len(table.gold) + LEVEL
        keys.append((*table.text.split("/"), "above" if above else "not above"))
    ours, others, binary, keys = np.stack(ours), np.stack(others), np.array(binary), np.array(keys)
    for place, head in ((0, "data set"), (1, "sources"), (3, "vote against the most frequent class")):
        groups = [(key, keys[:, place] == key) for key in dict.fromkeys(keys[:, place])]
        rows = [(key, *verdict(ours[own], others[own], binary[own])) for key, own in groups]
        print(make_table((head, *HEAD), [*rows, ("all", *verdict(ours, others, binary))]), end="\n\n")
    methods = [(name, *verdict(others[:, j], others, binary)) for j, name in enumerate(PEERS)]
    print(make_table(("method", *HEAD), [("`LabelModel()`", *verdict(ours, others, binary)), *methods]), end="\n\n")
    order = np.argsort(ours[:, 0] - others[:, 0, 0])[:15]
    worst = [
        (
            "/".join(keys[i, :3]),
            *(f"{value:.3f}" for value in (ours[i, 0], *others[i, :, 0], ours[i, 3], *others[i, :, 3])),
        )
        for i in order
    ]
    heads = [f"{what}: {name}" for what in ("accuracy", "log loss") for name in ("ours", *PEERS)]
    print(make_table(("furthest behind the vote", *heads), worst))
    print(f"\n{time.process_time() - begin:.0f} s of the processor")


if __name__ == "__main__":
    main()
