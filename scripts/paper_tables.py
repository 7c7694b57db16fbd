"""Put the tables of `dugong reproduce ... --output FOLDER` into docs/explanation/paper.md.

`python scripts/paper_tables.py FOLDER` replaces what stands between the two markers of every table that is in FOLDER,
and leaves the others as they are. Nothing on the page is typed by hand that can be measured.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "paper.md"


def insert(page: str, name: str, table: str) -> str:
    """The page with a new table between ``<!-- name -->`` and ``<!-- end of name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"error: {PAGE.name} has no markers {start} and {end}.")
    return f"{before}{start}\n\n{table.strip()}\n\n{end}{after}"


def main() -> None:
    """Read the folder, write the page."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python scripts/paper_tables.py FOLDER")
    page, folder = PAGE.read_text(encoding="utf-8"), Path(sys.argv[1])
    for name in re.findall(r"<!-- end of (\w+) -->", page):
        if (folder / f"{name}.md").is_file():
            page = insert(page, name, (folder / f"{name}.md").read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
