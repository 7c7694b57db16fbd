"""The user's own code by name, and what is said when it fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from command_line import Command
from dugong.cli.project import load_module, load_sequences, load_sources
from dugong.exceptions import SourceError


@pytest.fixture(autouse=True)
def same_path() -> Iterator[None]:
    """Leave the search path and the modules as they were."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith(("dugong", "numpy", "pyarrow")):
            del sys.modules[name]


def test_sequences_from_a_function(tmp_path: Path) -> None:
    (tmp_path / "own_loader.py").write_text("def give():\n    return {'a': [1, 2]}\n")
    assert load_sequences("own_loader:give", tmp_path) == {"a": [1, 2]}
    assert load_sequences("own_loader.py:give", tmp_path) == {"a": [1, 2]}


def test_sequences_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "arrays").mkdir()
    np.save(tmp_path / "arrays" / "a.npy", np.arange(3))
    assert list(load_sequences("arrays", tmp_path)) == ["a"]


def test_sources_from_a_file_and_from_a_module(tmp_path: Path) -> None:
    text = "import dugong as dg\n\n\n@dg.source\ndef loud(x):\n    return 1\n"
    (tmp_path / "own_sources.py").write_text(text)
    assert [one.name for one in load_sources("own_sources.py", tmp_path)] == ["loud"]
    assert [one.name for one in load_sources("own_sources", tmp_path)] == ["loud"]
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text(text)
    assert [one.name for one in load_sources("package.inner", tmp_path)] == ["loud"]


def test_a_file_may_be_called_like_a_module_that_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("here = True\n")
    before = sys.modules["json"]
    assert load_module("json.py", tmp_path).here
    assert sys.modules["json"] is before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere", "'nowhere' is none in"),
        ("nowhere:give", "there is no module 'nowhere'"),
        ("nowhere.py:give", r"there is no file .*nowhere\.py"),
        ("own_loader:take", "'own_loader' has no function 'take'; it has give"),
    ],
)
def test_names_that_lead_nowhere(tmp_path: Path, data: str, message: str) -> None:
    (tmp_path / "own_loader.py").write_text("def give():\n    return {}\n")
    with pytest.raises(SourceError, match=message):
        load_sequences(data, tmp_path)


def test_code_that_fails_shows_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "own_loader.py").write_text("def give():\n    return 1 / 0\n")
    with pytest.raises(SourceError) as caught:
        load_sequences("own_loader:give", tmp_path)
    text = str(caught.value)
    assert "'own_loader:give' raised ZeroDivisionError: division by zero" in text
    assert 'own_loader.py", line 2, in give' in text
    assert "loading.py" not in text


def test_a_module_that_lacks_another_one_says_which(tmp_path: Path) -> None:
    (tmp_path / "own_loader.py").write_text("import no_such_package\n")
    with pytest.raises(SourceError, match="ModuleNotFoundError: No module named 'no_such_package'"):
        load_module("own_loader", tmp_path)


def test_a_module_without_sources(tmp_path: Path) -> None:
    (tmp_path / "own_sources.py").write_text("x = 1\n")
    with pytest.raises(SourceError, match="holds no sources; decorate"):
        load_sources("own_sources.py", tmp_path)


def test_time_in_a_project_is_about_a_folder_of_data(tmp_path: Path) -> None:
    (tmp_path / "loader.py").write_text("def sequences():\n    return {}\n")
    with pytest.raises(
        SourceError, match=r"every in a project.toml is about a folder.*'loader:sequences' is a function"
    ):
        load_sequences("loader:sequences", tmp_path, every="1s")


@pytest.mark.parametrize("line", ["import sys; sys.exit(0)", "import os; os._exit(0)", "raise BaseException('odd')"])
@pytest.mark.parametrize("file", ["own_sources.py", "own_loader.py"])
def test_a_file_of_the_project_that_leaves_is_no_success(tmp_path: Path, cli: Command, file: str, line: str) -> None:
    (tmp_path / "own_loader.py").write_text("def give():\n    return {'a': [1, 2]}\n")
    (tmp_path / "own_sources.py").write_text("import dugong as dg\n\n@dg.source\ndef one(x):\n    return 1\n")
    (tmp_path / "project.toml").write_text('data = "own_loader:give"\nsources = "own_sources.py"\n')
    assert cli("apply", tmp_path / "project.toml").code == 0
    with (tmp_path / file).open("a") as text:
        text.write(f"\n{line}\n")
    ended = cli("apply", tmp_path / "project.toml")
    assert ended.code == 1
    assert f"error: '{file.removesuffix('.py') if 'loader' in file else file}' raised " in ended.err
