"""Figures of the house: how much code there is, how it is cut, and through how many functions one `fit` goes.

``python scripts/house.py [--show]`` prints a table of this working copy; ``--show`` also lists the places behind the
figures that should be zero. ``--source DIR`` measures another copy of ``src/dugong`` (without the fits, unless it is
the one that Python imports).

The functions of a fit are counted with `sys.setprofile` over one call of ``LabelModel(...).fit(votes)`` on 200 short
sequences of eight independent sources, after the same call has run once (imports, compiling and caches are not the
algorithm). Counted are functions and methods of `dugong` that have a name of their own; comprehensions, lambdas and
functions inside functions are not. Before the redesign (commit 8f2559e) this way of counting gives 272 functions with
the defaults and 311 with a given prior; the whole house then had 48,294 lines in 395 files, bodies of 5 lines in the
median, 16 at the 90th percentile and 72 at most, and .5 % comments.

The bounds are a ratchet: `BOUNDS` holds what was reached, so that a figure can only fall. A change that lowers a figure
lowers its bound in the same commit; one that has to raise it (a feature that needs its lines) says so in its message.
``--check`` fails where a figure is above its bound.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = 6  # so many equal lines in two bodies are one idea in two places
LONG = 60
COMMENTED = ("sums", "infer", "fit")
BOUNDS = {
    "lines": 65_501,
    "files": 299,
    "functions of fit, defaults": 208,
    "functions of fit, given prior": 210,
    "body, 90th percentile": 16,
    "body, longest": LONG,
    f"bodies over {LONG} lines": 0,
    "class names that occur twice": 0,
    f"bodies that share {SHARED} lines": 0,
}


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a function without its signature and docstring."""

    place: str
    lines: tuple[str, ...]
    length: int


@dataclass(slots=True)
class House:
    """What was found in all files."""

    lines: int = 0
    files: int = 0
    bodies: list[Body] = field(default_factory=list)
    classes: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    modules: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    importers: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    code: Counter[str] = field(default_factory=Counter)
    comments: Counter[str] = field(default_factory=Counter)


# --- reading the code ----------------------------------------------------------------------------------------------
def survey(source: Path) -> House:
    """Read all files below a package folder."""
    house = House()
    names = {module_name(path, source) for path in source.rglob("*.py")}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree, name = ast.parse(text), module_name(path, source)
        where = str(path.relative_to(source))
        folder = where.partition("/")[0] if "/" in where else "(root)"
        house.files += 1
        house.lines += text.count("\n")
        house.modules[path.stem].append(where)
        house.bodies += bodies(tree, text.splitlines(), where)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                house.classes[node.name].append(f"{where}:{node.lineno}")
        for other in imported(tree, name, names, is_package=path.name == "__init__.py"):
            house.importers[other].add(name)
        house.code[folder] += code_lines(text, tree)
        house.comments[folder] += comment_lines(text)
    for name in names:
        house.importers.setdefault(name, set())
    return house


def module_name(path: Path, source: Path) -> str:
    """The name by which a file is imported."""
    parts = [source.name, *path.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def bodies(tree: ast.Module, lines: list[str], where: str) -> Iterator[Body]:
    """Bodies of all functions, those inside others included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if not statements:
                continue
            begin, end = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
            kept = [line.strip() for line in lines[begin - 1 : end]]
            code = tuple(line for line in kept if line and not line.startswith("#"))
            yield Body(f"{where}:{node.lineno} {node.name}", code, end - begin + 1)


def imported(tree: ast.Module, name: str, names: set[str], *, is_package: bool) -> set[str]:
    """Modules of the package that a module imports; a name that a package re-exports counts for the package."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")[: (0 if is_package else -1) or None]
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, base]) if base else ".".join(parts)
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in names else base for alias in node.names}
    return (found & names) - {name}


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are neither empty, nor comments, nor part of a docstring."""
    spoken: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                spoken |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    numbered = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in spoken for n, line in numbered)


def comment_lines(text: str) -> int:
    """Lines that are a comment and nothing else; words behind code do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens)


def shared_logic(found: list[Body]) -> list[str]:
    """Pairs of bodies that have six or more lines in a row in common, one line of text for each pair."""
    places: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, body in enumerate(found):
        for at in range(len(body.lines) - SHARED + 1):
            places[body.lines[at : at + SHARED]].append((number, at))
    pairs: dict[tuple[int, int], str] = {}
    for lines, where in places.items():
        speaks = sum(len(line) > 4 for line in lines) > SHARED // 2  # rows of brackets are no logic
        for (one, _), (other, _) in pairwise(where):
            if speaks and not _nested(found[one], found[other]):
                pairs.setdefault((one, other), f"{found[one].place} = {found[other].place}: {lines[0]}")
    return list(pairs.values())


