"""`reproduce`: the paper's tables and figures, from raw data to Markdown.

In: the name of a table and how much of it is wanted. Out: a `Reproduction`. Work is cut into jobs (one task, one seed),
which run in processes; every finished cell is kept in the store at once, so that a killed run goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from dugong.exceptions import DugongError
from dugong.experiments import comparisons, methods
from dugong.experiments.measure import ExperimentPlan, make_jobs, run_jobs
from dugong.experiments.methods import DUGONG, PROGRAMMING, Estimator, fit_labels, with_estimator
from dugong.experiments.recipe import Recipe, simulated, size_of
from dugong.experiments.resolutions import show_patients, show_resolutions
from dugong.experiments.simulations import scale, simulate
from dugong.experiments.tables import (
    Drawing,
    Reproduction,
    Store,
    Table,
    formatted,
    library_digest,
    new_figure,
    recipe_digest,
)
from dugong.experiments.tasks import TASKS, recipe_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

What = Literal["table1", "ablations", "priors", "patients", "resolutions", "simulations", "scaling", "timeline"]
WHAT: tuple[What, ...] = get_args(What)
SEEDS = 5

TITLES = {
    "table1": "End models by what they learn from: dev labels, votes, label models, all labels",
    "ablations": "Dugong without parameter tying and without dependencies",
    "priors": "Dugong with a uniform prior, the dev set's and the user's",
}
_METHODS = {"table1": methods.TABLE1, "ablations": methods.ABLATIONS, "priors": methods.PRIORS}
_PAIRS = {
    "table1": tuple(("Dugong", other) for other in ("TS", "MV", "DP", "HMM", "Algorithm 1", "defaults", "gold")),
    "ablations": (("Dugong", "without tying"), ("Dugong", "without dependencies")),
    "priors": (("user prior", "uniform prior"), ("user prior", "dev prior")),
}
STRETCH = 60  # sequences in the picture


def reproduce(
    what: What,
    *,
    tasks: Iterable[str | Recipe] | None = None,
    quick: bool = False,
    estimator: Estimator = "centred",
    seeds: int | None = None,
    data: str | PathLike[str] | None = None,
    output: str | PathLike[str] = "dugong-paper",
    restart: bool = False,
    jobs: int = -1,
    device: str | None = None,
    labels_only: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Reproduction:
    """Reproduce a table or figure of the paper, and write it as Markdown, CSV, PNG and SVG.

    Parameters
    ----------
    what : {"table1", "ablations", "priors", "patients", "resolutions", "simulations", "scaling", "timeline"}
    tasks : names of `TASKS`, or recipes of your own; optional
        All tasks that the table has, by default.
    quick : bool
        Little data and small networks: minutes instead of days.
    estimator : {"centred", "paper", "sgd"}
        Of the label model: the closed form, the paper's Algorithm 1 as printed, or its gradient descent (extra
        ``torch``).
    seeds : int, optional
        How often everything is repeated: 5 by default. A seed decides the simulated data and the first weights of the
        networks.
    data : path, optional
        Folder with real data, by default what the environment variable DUGONG_DATA names; data that is not there is a
        row that says so.
    output : path
        Where tables and figures are written, and, in ``cells``, every finished number.
    restart : bool
        Compute everything anew, whatever is in ``cells``.
    jobs : int
        Processes; -1 for one per core.
    device : str, optional
        Of the networks, such as "cuda".
    labels_only : bool
        Score the labels of the label models and train no end models: seconds instead of minutes.
    progress : function of a line of text, optional

    Returns
    -------
    Reproduction
        Prints as Markdown.
    """
    if what not in WHAT:
        raise DugongError(f"{what!r} cannot be reproduced; there are {', '.join(WHAT)}.")
    if seeds is not None and seeds < 1:
        raise DugongError(f"there must be at least one seed; found {seeds}.")
    chosen = tuple(tasks or ())
    for one in chosen:
        recipe_of(one)  # raises now if there is no such task
    place = os.environ.get("DUGONG_DATA") if data is None else data
    plan = ExperimentPlan(
        tasks=chosen,
        quick=quick,
        estimator=estimator,
        seeds=seeds or SEEDS,
        data=None if not place else Path(place),
        store=Store(folder=Path(output) / "cells", fresh=restart),
        jobs=jobs,
        device=device,
        labels_only=labels_only,
        tell=progress or (lambda _: None),
    )
    others = {"patients": show_patients, "resolutions": show_resolutions, "simulations": simulate, "scaling": scale}
    made = {**others, "timeline": draw_timeline}.get(what, partial(compare, what))(plan)
    for path in made.write(output):
        plan.tell(f"wrote {path}")
    return made


_NOTES = {
    "ablations": (
        "*Without tying* differs from *Dugong* in nothing but tables by position: sources that repeat themselves "
        "still do. Where there are such, EM finds the tables, which lean on those of all positions as far as these are "
        "alike; elsewhere closed forms do, which do not lean.",
    )
}


def compare(what: str, plan: ExperimentPlan) -> Reproduction:
    """Methods on tasks."""
    chosen = methods.with_estimator(_METHODS[what], plan.estimator)
    cells = run_jobs(plan, make_jobs(plan, plan.tasks or TASKS, chosen))
    title = f"{TITLES[what]}{' (labels alone)' if plan.labels_only else ''}"
    table = comparisons.comparison(what, title, chosen, cells, _NOTES.get(what, ()))
    order = comparisons.orders(cells, _PAIRS[what], name=f"{what}-differences", title="Paired differences in F1 points")
    return Reproduction(name=what, tables=(table, order))


def draw_timeline(plan: ExperimentPlan) -> Reproduction:
    """False positives of data programming and of Dugong."""
    recipe = recipe_of(plan.tasks[0] if plan.tasks else "car")
    cells = [_cell(plan, recipe, seed) for seed in range(plan.seeds)]
    table = _table(recipe, cells)
    drawing = Drawing(name="timeline", draw=lambda: _draw(recipe, cells[0]["stretch"]))
    return Reproduction(name="timeline", tables=(table,), drawings=(drawing,))


def _cell(plan: ExperimentPlan, recipe: Recipe, seed: int) -> dict[str, Any]:
    size = size_of(recipe, quick=plan.quick)
    settings = {
        "task": recipe.name,
        "size": [size.train, size.dev, size.test, size.small],
        "seed": seed,
        "estimator": plan.estimator,
        "recipe": recipe_digest(recipe),
        "library": library_digest("methods", "recipe", "reproducing"),
    }
    found = plan.store.kept(f"timeline-{recipe.name}", settings, _measured, plan, recipe, seed)
    plan.tell(f"timeline of {recipe.name}, seed {seed}")
    return found


def _measured(plan: ExperimentPlan, recipe: Recipe, seed: int) -> dict[str, Any]:
    with simulated(recipe, quick=plan.quick, seed=seed) as case:
        gold = np.concatenate(case.gold_sequences("test"))
        ends = np.cumsum([len(one) for one in case.gold_sequences("test")])
        result: dict[str, Any] = {"n_elements": len(gold), "positive": int((gold == 1).sum())}
        labels = {}
        for method in with_estimator((PROGRAMMING, DUGONG), plan.estimator):
            model = fit_labels(method, case, seed)
            assert model is not None
            said = np.where(model.predict_proba(case.votes("test"))[:, 1] > 0.5, 1, -1)
            result[f"{method.name} false positives"] = int(((said == 1) & (gold == -1)).sum())
            result[f"{method.name} misses"] = int(((said == -1) & (gold == 1)).sum())
            labels[method.name] = said
    rows = _stretch(gold, ends)
    tracks = {"truth": gold, "data programming": labels["DP"], "Dugong": labels["Dugong"]}
    return result | {"stretch": {name: track[rows].tolist() for name, track in tracks.items()}}


def _stretch(gold: Any, ends: Any) -> slice:
    """The first stretch of sequences that has cyclists in a tenth of its elements, else the first of all."""
    starts = np.concatenate([[0], ends[:-1]])
    for first in range(0, max(len(ends) - STRETCH, 0) + 1, STRETCH // 4):
        rows = slice(int(starts[first]), int(ends[min(first + STRETCH, len(ends)) - 1]))
        if (gold[rows] == 1).mean() > 0.1:
            return rows
    return slice(0, int(ends[min(STRETCH, len(ends)) - 1]))


def _table(recipe: Recipe, cells: list[dict[str, Any]]) -> Table:
    names = [f"{method} {what}" for method in ("DP", "Dugong") for what in ("false positives", "misses")]
    keys = {"seed": "seed", "elements": "n_elements", **{name: name for name in ("positive", *names)}}
    records = [{key: {"seed": seed, **cell}[key] for key in keys.values()} for seed, cell in enumerate(cells)]
    title = f"False positives and misses on the test part of {recipe.name} (simulated)"
    return Table.of("timeline", title, records, {column: formatted(key, ",") for column, key in keys.items()})


def _draw(recipe: Recipe, stretch: dict[str, list[int]]) -> Figure:
    figure, (ax,) = new_figure(1, width=9, height=2.2)
    truth = np.array(stretch["truth"])
    for place, track in enumerate(stretch.values()):
        said = np.array(track) == 1
        marks = {"tab:green": said & (truth == 1), "tab:red": said & (truth == -1), "0.85": ~said & (truth == 1)}
        for colour, where in marks.items():
            at = np.flatnonzero(where)
            ax.bar(at, np.full(len(at), 0.8), width=1.0, bottom=-place - 0.4, color=colour)
    ax.set_yticks([-place for place in range(len(stretch))], list(stretch))
    ax.set(xlabel=f"elements of successive test sequences of {recipe.name} (red: false, grey: missed)")
    ax.set_xlim(0, len(truth))
    return figure
