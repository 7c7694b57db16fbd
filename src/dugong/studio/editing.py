"""One function of the user's file of sources: found, replaced, and nothing else touched.

In: the text of the file, and the text of one function. Out: the new text of the file. Everything outside of the lines
of that function stays as it is, byte by byte; the file is replaced at once, and only if it is still the one that the
page has seen.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from dugong.paths import write_atomically
from dugong.studio import StudioError


class EditError(StudioError):
    """A text that cannot take the place of a function; `line` and `column` say where, if that is known."""

    def __init__(self, text: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(text, "syntax", line=line, column=column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function at the top of a file: its text, its lines, counted from 0, half open, and whether it is a source."""

    name: str
    text: str
    first: int
    last: int
    source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The file of sources as it was read."""

    path: Path
    text: str
    digest: str

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Read it; line ends stay as they are."""
        content = path.read_bytes()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EditError(f"{path} must be UTF-8 text: {error}.") from None
        return cls(path=path, text=text, digest=hashlib.sha256(content).hexdigest())

    @property
    def trouble(self) -> str | None:
        """Why the file is no Python; None if it is."""
        try:
            _parse(self.text)
        except EditError as error:
            return str(error)
        return None

    def functions(self) -> dict[str, Function]:
        """All functions at the top of the file by name, decorators included; none if it is no valid Python."""
        lines, found = _lines(self.text), {}
        for node in [] if self.trouble else _parse(self.text).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first, last = _lines_of(node)
                text, source = "".join(lines[first:last]), any(map(_makes_a_source, node.decorator_list))
                found[node.name] = Function(name=node.name, text=text, first=first, last=last, source=source)
        return found

    def with_function(self, name: str, text: str) -> tuple[str, Function]:
        """The text of the file with one function replaced, or added at its end if there is none of that name."""
        new_name = check_function(text)
        ours, known, lines = self._as_here(text), self.functions(), _lines(self.text)
        if new_name != name and new_name in known:
            raise EditError(f"there is a function {new_name!r} already; choose another name.", 1, 0)
        if name in known:
            before, after = "".join(lines[: known[name].first]), "".join(lines[known[name].last :])
            if not after and not self.text.endswith(("\n", "\r")):
                ours = ours.rstrip("\r\n")  # the file ended without an end of line, and still does
        else:
            end = "\r\n" if "\r\n" in self.text else "\n"
            before, after = self.text.rstrip() + end * 3 if self.text.strip() else "", ""
        whole = before + ours + after
        _parse(whole)
        return whole, Function(name=new_name, text=ours, first=len(_lines(before)), last=0)

    def _as_here(self, text: str) -> str:
        """The text with the ends of line of this file, and one at its end."""
        plain = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"
        return plain.replace("\n", "\r\n") if "\r\n" in self.text else plain

    def write(self, text: str) -> SourceFile:
        """Put a new text in its place, if the file is still this one; returns the file as it is then."""
        if not self.path.is_file() or SourceFile.read(self.path).digest != self.digest:
            raise StudioError(
                f"{self.path.name} was changed by somebody else since you opened it; nothing was written.\n"
                "  Look at what it says now, and edit that.",
                "changed",
            )
        content = text.encode("utf-8")
        mode = self.path.stat().st_mode
        target = self.path.resolve()  # through a link: the file that it names is replaced, not the link
        write_atomically(target, lambda handle: handle.write(content))
        target.chmod(mode)
        return SourceFile(path=self.path, text=text, digest=hashlib.sha256(content).hexdigest())


def check_function(text: str) -> str:
    """The name of the one function that a text must be."""
    tree = _parse(text)
    body = tree.body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        others = [node for node in body if not isinstance(node, ast.FunctionDef)]
        line = others[0].lineno if others else None
        raise EditError(
            "this must be one function with its decorators, and nothing else; helpers and imports belong into the "
            "file itself.",
            line,
            0,
        )
    return body[0].name


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError as error:
        raise EditError(f"{error.msg} (line {error.lineno})", error.lineno, (error.offset or 1) - 1) from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; deeper than the parser goes
        raise EditError(f"this is no Python: {error}") from None


def _makes_a_source(decorator: ast.expr) -> bool:
    """Whether it is `@dg.source`, `@source` or a call of it, and the source has the name of the function."""
    named = isinstance(decorator, ast.Call) and any(one.arg == "name" for one in decorator.keywords)
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return not named and ast.unparse(made).rpartition(".")[2] == "source"


def _lines(text: str) -> list[str]:
    """Lines as Python counts them: other signs that end a line elsewhere (a form feed) do not end one here."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
    assert node.end_lineno is not None
    return first, node.end_lineno