def _nested(one: Body, other: Body) -> bool:
    """Whether one is the other, or a function inside it."""
    same_file = one.place.partition(":")[0] == other.place.partition(":")[0]
    return same_file and (set(one.lines) <= set(other.lines) or set(other.lines) <= set(one.lines))


# --- counting what a fit goes through --------------------------------------------------------------------------------
def functions_of(call: Callable[[], object], package: Path) -> set[tuple[str, str]]:
    """Functions of the package with a name of their own that a call goes through, on any thread."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(package)) and "<" not in code.co_qualname:
            seen.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def fits() -> dict[str, set[tuple[str, str]]]:
    """What one fit goes through, with the defaults and with a given prior and independent sources."""
    import dugong as dg
    from dugong.worlds import lopsided

    world = lopsided(8)
    votes, _ = world.sample(200, rng=0)
    settings: dict[str, dict[str, Any]] = {
        "functions of fit, defaults": {},
        "functions of fit, given prior": {"prior": world.prior, "dependencies": ()},
    }
    found = {}
    for name, given in settings.items():
        dg.LabelModel(**given).fit(votes)
        found[name] = functions_of(lambda given=given: dg.LabelModel(**given).fit(votes), Path(dg.__file__).parent)
    return found


# --- the table -----------------------------------------------------------------------------------------------------
def figures(house: House) -> list[tuple[str, int]]:
    """Name and value of every figure of the code that is a number of things."""
    lengths = sorted(body.length for body in house.bodies)
    return [
        ("lines", house.lines),
        ("files", house.files),
        ("functions", len(lengths)),
        ("body, median", lengths[len(lengths) // 2]),
        ("body, 90th percentile", lengths[int(len(lengths) * 0.9)]),
        ("body, longest", lengths[-1]),
        (f"bodies over {LONG} lines", sum(length > LONG for length in lengths)),
        ("class names that occur twice", sum(len(where) > 1 for where in house.classes.values())),
        ("modules with at most one importer", sum(len(who) <= 1 for who in house.importers.values())),
        (f"bodies that share {SHARED} lines", len(shared_logic(house.bodies))),
    ]


def comments(house: House) -> list[tuple[str, float]]:
    """Comment lines per code line in percent, of everything and by folder."""
    total = 100 * house.comments.total() / house.code.total()
    by_folder = [(f"  {name}", 100 * house.comments[name] / max(house.code[name], 1)) for name in sorted(house.code)]
    return [("comment lines per code line", total), *by_folder]


def details(house: House) -> Iterator[str]:
    """The places behind the figures that should be zero, and the modules that few import."""
    yield "Long bodies:"
    yield from (f"  {body.length} {body.place}" for body in house.bodies if body.length > LONG)
    yield "Class names that occur twice:"
    yield from (f"  {name}: {', '.join(where)}" for name, where in house.classes.items() if len(where) > 1)
    yield "Modules with at most one importer:"
    yield from (
        f"  {name} <- {', '.join(who) or 'nobody'}" for name, who in sorted(house.importers.items()) if len(who) <= 1
    )
    yield f"Bodies that share {SHARED} lines:"
    yield from (f"  {line}" for line in shared_logic(house.bodies))


def main() -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    reader.add_argument("--source", type=Path, default=ROOT / "src" / "dugong", help="the package folder")
    reader.add_argument("--show", action="store_true", help="list the places, too")
    reader.add_argument("--check", action="store_true", help="fail where a figure is above its bound")
    reader.add_argument("--no-fit", action="store_true", help="only read the code")
    given = reader.parse_args()
    house = survey(given.source)
    found = figures(house)
    if not given.no_fit:
        for name, functions in fits().items():
            found += [(name, len(functions)), ("  in files", len({file for file, _ in functions}))]
    rows = [(name, f"{value:,}", f"{BOUNDS[name]:,}" if name in BOUNDS else "") for name, value in found]
    shares = comments(house)
    rows += [(name, f"{value:.1f} %", "at least 3 %" if name.strip() in COMMENTED else "") for name, value in shares]
    width = max(len(name) for name, _, _ in rows)
    print(f"{'':<{width}} {'now':>9}  bound")
    for name, value, bound in rows:
        print(f"{name:<{width}} {value:>9}  {bound}")
    if given.show:
        print("\n".join(details(house)))
    missed = [name for name, value in found if value > BOUNDS.get(name, value)]
    missed += [name.strip() for name, value in shares if name.strip() in COMMENTED and round(value, 1) < 3]
    if given.check and missed:
        raise SystemExit(f"error: beyond the bound: {', '.join(missed)}.")


if __name__ == "__main__":
    main()
