"""What `make mutants` changes, and its list of mutants that do the same."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "mutants.py"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a < b", "a <= b"),
        ("a is None", "a is not None"),
        ("a + b", "a - b"),
        ("a and b", "a or b"),
        ("not a", "a"),
        ("-a", "a"),
        ("3", "4"),
        ("0.5", "1.0"),
        ("0.0", "1.0"),
        ("True", "False"),
        ("max", "min"),
        ("np.minimum", "np.maximum"),
        ("b if a else c", "b if not a else c"),
    ],
)
def test_expressions(old: str, new: str) -> None:
    assert ast.unparse(SCRIPT["changed"](ast.parse(old, mode="eval").body)) == new


@pytest.mark.parametrize(
    ("old", "new"), [("a += 1", "a -= 1"), ("raise a", "pass"), ("a(b)", "pass"), ("break", "continue")]
)
def test_statements(old: str, new: str) -> None:
    assert ast.unparse(SCRIPT["changed"](ast.parse(old).body[0])) == new


def test_every_mutant_has_a_name_of_its_own_and_the_list_gives_reasons() -> None:
    names = [one.name for one in SCRIPT["sample"](10**9)]
    assert len(set(names)) == len(names) > 5000
    assert {name for name, reason in SCRIPT["equivalent"]().items() if not reason} == set()


def test_a_mutant_is_the_code_of_its_function_with_one_change() -> None:
    mutant = next(one for one in SCRIPT["sample"](300) if one.file == "votes/validate.py")
    path = ROOT / "src" / "dugong" / mutant.file
    old, new = ast.unparse(ast.parse(path.read_text())).splitlines(), ast.unparse(SCRIPT["mutated"](path, mutant))
    differ = [pair for pair in zip(old, new.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(differ) == 1
