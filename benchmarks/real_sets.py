"""The defaults on the eight sets of real votes: the table with peers, subsets of sources, constants moved.

Rows of peers are quoted, not computed: for every set and column the best of up to thirteen methods with their own
defaults (Snorkel, FlyingSquid, Dawid-Skene, one-coin, MACE, Wawa, IBCC, BSC-seq, EBCC, HMM by EM, skweak, hyper label
model, majority vote). Majority vote and the default model are computed here, by the public interface alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

import dugong as dg
from dugong.fit.learned import answer, families, learning, views

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))
from learned_cases import EVERY, WITH_COARSE, RealVotes, real_votes  # noqa: E402  (the tests read the same files)

DATA = Path(os.environ.get("DUGONG_DATA", ROOT.parent / "shared" / "data"))
# Best peer of every column: headline score (span F1 of tags, F1 of two classes, else accuracy), Brier, log loss.
PEERS = {
    "tennis": (0.864, 0.2102, 0.657),
    "sleep-dodh": (0.9071, 0.1522, 0.453),
    "salads-mid": (0.6805, 0.5040, 1.847),
    "ner-bc5cdr": (0.810, 0.0684, 0.283),
    "crowd-ner": (0.743, 0.1094, 0.393),
    "sed-speech": (0.811, 0.1446, 0.502),
    "occupancy": (0.861, 0.1412, 0.281),
    "sentiment": (0.4578, 0.6590, 1.087),
    "sed-speech with clip tags": (0.815, 0.1425, 0.372),
    "occupancy with hours and days": (0.835, 0.1659, 0.508),
    "sentiment with stars": (0.5253, 0.6566, 1.084),
}
_COARSE = {"sed-speech": "clip tags", "occupancy": "hours and days", "sentiment": "stars"}
LEVEL = 0.003
MOVED = {
    "exponents of balance and share halved": (answer, "BELIEF", (0.25, 0.25, 0.5, 0.1, 1.0)),
    "exponent of votes halved": (answer, "BELIEF", (0.5, 0.5, 0.25, 0.1, 1.0)),
    "exponent of votes doubled": (answer, "BELIEF", (0.5, 0.5, 1.0, 0.1, 1.0)),
    "exponent of neighbours halved": (answer, "BELIEF", (0.5, 0.5, 0.5, 0.1, 0.5)),
    "weight of the belief 1 to .4": (learning, "RIDGE_SHARE", 0.4),
    "weight of the belief 1 to 2.5": (learning, "RIDGE_SHARE", 2.5),
    "shared errors .5 to .3": (views, "SHARED_ERRORS", 0.3),
    "room for shared errors 1/3 to .2": (answer, "ROOM", 0.2),
    "room for shared errors 1/3 to .5": (answer, "ROOM", 0.5),
    "no casting vote": (views, "CASTING", 0.0),
    "casting vote of 3 to 1": (views, "CASTING", float(np.log(3))),
    "doubt .03 to .015": (answer, "DOUBT", 0.015),
    "variants .7 to .5": (families, "NEAR", 0.5),
}


def make_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(list(head)), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cases() -> Iterable[tuple[str, RealVotes]]:
    """Every set, and three of them with votes on windows and sequences as well."""
    for name in EVERY:
        yield name, real_votes(DATA, name)
        if name in WITH_COARSE:
            yield f"{name} with {_COARSE[name]}", real_votes(DATA, name, coarse=True)


def scores(case: RealVotes, probabilities: np.ndarray) -> tuple[float, float, float, float]:
    """Headline score, accuracy, Brier, log loss."""
    found = dg.evaluate(
        probabilities[case.rows],
        case.gold[case.rows],
        lengths=case.votes.lengths[case.scored],
        classes=case.votes.class_names,
    )
    tags = "O" in (case.votes.class_names or ())
    headline = "span_f1" if tags else "f1" if case.votes.n_classes == 2 else "accuracy"
    return tuple(float(found.value(name)) for name in (headline, "accuracy", "brier", "log_loss"))


def held(name: str, found: tuple[float, float, float, float]) -> list[bool]:
    """Which of the three cells are level with the best peer: headline, Brier, log loss."""
    best = PEERS[name]
    return [found[0] >= best[0] - LEVEL, found[2] <= best[1], found[3] <= best[2]]


def real_section() -> str:
    """Every set: the best peers, the vote, the default; which cells are held."""
    rows, notes, n_held, n_cells = [], [], 0, 0
    for name, case in cases():
        begin = time.process_time()
        model = dg.LabelModel().fit(case.votes)
        ours = scores(case, model.predict_proba(case.votes))
        seconds = time.process_time() - begin
        vote = scores(case, dg.MajorityVote().fit(case.votes).predict_proba(case.votes))
        cells = held(name, ours)
        n_held, n_cells = n_held + sum(cells), n_cells + 3
        best = PEERS[name]
        rows.append((name, "best peer of each column", best[0], "–", best[1], best[2]))
        rows.append((name, "majority vote", *(f"{value:.4f}" for value in vote)))
        shown = [f"{value:.4f}" for value in ours]
        for place, good in zip((0, 2, 3), cells, strict=True):
            shown[place] = f"**{shown[place]}**" if good else shown[place]
        rows.append((name, "`LabelModel()`", *shown))
        notes.append((name, f"{seconds:.1f}", f"{ours[1] - vote[1]:+.4f}", model.diagnostics_.notes[0].text))
    head = ("set", "method", "headline", "accuracy", "Brier", "log loss")
    said = make_table(("set", "seconds (processor)", "accuracy over the vote", "what the model says first"), notes)
    return f"{n_held} of {n_cells} cells are held (bold).\n\n{make_table(head, rows)}\n\n{said}"


def copies_section() -> str:
    """Sleep stages with and without ten near-copies of one network."""
    rows = []
    for every in (False, True):
        case = real_votes(DATA, "sleep-dodh", every_source=every)
        vote = dg.MajorityVote().fit(case.votes).predict_proba(case.votes)
        ours = dg.LabelModel().fit(case.votes).predict_proba(case.votes)
        for method, labels in (("majority vote", vote), ("`LabelModel()`", ours)):
            rows.append((case.votes.n_sources, method, *(f"{value:.4f}" for value in scores(case, labels)[1:])))
    return make_table(("sources", "method", "accuracy", "Brier", "log loss"), rows)


def subset(seed: int, sets: dict[str, RealVotes]) -> tuple[str, RealVotes]:
    """Two or more sources of one set, both drawn with the seed."""
    name = EVERY[seed % len(EVERY)]
    case, rng = sets[name], np.random.default_rng(seed)
    m = case.votes.n_sources
    places = np.sort(rng.choice(m, int(rng.integers(2, m + 1)), replace=False))
    votes = case.votes.select(sources=[case.votes.source_names[place] for place in places])
    return name, RealVotes(votes=votes, gold=case.gold, scored=case.scored)


def subsets_section(n_seeds: int = 200) -> str:
    """Accuracy against the vote on random subsets of sources; every one that falls behind is listed."""
    sets = {name: real_votes(DATA, name) for name in EVERY}
    changes, rows = [], []
    for seed in range(n_seeds):
        name, case = subset(seed, sets)
        rows_, known = case.rows, case.gold != 0
        used = rows_ & known
        vote = dg.MajorityVote().fit(case.votes)
        shares = vote.predict_proba(case.votes)
        labels = dg.LabelModel().fit(case.votes).predict_proba(case.votes)
        gold = case.gold[used] - 1 if case.votes.n_classes > 2 else (case.gold[used] > 0).astype(int)
        ours, theirs = (one[used].argmax(axis=1) == gold for one in (labels, shares))
        tied = np.isclose(shares.max(axis=1), np.partition(shares, -2, axis=1)[:, -2])[used]
        change = float(ours.mean() - theirs.mean())
        changes.append(change)
        if change < -LEVEL:
            in_ties = float((ours.astype(float) - theirs)[tied].sum() / len(ours))
            rows.append((seed, name, ", ".join(case.votes.source_names), f"{change:+.4f}", f"{in_ties:+.4f}"))
    behind, far = (sum(change < -bound for change in changes) for bound in (LEVEL, 0.02))
    text = (
        f"Of {n_seeds} subsets {behind} ({behind / n_seeds:.1%}) are more than .003 below the vote, {far} "
        f"({far / n_seeds:.1%}) more than .02; the mean change of accuracy is {np.mean(changes):+.4f}."
    )
    return f"{text}\n\n{make_table(('seed', 'set', 'sources', 'accuracy', 'of it where the vote ties'), rows)}"


def moved(briers: Callable[[], dict[str, float]]) -> Iterator[tuple[str, dict[str, float]]]:
    """Brier scores of sets as shipped, then with every belief moved, one at a time."""
    yield "as shipped", briers()
    for text, (module, constant, value) in MOVED.items():
        kept = getattr(module, constant)
        setattr(module, constant, value)
        try:
            yield text, briers()
        finally:
            setattr(module, constant, kept)


def left_out(shipped: dict[str, float], found: dict[str, float], names: Iterable[str], errors: float) -> str:
    """How many of the named sets would lose something if the others chose this value, and how much at most.

    The others choose it if it makes their scores smaller by more than so many standard errors of the mean over sets.
    Relative changes, because one set has a score five times that of the others and would choose alone.
    """
    relative = {name: np.log(found[name] / shipped[name]) for name in shipped}
    names, chosen = list(names), []
    for name in names:
        gains = -np.array([gain for other, gain in relative.items() if other != name])
        if gains.mean() > max(errors * gains.std(ddof=1) / np.sqrt(len(gains)), 1e-4):
            chosen.append(name)
    loss = max((found[name] - shipped[name] for name in chosen), default=0.0)
    return f"{len(chosen)} of {len(names)}; {loss:+.4f}" if chosen else "none"


def constants_section(names: Iterable[str] = EVERY) -> str:
    """Every belief moved, one at a time: Brier score of each set."""
    sets = {name: real_votes(DATA, name) for name in names}

    def briers() -> dict[str, float]:
        labels = {name: dg.LabelModel().fit(case.votes).predict_proba(case.votes) for name, case in sets.items()}
        return {name: scores(sets[name], labels[name])[2] for name in sets}

    (text, shipped), *others = moved(briers)
    rows = [(text, *(f"{value:.4f}" for value in shipped.values()), "", "")]
    for text, found in others:
        gains = (f"{found[name] - shipped[name]:+.4f}" for name in sets)
        rows.append((text, *gains, *(left_out(shipped, found, sets, errors) for errors in (0, 1))))
    return make_table(("Brier", *sets, "preferred by the other seven; the eighth then", "by a standard error"), rows)
