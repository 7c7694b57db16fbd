"""What is spoiled: small votes, models, moments and gold of every kind, made once."""

from __future__ import annotations

import json
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dugong as dg
from dugong.sums import Moments

OLD = Path(__file__).parent.parent / "files" / "version1"
PRIOR = dg.priors.Markov(positive=0.4, stay=0.7)


@cache
def votes(kind: str = "elements") -> dg.Votes:
    """Small votes: on elements, of several resolutions, of three classes, or with all that a file can hold."""
    if kind == "everything":
        return dg.Votes.read(OLD / "votes.npz")
    rng = np.random.default_rng(7)
    lengths = np.array([6, 4, 5] * 20)
    labels = np.where(np.repeat(rng.random(len(lengths)) < 0.4, lengths), 1, -1)
    if kind == "classes":
        classes = 1 + rng.integers(0, 3, lengths.sum())
        heard = np.stack([np.where(rng.random(len(classes)) < 0.7, classes, 1 + i % 3) for i in range(4)], axis=1)
        return dg.Votes.from_classes(heard - 1, lengths=lengths, n_classes=3, classes=["x", "y", "z"])
    heard = {f"s{i}": np.where(rng.random(len(labels)) < 0.75, labels, -labels) for i in range(4)}
    if kind == "elements":
        return dg.Votes.from_tasks(heard, lengths=lengths)
    window, whole = dg.Window(size=2, link="any"), dg.Sequence()
    counts = {"w": int((-(-lengths // 2)).sum()), "q": len(lengths)}
    heard |= {name: rng.choice([-1, 0, 1], size=n) for name, n in counts.items()}
    return dg.Votes.from_tasks(heard, lengths=lengths, resolutions={"w": window, "q": whole})


SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "defaults": ("elements", {}),
    "given": ("elements", {"prior": PRIOR, "dependencies": ()}),
    "pair": ("elements", {"prior": PRIOR, "dependencies": [("s0", "s1")]}),
    "temporal": ("elements", {"prior": PRIOR, "dependencies": [dg.temporal("s0", lag=1)]}),
    "windows": ("windows", {"prior": PRIOR, "dependencies": ()}),
    "learned-windows": ("windows", {}),
    "classes": ("classes", {}),
    "em": ("elements", {"prior": PRIOR, "dependencies": (), "estimator": "em"}),
    "full": ("elements", {"prior": PRIOR, "dependencies": (), "sharing": "task"}),
}


@cache
def models() -> dict[str, tuple[Any, dg.Votes]]:
    """Plain data of models, and votes that each of them labels."""
    found = {}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for name, (kind, settings) in SETTINGS.items():
            model = dg.LabelModel(**settings).fit(votes(kind))
            model.predict_proba(votes(kind))  # compiled before children are made
            model.decode(votes(kind))
            model.save(Path(folder) / "model.json")
            found[name] = json.loads((Path(folder) / "model.json").read_text()), votes(kind)
    for name in ("resolutions", "temporal", "learned", "three", "joint", "patterns"):
        found[f"old-{name}"] = json.loads((OLD / f"{name}.json").read_text()), dg.Votes.read(OLD / f"{name}.npz")
    return found


@cache
def moments() -> tuple[Moments, ...]:
    """Moments of votes with and without spans."""
    model = dg.LabelModel(prior=PRIOR, dependencies=())
    from dugong.sums import count

    some = [count(votes(kind), model.plan(votes(kind))) for kind in ("elements", "windows")]
    return (*some, Moments.load(OLD / "moments.npz"))


@cache
def written() -> dict[str, bytes]:
    """Files of ours as bytes, by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("elements", "windows", "classes", "everything"):
            for ending in ("npz", "parquet"):
                votes(kind).write(folder / f"{kind}.{ending}")
        for place, one in enumerate(moments()):
            one.save(folder / f"moments{place}.npz")
        for kind, (plain, _) in models().items():
            (folder / f"{kind}.json").write_text(json.dumps(plain))
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
