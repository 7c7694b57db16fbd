"""The table of formats in the documentation is that of the code."""

from __future__ import annotations

import runpy

from format_cases import ROOT


def test_the_table_of_formats_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "format_pages.py"))
    text = page["PAGE"].read_text(encoding="utf-8")
    assert page["filled"](text) == text, "run make pictures"
    for scene in page["SCENES"]:
        assert (ROOT / "docs" / "img" / f"round-trip-{scene.name}.svg").is_file()
