"""CONTRIBUTING is true: the stages it lists are the folders that exist, in the order of the import contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dugong"


def stages_of_the_contract() -> list[str]:
    """First stage first; those in parentheses need not exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    return [layer.strip("()") for layer in reversed(contract["layers"])]


def stages_on_disk() -> set[str]:
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def rows_of_the_table() -> list[tuple[str, str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \| (.+) \|$", text, flags=re.MULTILINE)


def test_every_folder_has_its_place_in_the_contract():
    assert stages_on_disk() <= set(stages_of_the_contract())


def test_the_table_is_the_contract_from_the_other_end():
    expected = [stage for stage in stages_of_the_contract() if stage in stages_on_disk()]
    assert [stage for stage, _ in rows_of_the_table()] == expected, "bring the table of CONTRIBUTING.md up to date"


def test_every_stage_says_what_it_holds():
    assert all(len(held.split()) >= 3 for stage, held in rows_of_the_table() if stage != "__main__")


def test_the_verbs_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z-]+):.*?## ", makefile, flags=re.MULTILINE))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text))
    assert named
    assert named <= verbs
