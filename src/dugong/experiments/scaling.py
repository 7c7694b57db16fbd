"""More unlabelled data: scores of end models by the size of the train part, and the error of an end model by n.

In: an `ExperimentPlan`. Out: the right half of the paper's figure on scaling (Shot and BAV), and a simulation beside
the bounds of section 3.2: an end model on Gaussian features whose excess error is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from dugong.endmodels.classifiers import train_sklearn
from dugong.exceptions import import_extra
from dugong.experiments.comparisons import groups, shown
from dugong.experiments.measure import Cell, ExperimentPlan, make_jobs, run_jobs
from dugong.experiments.methods import DUGONG, with_estimator
from dugong.experiments.simulations import seed_cells
from dugong.experiments.tables import Drawing, Reproduction, Table, formatted, new_figure, spread, spread_of
from dugong.graph.theory import end_model_bound, tied_error_bound, untied_error_bound
from dugong.model import LabelModel
from dugong.types import FloatArray
from dugong.worlds import World, lopsided

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = ("shot", "bav")
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
SIZES = (30, 100, 300, 1_000, 3_000, 10_000)
N_SOURCES, N_ELEMENTS, N_FEATURES = 6, 5, 10
DISTANCE = 0.45  # between the classes in every feature, in standard deviations
POSITIVE = 0.3  # the balance of the world


def scale(plan: ExperimentPlan) -> Reproduction:
    """Scores by share of the train part, and errors by n beside the bounds."""
    dugong = with_estimator((DUGONG,), plan.estimator)
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
    texts = {"task": formatted("task"), "data": formatted("data"), "unlabelled sequences": formatted("train", ",")}
    texts |= {"precision": spread_of("precision"), "F1": spread_of("f1")}
    return Table.of("scaling-tasks", title, records, texts)


def _error_table(cells: Sequence[Sequence[Any]]) -> Table:
    names = list(cells[0][0])
    records = [
        {"n": n, **{name: spread([one[name] for one in results])[0] for name in names}}
        for n, results in zip(SIZES, cells, strict=True)
    ]
    note = (
        "The bounds are worst cases: what they promise is the rate 1 / sqrt(n), not the size. The end model does not "
        "reach the best error: soft labels are never certain, so its boundary leans to the prior."
    )
    title = "Error of an end model by number of unlabelled sequences, beside the bounds"
    texts = {"n": formatted("n", ","), **{name: formatted(name, ".3g") for name in names}}
    return Table.of("scaling-bounds", title, records, texts, (note,))


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


def end_model_errors(*, n_sequences: int, seed: int, estimator: str) -> Mapping[str, float]:
    """Errors and bounds for one draw."""
    linear = import_extra("sklearn.linear_model", "sklearn", "the end model of the scaling figure", "scikit-learn")
    world = lopsided(N_SOURCES, seed, n_elements=N_ELEMENTS)
    votes, labels = world.sample(n_sequences, rng=seed)
    gold, rng = labels["element"], np.random.default_rng((seed, n_sequences))
    model = LabelModel(prior=world.prior, dependencies=(), estimator=estimator).fit(votes)
    features = DISTANCE / 2 * gold[:, None] + rng.normal(size=(len(gold), N_FEATURES))
    ours = train_sklearn(linear.LogisticRegression(), features, model.predict_proba(votes))
    supervised = linear.LogisticRegression().fit(features, gold)
    best = error_rate(np.full(N_FEATURES, DISTANCE), float(np.log(POSITIVE / (1 - POSITIVE))))
    # Euclidean norm of the error of all tables together
    truth = world.accuracies(N_ELEMENTS)
    table_error = float(np.sqrt(sum(((model.accuracies_[name] - table) ** 2).sum() for name, table in truth.items())))
    return {
        "end model: excess error": error_rate(ours.coef_[0], float(ours.intercept_[0])) - best,
        "with true labels": error_rate(supervised.coef_[0], float(supervised.intercept_[0])) - best,
        "tables: norm of the error": table_error,
        "8 x that norm": end_model_bound(table_error),
        "8 x Theorem 1 (tied)": end_model_bound(_bound(tied_error_bound, n_sequences, world)),
        "8 x Theorem 2 (untied)": end_model_bound(_bound(untied_error_bound, n_sequences, world)),
    }


def error_rate(weights: FloatArray, offset: float) -> float:
    """Share of wrong answers of a linear classifier, exactly: the features of both classes are Gaussian."""
    scale = float(np.linalg.norm(weights))
    middle = DISTANCE / 2 * float(weights.sum())
    missed, invented = ndtr((-middle - offset) / scale), ndtr((-middle + offset) / scale)
    return float(POSITIVE * missed + (1 - POSITIVE) * invented)


def _bound(theorem: Callable[..., float], n_sequences: int, world: World) -> float:
    """A bound with the smallest entry of the prior of one label and the smallest expected agreement with it."""
    balance = world.prior.joint_law([("element", 0)], 1)
    sides = np.array([-1, 1])
    agreements = [float(balance @ ((table[:, 1] - table[:, 0]) * sides)) for table in world.accuracies().values()]
    smallest = min(map(abs, agreements))
    return theorem(n_sequences, N_SOURCES, N_ELEMENTS, smallest_prior=float(balance.min()), smallest_agreement=smallest)
