"""The page about the paper names what exists: modules, functions, tests."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "paper.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/.]+)`", PAGE))))
def test_every_test_on_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(dugong(?:\.\w+)+)`", PAGE))))
def test_every_name_on_the_page_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return
    pytest.fail(f"{name} does not exist")


def test_every_verb_on_the_page_can_be_reproduced() -> None:
    from dugong.experiments.reproducing import WHAT

    assert set(re.findall(r"dugong reproduce (\w+)", PAGE)) == set(WHAT)
