"""The cases of the golden values: worlds and real votes, each with the settings of a label model.

Three groups, each with a file of values of its own: ``given`` (two classes, prior and dependencies given), ``classes``
(more classes, both given) and ``learned`` (something is learned from the votes: the defaults). Values of one group can
thus be changed on purpose while the others are seen to stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

import dugong as dg
from golden.drawing import Voter, accurate, confusion, draw
from learned_cases import real_votes

Group = Literal["given", "classes", "learned"]
GROUPS: tuple[Group, ...] = ("given", "classes", "learned")
Drawn = tuple[dg.Votes, np.ndarray]

STICKY = {"initial": (0.7, 0.3), "transition": ((0.94, 0.06), (0.14, 0.86))}
RARE = {"initial": (0.9, 0.1), "transition": ((0.95, 0.05), (0.3, 0.7))}
THREE = {"initial": (0.5, 0.3, 0.2), "transition": ((0.9, 0.06, 0.04), (0.08, 0.88, 0.04), (0.1, 0.05, 0.85))}
PATTERNS = {(1, 1, 1): 0.2, (-1, -1, -1): 0.35, (-1, 1, 1): 0.25, (-1, -1, 1): 0.15, (1, -1, -1): 0.05}
FRAMES = {
    "a": Voter(table=accurate(0.6, 0.95, 0.0, 0.0)),
    "b": Voter(table=accurate(0.85, 0.7, 0.1, 0.4)),
    "c": Voter(table=accurate(0.75, 0.8, 0.5, 0.2)),
    "d": Voter(table=accurate(0.9, 0.65, 0.3, 0.3)),
    "e": Voter(table=accurate(0.7, 0.9, 0.0, 0.5)),
}
KINDS = {
    "x": Voter(table=confusion(3, 0.8, 0.1)),
    "y": Voter(table=confusion(3, 0.7, 0.3)),
    "z": Voter(table=confusion(3, 0.65, 0.0)),
    "w": Voter(table=confusion(3, 0.75, 0.2)),
}
ANY = dg.Window(size=3, stride=2, link="any")
ALL = dg.Window(size=2, link="all")
MOST = dg.Window(size=4, link="majority")
WHOLE = dg.Sequence(link="any")
HOUR, DAY = dg.Window(size=60, link="any"), dg.Window(size=1440, link="any")


def _lengths(n_sequences: int, low: int, high: int) -> list[int]:
    return [low + (7 * place) % (high - low + 1) for place in range(n_sequences)]


def _lopsided() -> Drawn:
    return draw(FRAMES, [6] * 200, **STICKY, seed=1)


def _correlated() -> Drawn:
    echo = Voter(table=accurate(0.7, 0.75, 0.1, 0.2), copies="b", share=0.6)
    return draw(FRAMES | {"echo": echo}, [6] * 250, **STICKY, seed=2)


def _repeating() -> Drawn:
    return draw(FRAMES | {"slow": Voter(table=accurate(0.8, 0.7, 0.2, 0.1), share=0.5)}, [8] * 200, **STICKY, seed=3)


def _windows() -> Drawn:
    coarse = {
        "near": Voter(table=accurate(0.85, 0.8, 0.1, 0.1), resolution=ANY),
        "steady": Voter(table=accurate(0.75, 0.9, 0.2, 0.1), resolution=ALL),
        "most": Voter(table=accurate(0.8, 0.85, 0.1, 0.2), resolution=MOST),
        "whole": Voter(table=accurate(0.9, 0.8, 0.0, 0.1), resolution=WHOLE),
    }
    return draw(FRAMES | coarse, _lengths(220, 1, 12), **RARE, seed=4)


def _long() -> Drawn:
    slow = Voter(table=accurate(0.8, 0.7, 0.2, 0.1), share=0.4)
    return draw(FRAMES | {"slow": slow}, [420, 500, 380], **STICKY, seed=5)


def _short() -> Drawn:
    return draw(FRAMES, [3] * 400, **STICKY, seed=6)


def _classes() -> Drawn:
    return draw(KINDS, _lengths(90, 3, 14), **THREE, seed=7)


def _class_windows() -> Drawn:
    has_b = Voter(table=accurate(0.85, 0.9, 0.1, 0.1), resolution=dg.Window(size=4, link="any", of="b"), of=1)
    return draw(KINDS | {"has_b": has_b}, _lengths(90, 3, 14), **THREE, seed=8)


WORLDS: dict[str, Callable[[], Drawn]] = {
    "lopsided": _lopsided,
    "correlated": _correlated,
    "repeating": _repeating,
    "windows": _windows,
    "long": _long,
    "short": _short,
    "classes": _classes,
    "class windows": _class_windows,
}


@cache
def drawn(world: str) -> Drawn:
    """Votes and labels of a world, drawn once."""
    return WORLDS[world]()


@dataclass(frozen=True, kw_only=True)
class Case:
    """Votes from a world or a real set, and how they are fitted and read."""

    group: Group
    votes: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    resolutions: tuple[Any, ...] = ("element",)
    gold: bool = False  # every fifth element is known
    groups: bool = False  # sequences in groups of nine
    shards: int = 1  # added one after the other with `partial_fit`
    real: bool = False

    def read(self, folder: Path | None) -> Drawn:
        """Votes and the labels of their elements."""
        if not self.real:
            return drawn(self.votes)
        assert folder is not None
        return real_subset(folder, self.votes)


def _given(votes: str, **more: Any) -> Case:
    prior = dg.priors.Markov(**(RARE if votes == "windows" else STICKY))
    settings = {"prior": prior, "dependencies": ()} | more.pop("settings", {})
    return Case(group="given", votes=votes, settings=settings, **more)


PAIR = {"dependencies": [("b", "echo")]}
SLOW = {"dependencies": [dg.temporal("slow")]}
COARSE = ("element", ANY, ALL, MOST, WHOLE)
KNOWN = np.array(FRAMES["a"].table)
CHAIN = dg.priors.Markov(**THREE)
TAKEN = {"prior": CHAIN, "dependencies": ()}

CASES: dict[str, Case] = {
    "lopsided": _given("lopsided", resolutions=("element", MOST, WHOLE)),
    "lopsided, paper": _given("lopsided", settings={"estimator": "paper"}),
    "lopsided, em": _given("lopsided", settings={"estimator": "em"}),
    "lopsided, sgd": _given("lopsided", settings={"estimator": dg.estimators.SGD(max_steps=300)}),
    "lopsided, uniform prior": _given("lopsided", settings={"prior": dg.priors.Uniform()}),
    "lopsided, positive signs": _given("lopsided", settings={"signs": "positive"}),
    "lopsided, by position": _given("lopsided", settings={"sharing": "task"}),
    "lopsided, known accuracies": _given("lopsided", settings={"accuracies": {"a": KNOWN}}),
    "lopsided, gold": _given("lopsided", gold=True),
    "lopsided, em and gold": _given("lopsided", settings={"estimator": "em"}, gold=True),
    "lopsided, groups": _given("lopsided", groups=True),
    "lopsided, three shards": _given("lopsided", shards=3),
    "correlated": _given("correlated", settings=PAIR),
    "correlated, paper": _given("correlated", settings=PAIR | {"estimator": "paper"}),
    "correlated, em": _given("correlated", settings=PAIR | {"estimator": "em"}),
    "correlated, sgd": _given("correlated", settings=PAIR | {"estimator": dg.estimators.SGD(max_steps=300)}),
    "repeating": _given("repeating", settings=SLOW),
    "repeating, em": _given("repeating", settings=SLOW | {"estimator": "em"}),
    "windows": _given("windows", resolutions=COARSE),
    "windows, paper": _given("windows", settings={"estimator": "paper"}, resolutions=("element", WHOLE)),
    "windows, em": _given("windows", settings={"estimator": "em"}, resolutions=("element", ANY)),
    "long": _given("long", settings=SLOW, resolutions=("element", ANY)),
    "patterns": _given("short", settings={"prior": dg.priors.Patterns(PATTERNS)}, resolutions=("element", WHOLE)),
    "full tables": _given("short", settings={"sharing": {"a": "full"}}),
    "full tables, paper": _given("short", settings={"sharing": "full", "estimator": "paper"}),
    "tennis, given": _given("tennis", real=True),
    "tennis, em": _given("tennis", settings={"estimator": "em"}, real=True),
    "sed-speech, given": _given("sed-speech", resolutions=("element", WHOLE), real=True),
    "occupancy, given": _given(
        "occupancy",
        settings={"prior": dg.priors.Markov(positive=0.2, stay=0.998)},
        resolutions=("element", HOUR, DAY),
        real=True,
    ),
    "classes, given": Case(group="classes", votes="classes", settings=TAKEN),
    "classes, em": Case(group="classes", votes="classes", settings=TAKEN | {"estimator": "em"}),
    "classes, gold": Case(group="classes", votes="classes", settings=TAKEN, gold=True),
    "sleep-dodh, given": Case(
        group="classes",
        votes="sleep-dodh",
        settings={"prior": dg.priors.Markov(initial=[0.2] * 5, transition=0.9 * np.eye(5) + 0.02), "dependencies": ()},
        real=True,
    ),
    "class windows, given": Case(
        group="classes",
        votes="class windows",
        settings=TAKEN,
        resolutions=("element", dg.Window(size=4, link="any", of="b")),
    ),
    "lopsided, defaults": Case(group="learned", votes="lopsided", resolutions=("element", WHOLE)),
    "lopsided, learned prior": Case(group="learned", votes="lopsided", settings={"dependencies": ()}),
    "correlated, defaults": Case(group="learned", votes="correlated"),
    "correlated, low-rank": Case(group="learned", votes="correlated", settings={"dependencies": "low-rank"}),
    "repeating, learned graph": Case(
        group="learned", votes="repeating", settings={"prior": dg.priors.Markov(**STICKY)}
    ),
    "windows, defaults": Case(group="learned", votes="windows", resolutions=COARSE),
    "long, defaults": Case(group="learned", votes="long"),
    "classes, defaults": Case(group="learned", votes="classes", resolutions=("element",)),
    "classes, defaults and gold": Case(group="learned", votes="classes", gold=True),
    **{
        f"{name}, defaults": Case(group="learned", votes=name, real=True)
        for name in ("tennis", "sleep-dodh", "salads-mid", "ner-bc5cdr", "crowd-ner", "sentiment")
    },
    **{
        f"{name}, defaults": Case(group="learned", votes=name, resolutions=("element", coarse), real=True)
        for name, coarse in (("sed-speech", WHOLE), ("occupancy", HOUR))
    },
}

# How many sequences of a large set are read, and how long they may be: each case takes about a second.
FIRST = {"salads-mid": 20, "ner-bc5cdr": 150, "crowd-ner": 500}
LONGEST = {"sentiment": 12}


@cache
def real_subset(folder: Path, name: str) -> Drawn:
    """The first sequences of a real set, or its short ones, with their gold."""
    if name in ("tennis", "sleep-dodh", "salads-mid", "ner-bc5cdr"):
        read = real_votes(folder, name)
        votes, gold = read.votes, read.gold
    else:
        votes, gold = _with_coarse(folder / name)
    kept = votes.lengths <= LONGEST.get(name, votes.lengths.max())
    kept[FIRST.get(name, len(kept)) :] = False
    return votes[kept], gold[np.repeat(kept, votes.lengths)]


def _with_coarse(path: Path) -> Drawn:
    """A set in the plain format, with its votes on windows and sequences if it has any."""
    meta = json.loads((path / "meta.json").read_text())
    with np.load(path / "votes.npz", allow_pickle=False) as data:
        votes, gold, lengths = data["votes"].astype(int), data["gold"].astype(int), data["lengths"]
    binary = len(meta["classes"]) == 2
    coded = np.where(votes < 0, 0, 2 * votes - 1 if binary else votes + 1)
    if meta.get("missing"):
        coded = np.where(votes < 0, -128, coded)
    columns = {name: coded[:, place] for place, name in enumerate(meta["sources"])}
    resolutions: dict[str, Any] = {}
    for place, one in enumerate(meta.get("coarse", ())):
        of = None if "of" not in one else meta["classes"][one["of"]]
        whole = one["level"] == "sequence"
        resolutions[one["name"]] = (
            dg.Sequence(link=one["link"], of=of) if whole else dg.Window(size=one["level"], link=one["link"], of=of)
        )
        with np.load(path / "coarse.npz", allow_pickle=False) as coarse:
            said = coarse[str(place)].astype(int)
        columns[one["name"]] = np.where(said < 0, 0, 2 * said - 1)
    read = dg.Votes.from_tasks(
        columns, lengths, resolutions=resolutions, n_classes=len(meta["classes"]), classes=meta["classes"]
    )
    return read, np.where(gold < 0, 0, 2 * gold - 1 if binary else gold + 1)
