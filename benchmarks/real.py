"""`make bench-real`: the defaults on real votes and on worlds with known truth, written to docs/explanation/real.md.

Nothing is set per data set. The real votes are read from ../shared/data (or DUGONG_DATA). With names of sections
(``python -m benchmarks.real real worlds``) only these are measured again, and the others stay as they are on the page.
"""

from __future__ import annotations

import re
import sys
import time

import numpy as np

import dugong as dg
from benchmarks.real_sets import (
    ROOT,
    constants_section,
    copies_section,
    make_table,
    real_section,
    subsets_section,
)
from dugong.infer.engine import posterior
from dugong.tasks import Element
from dugong.worlds import (
    Block,
    TemporalBlock,
    World,
    confusion,
    copying_pair,
    couplings,
    cycle,
    ising,
    lopsided,
    multiresolution,
    ragged,
    rare,
    self_dependent,
    sticky,
    temporal,
    tv_news,
)
from dugong.worlds.standard import lopsided_table

PAGE = ROOT / "docs" / "explanation" / "real.md"
SEEDS = (0, 1, 2)


def many_classes(seed: int) -> World:
    """Four classes, seven sources."""
    rng = np.random.default_rng(seed)
    blocks = tuple(
        Block(names=(f"s{j}",), table=confusion(4, rng.uniform(0.5, 0.85, 4).tolist(), float(rng.uniform(0, 0.4))))
        for j in range(7)
    )
    balance = rng.dirichlet(np.full(4, 5.0))
    prior = dg.priors.Markov(initial=balance, transition=0.8 * np.eye(4) + 0.2 * balance)
    return World(prior=prior, blocks=blocks, lengths=5)


def ring(seed: int) -> World:
    """Four sources that depend on each other in a ring, and four that are independent."""
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c", "d")
    table = ising(rng.uniform(0.4, 0.7, 4).tolist(), couplings(names, cycle(names), 0.3))
    free = (Block(names=(f"s{j}",), table=lopsided_table(rng)) for j in range(4))
    blocks = (Block(names=names, table=table, edges=cycle(names)), *free)
    return World(prior=sticky(0.4, 0.8), blocks=blocks, lengths=5)


