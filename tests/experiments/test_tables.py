"""Tables and figures as values and as files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dugong.experiments import Drawing, Reproduction, Table
from dugong.experiments.comparisons import comparison, orders
from dugong.experiments.measure import Cell
from dugong.experiments.methods import TABLE1
from dugong.experiments.tables import new_figure, percent, spread


def scores(f1: float) -> dict[str, float]:
    return {"precision": f1, "recall": f1, "f1": f1}


def cells(task: str, **f1: tuple[float, ...]) -> list[Cell]:
    return [
        Cell(
            task=task,
            method=method,
            origin="simulated",
            seed=seed,
            end=scores(value),
            labels=None if method == "TS" else scores(value / 2),
        )
        for method, values in f1.items()
        for seed, value in enumerate(values)
    ]


def test_mean_and_sample_deviation() -> None:
    assert spread([1.0, 2.0, 3.0]) == (2.0, 1.0)
    mean, sd = spread([0.5])
    assert percent(mean, sd) == "0.5"
    assert percent(53.82, 7.64) == "53.8 ± 7.6"
    assert percent(67.5, None) == "67.5"


def test_a_comparison_stands_beside_the_paper() -> None:
    table = comparison(
        "t", "Title", TABLE1, cells("bav", TS=(0.2, 0.4), MV=(0.5, 0.5), DP=(0.6, 0.6), Dugong=(0.9, 0.7))
    )
    rows = {row["method"]: row for row in table.rows}
    assert list(rows) == ["TS", "MV", "DP", "Dugong"]  # methods without cells have no row
    assert rows["TS"]["F1"] == "30.0 ± 14.1"
    assert rows["TS"]["F1 of labels"] == "-"
    assert rows["Dugong"]["F1 of labels"] == "40.0 ± 7.1"
    assert rows["Dugong"]["paper: precision"] == "100.0 ± 0.0"
    assert "| bav | simulated | Dugong | 80.0 ± 14.1 |" in str(table)
    record = list(csv.DictReader(table.csv().splitlines()))[3]
    assert (record["f1_mean"], record["paper_f1_mean"], record["seeds"]) == ("80.0", "53.8", "2")


def test_differences_are_paired_and_have_a_mean_over_simulated_tasks() -> None:
    found = [*cells("bav", MV=(0.5,), Dugong=(0.9,)), *cells("gait", MV=(0.6,), Dugong=(0.5,))]
    order = orders(found, [("Dugong", "MV"), ("Dugong", "TS")], name="o", title="O")
    assert [row["Dugong - MV"] for row in order.rows] == ["+40.0", "-10.0", "+15.0"]
    assert [row["Dugong - TS"] for row in order.rows] == ["-", "-", "-"]
    assert order.rows[0]["paper: Dugong - MV"] == "+47.6"
    assert "Dugong was compared once with MV (+40.0); Dugong is not compared with TS." in str(order)


def test_a_hard_draw_that_both_meet_does_not_hide_a_difference() -> None:
    found = cells("bav", MV=(0.2, 0.5, 0.8), Dugong=(0.25, 0.56, 0.84), DP=(0.3, 0.45, 0.7))
    order = orders(found, [("Dugong", "MV"), ("MV", "Dugong"), ("Dugong", "DP")], name="o", title="O")
    (row,) = order.rows
    assert row["Dugong - MV"] == "+5.0 ± 0.6"
    assert (
        "- *bav, simulated*: Dugong is above MV (+5.0 ± 0.6); MV is below Dugong (-5.0 ± 0.6); "
        "Dugong is level with DP (+6.7 ± 5.9)." in str(order)
    )
    assert order.records[0]["Dugong - MV: draws"] == 3


def test_draws_on_which_one_of_the_two_failed_are_left_out_of_both() -> None:
    found = [*cells("bav", MV=(0.5, 0.9), Dugong=(0.9,))]
    found.append(Cell(task="bav", method="Dugong", origin="simulated", seed=1, problem="why"))
    order = orders(found, [("Dugong", "MV")], name="o", title="O")
    assert (order.rows[0]["Dugong - MV"], order.records[0]["Dugong - MV: draws"]) == ("+40.0", 1)


def test_a_problem_is_shown_and_absent_data_is_one_row() -> None:
    absent = [Cell(task="bav", method=m.name, origin="real", seed=0, problem="no files") for m in TABLE1]
    table = comparison("t", "T", TABLE1, absent)
    assert [row["method"] for row in table.rows] == ["*not measured: no files*"]
    half = [*cells("bav", MV=(0.5,)), Cell(task="bav", method="DP", origin="simulated", seed=0, problem="why")]
    assert [row["method"] for row in comparison("t", "T", TABLE1, half).rows] == ["MV", "DP (*why*)"]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_everything_is_written(tmp_path: Path, kind: str) -> None:
    table = Table(name="t", title="T", columns=("a",), rows=({"a": "1"},), records=({"a": 1},))

    def draw():
        figure, (ax,) = new_figure()
        ax.plot([1, 2])
        return figure

    made = Reproduction(name="all", tables=(table,), drawings=(Drawing(name="f", draw=draw),))
    paths = made.write(tmp_path / "new")
    assert {path.name for path in paths} == {"all.md", "t.csv", "f.png", "f.svg"}
    assert (tmp_path / "new" / "all.md").read_text() == "**T**\n\n| a |\n| --- |\n| 1 |\n"
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert (tmp_path / "new" / f"f.{kind}").read_bytes().startswith(start)
