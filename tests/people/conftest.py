"""Dugong as people install it: the wheel, in an environment of its own, made once for all tests.

What the wheel depends on is taken from the environment of the tests, so that this takes seconds; `make smoke` installs
everything anew, from the package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel in it."""

    home: Path

    def python(self, *words: object, folder: Path) -> str:
        """Run its Python in a folder; what it printed."""
        command = [self.home / "bin" / "python", "-I", *words]
        done = subprocess.run(map(str, command), cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def dugong(self, *words: object, folder: Path) -> str:
        """Run its command in a folder; what it printed."""
        return self.python(self.home / "bin" / "dugong", *words, folder=folder)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this tree, installed."""
    place = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    home = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--python", home, "install", "-qq", "--no-deps", "--no-index", wheel]
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(list(map(str, pip)), check=True, env=environment)
    (packages,) = home.glob("lib/python*/site-packages")
    # A folder in a .pth file comes after the wheel, and .pth files inside of it (our own, editable one) are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    _bring_compiled(ROOT / "src" / "dugong", packages / "dugong")
    return Installed(home)


def _bring_compiled(source: Path, target: Path) -> None:
    """Copy what this tree has compiled already: a cache belongs to a file by its size and time."""
    for kernels in source.rglob("_kernels.py"):
        twin = target / kernels.relative_to(source)
        assert twin.read_bytes() == kernels.read_bytes()
        shutil.copystat(kernels, twin)
        for compiled in kernels.parent.glob("__pycache__/_kernels.*.nb?"):
            (twin.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(compiled, twin.parent / "__pycache__")
