"""Read the fenced blocks of a Markdown page and run them in order, as a reader would.

Python blocks of one page share one module. In console blocks every line ``$ dugong ...`` is run and must
succeed; ``$ cd ...`` moves the rest of the page. Everything happens in the working folder of the caller.
Other commands (``$ pip install ...``, ``$ make demo``) are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

LANGUAGES = frozenset({"python", "console", "bash", "toml", "text", "json", "csv", "bibtex"})

_OPEN = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")


class SnippetError(AssertionError):
    """A block that cannot be run or did not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, its text, and the line of its first line (from 1)."""

    language: str
    text: str
    line: int


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order; refuse a tag that would keep a block from being run."""
    lines = page.read_text(encoding="utf-8").splitlines()
    position = 0
    while position < len(lines):
        opening = _OPEN.match(lines[position])
        position += 1
        if opening is None:
            continue
        start, close = position, re.compile(rf"^[ \t]*{re.escape(opening['fence'])}[ \t]*$")
        while position < len(lines) and not close.match(lines[position]):
            position += 1
        if position == len(lines):
            raise SnippetError(f"{page.name}:{start}: this block is never closed.")
        if opening["info"] not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise SnippetError(
                f"{page.name}:{start}: a block must be tagged with exactly one of {known}; "
                f"found {opening['info']!r}. Every snippet runs: there is no tag to leave one out."
            )
        text = textwrap.dedent("\n".join(lines[start:position]))
        yield Block(language=opening["info"], text=text + "\n", line=start + 1)
        position += 1


def run_page(page: Path, name: str) -> int:
    """Run every block of a page in the current folder; return how many blocks and commands were run."""
    module = ModuleType(name)
    module.__file__ = str(page)
    sys.modules[name] = module  # so that worker processes find the functions of the page
    ran = 0
    try:
        for block in read_blocks(page):
            if block.language == "python":
                source = "\n" * (block.line - 1) + block.text  # tracebacks then show the line of the page
                exec(compile(source, str(page), "exec"), module.__dict__)
                ran += 1
            elif block.language in {"console", "bash"}:
                ran += run_console(block, page.name)
    finally:
        del sys.modules[name]
    return ran


def run_console(block: Block, page: str) -> int:
    """Run the ``$ dugong`` lines of a block; return how many."""
    ran = 0
    for line in block.text.replace("\\\n", " ").splitlines():
        command = line.strip()
        if command.startswith("dugong "):
            raise SnippetError(f"{page}:{block.line}: write a command as '$ {command}', so that it is run.")
        if command.startswith("$ cd "):
            os.chdir(command.removeprefix("$ cd ").strip())
        elif command.startswith("$ dugong ") or command == "$ dugong":
            _run_command(command.removeprefix("$ "), f"{page}:{block.line}")
            ran += 1
    return ran


def _run_command(command: str, place: str) -> None:
    binaries = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": binaries + os.pathsep + os.environ.get("PATH", "")}
    script = f"set -eo pipefail\n{command}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise SnippetError(
            f"{place}: `{command}` ended with exit code {done.returncode}.\n{done.stdout}\n{done.stderr}"
        )
