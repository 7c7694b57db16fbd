"""``make mutants``: change one thing in the code of the core at a time, and see whether a test notices.

A mutant is a function with one comparison, number, operator, condition or statement changed. All possible ones of
`MODULES` are put into an order that depends on their text alone, and the first 300 are tried, so that the sample stays
the same where the code does. Kernels run as plain Python (compilation off), so that a mutant is a function that gets
other code in a fork of a process that has collected all tests: nothing is imported again. In the fork only the tests
that reach the changed line run, the quickest first, until one fails. Which tests reach which line is found out once
and kept in ``.cache/mutants`` (``--anew`` after larger changes). Tests that fail or take too long without compilation
are left out.

``tests/equivalent_mutants.txt`` lists mutants that no test can notice because the program does the same, each with its
reason. They are set aside.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dugong"
MODULES = ("infer", "sums", "votes", "archives.py")
TESTS = (
    *("infer", "sums", "votes", "law", "tasks", "priors", "test_codec.py", "test_old_files.py", "test_misuse.py"),
    *("test_model.py", "test_labels.py", "segments"),
)
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
KEPT = ROOT / ".cache" / "mutants"
SLOWEST = 4.0  # seconds of the processor that one test may take without compilation
BUDGET = 20.0  # seconds for all tests of one mutant; the quickest are taken first
WANTED = 85.0  # per cent
LANES = 2  # processes that try mutants
NOTICED = ("killed", "no end", "crashed")


# --- mutants -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: a name that does not depend on lines, the lines that must run, and where it is in the tree."""

    file: str
    name: str
    function: str  # the outermost one that holds it
    lines: tuple[int, ...]
    node: int  # its place in `ast.walk` of the file

    @property
    def order(self) -> str:
        """A number that only depends on the name."""
        return hashlib.sha256(self.name.encode()).hexdigest()


COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
CALCULATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitXor: ast.BitOr,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


def changed(node: ast.AST) -> ast.AST | None:
    """What may stand in the place of a node, if anything."""
    new: Any = copy.copy(node)
    if isinstance(new, ast.Compare) and len(new.ops) == 1 and type(new.ops[0]) in COMPARED:
        new.ops = [COMPARED[type(new.ops[0])]()]
    elif isinstance(new, ast.BinOp | ast.AugAssign) and type(new.op) in CALCULATED:
        new.op = CALCULATED[type(new.op)]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif isinstance(new, ast.UnaryOp):
        new = new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value = new.value + 1 if isinstance(new.value, int) else 2.0 * new.value or 1.0
    elif isinstance(new, ast.If | ast.While | ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), new.test)
    elif isinstance(new, ast.Break | ast.Continue):
        new = ast.Continue() if isinstance(new, ast.Break) else ast.Break()
    elif isinstance(new, ast.Name) and new.id in NAMES:
        new.id = NAMES[new.id]
    elif isinstance(new, ast.Attribute) and new.attr in NAMES:
        new.attr = NAMES[new.attr]
    elif isinstance(new, ast.Raise) or (isinstance(new, ast.Expr) and isinstance(new.value, ast.Call)):
        new = ast.Pass()
    else:
        return None
    return ast.copy_location(new, node)


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a file, inside of functions."""
    tree, found, seen = ast.parse(path.read_text(encoding="utf-8")), [], Counter[str]()
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    file = path.relative_to(SOURCE).as_posix()
    for node, statement, function in reached(tree):
        new = changed(node) if function else None
        if new is not None:
            text = f"{file} {function}: {brief(node)} -> {brief(new)}"
            seen[text] += 1
            name = text if seen[text] == 1 else f"{text} ({seen[text]})"
            lines = (statement.lineno, *range(node.lineno, head_end(node) + 1))
            found.append(Mutant(file, name, function, lines, numbers[id(node)]))
    return found


def reached(
    node: ast.AST, statement: Any = None, function: str = "", owner: str = ""
) -> Iterator[tuple[Any, Any, str]]:
    """Nodes that run, each with its statement and outermost function; no types, texts, decorators or defaults."""
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.ClassDef) and not function:
        owner = f"{owner}{node.name}."
    if isinstance(node, ast.FunctionDef) and not function:
        function = f"{owner}{node.name}"
    elif function:
        yield node, statement, function
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield from reached(inner, statement, function, owner)


def head_end(node: Any) -> int:
    """The last line of a node, without the statements inside of it."""
    return node.test.end_lineno if isinstance(node, ast.If | ast.While) else node.end_lineno


def brief(node: ast.AST) -> str:
    """A node in one line; of a condition only its head."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())[:120]


