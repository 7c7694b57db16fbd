# ruff: noqa: E501, PLW0108, ARG005  (one line per door; values are made anew each time)
"""Cases about calls: every public door with a value that does not belong there, the command line, votes, sources."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dugong as dg
from dugong import formats, worlds
from dugong.sums import count
from dugong.votes import gold_at, labels_from_classes
from fuzz.files import PROJECT, told, write_project
from fuzz.material import PRIOR, votes, written
from fuzz.mutations import WORDS
from fuzz.running import Case


class Odd:
    """A value of no known kind, which nothing can be done with."""

    def __len__(self) -> int:
        raise RuntimeError("no length")


def values(rng: random.Random) -> Any:
    """A value that hardly belongs anywhere."""
    return rng.choice(
        (
            lambda: None,
            lambda: True,
            lambda: rng.choice((-1, 0, 1, 2, 3, 10**6, 2**31, 2**63, 10**30, -(10**30))),
            lambda: rng.choice((0.5, -0.5, 1e-320, 1e308, float("nan"), float("inf"), -float("inf"), 1j)),
            lambda: rng.choice(WORDS),
            lambda: b"bytes",
            list,
            dict,
            lambda: set(),
            lambda: [[]],
            lambda: [1, [2]],
            lambda: [None],
            lambda: ["a", "b"],
            lambda: {"s0": 1},
            lambda: {"unknown": "task"},
            lambda: {1: {2: 3}},
            lambda: object(),
            lambda: Odd(),
            lambda: len,
            lambda: (x for x in (1, 2)),
            lambda: np.zeros((2, 3)),
            lambda: np.full(3, np.nan),
            lambda: np.array(["a", "b"]),
            lambda: np.array([None, 1], dtype=object),
            lambda: np.zeros((0, 4), dtype=np.int8),
            lambda: np.array(3),
            lambda: np.zeros(3, dtype=complex),
            lambda: dg.Element(),
            lambda: dg.Window(size=3, link="joint"),
            lambda: PRIOR,
            lambda: dg.Votes,
            lambda: votes("classes"),
            lambda: Path("nowhere"),
            lambda: pa.table({"a": [1]}),
        )
    )()


@dg.source
def plus(x: int) -> int:
    return 1 if x > 1 else -1


@cache
def fitted() -> dg.LabelModel:
    return dg.LabelModel(prior=PRIOR, dependencies=()).fit(votes())


@cache
def doors() -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Public callables with arguments that are fine."""
    heard, model = votes(), fitted()
    labels = model.predict(heard)
    dense = np.array([[[1, -1, 1]] * 4] * 5, dtype=np.int8)
    flat = dict(zip(heard.source_names, heard.columns, strict=True))
    long = heard.to_long()
    segments = model.labels(heard).segments()
    lengths = heard.lengths
    sequences = {"a": [1, 2, 3], "b": [0, 2]}
    settings = {
        "prior": PRIOR,
        "dependencies": (),
        "sharing": "tied",
        "estimator": "centred",
        "signs": "group",
        "accuracies": None,
        "inference": "auto",
        "seed": 0,
        "n_threads": 1,
    }
    return [
        (lambda **given: dg.LabelModel(**given).fit(votes()).predict_proba(votes()), settings),
        (lambda **given: dg.LabelModel(**given).fit(votes()).predict_proba(votes()), {**settings, "prior": "learn"}),
        (lambda **given: dg.LabelModel(**given).identifiability(votes()), settings),
        (dg.LabelModel(prior=PRIOR, dependencies=()).fit, {"votes": heard, "gold": labels, "groups": None}),
        (dg.LabelModel(prior=PRIOR, dependencies=()).partial_fit, {"votes": heard, "groups": None}),
        (
            lambda **given: dg.LabelModel(prior=PRIOR, dependencies=()).fit_moments(**given),
            {"moments": count(heard, model.plan(heard)), "votes": heard},
        ),
        (model.predict_proba, {"votes": heard, "resolution": "element"}),
        (lambda **given: model.predict(**given) is None, {"votes": heard, "resolution": "element", "threshold": 0.5, "coding": "own"}),
        (model.decode, {"votes": heard}),
        (model.sample, {"votes": heard, "n_draws": 2}),
        (lambda **given: model.log_likelihood(**given) is None, {"votes": heard}),
        (model.labels, {"votes": heard, "resolutions": ("element",)}),
        (model.review, {"votes": heard, "budget": 3, "by": "entropy"}),
        (model.score, {"votes": heard, "gold": labels, "coding": "own"}),
        (model.explain, {"votes": heard, "sequence": 0, "task": 1, "resolution": "element"}),
        (model.summary, {"votes": heard, "gold": labels}),
        (model.drift, {"votes": heard, "level": 0.01}),
        (model.timeline, {"votes": heard, "sequence": 0}),
        (model.save, {"path": "model.json"}),
        (dg.LabelModel.load, {"path": "model.json"}),
        (dg.Moments.load, {"path": "moments.npz"}),
        (dg.Votes.read, {"path": "votes.npz"}),
        (heard.write, {"path": "votes.npz"}),
        (heard.summary, {"gold": labels}),
        (heard.covered, {"resolution": "element"}),
        (heard.buckets, {"source": "s0", "gold": labels}),
        (heard.select, {"sequences": [0, 1], "sources": ["s0"]}),
        (heard.column, {"name": "s0"}),
        (heard.layout, {"resolution": "element"}),
        (lambda votes: heard[votes], {"votes": slice(0, 2)}),
        (lambda other: dg.Votes.concat([heard, other]), {"other": heard}),
        (dg.Votes.concat, {"parts": [heard, heard], "keys": ["a", "b"]}),
        (heard.equals, {"other": heard}),
        (dg.Votes.from_dense, {"votes": dense, "lengths": None, "sources": ["a", "b", "c"]}),
        (dg.Votes.from_classes, {"votes": dense + 1, "n_classes": 3, "abstain": -1, "missing": None, "background": None, "lengths": None, "sources": None, "classes": None}),
        (dg.Votes.from_tasks, {"votes": flat, "lengths": lengths, "resolutions": {"s0": dg.Element()}, "n_classes": 2, "classes": None, "spans": None}),
        (dg.Votes.from_long, {"table": long, "lengths": None, "resolutions": None, "unit": "element", "rate": None, "n_classes": 2, "classes": None, "abstain": None, "background": None}),
        (dg.Votes.from_flyingsquid, {"votes": np.ones((4, 6), dtype=int), "n_tasks": 2}),
        (dg.Votes.from_metal, {"votes": dense.reshape(-1, 3) % 3, "lengths": [4] * 5}),
        (dg.Votes.from_segments, {"segments": segments, "lengths": dict.fromkeys(segments.recordings, 10), "rate": None}),
        (dg.apply, {"sources": [plus], "sequences": sequences, "n_jobs": 1, "progress": False, "on_fault": "raise", "timeout": None}),
        (dg.source, {"resolution": dg.Element(), "name": "x", "shares": None, "pre": [], "vectorized": False}),
        (lambda **given: dg.source(**given)(lambda x: 1), {"resolution": dg.Element(), "name": "x", "shares": None, "pre": []}),
        (dg.Window, {"size": 3, "stride": None, "link": "any", "name": None, "of": None, "seconds": None, "stride_seconds": None}),
        (dg.Sequence, {"link": "any"}),
        (dg.Spans, {"name": "shot", "link": "majority"}),
        (dg.temporal, {"name": "s0", "lag": 1}),
        (lambda **given: dg.LabelModel(prior=PRIOR, dependencies=[dg.temporal(**given)]).fit(votes()), {"name": "s0", "lag": 1}),
        (dg.priors.Markov, {"positive": 0.3, "stay": 0.6}),
        (dg.priors.Markov, {"initial": [0.5, 0.5], "transition": [[0.9, 0.1], [0.2, 0.8]]}),
        (dg.priors.Patterns, {"table": {(1, 1): 0.5, (-1, -1): 0.5}}),
        (dg.priors.from_labels, {"gold_sequences": [[1, 1, -1]] * 9, "kind": "markov"}),
        (dg.priors.from_labels, {"gold_sequences": [[1, 1, -1]] * 9, "kind": "patterns", "length": 2, "min_count": 2}),
        (dg.priors.from_dict, {"plain": PRIOR.to_dict()}),
        (dg.estimators.EM, {"max_iter": 3}),
        (dg.estimators.SGD, {}),
        (lambda **given: dg.LabelModel(prior=PRIOR, dependencies=(), estimator=dg.estimators.EM(**given)).fit(votes()).predict_proba(votes()), {"max_iter": 3}),
        (dg.evaluate, {"labels": model.predict_proba(heard), "gold": labels}),
        (dg.metrics.runs, {"kinds": np.array([0, 0, 1]), "offsets": np.array([0, 3])}),
        (dg.metrics.spans_from_bio, {"tags": [1, 2, 0], "classes": ["O", "B-x", "I-x"], "lengths": [3]}),
        (dg.learn_graph, {"votes": heard}),
        (lambda **given: dg.MajorityVote().fit(heard).predict_proba(**given), {"votes": heard, "resolution": "element"}),
        (lambda votes: dg.DataProgramming().fit(votes).predict_proba(votes), {"votes": heard}),
        (lambda votes: dg.HiddenMarkov().fit(votes).predict_proba(votes), {"votes": heard}),
        (lambda **given: formats.write(path="out.csv", **given), {"segments": segments, "format": None}),
        (formats.read, {"path": "in.csv", "format": None}),
        (formats.of_name, {"name": "csv"}),
        (model.labels(heard).segments, {"resolution": "element", "threshold": None, "decode": True, "min_length": None, "merge_gap": None}),
        (labels_from_classes, {"labels": [0, 1], "n_classes": 2}),
        (gold_at, {"votes": heard, "gold": labels, "resolution": dg.Element()}),
        (dg.loaders.csv_folder, {"path": "data", "time": "t", "every": "1s"}),
        (dg.loaders.folder, {"path": "data"}),
        (dg.loaders.conll, {"path": "x.conll"}),
        (lambda n_sequences, rng: worlds.rare().sample(n_sequences, rng=rng), {"n_sequences": 3, "rng": 0}),
    ]  # fmt: skip


