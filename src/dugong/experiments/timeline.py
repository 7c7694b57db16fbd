"""The left half of the paper's figure on Car: where data programming and Dugong find cyclists that are not there.

In: a `Plan`. Out: the number of false positives and misses of both on the test part, and a picture of one stretch of
it. Sequences that follow each other in the data stand side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.experiments.case import simulated, size_of
from dugong.experiments.methods import TABLE1, fit_labels, with_estimator
from dugong.experiments.plan import Plan
from dugong.experiments.recipe import Recipe
from dugong.experiments.store import library_digest, recipe_digest
from dugong.experiments.tables import Drawing, Reproduction, Table, new_figure
from dugong.experiments.tasks import find_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRETCH = 60  # sequences in the picture


def draw_timeline(plan: Plan) -> Reproduction:
    """False positives of data programming and of Dugong."""
    task = plan.tasks[0] if plan.tasks else "car"
    recipe = find_recipe(task) if isinstance(task, str) else task
    cells = [_cell(plan, recipe, seed) for seed in range(plan.seeds)]
    table = _table(recipe, cells)
    drawing = Drawing(name="timeline", draw=lambda: _draw(recipe, cells[0]["stretch"]))
    return Reproduction(name="timeline", tables=(table,), drawings=(drawing,))


def _cell(plan: Plan, recipe: Recipe, seed: int) -> dict[str, Any]:
    size = size_of(recipe, quick=plan.quick)
    settings = {
        "task": recipe.name,
        "size": [size.train, size.dev, size.test, size.small],
        "seed": seed,
        "estimator": plan.estimator,
        "recipe": recipe_digest(recipe),
        "library": library_digest("case", "methods", "recipe", "timeline"),
    }
    found = plan.store.get(f"timeline-{recipe.name}", settings)
    if found is None:
        found = _measured(plan, recipe, seed)
        plan.store.put(f"timeline-{recipe.name}", settings, found)
    plan.tell(f"timeline of {recipe.name}, seed {seed}")
    return found


def _measured(plan: Plan, recipe: Recipe, seed: int) -> dict[str, Any]:
    with simulated(recipe, quick=plan.quick, seed=seed) as case:
        gold = np.concatenate(case.gold_sequences("test"))
        ends = np.cumsum([len(one) for one in case.gold_sequences("test")])
        result: dict[str, Any] = {"n_elements": len(gold), "positive": int((gold == 1).sum())}
        labels = {}
        for method in with_estimator(TABLE1[2:], plan.estimator):
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
    records = [
        {"seed": seed, **{key: cell[key] for key in ("n_elements", "positive", *names)}}
        for seed, cell in enumerate(cells)
    ]
    columns = ("seed", "elements", "positive", *names)
    rows = [
        {**{key: f"{value:,}" for key, value in one.items()}, "elements": f"{one['n_elements']:,}"} for one in records
    ]
    return Table(
        name="timeline",
        title=f"False positives and misses on the test part of {recipe.name} (simulated)",
        columns=columns,
        rows=tuple(rows),
        records=tuple(records),
    )


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
