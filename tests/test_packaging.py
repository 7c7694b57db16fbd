"""The package as it is built and installed: metadata, files, extras, what an import costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import dugong

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = sorted((ROOT / "src" / "dugong").rglob("*.py"))
HEAVY = {"numpy", "scipy", "numba", "pyarrow", "pandas", "torch", "matplotlib", "sklearn"}
NETWORK = {"aiohttp", "ftplib", "httpx", "requests", "smtplib", "urllib3", "http.client", "urllib.request"}


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements() -> list[str]:
    extras = PROJECT["optional-dependencies"].values()
    return [*PROJECT["dependencies"], *(one for extra in extras for one in extra)]


def requirement_name(requirement: str) -> str:
    return normalise(re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0])


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normalise(name): version for name, version in pairs}


def imported_modules(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after a statement."""
    script = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert metadata.version("dugong-ws") == version, "run `make setup`: the installed metadata is older"
    assert dugong.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", citation, flags=re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{version}]" in changelog


def test_no_requirement_has_an_upper_bound() -> None:
    bounded = [one for one in requirements() if re.search(r"<|==|~=|!=", one)]
    assert bounded == []


def test_every_requirement_has_a_lower_bound() -> None:
    unbounded = [one for one in requirements() if ">=" not in one and not one.startswith("dugong-ws")]
    assert unbounded == []


def test_every_installed_requirement_is_constrained() -> None:
    engines = {
        requirement_name(one)
        for extra in ("dask", "ray", "spark", "video")
        for one in PROJECT["optional-dependencies"][extra]
    }
    names = {requirement_name(one) for one in requirements()} - engines - {"dugong-ws"}
    assert names <= constraints().keys(), names - constraints().keys()


def test_the_tested_versions_are_the_installed_ones() -> None:
    wrong = {}
    for name in {requirement_name(one) for one in PROJECT["dependencies"]}:
        installed = metadata.version(name).partition("+")[0]
        if installed != constraints()[name]:
            wrong[name] = installed
    assert not wrong, f"differs from constraints.txt, run `make setup`: {wrong}"


def test_torch_is_the_pinned_release() -> None:
    assert constraints()["torch"] == "2.13.0"
    assert metadata.version("torch").partition("+")[0] == "2.13.0"


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("dugong_ws-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "dugong/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"dugong", "dugong_ws"}
    assert {f"dugong/{one.relative_to(ROOT / 'src' / 'dugong').as_posix()}" for one in MODULES} <= names


def test_the_command_is_installed() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dugong"), "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


@pytest.mark.parametrize("statement", ["import dugong", "import dugong.cli", "import dugong.exceptions"])
def test_an_import_loads_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement) & HEAVY == set()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_no_module_talks_to_the_network(module: Path) -> None:
    assert imported_modules(module) & NETWORK == set()