def misuse(rng: random.Random, folder: Path) -> Case:
    door, given = rng.choice(doors())
    spoiled = dict(given)
    names = [
        one.name
        for one in inspect.signature(door).parameters.values()
        if one.kind not in (one.VAR_KEYWORD, one.POSITIONAL_ONLY)
    ]
    names = sorted({*names, *given} - {"engine", "progress"})
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2)))):
        spoiled[name] = values(rng)

    def use() -> Any:
        found = door(**spoiled)
        return found if isinstance(found, np.ndarray) and found.dtype.kind == "f" else None

    use.__doc__ = repr(spoiled)
    return use, 0


# --- the command line ----------------------------------------------------------------------------------------------
LINES = (
    "fit votes.npz -o model.json --prior uniform --dependencies none",
    "fit votes.npz -o model.json --prior markov:positive=0.4,stay=0.8 --dependencies s0+s1,s2@1",
    "fit votes.npz -o model.json --gold gold.csv --jobs 1",
    "label model.json votes.npz -o labels.parquet",
    "label model.json votes.npz -o labels.csv --resolution element",
    "label model.json votes.npz -o labels.parquet --intervals out.csv",
    "check votes.npz",
    "check project.toml",
    "apply project.toml -o v.npz --jobs 1",
    "apply project.toml -o shards --shard-size 5",
    "run project.toml",
    "report model.json votes.npz -o r.html",
    "simulate -o v.npz --sequences 5 --length 4",
    "plan --sequences 10",
    "info votes.npz model.json",
    "formats",
    "export labels.parquet --to csv -o out.csv",
    "import gold.csv --as gold -o g.parquet",
    "init new",
)


