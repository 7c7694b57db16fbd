"""What is printed fits the terminal: sentences and tables."""

from __future__ import annotations

import pytest

from dugong.cli.output import fit_width
from dugong.texts import text_table


def test_sentences_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    text = "\n".join(["- " + "word " * 30, "note: " + "word " * 30, "prior         " + "number " * 20])
    lines = fit_width(text).split("\n")
    assert all(len(line) <= 50 for line in lines)
    assert lines[1].startswith("  word")
    assert lines[-1].startswith(" " * 14 + "number")
    assert " ".join(fit_width(text).split()) == " ".join(text.split())


@pytest.mark.parametrize("width", [40, 50, 80, 200])
@pytest.mark.parametrize("rule", [True, False])
def test_tables_become_parts_that_fit(monkeypatch: pytest.MonkeyPatch, width: int, rule: bool) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    head = ["source", *(f"column {place}" for place in range(8))]
    rows = [[f"rule {row}", *(f"{row}.{place} (0 to 1)" for place in range(8))] for row in range(3)]
    table = text_table(head, rows, left=(0, 1), rule=rule)
    lines = fit_width(f"Sources:\n\n{table}\n- done").split("\n")
    assert all(len(line) <= width for line in lines)
    assert [line for line in lines if line.startswith("rule 1")] != []
    for cell in (cell for row in rows for cell in row[1:]):
        assert sum(cell in line and line.startswith(f"rule {cell[0]}") for line in lines) == 1
    for place in range(8):
        assert sum(f"column {place}" in line and line.startswith("source") for line in lines) == 1
    if width == 200:
        assert table in "\n".join(lines)


def test_a_long_name_keeps_its_beginning_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = "begins_" + "x" * 90 + "_ends"
    lines = fit_width(text_table(("source", "votes", "share"), [(name, "12", "0.5")], rule=True)).split("\n")
    assert all(len(line) <= 60 for line in lines)
    assert any(line.startswith("begins_") and "_ends" in line and "12" in line for line in lines)


def test_a_long_cell_goes_on_below_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shares = ", ".join(f"class{place} 0.{place}0/0.50" for place in range(9))
    table = text_table(("source", "coverage", "P(right | class)"), [("net", "0.9", shares)], left=(0, 2), rule=True)
    lines = fit_width(table).split("\n")
    assert all(len(line) <= 60 for line in lines)
    assert " ".join(" ".join(lines).split()).endswith(shares)


def test_breaking_twice_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    once = fit_width("- " + "a sentence of some length, " * 9)
    assert fit_width(once) == once
