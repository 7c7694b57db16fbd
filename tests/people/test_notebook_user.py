"""A notebook user: runs cells one after the other and looks at what each of them shows."""

from __future__ import annotations

import ast
from html.parser import HTMLParser
from typing import Any

CELLS = (
    """
import numpy as np
import dugong as dg

rng = np.random.default_rng(1)
gold = np.repeat(rng.choice([-1, 1], size=80, p=[0.6, 0.4]), 5)
table = np.where(rng.random((400, 3)) < [0.9, 0.8, 0.7], gold[:, None], -gold[:, None])
votes = dg.Votes.from_dense(table, [20] * 20, ["faces", "captions", "cuts"])
votes
""",
    "model = dg.LabelModel(dependencies=()).fit(votes)\nmodel",
    "model.summary(votes, gold)",
    "model.diagnostics_",
    "model.explain(votes, sequence=0, task=3)",
    "model.timeline(votes, votes.sequence_ids[0])",
    "vote = dg.MajorityVote().fit(votes).predict_proba(votes)\n"
    "dg.compare({'vote': vote, 'model': model.predict_proba(votes)}, gold)",
    "model.report(votes, gold=gold)",
)


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
        assert repr(shown), code
    assert "fitted" in repr(names["model"])
    assert "<iframe" in run_cell(CELLS[-1], names)._repr_html_()
