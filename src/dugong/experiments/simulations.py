"""The paper's simulation figure: estimation error by n and tying, value of dependencies, run time against Gibbs.

In: an `ExperimentPlan`. Out: three tables and one figure with three panels. Worlds with known truth give the votes:
errors are against the true tables, scores against the true labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from dugong.baselines import DataProgramming
from dugong.endmodels.costs import train_sklearn
from dugong.exceptions import import_extra
from dugong.experiments.comparisons import groups, shown
from dugong.experiments.measure import Cell, ExperimentPlan, make_jobs, run_jobs, scores_of
from dugong.experiments.methods import DUGONG, with_estimator
from dugong.experiments.tables import (
    Drawing,
    Reproduction,
    Table,
    formatted,
    library_digest,
    new_figure,
    spread,
    spread_of,
)
from dugong.fit.moments import estimate_centred, solve_tables
from dugong.fit.moments.equations import Given
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.graph.theory import end_model_bound, tied_error_bound, untied_error_bound
from dugong.model import LabelModel
from dugong.sums import count
from dugong.types import FloatArray
from dugong.votes import Votes
from dugong.worlds import World, lopsided, self_dependent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Result = Mapping[str, float]
SIZES, QUICK_SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000), (100, 300, 1_000, 3_000, 10_000)
REPEATS = (0.0, 0.3, 0.6, 0.9)
N_SOURCES, N_REPEATING = 8, 5
N_FOR_SCORES = 2_000
TIMED = 10


def simulate(plan: ExperimentPlan) -> Reproduction:
    """All three panels."""
    sizes = QUICK_SIZES if plan.quick else SIZES
    errors = [seed_cells(plan, "error", estimation_errors, n_sequences=n) for n in sizes]
    gains = [seed_cells(plan, "dependencies", dependency_scores, repeat=repeat) for repeat in REPEATS]
    times = [seed_cells(plan, "time", run_times, n_sequences=n) for n in sizes]
    tables = (_error_table(sizes, errors), _gain_table(gains), _time_table(sizes, times))
    drawing = Drawing(name="simulations", draw=lambda: _draw(tables))
    return Reproduction(name="simulations", tables=tables, drawings=(drawing,))


def seed_cells(plan: ExperimentPlan, name: str, measure: Callable[..., Result], **settings: Any) -> list[Result]:
    """One cell per seed, from the store where it is there."""
    found: list[Result] = []
    for seed in range(plan.seeds):
        key = {**settings, "what": name, "seed": seed, "estimator": plan.estimator}
        key["library"] = library_digest("simulations", "measure")
        found.append(
            plan.store.kept(f"simulation-{name}", key, measure, seed=seed, estimator=plan.estimator, **settings)
        )
    plan.tell(f"{name}: {', '.join(f'{key} {value}' for key, value in settings.items())}")
    return found


# --- what is measured ------------------------------------------------------------------------------------------------
def estimation_errors(*, n_sequences: int, seed: int, estimator: str) -> Result:
    """Squared error of all P(vote | label), mean over positions, with and without tying."""
    world = lopsided(N_SOURCES, seed)
    votes, _ = world.sample(n_sequences, rng=seed)
    model = LabelModel(prior=world.prior, dependencies=(), estimator=estimator)
    tied = model.fit(votes).accuracies_
    untied = model.set_params(sharing="task").fit(votes).accuracies_
    return {"tied": squared_error(tied, world), "by position": squared_error(untied, world)}


def squared_error(found: Mapping[str, FloatArray], world: World) -> float:
    """Sum over sources and entries of a table; a mean over positions where there is a table for each."""
    truth = world.accuracies(5)
    return float(
        sum(((np.atleast_3d(found[name].T).T - table) ** 2).sum((1, 2)).mean() for name, table in truth.items())
    )


def dependency_scores(*, repeat: float, seed: int, estimator: str) -> Result:
    """F1 of labels where five of eight sources repeat their last vote with probability `repeat`."""
    world = self_dependent(N_SOURCES, N_REPEATING, repeat, seed)
    votes, labels = world.sample(N_FOR_SCORES, rng=seed)
    gold = labels["element"]
    scores = {}
    for name, dependencies in (("modelled", world.dependencies), ("ignored", ())):
        model = LabelModel(prior=world.prior, dependencies=dependencies, estimator=estimator).fit(votes)
        scores[name] = scores_of(model.predict_proba(votes), gold)["f1"]
    programming = DataProgramming(seed=seed, balance=_balance(world)).fit(votes)
    return scores | {"data programming": scores_of(programming.predict_proba(votes), gold)["f1"]}


def _balance(world: World) -> list[float]:
    chances: list[float] = world.prior.joint_law([("element", 0)], 1).tolist()
    return chances


def run_times(*, n_sequences: int, seed: int, estimator: str) -> Result:
    """Processor seconds on the same votes, after a first run that compiles.

    "ours" is `LabelModel.fit` with its standard errors and diagnostics; "solving alone" counts the moments and solves.
    """
    world = lopsided(TIMED, seed)
    votes, _ = world.sample(n_sequences, rng=seed)
    model = LabelModel(prior=world.prior, dependencies=(), estimator=estimator, n_threads=1)
    sampler = DataProgramming(seed=seed, balance=_balance(world))
    warm, _ = world.sample(50, rng=seed)
    model.fit(warm)
    DataProgramming(n_epochs=1).fit(warm)
    times = {"ours": _seconds(lambda: model.fit(votes)), "Gibbs sampling": _seconds(lambda: sampler.fit(votes))}
    if estimator == "centred":
        times["solving alone"] = _seconds(lambda: _solve(world, votes))
    return times


def _solve(world: World, votes: Votes) -> object:
    design = make_design(world.sources, SourceGraph.of(world.source_names, ()))
    moments = count(votes, design.plan, n_threads=1)
    return estimate_centred(solve_tables(Given.under(world.prior, design, moments)))


def _seconds(work: Callable[[], object]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


# --- how it is shown -------------------------------------------------------------------------------------------------
def _records(column: str, keys: Sequence[Any], cells: Sequence[Sequence[Result]]) -> list[dict[str, Any]]:
    """One record per key: mean and standard deviation over seeds of all that was measured."""
    records = []
    for key, results in zip(keys, cells, strict=True):
        record: dict[str, Any] = {column: key}
        for name in results[0]:
            mean, sd = spread([result[name] for result in results])
            record |= {name: mean, f"{name} sd": sd}
        records.append(record)
    return records


def _error_table(sizes: Sequence[int], cells: Sequence[Sequence[Result]]) -> Table:
    title = (
        "Squared estimation error of the accuracies by number of sequences, with one table per source or per position"
    )
    texts = {"n": formatted("n", ","), **{name: formatted(name, ".2g") for name in ("tied", "by position")}}
    records = [one | {"ratio": one["by position"] / one["tied"]} for one in _records("n", sizes, cells)]
    return Table.of("simulations-error", title, records, texts | {"ratio": formatted("ratio", ".1f")})


def _gain_table(cells: Sequence[Sequence[Result]]) -> Table:
    title = f"F1 of labels, dependencies in time modelled or ignored ({N_REPEATING} of {N_SOURCES} sources repeat)"
    texts = {"P(a vote is repeated)": formatted("repeat", "g")}
    texts |= {name: spread_of(name, 100) for name in ("modelled", "ignored", "data programming")}
    return Table.of("simulations-dependencies", title, _records("repeat", REPEATS, cells), texts)


def _time_table(sizes: Sequence[int], cells: Sequence[Sequence[Result]]) -> Table:
    records = _records("n", sizes, cells)
    ours = [name for name in ("ours", "solving alone") if name in records[0]]
    for one in records:
        one |= {f"{name}: times faster": one["Gibbs sampling"] / one[name] for name in ours}
    texts = {"n": formatted("n", ","), "Gibbs sampling, s": formatted("Gibbs sampling", ".2f")}
    texts |= {f"{name}, s": formatted(name, ".4f") for name in ours}
    texts |= {f"{name}: times faster": formatted(f"{name}: times faster", ".0f") for name in ours}
    title = f"Processor time of fitting, {TIMED} sources, T = 5: this library against its own compiled Gibbs sampler"
    note = "*ours* is `LabelModel.fit` with standard errors and diagnostics, *solving alone* the estimates."
    return Table.of("simulations-time", title, records, texts, (note,))


def _draw(tables: Sequence[Table]) -> Figure:
    figure, axes = new_figure(3)
    panels = (
        ("n", ("tied", "by position"), "sequences n", "squared error"),
        ("repeat", ("modelled", "ignored", "data programming"), "P(a vote is repeated)", "F1 of labels"),
        ("n", ("ours", "Gibbs sampling"), "sequences n", "processor seconds"),
    )
    for ax, table, (key, names, x, y) in zip(axes, tables, panels, strict=True):
        for name in names:
            ax.plot([r[key] for r in table.records], [r[name] for r in table.records], marker="o", label=name)
        scale = "log" if key == "n" else "linear"
        ax.set(xlabel=x, ylabel=y, xscale=scale, yscale=scale)
        ax.legend(frameon=False)
    return figure


# --- more unlabelled data ---------------------------------------------------------------------------------------------
# The right half of the paper's figure on scaling (Shot and BAV), and a simulation beside the bounds of section 3.2: an
# end model on Gaussian features whose excess error is known.
TASKS = ("shot", "bav")
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
GROWTH = (30, 100, 300, 1_000, 3_000, 10_000)
N_GROWING, N_LONG, N_FEATURES = 6, 5, 10
DISTANCE = 0.45  # between the classes in every feature, in standard deviations
POSITIVE = 0.3  # the balance of the world


def scale(plan: ExperimentPlan) -> Reproduction:
    """Scores by share of the train part, and errors by n beside the bounds."""
    dugong = with_estimator((DUGONG,), plan.estimator)
    cells = run_jobs(plan, make_jobs(plan, plan.tasks or TASKS, dugong, SHARES))
    what = "Dugong's labels" if plan.labels_only else "End models trained on Dugong's labels"
    by_share = _share_table(cells, f"{what}, by amount of unlabelled data")
    errors = [seed_cells(plan, "growth", end_model_errors, n_sequences=n) for n in GROWTH]
    by_n = _growth_table(errors)
    drawing = Drawing(name="scaling", draw=lambda: _draw_scaling(by_share, by_n))
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


def _growth_table(cells: Sequence[Sequence[Any]]) -> Table:
    names = list(cells[0][0])
    records = [
        {"n": n, **{name: spread([one[name] for one in results])[0] for name in names}}
        for n, results in zip(GROWTH, cells, strict=True)
    ]
    note = (
        "The bounds are worst cases: what they promise is the rate 1 / sqrt(n), not the size. The end model does not "
        "reach the best error: soft labels are never certain, so its boundary leans to the prior."
    )
    title = "Error of an end model by number of unlabelled sequences, beside the bounds"
    texts = {"n": formatted("n", ","), **{name: formatted(name, ".3g") for name in names}}
    return Table.of("scaling-bounds", title, records, texts, (note,))


def _draw_scaling(by_share: Table, by_n: Table) -> Figure:
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
    world = lopsided(N_GROWING, seed, n_elements=N_LONG)
    votes, labels = world.sample(n_sequences, rng=seed)
    gold, rng = labels["element"], np.random.default_rng((seed, n_sequences))
    model = LabelModel(prior=world.prior, dependencies=(), estimator=estimator).fit(votes)
    features = DISTANCE / 2 * gold[:, None] + rng.normal(size=(len(gold), N_FEATURES))
    ours = train_sklearn(linear.LogisticRegression(), features, model.predict_proba(votes))
    supervised = linear.LogisticRegression().fit(features, gold)
    best = error_rate(np.full(N_FEATURES, DISTANCE), float(np.log(POSITIVE / (1 - POSITIVE))))
    # Euclidean norm of the error of all tables together
    truth = world.accuracies(N_LONG)
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
    return theorem(n_sequences, N_GROWING, N_LONG, smallest_prior=float(balance.min()), smallest_agreement=smallest)
