"""Tables that compare methods on tasks: table 1, the ablations, the priors.

In: the cells of all jobs. Out: one row per task, data and method, with the paper's published figures beside it, and
how the methods are ordered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from scipy.special import stdtrit

from dugong.experiments.measure import SCORES, Cell
from dugong.experiments.methods import Method
from dugong.experiments.tables import Table, percent, spread

SIMULATED = (
    "Data marked *simulated* is generated in the shape of the paper's and says nothing about its numbers: compare the "
    "order of the methods, not their values. Published figures are over five weight seeds on the original data."
)
Figure = tuple[float, float | None]
"""Mean and standard deviation; None where the paper gives none (label model only)."""
Pair = tuple[str, str]


_TITLES = {"precision": "precision", "recall": "recall", "f1": "F1"}
_LABELS = {"labels": "F1 of labels", "train_labels": "F1 of train labels"}
_COLUMNS = {
    **_TITLES,
    **{f"{which}_f1": title for which, title in _LABELS.items()},
    **{f"paper_{score}": f"paper: {title}" for score, title in _TITLES.items()},
}
"""Columns with a mean and a deviation, by how a record calls them."""


def comparison(
    name: str, title: str, methods: Sequence[Method], cells: Sequence[Cell], notes: tuple[str, ...] = ()
) -> Table:
    """Precision, recall and F1 by task, data and method: mean ± standard deviation over seeds, in percent."""
    records = [record(group, methods) for group in groups(cells)]
    rows = tuple(row for one in records for row in _rows(one))
    lines = tuple(line for one in records for line in one)
    columns = ("task", "data", "method", *_COLUMNS.values())
    return Table(name=name, title=title, columns=columns, rows=rows, records=lines, notes=(SIMULATED, *notes))


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
        line["failed"] = len(mine) - len(good)
        line["end_model"] = any(cell.end is not None for cell in good)
        for score in SCORES:
            line |= _numbers(score, [found[score] for cell in good if (found := shown(cell)) is not None])
        for which in _LABELS:
            known = [found["f1"] for cell in good if (found := getattr(cell, which)) is not None]
            line |= _numbers(f"{which}_f1", known)
        published = PUBLISHED.get((mine[0].task, method.name), dict.fromkeys(SCORES, (None, None)))
        for score, (mean, sd) in published.items():
            line |= {f"paper_{score}_mean": mean, f"paper_{score}_sd": sd}
        lines.append(line)
    return lines


def shown(cell: Cell) -> Any:
    """The scores of the end model, or of the labels where there is none."""
    return cell.end if cell.end is not None else cell.labels


def _numbers(name: str, values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {f"{name}_mean": None, f"{name}_sd": None}
    mean, sd = spread([100 * value for value in values])
    return {f"{name}_mean": round(mean, 2), f"{name}_sd": None if isnan(sd) else round(sd, 2)}


def _rows(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Text of every cell; data that is absent for all methods is one row."""
    if lines and all(line["problem"] and line["f1_mean"] is None for line in lines):
        first = lines[0]
        yield {"task": first["task"], "data": first["data"], "method": f"*not measured: {first['problem']}*"}
        return
    for line in lines:
        row = {"task": line["task"], "data": line["data"], "method": line["method"]}
        if line["problem"]:
            often = f"{line['failed']} of {line['seeds']} draws: " if line["failed"] < line["seeds"] else ""
            row["method"] += f" (*{often}{line['problem']}*)"
        yield row | {title: _text(line, name) for name, title in _COLUMNS.items()}


def _text(line: dict[str, Any], name: str) -> str:
    mean = line[f"{name}_mean"]
    return "-" if mean is None else percent(mean, line[f"{name}_sd"])