def mutated(path: Path, mutant: Mutant) -> ast.Module:
    """The tree of the file with that change."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = list(ast.walk(tree))[mutant.node]

    class Change(ast.NodeTransformer):
        def visit(self, other: ast.AST) -> Any:
            return changed(other) if other is node else self.generic_visit(other)

    return ast.fix_missing_locations(Change().visit(tree))


def sample(n: int) -> list[Mutant]:
    """The first mutants of the core in an order by name."""
    places = [SOURCE / name for name in MODULES]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return sorted((one for file in files for one in mutants(file)), key=lambda one: one.order)[:n]


def equivalent() -> dict[str, str]:
    """Mutants that do the same, with the reason."""
    lines = [line for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return dict(line.rsplit(" | ", 1) for line in lines)  # type: ignore[misc]


# --- tests ---------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Reach:
    """Which tests reach which lines, and how long they take."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # file, line, tests
    dropped: list[str] = field(default_factory=list)

    def add(self, other: Reach) -> None:
        """What other tests reach."""
        self.seconds |= other.seconds
        self.dropped += other.dropped
        for file, by_line in other.lines.items():
            for line, tests in by_line.items():
                self.lines.setdefault(file, {}).setdefault(line, []).extend(tests)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that run the lines of a mutant, the quickest first."""
        lines = self.lines.get(mutant.file, {})
        found = {test for line in mutant.lines for test in lines.get(str(line), ())} & self.seconds.keys()
        some, total = [], 0.0
        for test in sorted(found - set(self.dropped), key=lambda one: self.seconds[one]):
            total += self.seconds[test]
            if total <= BUDGET:
                some.append(test)
        return some


class Trial:
    """A plugin of pytest that, once all tests are collected, runs some of them in forks."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.failed, self.ends = options, False, list[tuple[Mutant, str, int]]()
        self.reach = Reach()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember a failure; a test that is skipped proves nothing either."""
        self.failed |= report.failed or report.skipped

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """While it is found out what tests reach, their time is limited."""
        if signal.getsignal(signal.SIGPROF) is not _too_slow:
            return (yield)
        signal.setitimer(signal.ITIMER_PROF, SLOWEST, 0.5)  # again and again, lest a test catch it
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of running all tests."""
        items = {item.nodeid: item for item in session.items}
        files: dict[str, list[Any]] = {}
        for item in session.items:
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
        in_lanes([lambda name=name: self.explore(name, files[name]) for name in files])
        for name in filter(lambda one: kept(one).exists(), files):
            self.reach.add(Reach(**json.loads(kept(name).read_text())))
        chosen, aside = [one for one in sample(self.options.mutants) if self.options.only in one.name], equivalent()
        tried = [one for one in chosen if one.name not in aside]
        log = KEPT / "ends.txt"
        before = log.read_text().splitlines() if self.options.survivors else []
        gone = [line for line in before if line.rsplit("\t", 1)[1] in NOTICED]
        tried = [one for one in tried if one.name not in {line.rsplit("\t", 1)[0] for line in gone}]
        log.write_text("".join(f"{line}\n" for line in gone))
        in_lanes([lambda one=one: self.attempt(one, items, log) for one in tried])
        ends = dict(line.rsplit("\t", 1) for line in log.read_text().splitlines())
        self.ends = [(one, ends.get(one.name, "equivalent"), len(self.reach.tests_of(one))) for one in chosen]
        return True

    def explore(self, name: str, items: list[Any]) -> None:
        """Find out what the tests of a file reach, unless that is known."""
        if not self.options.anew and kept(name).exists():
            return
        in_child(lambda: self._explore(name, items))

    def _explore(self, name: str, items: list[Any]) -> int:
        import coverage

        measure, reach = coverage.Coverage(data_file=None, config_file=False, source=[str(SOURCE)]), Reach()
        signal.signal(signal.SIGPROF, _too_slow)
        signal.alarm(3600)  # for a test that waits and does nothing: its file is left out
        measure.start()
        for item in items:
            measure.switch_context(item.nodeid)
            began, self.failed = time.process_time(), False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            reach.seconds[item.nodeid] = round(time.process_time() - began, 4)
            reach.dropped += [item.nodeid] if self.failed else []
        measure.stop()
        data = measure.get_data()
        for file in data.measured_files():
            by_line = data.contexts_by_lineno(file).items()
            reach.lines[Path(file).relative_to(SOURCE).as_posix()] = {str(line): tests for line, tests in by_line}
        kept(name).write_text(json.dumps({part: getattr(reach, part) for part in reach.__slots__}))
        return 0

    def attempt(self, mutant: Mutant, items: dict[str, Any], log: Path) -> None:
        """Try one mutant, and write down what became of it."""
        tests = self.reach.tests_of(mutant)
        limit = int(10 + 4 * sum(self.reach.seconds[test] for test in tests))
        code = in_child(lambda: self._attempt(mutant, [items[test] for test in tests if test in items], limit))
        ends = {0: "survived", 1: "killed", -signal.SIGXCPU: "no end", -signal.SIGALRM: "no end", 70: "broken"}
        with log.open("a") as lines:
            lines.write(f"{mutant.name}\t{ends.get(code, 'crashed')}\n")

    def _attempt(self, mutant: Mutant, items: list[Any], limit: int) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        signal.alarm(1800)  # for one that waits and does nothing
        put_in_place(mutant)
        for item in items:
            self.failed = False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                return 1
        return 0


