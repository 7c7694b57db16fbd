"""The command itself: help, exit codes, where output goes, how quick it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from command_line import Command
from dugong.cli import VERBS, output
from dugong.exceptions import VoteError

DUGONG = str(Path(sys.executable).parent / "dugong")
HEAVY = ("numpy", "scipy", "numba", "pyarrow", "rich", "pandas")


def test_help_lists_every_verb_with_one_line(cli: Command) -> None:
    outcome = cli("--help")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    for verb, text in VERBS.items():
        assert any(line.split() == [verb, *text.split()] for line in lines), verb


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_an_example_and_has_json(cli: Command, verb: str) -> None:
    outcome = cli(verb, "--help")
    assert outcome.code == 0
    assert f"$ dugong {verb}" in outcome.out
    assert "--json" in outcome.out


@pytest.mark.parametrize("verb", ["run", "apply", "check", "suggest"])
def test_verbs_that_execute_a_project_say_so(cli: Command, verb: str) -> None:
    assert "A project is code" in " ".join(cli(verb, "--help").out.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["init", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys\nfrom dugong.cli import exit_code\n"
        f"code = exit_code({words!r})\n"
        f"sys.exit(code or ' '.join(m for m in {HEAVY!r} if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def best_of(command: list[str], times: int = 5) -> float:
    spent = []
    for _ in range(times):
        begin = perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        spent.append(perf_counter() - begin)
    return min(spent)


def test_help_is_quick_compared_with_importing_numpy() -> None:
    assert best_of([DUGONG, "--help"]) <= 2.5 * best_of([sys.executable, "-c", "import numpy"])


@pytest.mark.parametrize(
    "words",
    [["no-such-verb"], ["label"], ["init"], ["fit", "votes.parquet", "--no-such-option"], ["apply", "--limit", "0"]],
)
def test_wrong_usage_is_exit_code_2(cli: Command, words: list[str]) -> None:
    outcome = cli(*words)
    assert outcome.code == 2
    assert "Usage: dugong" in outcome.err
    assert outcome.out == ""


def test_a_data_error_is_exit_code_1_without_a_traceback(cli: Command, tmp_path: Path) -> None:
    outcome = cli("check", tmp_path / "absent.parquet")
    assert outcome.code == 1
    assert outcome.err.startswith("error: there is no file")
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_an_error_of_the_system_is_exit_code_1_too(
    cli: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr(output, "emit", full)
    outcome = cli("info")
    assert (outcome.code, "No space left on device" in outcome.err) == (1, True)


def test_our_own_bug_is_exit_code_3_with_its_traceback(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr(output, "emit", broken)
    outcome = cli("info")
    assert outcome.code == 3
    assert "Traceback" in outcome.err
    assert "RuntimeError: a wheel came off" in outcome.err
    assert "bug in Dugong" in outcome.err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (VoteError("bad votes"), 1)])
def test_other_ends(cli: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    def end(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(output, "emit", end)
    outcome = cli("info")
    assert outcome.code == code
    assert "Traceback" not in outcome.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = f"set -o pipefail\n{DUGONG} simulate --list --json | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dugong", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dugong, version")


def test_an_error_in_a_terminal_is_broken_at_its_width(tmp_path: Path) -> None:
    import pty

    parent, child = pty.openpty()
    environment = os.environ | {"COLUMNS": "60"}
    command = [sys.executable, "-m", "dugong", "run", str(tmp_path / "project.toml")]
    (tmp_path / "project.toml").write_text('data = "nowhere"\nsources = "sources.py"\n')
    (tmp_path / "sources.py").write_text("import dugong as dg\n\n\n@dg.source\ndef one(x):\n    return 1\n")
    subprocess.run(command, stderr=child, stdout=subprocess.DEVNULL, check=False, env=environment, cwd=tmp_path)
    os.close(child)
    said = os.read(parent, 10_000).decode().splitlines()
    os.close(parent)
    assert said[0].startswith("error: data must name a folder")
    assert len(said) > 3
    assert all(len(line) <= 60 or " " not in line.strip() for line in said)
