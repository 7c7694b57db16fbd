"""Tables that compare methods on tasks: table 1, the ablations, the priors.

In: the cells of all jobs. Out: one row per task, data and method, with the paper's published figures beside it, and
how the methods are ordered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import Any

from dugong.experiments.measure import SCORES, Cell
from dugong.experiments.methods import Method
from dugong.experiments.published import PUBLISHED, Published
from dugong.experiments.tables import Table, percent, spread

SIMULATED = (
    "Data marked *simulated* is generated in the shape of the paper's and says nothing about its numbers: compare the "
    "order of the methods, not their values. Published figures are over five weight seeds on the original data."
)


def comparison(
    name: str, title: str, methods: Sequence[Method], cells: Sequence[Cell], notes: tuple[str, ...] = ()
) -> Table:
    """Precision, recall and F1 by task, data and method: mean ± standard deviation over seeds, in percent."""
    records = [record(group, methods) for group in groups(cells)]
    rows = [row for one in records for row in _rows(one)]
    columns = ("task", "data", "method", *_TITLES.values(), "F1 of labels", *(f"paper: {t}" for t in _TITLES.values()))
    return Table(
        name=name,
        title=title,
        columns=columns,
        rows=tuple(rows),
        records=tuple(line for one in records for line in one),
        notes=(SIMULATED, *notes),
    )


_TITLES = {"precision": "precision", "recall": "recall", "f1": "F1"}


def groups(cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Cells of one task and one kind of data."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.task, cell.origin), []).append(cell)
    yield from found.values()


def record(cells: Sequence[Cell], methods: Sequence[Method]) -> list[dict[str, Any]]:
    """One record per method: means and deviations in percent, published figures, problems."""
    lines = []
    for method in methods:
        mine = [cell for cell in cells if cell.method == method.name]
        if not mine:
            continue
        line: dict[str, Any] = {"task": mine[0].task, "data": mine[0].origin, "method": method.name, "seeds": len(mine)}
        good = [cell for cell in mine if not cell.problem]
        line["problem"] = next((cell.problem for cell in mine if cell.problem), "")
        line["end_model"] = any(cell.end is not None for cell in good)
        for score in SCORES:
            values = [found[score] for cell in good if (found := shown(cell)) is not None]
            line |= _numbers(score, values)
        line |= _numbers("labels_f1", [cell.labels["f1"] for cell in good if cell.labels is not None])
        lines.append(line | _published(PUBLISHED.get((mine[0].task, method.name))))
    return lines


def shown(cell: Cell) -> Any:
    """The scores of the end model, or of the labels where there is none."""
    return cell.end if cell.end is not None else cell.labels


def _numbers(name: str, values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {f"{name}_mean": None, f"{name}_sd": None}
    mean, sd = spread([100 * value for value in values])
    return {f"{name}_mean": round(mean, 2), f"{name}_sd": None if isnan(sd) else round(sd, 2)}


def _published(found: Published | None) -> dict[str, float | None]:
    if found is None:
        return {f"paper_{score}_{what}": None for score in SCORES for what in ("mean", "sd")}
    pairs = {score: getattr(found, score) for score in SCORES}
    return {f"paper_{score}_{what}": pair[i] for score, pair in pairs.items() for i, what in enumerate(("mean", "sd"))}


def _rows(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Text of every cell; data that is absent for all methods is one row."""
    if lines and all(line["problem"] and line["f1_mean"] is None for line in lines):
        first = lines[0]
        yield {"task": first["task"], "data": first["data"], "method": f"*not measured: {first['problem']}*"}
        return
    for line in lines:
        row = {"task": line["task"], "data": line["data"], "method": line["method"]}
        for score, title in _TITLES.items():
            row[title] = _text(line, score)
            row[f"paper: {title}"] = _text(line, f"paper_{score}")
        row["F1 of labels"] = _text(line, "labels_f1")
        if line["problem"]:
            row["method"] += f" (*{line['problem']}*)"
        yield row


def _text(line: dict[str, Any], name: str) -> str:
    mean = line[f"{name}_mean"]
    return "-" if mean is None else percent(mean, line[f"{name}_sd"])


def orders(table: Table, pairs: Sequence[tuple[str, str]], *, name: str, title: str) -> Table:
    """By how many F1 points one method is above another, here and in the paper; means over seeds."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for line in table.records:
        # Seeds that failed are missing from a mean: it cannot be compared with one over all seeds.
        whole = dict(line) | ({"f1_mean": None} if line["problem"] else {})
        found.setdefault((line["task"], line["data"]), {})[line["method"]] = whole
    records, rows = [], []
    for (task, data), lines in found.items():
        if all(line["f1_mean"] is None for line in lines.values()):
            continue
        numbers: dict[str, Any] = {"task": task, "data": data}
        for above, below in pairs:
            numbers[f"{above} - {below}"] = _gap(lines, above, below, "f1_mean")
            numbers[f"paper: {above} - {below}"] = _gap(lines, above, below, "paper_f1_mean")
        records.append(numbers)
        rows.append({key: value if isinstance(value, str) else _signed(value) for key, value in numbers.items()})
    columns = tuple(dict.fromkeys(key for one in records for key in one))
    means = _means(records, columns)
    rows += (
        [{key: value if isinstance(value, str) else _signed(value) for key, value in means.items()}] if means else []
    )
    return Table(name=name, title=title, columns=columns, rows=tuple(rows), records=tuple(records))


def _gap(lines: dict[str, dict[str, Any]], above: str, below: str, column: str) -> float | None:
    high, low = (lines.get(one, {}).get(column) for one in (above, below))
    return None if high is None or low is None else round(high - low, 2)


def _means(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
    """Over the simulated tasks."""
    ours = [one for one in records if one["data"] == "simulated"]
    if len(ours) < 2:
        return {}
    mean: dict[str, Any] = {"task": "mean of tasks", "data": "simulated"}
    for column in columns[2:]:
        values = [one[column] for one in ours if one[column] is not None]
        mean[column] = sum(values) / len(values) if values else None
    return mean


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"