def brier(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """Mean squared distance to the truth."""
    places = (truth > 0).astype(int) if probabilities.shape[1] == 2 else truth.astype(int) - 1
    return float(((probabilities - np.eye(probabilities.shape[1])[places]) ** 2).sum(axis=1).mean())


def worlds_section() -> str:
    """Brier score over that of the true parameters, everything learned."""
    worlds = {
        "lopsided": (lopsided, 10_000),
        "lopsided, few": (lopsided, 1_000),
        "multiresolution": (multiresolution, 10_000),
        "rare (3 % positive)": (rare, 20_000),
        "self-dependent": (self_dependent, 10_000),
        "ragged": (ragged, 5_000),
        "ring of four": (ring, 5_000),
        "four classes": (many_classes, 10_000),
        "TV news": (lambda seed: tv_news(), 2_000),  # noqa: ARG005  (all worlds are functions of a seed)
    }
    rows = []
    for name, (make, n_sequences) in worlds.items():
        found, vote = [], []
        for seed in SEEDS:
            world = make(seed=seed)
            votes, labels = world.sample(n_sequences, rng=seed + 100)
            truth = labels["element"]
            best = brier(posterior(votes, world.parameters(), world.prior)[Element()], truth)
            found.append(brier(dg.LabelModel().fit(votes).predict_proba(votes), truth) / best)
            vote.append(brier(dg.MajorityVote().fit(votes).predict_proba(votes), truth) / best)
        rows.append((name, n_sequences, *(f"{value:.3f}" for value in found), f"{np.mean(vote):.2f}"))
    return make_table(("world", "sequences", *(f"seed {seed}" for seed in SEEDS), "majority vote"), rows)


def planted(n_sources: int, n_each: int, strength: float, seed: int) -> World:
    """Pairs that copy and sources that repeat themselves, among independent ones."""
    rng = np.random.default_rng(seed)
    blocks: list[Block | TemporalBlock] = []
    for place in range(n_each):
        pair = copying_pair(lopsided_table(rng), strength, own=lopsided_table(rng))
        blocks.append(Block(names=(f"a{place}", f"b{place}"), table=pair))
        first, step = temporal(lopsided_table(rng), strength)
        blocks.append(TemporalBlock(name=f"t{place}", first=first, step=step))
    blocks += [Block(names=(f"s{j}",), table=lopsided_table(rng)) for j in range(n_sources - 3 * n_each)]
    return World(prior=sticky(0.3, 0.8), blocks=tuple(blocks), lengths=5)


def graphs_section(method: str) -> str:
    """Precision and recall of learned dependencies by size and strength; of planted nothing, how many are found."""
    rows = []
    for n_sources, n_each in ((6, 1), (10, 2), (16, 3)):
        for n_sequences in (200, 1_000, 5_000):
            cells_ = []
            for strength in (0.0, 0.2, 0.4, 0.7):
                hits = found = true = 0
                for seed in SEEDS:
                    world = planted(n_sources, n_each, strength, seed)
                    votes, _ = world.sample(n_sequences, rng=seed)
                    graph = dg.learn_graph(votes, method=method).graph
                    learned = {*graph.edges, *((name, name) for name in graph.temporal)}
                    planted_ = {(f"a{j}", f"b{j}") for j in range(n_each)} | {(f"t{j}",) * 2 for j in range(n_each)}
                    hits, found, true = hits + len(learned & planted_), found + len(learned), true + len(planted_)
                cells_.append(f"{hits / max(found, 1):.2f} / {hits / true:.2f}" if strength else found)
            rows.append((n_sources, n_sequences, *cells_))
    head = ("sources", "sequences of 5", "found where nothing is", "strength .2", "strength .4", "strength .7")
    return make_table(head, rows)


def lags_section() -> str:
    """Two of seven sources repeat an earlier vote: whether the lag is found, and what the labels lose."""
    rows = []
    for lag in (1, 2, 3, 5):
        ratios, hits = [], 0
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            blocks: list[Block | TemporalBlock] = []
            for place in range(2):
                first, step = temporal(lopsided_table(rng), 0.6)
                blocks.append(TemporalBlock(name=f"t{place}", first=first, step=step, lag=lag))
            blocks += [Block(names=(f"s{j}",), table=lopsided_table(rng)) for j in range(5)]
            world = World(prior=sticky(0.3, 0.85), blocks=tuple(blocks), lengths=12)
            votes, labels = world.sample(1_000, rng=seed)
            best = brier(posterior(votes, world.parameters(), world.prior)[Element()], labels["element"])
            model = dg.LabelModel().fit(votes)
            hits += model.graph_.temporal == {"t0": lag, "t1": lag}
            ratios.append(brier(model.predict_proba(votes), labels["element"]) / best)
        rows.append((lag, f"{hits} of {len(SEEDS)}", *(f"{value:.3f}" for value in ratios)))
    return make_table(("lag", "both found, nothing else", *(f"seed {seed}" for seed in SEEDS)), rows)


def cost_section() -> str:
    """Processor seconds of fit and label with everything given and everything learned."""
    world = lopsided(10, seed=1)
    given, learned = dg.LabelModel(prior=world.prior, dependencies=(), n_threads=1), dg.LabelModel(n_threads=1)
    for n_sequences in (2_000, 200_000):  # compiles the kernels, those of a part of the votes too
        votes, _ = world.sample(n_sequences, rng=1)
        for model in (given, learned):
            model.fit(votes).predict_proba(votes)
    rows = []
    for n_sequences in (2_000, 20_000, 200_000, 1_000_000):
        votes, _ = world.sample(n_sequences, rng=1)
        dense = np.stack(votes.columns, axis=1)
        begin = time.process_time()
        dense.sum()
        floor = time.process_time() - begin
        seconds = []
        for model in (given, learned):
            begin = time.process_time()
            model.fit(votes).predict_proba(votes)
            seconds.append(time.process_time() - begin)
        ratio = f"{seconds[1] / seconds[0]:.1f}"
        sums = f"{seconds[1] / floor:.0f}" if floor > 0.001 else "–"
        rows.append((f"{n_sequences:,}", *(f"{value:.2f}" for value in seconds), ratio, sums))
    head = (
        "sequences of 5, 10 sources",
        "prior and dependencies given",
        "all learned",
        "ratio",
        "in sums",
    )
    return make_table(head, rows)


PAGE_TEXT = """# Real votes

`make bench-real` writes this page. Every number of ours is `dg.LabelModel()` with nothing set; see [what the defaults
assume](learned-defaults.md). Rows of peers are quoted for the same votes and gold: of every column the best of up to
thirteen methods (Snorkel, FlyingSquid, Dawid-Skene, one-coin, MACE, Wawa, IBCC, BSC-seq, EBCC, HMM by EM, skweak,
hyper label model, majority vote), each with its own defaults. The vote and our rows are computed here.

**Not held out.** The model sees no gold, but its constants were chosen with the gold of these sets in view
([how](choosing.md)). Take the table as "one setting can do this on all of them",
not as a forecast. Tennis has 746 scored frames, so a difference of .003 there is two frames.

## Accuracy and honesty

The headline score is span F1 for tags, F1 for two classes, else accuracy. A cell is held if the headline is at least
the best peer's minus .003, and Brier score and log loss are at most the best peer's.

{real}

Cells that are not held, and why:

- *crowd-ner, headline*: the best peer models spans; here the neighbours of a token count for little, because the same
  workers tag them.
- *occupancy, headline*: one part in 1,000: where the five rules tie, the room is nearly always empty, which no vote
  tells.
- *sed-speech with clip tags, headline*: the networks miss speech together; a method that says "on" more
  often has the better F1 and no better accuracy, and nothing in the votes asks for it.
- *sentiment, without stars*: the lexicons share errors (.37 to .64 given gold), and the best Brier score and log loss
  belong to a method that answers nearly one third everywhere. With stars: the stars alone are right on .548 of the
  sentences.

## Near-copies

Ten variants of one network join the six base models of sleep-dodh. They must not outvote the others.

{copies}

## Few sources

Random subsets of two or more sources of the eight sets, seeds 0 to 199, against `dg.MajorityVote()`. Where votes tie,
the vote answers with the first class, which is the most frequent one in most of these sets; the last column says how
much of a loss comes from such elements.

{subsets}

## Constants moved

Changes of the Brier score if one belief is moved (below zero is better), and for how many sets the other seven would
have preferred that value, with the most that the eighth would have lost by it. Preferred is what makes the scores of
seven sets smaller on average, each beside its own size: sums would be led by sentiment, whose score is five times that
of the others and which any more caution improves. The same with the thirteen public development sets beside these eight
is `python -m benchmarks.public constants`; its table is on the page about [the numbers](choosing.md).

{constants}

## Worlds that obey the model

Brier score of the labels over that of the true parameters, prior and dependencies (1 is optimal); all learned.

{worlds}

## Planted dependencies

Precision / recall of learned edges and self-dependence: pairs that copy, and sources that repeat themselves, with the
given probability, among independent ones; {seeds} worlds each. First by residuals, as `LabelModel()` does:

{graphs}

The same by the low-rank-plus-sparse decomposition (`dependencies="low-rank"`):

{low_rank}

Two of seven sources repeat what they voted some elements earlier, with probability .6; 1,000 sequences of 12. Brier
score over the optimal one.

{lags}

## Cost

Processor seconds of `fit` and `predict_proba` on one core, their ratio, and what is learned as a multiple of `sum()` of
the int8 votes.

{cost}
"""


def kept(name: str) -> str:
    """A section as the page has it."""
    found = re.search(f"<!-- {name} -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    return found.group(1) if found else "Not measured yet."


def main() -> None:
    """Measure everything, or the sections that are named, and write the page."""
    parts = {
        "real": real_section,
        "copies": copies_section,
        "subsets": subsets_section,
        "constants": constants_section,
        "worlds": worlds_section,
        "graphs": lambda: graphs_section("residuals"),
        "low_rank": lambda: graphs_section("low-rank"),
        "lags": lags_section,
        "cost": cost_section,
    }
    chosen = sys.argv[1:] or list(parts)
    found = {}
    for name, measure in parts.items():
        begin = time.perf_counter()
        found[name] = measure() if name in chosen else kept(name)
        if name in chosen:
            print(f"{name}: {time.perf_counter() - begin:.0f} s\n{found[name]}\n", flush=True)
    marked = {name: f"<!-- {name} -->\n{text}\n<!-- end -->" for name, text in found.items()}
    PAGE.write_text(PAGE_TEXT.format(seeds=len(SEEDS), **marked))


if __name__ == "__main__":
    main()
