"""More unlabelled data: scores of end models by the size of the train part, and the error of an end model by n.

In: a `Plan`. Out: the right half of the paper's figure on scaling (Shot and BAV), and a simulation beside the bounds of
section 3.2: an end model on Gaussian features whose excess error is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dugong.experiments.comparisons import groups, shown
from dugong.experiments.growth import SIZES, end_model_errors
from dugong.experiments.measure import Cell
from dugong.experiments.methods import TABLE1, with_estimator
from dugong.experiments.plan import Plan, make_jobs, run_jobs
from dugong.experiments.simulations import seed_cells
from dugong.experiments.tables import Drawing, Reproduction, Table, new_figure, percent, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = ("shot", "bav")
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def scale(plan: Plan) -> Reproduction:
    """Scores by share of the train part, and errors by n beside the bounds."""
    dugong = with_estimator(TABLE1[-1:], plan.estimator)
    cells = run_jobs(plan, make_jobs(plan, plan.tasks or TASKS, dugong, SHARES))
    what = "Dugong's labels" if plan.labels_only else "End models trained on Dugong's labels"
    by_share = _share_table(cells, f"{what}, by amount of unlabelled data")
    errors = [seed_cells(plan, "growth", end_model_errors, n_sequences=n) for n in SIZES]
    by_n = _error_table(errors)
    drawing = Drawing(name="scaling", draw=lambda: _draw(by_share, by_n))
    return Reproduction(name="scaling", tables=(by_share, by_n), drawings=(drawing,))


def _share_table(cells: Sequence[Cell], title: str) -> Table:
    records: list[dict[str, Any]] = []
    for group in groups(cells):
        for share in SHARES:
            mine = [cell for cell in group if cell.share == share and shown(cell) is not None]
            if not mine:
                continue
            record: dict[str, Any] = {"task": mine[0].task, "data": mine[0].origin, "train": mine[0].n_train}
            for score in ("precision", "f1"):
                record[score], record[f"{score} sd"] = spread([100 * shown(cell)[score] for cell in mine])
            records.append(record)
    rows = [
        {
            "task": r["task"],
            "data": r["data"],
            "unlabelled sequences": f"{r['train']:,}",
            "precision": percent(r["precision"], r["precision sd"]),
            "F1": percent(r["f1"], r["f1 sd"]),
        }
        for r in records
    ]
    return Table(
        name="scaling-tasks",
        title=title,
        columns=("task", "data", "unlabelled sequences", "precision", "F1"),
        rows=tuple(rows),
        records=tuple(records),
    )


def _error_table(cells: Sequence[Sequence[Any]]) -> Table:
    names = list(cells[0][0])
    records = [
        {"n": n, **{name: spread([one[name] for one in results])[0] for name in names}}
        for n, results in zip(SIZES, cells, strict=True)
    ]
    rows = [{"n": f"{r['n']:,}", **{name: f"{r[name]:.3g}" for name in names}} for r in records]
    return Table(
        name="scaling-bounds",
        title="Error of an end model by number of unlabelled sequences, beside the bounds",
        columns=("n", *names),
        rows=tuple(rows),
        records=tuple(records),
        notes=(
            "The bounds are worst cases: what they promise is the rate 1 / sqrt(n), not the size. The end model "
            "does not reach the best error: soft labels are never certain, so its boundary leans to the prior.",
        ),
    )


def _draw(by_share: Table, by_n: Table) -> Figure:
    figure, (left, right) = new_figure(2)
    for task, data in dict.fromkeys((r["task"], r["data"]) for r in by_share.records):
        mine = [r for r in by_share.records if (r["task"], r["data"]) == (task, data)]
        for score, style in (("f1", "-"), ("precision", "--")):
            label = f"{task} ({data}), {'F1' if score == 'f1' else score}"
            left.plot([r["train"] for r in mine], [r[score] for r in mine], style, marker="o", label=label)
    left.set(xlabel="unlabelled sequences", ylabel="percent", xscale="log")
    for name in [name for name in by_n.columns if name != "n"]:
        right.plot([r["n"] for r in by_n.records], [r[name] for r in by_n.records], marker="o", label=name)
    right.set(xlabel="sequences n", ylabel="error", xscale="log", yscale="log")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=7)
    return figure
