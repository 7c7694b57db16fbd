"""A notebook user: runs cells one after the other and looks at what each of them shows."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest

import dugong as dg

CELLS = (
    """
import numpy as np
import dugong as dg

rng = np.random.default_rng(1)
gold = np.repeat(rng.choice([-1, 1], size=80, p=[0.6, 0.4]), 5)
table = np.where(rng.random((400, 3)) < [0.9, 0.8, 0.7], gold[:, None], -gold[:, None])
votes = dg.Votes.from_dense(table, [20] * 20, ["faces", "captions", "cuts"], ids=[f"video {n}" for n in range(20)])
votes
""",
    "model = dg.LabelModel(dependencies=()).fit(votes)\nmodel",
    "model.summary(votes, gold)",
    "model.diagnostics_",
    "model.explain(votes, 'video 3', task=3)",
    "model.timeline(votes, 'video 3')",
    "vote = dg.MajorityVote().fit(votes).predict_proba(votes)\n"
    "dg.compare({'vote': vote, 'model': model.predict_proba(votes)}, gold)",
    "model.report(votes, gold=gold)",
)
BAR = """
@dg.source
def rises(element):
    return dg.POSITIVE if element > 0 else dg.NEGATIVE

again = dg.apply([rises], {f"s{place}": np.arange(-5, 5) for place in range(20)})
"""


class Balanced(HTMLParser):
    """Every element that is opened is closed, in the right order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  the signature of HTMLParser
        if tag not in ("br", "img", "meta", "link", "input", "hr", "rect", "path", "line", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            assert tag in ("rect", "path", "line", "circle"), f"</{tag}> closes nothing"


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """What a notebook does: execute, and give the value of the last line."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_every_cell_shows_something_small_and_whole() -> None:
    names: dict[str, Any] = {}
    for code in CELLS:
        shown = run_cell(code, names)
        page = shown._repr_html_()
        parser = Balanced()
        parser.feed(page)
        assert parser.open == [], code
        assert 50 < len(page) < 400_000, code
        assert 0 < len(repr(shown)) < 5_000, code
    assert "fitted" in repr(names["model"])
    with pytest.raises(dg.LabelError, match="no sequence 'video 99'; there are 20 sequences: 'video 0'"):
        names["model"].explain(names["votes"], "video 99")
    assert "<iframe" in run_cell(CELLS[-1], names)._repr_html_()


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What a real kernel put below every cell of a notebook file."""
    file = tmp_path_factory.mktemp("notebook") / "first.ipynb"
    cells = [
        {"cell_type": "code", "id": f"c{place}", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
        for place, code in enumerate((*CELLS, BAR))
    ]
    file.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    execute = [sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", str(file)]
    done = subprocess.run(execute, capture_output=True, text=True, check=False, timeout=300, cwd=file.parent)
    assert done.returncode == 0, done.stderr
    return [cell["outputs"] for cell in json.loads(file.read_text())["cells"]]


def test_a_real_kernel_shows_html_and_text_of_every_cell(executed: list[list[dict[str, Any]]]) -> None:
    for code, outputs in zip(CELLS, executed, strict=False):
        (result,) = (one for one in outputs if one["output_type"] == "execute_result")
        page = "".join(result["data"]["text/html"])
        assert 50 < len(page) < 400_000, code
        assert 0 < len("".join(result["data"]["text/plain"])) < 5_000, code
        assert sum(len(str(one)) for one in outputs) < 1_000_000, code
    assert "".join(executed[len(CELLS) - 1][-1]["data"]["text/html"]).count("<iframe") == 1


def test_a_finished_bar_stays_in_the_file(executed: list[list[dict[str, Any]]]) -> None:
    said = "".join("".join(one.get("text", one.get("data", {}).get("text/plain", ""))) for one in executed[-1])
    assert said == "Applying sources 20/20 sequences"
