"""What is printed: sentences fit the terminal, and long work says that it goes on, on terminals alone."""

from __future__ import annotations

import sys
import time

import pytest

from dugong.cli.output import fit_width
from dugong.texts import announced


def test_sentences_are_broken_and_tables_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    table = "source  " + "  ".join(["accuracy"] * 12)
    text = "\n".join(["- " + "word " * 30, table, "note: " + "word " * 30, "prior         " + "number " * 20])
    lines = fit_width(text).split("\n")
    assert table in lines
    assert all(len(line) <= 50 for line in lines if line != table)
    assert lines[1].startswith("  word")
    assert lines[-1].startswith(" " * 14 + "number")
    assert " ".join(fit_width(text).split()) == " ".join(text.split())


def test_breaking_twice_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    once = fit_width("- " + "a sentence of some length, " * 9)
    assert fit_width(once) == once


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_is_told_that_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with announced("still fitting", after=0.0):
        time.sleep(0.2)
    with announced("too early", after=60.0):
        pass
    assert capsys.readouterr().err == ("still fitting\n" if terminal else "")
