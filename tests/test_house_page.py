"""The walk through the house is true: the job on its page goes through each of the twelve functions that it shows."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import CodeType

import pytest

from snippets import run_page
from test_docs import resolve

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "house.md"
SHOWN = re.findall(r"^::: (\S+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> set[CodeType]:
    """Code of all functions that the snippets of the page went through."""
    seen: set[CodeType] = set()

    def note(frame, event, _):
        if event == "call":
            seen.add(frame.f_code)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("house"))
        before = sys.getprofile()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            run_page(PAGE, "snippets_of_the_house")
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
    return seen


def test_there_are_twelve() -> None:
    assert len(set(SHOWN)) == len(SHOWN) == 12


@pytest.mark.parametrize("name", SHOWN)
def test_the_walk_goes_through_it(name: str, walked: set[CodeType]) -> None:
    assert resolve(name).__code__ in walked  # type: ignore[attr-defined]


def test_every_module_that_is_named_exists() -> None:
    for name in re.findall(r"`(dugong(?:\.\w+)+)`", PAGE.read_text(encoding="utf-8")):
        resolve(name)