def orders(cells: Sequence[Cell], pairs: Sequence[Pair], *, name: str, title: str) -> Table:
    """By how many F1 points one method is above another, here and in the paper, with a sentence about every row.

    Differences are paired: both methods are measured on the same draw. Behind ± is the standard error of their mean.
    """
    every = {(one[0].task, one[0].origin): [_gap(one, pair) for pair in pairs] for one in groups(cells)}
    found = {where: gaps for where, gaps in every.items() if any(gap.n_draws for gap in gaps)}
    sentences = [f"- *{', '.join(where)}*: {'; '.join(gap.sentence for gap in gaps)}." for where, gaps in found.items()]
    rows = [_gap_row(*where, gaps) for where, gaps in found.items()]
    simulated = [gaps for (_, data), gaps in found.items() if data == "simulated"]
    if len(simulated) > 1:
        rows.append(_gap_row("mean of tasks", "simulated", list(map(_mean_gap, zip(*simulated, strict=True)))))
    return Table(
        name=name,
        title=title,
        columns=tuple(dict.fromkeys(key for row in rows for key in row)),
        rows=tuple(rows),
        records=tuple(_gap_record(*where, gaps) for where, gaps in found.items()),
        notes=("\n".join(sentences),) if sentences else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Mean of paired differences, its standard error (NaN for one draw), number of draws, and the paper's own."""

    above: str
    below: str
    mean: float
    error: float
    n_draws: int
    published: float | None

    @property
    def sentence(self) -> str:
        """Above or below if the 95 % interval leaves zero out, else level."""
        if not self.n_draws:
            return f"{self.above} is not compared with {self.below}"
        verdict = "is above" if self.mean > 0 else "is below"
        if self.n_draws < 2:
            verdict = "was compared once with"
        elif self.mean == 0 or abs(self.mean) <= stdtrit(self.n_draws - 1, 0.975) * self.error:
            verdict = "is level with"
        return f"{self.above} {verdict} {self.below} ({self})"

    def __str__(self) -> str:
        if not self.n_draws:
            return "-"
        return f"{self.mean:+.1f}" + ("" if isnan(self.error) else f" ± {self.error:.1f}")


def _gap(cells: Sequence[Cell], pair: Pair) -> Gap:
    """Over the draws on which neither method failed."""
    high, low = ({cell.seed: shown(cell) for cell in cells if cell.method == one and not cell.problem} for one in pair)
    gaps = [100 * (high[seed]["f1"] - low[seed]["f1"]) for seed in high if high[seed] and low.get(seed)]
    above, below = (PUBLISHED.get((cells[0].task, one)) for one in pair)
    published = None if above is None or below is None else round(above["f1"][0] - below["f1"][0], 2)
    mean, sd = spread(gaps) if gaps else (float("nan"), float("nan"))
    error = sd / max(len(gaps), 1) ** 0.5
    return Gap(above=pair[0], below=pair[1], mean=mean, error=error, n_draws=len(gaps), published=published)


def _mean_gap(gaps: Sequence[Gap]) -> Gap:
    """Over tasks, as their records are rounded; draws of different tasks are independent, so squared errors add."""
    known = [gap for gap in gaps if gap.n_draws]
    published = [gap.published for gap in gaps if gap.published is not None]
    n = max(len(known), 1)
    mean = sum(round(gap.mean, 2) for gap in known) / n
    error = sum(round(gap.error, 2) ** 2 for gap in known) ** 0.5 / n
    theirs = sum(published) / len(published) if published else None
    return replace(gaps[0], mean=mean, error=error, n_draws=len(known), published=theirs)


def _gap_record(task: str, data: str, gaps: Sequence[Gap]) -> dict[str, Any]:
    record: dict[str, Any] = {"task": task, "data": data}
    for gap in gaps:
        what = f"{gap.above} - {gap.below}"
        record[what] = round(gap.mean, 2) if gap.n_draws else None
        record[f"{what}: error"] = None if isnan(gap.error) else round(gap.error, 2)
        record |= {f"{what}: draws": gap.n_draws, f"paper: {what}": gap.published}
    return record


def _gap_row(task: str, data: str, gaps: Sequence[Gap]) -> dict[str, str]:
    row = {"task": task, "data": data}
    for gap in gaps:
        row[f"{gap.above} - {gap.below}"] = str(gap)
        if gap.published is not None:
            row[f"paper: {gap.above} - {gap.below}"] = f"{gap.published:+.1f}"
    return row


Published = Mapping[str, Figure]
"""One row of the paper's tables by score, in percent."""


def _row(*numbers: float) -> Published:
    """Six numbers with standard deviations, or three without."""
    means, spreads = (numbers[::2], numbers[1::2]) if len(numbers) == 6 else (numbers, (None,) * 3)
    return dict(zip(SCORES, zip(means, spreads, strict=True), strict=True))


# Keys: the task, and the method as it is called in `methods`.
BASELINES: dict[tuple[str, str], Published] = {
    ("bav", "TS"): _row(26.1, 3.8, 20.0, 7.0, 22.1, 5.1),
    ("bav", "MV"): _row(6.9, 8.6, 5.7, 7.0, 6.2, 7.6),
    ("bav", "DP"): _row(70.0, 19.8, 45.7, 5.7, 53.2, 4.4),
    ("bav", "Dugong"): _row(100.0, 0.0, 37.1, 7.0, 53.8, 7.6),
    ("interview", "TS"): _row(72.4, 4.0, 89.5, 3.0, 80.0, 3.4),
    ("interview", "MV"): _row(48.7, 5.7, 72.4, 6.4, 58.0, 5.3),
    ("interview", "DP"): _row(4.5, 0.1, 99.1, 0.0, 8.7, 0.2),
    ("interview", "Dugong"): _row(89.6, 4.2, 94.6, 0.8, 92.0, 2.2),
    ("gait", "TS"): _row(65.2, 13.7, 47.6, 28.1, 47.5, 14.9),
    ("gait", "MV"): _row(47.0, 1.0, 89.8, 3.0, 61.6, 0.4),
    ("gait", "DP"): _row(50.3, 1.6, 84.1, 2.2, 62.9, 0.6),
    ("gait", "Dugong"): _row(65.6, 1.5, 70.8, 2.4, 68.0, 0.7),
    ("shot", "TS"): _row(87.7, 2.5, 79.3, 1.3, 83.2, 1.0),
    ("shot", "MV"): _row(79.7, 2.1, 93.4, 1.0, 86.0, 0.9),
    ("shot", "DP"): _row(79.0, 1.9, 94.3, 1.2, 86.2, 1.1),
    ("shot", "Dugong"): _row(87.8, 2.9, 87.6, 3.4, 87.7, 1.0),
    ("basketball", "TS"): _row(30.3, 3.6, 24.1, 0.4, 26.8, 1.3),
    ("basketball", "MV"): _row(10.0, 6.9, 6.8, 4.4, 8.1, 5.4),
    ("basketball", "DP"): _row(7.6, 2.9, 8.0, 3.7, 7.7, 3.3),
    ("basketball", "Dugong"): _row(33.0, 4.0, 46.0, 7.2, 38.2, 4.1),
    ("car", "MV"): _row(57.7, 81.3, 67.5),
    ("car", "DP"): _row(57.8, 83.7, 68.4),
    ("car", "Dugong"): _row(95.3, 64.9, 77.3),
    ("ehr", "MV"): _row(82.7, 57.4, 67.8),
    ("ehr", "DP"): _row(79.1, 61.2, 69.0),
    ("ehr", "Dugong"): _row(85.6, 61.4, 71.5),
}
ABLATIONS: dict[tuple[str, str], Published] = {
    ("bav", "without tying"): _row(75.3, 13.6, 42.9, 9.0, 53.0, 5.7),
    ("bav", "without dependencies"): _row(42.5, 17.0, 45.7, 5.7, 41.9, 6.7),
    ("interview", "without tying"): _row(86.7, 7.0, 92.2, 2.3, 89.2, 3.6),
    ("interview", "without dependencies"): _row(80.8, 5.3, 88.4, 7.3, 84.2, 3.8),
    ("gait", "without tying"): _row(49.7, 3.8, 74.7, 9.5, 59.5, 5.4),
    ("gait", "without dependencies"): _row(66.5, 2.1, 64.7, 5.7, 65.3, 2.2),
    ("shot", "without tying"): _row(84.3, 3.2, 88.6, 2.1, 86.6, 1.3),
    ("shot", "without dependencies"): _row(82.3, 1.8, 91.4, 1.1, 86.6, 0.5),
    ("basketball", "without tying"): _row(24.2, 3.4, 51.6, 9.0, 32.9, 4.9),
    ("basketball", "without dependencies"): _row(5.5, 0.5, 45.1, 4.1, 9.9, 0.8),
}
PRIORS: dict[tuple[str, str], Published] = {
    ("bav", "uniform prior"): _row(24.7, 13.3, 17.1, 5.7, 20.0, 8.3),
    ("bav", "dev prior"): _row(100.0, 0.0, 37.1, 7.0, 53.8, 7.6),
    ("bav", "user prior"): _row(99.8, 0.5, 34.3, 14.6, 48.1, 14.5),
    ("interview", "uniform prior"): _row(73.2, 3.3, 94.4, 0.0, 82.4, 2.0),
    ("interview", "dev prior"): _row(89.6, 4.2, 94.6, 0.8, 92.0, 2.2),
    ("interview", "user prior"): _row(88.4, 3.4, 91.4, 6.8, 89.8, 4.9),
    ("gait", "uniform prior"): _row(65.6, 1.5, 70.8, 2.4, 68.0, 0.7),
    ("gait", "dev prior"): _row(57.9, 2.9, 80.5, 3.7, 67.2, 0.6),
    ("gait", "user prior"): _row(67.9, 6.3, 66.3, 7.5, 66.3, 1.1),
    ("shot", "uniform prior"): _row(60.9, 6.5, 91.9, 6.3, 72.9, 3.4),
    ("shot", "dev prior"): _row(70.8, 2.3, 95.0, 1.1, 81.1, 1.2),
    ("shot", "user prior"): _row(87.8, 2.9, 87.6, 3.4, 87.7, 1.0),
    ("basketball", "uniform prior"): _row(10.0, 0.0, 100.0, 0.0, 18.3, 0.0),
    ("basketball", "dev prior"): _row(24.1, 11.2, 33.5, 22.8, 27.6, 15.4),
    ("basketball", "user prior"): _row(33.0, 4.0, 46.0, 7.2, 38.2, 4.1),
}
PUBLISHED = BASELINES | ABLATIONS | PRIORS