def arguments(rng: random.Random, folder: Path) -> Case:
    """A command of which one word was replaced, left out, moved or repeated."""
    words = rng.choice(LINES).split()
    place = write_project(folder, {key: PROJECT[key] for key in ("data", "sources", "prior")})
    for name, data in {"votes.npz": written()["elements.npz"], "model.json": written()["given.json"]}.items():
        (folder / name).write_bytes(data)
    pool = [
        "--",
        "-o",
        "",
        "-1",
        "0",
        "1e9",
        "nan",
        "\x00",
        "\ud800",
        "é",
        "../",
        "votes.npz",
        "model.json",
        str(place),
    ]
    pool += ["--jobs", "--json", "--help", "--gold", "s3://nowhere", "nothing://x", "/dev/null", ".", "x" * 5000]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1, len(words)) if len(words) > 1 else 0
        how = rng.randrange(5)
        if how == 0:
            words[at] = rng.choice(pool)
        elif how == 1 and len(words) > 1:
            del words[at]
        elif how == 2:
            words.insert(at, rng.choice(pool))
        elif how == 3:
            words[at] = words[at][: rng.randrange(len(words[at]) + 1)]
        else:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
    return lambda: told(*words), 0


# --- votes that are strange but valid ------------------------------------------------------------------------------
def strange_votes(rng: random.Random, folder: Path) -> Case:
    """Votes that carry little, nothing, or only one thing; settings drawn as well."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    n, m = rng.choice((1, 2, 3, 20)), rng.choice((1, 2, 3, 5))
    lengths = numbers.integers(0, rng.choice((1, 2, 8)) + 1, n)
    lengths[0] = max(lengths[0], 1)
    n_classes = rng.choice((2, 2, 3))
    codes = [-1, 0, 1] if n_classes == 2 else [0, 1, 2, 3]
    some = [rng.choice(codes) for _ in range(rng.choice((1, 1, 2, 4)))]
    heard = {f"s{i}": numbers.choice(some, size=int(lengths.sum())) for i in range(m)}
    if rng.random() < 0.3:
        heard["s0"] = np.full(int(lengths.sum()), dg.MISSING)
    resolutions = {}
    if n_classes == 2 and rng.random() < 0.4:
        heard["q"], resolutions["q"] = numbers.choice([-1, 0, 1], size=n), dg.Sequence(link=rng.choice(("any", "all")))
        heard["q"] = heard["q"][lengths > 0] if False else heard["q"]
    given = {
        "prior": rng.choice(("learn", PRIOR, dg.priors.Uniform(), dg.priors.Markov(positive=1e-300, stay=0.5))),
        "dependencies": rng.choice(
            ("learn", (), "low-rank", [("s0", "s1")], [dg.temporal("s0", lag=rng.choice((1, 3)))])
        ),
        "estimator": rng.choice(("centred", "paper", "em")),
        "sharing": rng.choice(("tied", "tied", "task")),
        "signs": rng.choice(("group", "positive")),
    }

    def use() -> Any:
        found = dg.Votes.from_tasks(heard, lengths=lengths, resolutions=resolutions, n_classes=n_classes)
        model = dg.LabelModel(**given).fit(found)
        str(model.summary())
        model.decode(found)
        return model.predict_proba(found)

    return use, 0


# --- sources that return anything ----------------------------------------------------------------------------------
def strange_sources(rng: random.Random, folder: Path) -> Case:
    what, when = values(rng), rng.randrange(4)
    resolution = rng.choice((dg.Element(), dg.Window(size=2), dg.Sequence()))
    error = rng.choice(
        (None, ValueError("x"), SystemExit(3), GeneratorExit(), MemoryError(), RecursionError(), StopIteration())
    )
    calls = iter(range(10**9))

    @dg.source(
        resolution=resolution,
        vectorized=rng.random() < 0.3,
        pre=[(lambda x: values(rng))] if rng.random() < 0.1 else (),
    )
    def strange(_: Any) -> Any:
        if next(calls) == when:
            if error is not None:
                raise error
            return what
        return 1

    data = rng.choice(({"a": [1, 2, 3], "b": [4]}, [("a", [1, 2])], {"a": []}, {"a": values(rng)}, values(rng)))

    def use() -> None:
        dg.apply([strange, plus], data, progress=False, on_fault=rng.choice(("raise", "abstain")), timeout=2)

    return use, 0
