"""The README and the documentation do what they say: every snippet runs, every name in them exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from snippets import SnippetError, read_blocks, run_page

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def resolve(path: str) -> object:
    """Import the longest module prefix of a dotted path and read the rest as attributes."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_snippet_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    run_page(page, f"snippets_of_{re.sub(r'[^a-z0-9]', '_', page_name(page).lower())}")


def test_every_name_in_the_notation_table_exists() -> None:
    table = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    paths = re.findall(r"`(dugong(?:\.\w+)+)`", table)
    assert len(paths) >= 5
    missing = []
    for path in paths:
        try:
            resolve(path)
        except (ModuleNotFoundError, AttributeError):
            missing.append(path)
    assert not missing, f"docs/notation.md names what does not exist: {missing}"


def test_the_readme_opens_with_the_two_commands() -> None:
    opening = (ROOT / "README.md").read_text(encoding="utf-8")[:3000]
    assert "$ make demo" in opening
    assert "$ make test" in opening


def write_page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_share_a_namespace_and_keep_their_lines(tmp_path: Path) -> None:
    page = write_page(tmp_path, "# A\n\n```python\nx = 1\n```\n\n- item\n\n  ```python\n  assert x == 1\n  ```\n")
    assert [block.line for block in read_blocks(page)] == [4, 10]
    assert run_page(page, "snippets_shared") == 2


def test_a_failing_snippet_fails_its_page(tmp_path: Path) -> None:
    page = write_page(tmp_path, "```python\nx = 1\n```\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_page(page, "snippets_failing")
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize("info", ["python no-run", "py", "pycon", ""])
def test_no_tag_keeps_a_snippet_from_running(tmp_path: Path, info: str) -> None:
    page = write_page(tmp_path, f"```{info}\n1 / 0\n```\n")
    with pytest.raises(SnippetError, match="Every snippet runs"):
        list(read_blocks(page))


def test_an_open_block_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match="never closed"):
        list(read_blocks(write_page(tmp_path, "text\n```python\nx = 1\n")))


def test_commands_are_run_where_the_page_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    page = write_page(tmp_path, "```console\n$ make nothing\n$ cd project\n$ dugong no-such-verb\n```\n")
    with pytest.raises(SnippetError, match=r"page\.md:2: `dugong no-such-verb` ended with exit code"):
        run_page(page, "snippets_commands")
    assert Path.cwd() == tmp_path / "project"


def test_a_command_without_a_prompt_is_refused(tmp_path: Path) -> None:
    page = write_page(tmp_path, "```bash\ndugong demo\n```\n")
    with pytest.raises(SnippetError, match=r"\$ dugong demo"):
        run_page(page, "snippets_prompt")