def _too_slow(*_: object) -> None:
    raise TimeoutError("too slow without compilation")


def kept(name: str) -> Path:
    """Where it is kept what the tests of a file reach."""
    return KEPT / f"{name.removesuffix('.py').replace('/', '-')}.json"


def put_in_place(mutant: Mutant) -> None:
    """Give the changed code to the function, wherever it is held."""
    path = str(SOURCE / mutant.file)
    module = compile(mutated(Path(path), mutant), path, "exec")
    new = {(code.co_qualname, code.co_firstlineno): code for code in codes(module)}
    n_changed = 0
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == path:
            code = new.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code.co_qualname == mutant.function:
                function.__code__ = code
                n_changed += 1
    if not n_changed:
        raise RuntimeError(f"no function {mutant.function} of {mutant.file} is in use")


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those inside of it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


# --- processes -----------------------------------------------------------------------------------------------------
def in_child(work: Callable[[], int]) -> int:
    """Do something in a fork; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os._exit(work())
    except BaseException:  # noqa: BLE001 (a fork must not go on as its parent)
        with (KEPT / "broken.txt").open("a") as log:
            traceback.print_exc(file=log)
    finally:
        os._exit(70)


def in_lanes(work: list[Callable[[], None]]) -> None:
    """Do all of it in a few processes, each of which takes the next piece when it has done one."""
    following = multiprocessing.Value("i", 0)

    def lane() -> int:
        while True:
            with following.get_lock():
                number, following.value = following.value, following.value + 1
            if number >= len(work):
                return 0
            work[number]()

    children = []
    for _ in range(LANES):
        child = os.fork()
        if child == 0:
            os._exit(lane())
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def plain_instruction(definition: Any) -> Any:
    """What stands for a machine instruction of `sums._kernels` where nothing is compiled."""
    import numpy as np

    return {
        "_load_word": lambda column, start: column[start : start + 8].view(np.uint64)[0],
        "_store_word": lambda column, start, word: column[start : start + 8].view(np.uint64).put(0, word),
        "_count_bits": lambda word: int(word).bit_count(),
        "_compare_64": lambda votes, start, code: np.packbits(
            votes[start : start + 64] == code, bitorder="little"
        ).view(np.uint64)[0],
    }[definition.__name__]


def prepare() -> None:
    """Compilation off, and everything imported that a mutant may be in."""
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "NUMBA_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "mutants"}
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    os.chdir(ROOT)
    KEPT.mkdir(parents=True, exist_ok=True)
    import numba.extending
    import numpy as np

    numba.extending.intrinsic = plain_instruction
    np.seterr(all="ignore")  # compiled code says nothing of overflows either
    for name in MODULES:
        for file in [SOURCE / name] if name.endswith(".py") else sorted((SOURCE / name).rglob("*.py")):
            parts = file.relative_to(SOURCE.parent).with_suffix("").parts
            __import__(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


# --- what became of them -------------------------------------------------------------------------------------------
def main() -> None:
    """Try the sample, print a table, and fail below the share that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--survivors", action="store_true", help="only those that no test noticed the last time")
    parser.add_argument("--anew", action="store_true", help="find out anew which tests reach what")
    trial = Trial(parser.parse_args())
    prepare()
    pytest.main(["-q", "-n0", "--no-header", "--tb=native", *(f"tests/{name}" for name in TESTS)], plugins=[trial])
    for name in equivalent().keys() - {one.name for one in sample(sys.maxsize)}:
        print(f"no longer there, take it from {EQUIVALENT.name}: {name}")
    for mutant, end, n_tests in trial.ends:
        if end in ("survived", "broken"):
            print(f"{end} ({n_tests} tests, line {mutant.lines[-1]}): {mutant.name}")
    sys.exit(told(trial) < WANTED)


def told(trial: Trial) -> float:
    """Print what became of them by folder; the share that was noticed, in per cent."""
    kinds, share = (*NOTICED, "survived", "equivalent", "broken"), 0.0
    print("".join(f"{word:>12}" for word in ("", *kinds, "share")))
    for folder in (*dict.fromkeys(one.file.partition("/")[0] for one, _, _ in trial.ends), ""):
        count = Counter(end for one, end, _ in trial.ends if one.file.startswith(folder))
        noticed = sum(count[kind] for kind in NOTICED)
        share = 100 * noticed / max(noticed + count["survived"] + count["broken"], 1)
        print(f"{folder or 'all':>12}" + "".join(f"{count[kind]:>12}" for kind in kinds) + f"{share:>10.1f} %")
    print(
        f"{len(trial.reach.dropped)} of {len(trial.reach.seconds)} tests were left out: they fail, are skipped or take"
    )
    print(f"more than {SLOWEST:.0f} s without compilation")
    return share


if __name__ == "__main__":
    main()
