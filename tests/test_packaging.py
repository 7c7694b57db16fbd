"""The package as it is built and installed: metadata, files, extras, what an import costs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import dugong

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
MODULES = sorted((ROOT / "src" / "dugong").rglob("*.py"))
HEAVY = {"numpy", "scipy", "numba", "pyarrow", "pandas", "torch", "matplotlib", "sklearn"}
NETWORK = {"aiohttp", "ftplib", "httpx", "requests", "smtplib", "urllib3", "http.client", "urllib.request"}


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements() -> list[str]:
    lists = [*PROJECT["optional-dependencies"].values(), *PYPROJECT["dependency-groups"].values()]
    return [*PROJECT["dependencies"], *(one for some in lists for one in some if isinstance(one, str))]


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
    """What `make setup` installs: the core, the groups, torch, and the extras that the tests name."""
    groups = [one for group in PYPROJECT["dependency-groups"].values() for one in group if isinstance(one, str)]
    (named,) = [one for one in groups if one.startswith("dugong-ws[")]
    extras = ["torch", *named.removeprefix("dugong-ws[").rstrip("]").split(",")]
    wanted = [
        *PROJECT["dependencies"],
        *groups,
        *(one for extra in extras for one in PROJECT["optional-dependencies"][extra]),
    ]
    names = {requirement_name(one) for one in wanted} - {"dugong-ws"}
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


# --- what is built -------------------------------------------------------------------------------------------------
def build(tree: Path, target: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of a tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(target)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (wheel,), (source,) = target.glob("dugong_ws-*.whl"), target.glob("dugong_ws-*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(built[0]).namelist())
    assert "dugong/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"dugong", "dugong_ws"}
    assert {f"dugong/{one.relative_to(ROOT / 'src' / 'dugong').as_posix()}" for one in MODULES} <= names


def test_the_same_tree_gives_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Built again, from the source distribution, elsewhere, later and with other rights: nothing of that is seen."""
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "tree", filter="data")
    (tree,) = (tmp_path / "tree").iterdir()
    for number, file in enumerate(sorted(tree.rglob("*"))):
        file.chmod(0o700 if file.is_dir() else 0o600)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    again = build(tree, tmp_path / "dist")
    for one, other in zip(built, again, strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_the_source_distribution_can_be_tested(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Makefile", "constraints.txt", "pyproject.toml", "tests/conftest.py", "docs/index.md", "CONTRIBUTING.md"}
    assert needed <= names
    assert not {name for name in names if name.startswith((".venv", ".cache", "site/", "dist/"))}


def test_the_readme_on_a_package_index_has_no_dead_links(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        shown = wheel.read(name).decode().partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", shown, flags=re.DOTALL))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    blocks = [re.findall(r"```.*?```", text, flags=re.DOTALL) for text in (shown, (ROOT / "README.md").read_text())]
    assert blocks[0] == blocks[1]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_links_of_the_readme_lead_to_files() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


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
    """Except for the one that asks a model because the user wrote a judge; it sends nothing unasked (test_judge)."""
    allowed = {"http.client"} if module.parts[-2:] == ("sources", "asking.py") else set()
    assert imported_modules(module) & NETWORK <= allowed
