"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from command_line import Command, Outcome

ROOT = Path(__file__).resolve().parent.parent

# "checks" is the default everywhere: the same examples on every run, so a red check means a changed program.
# HYPOTHESIS_PROFILE=explore looks for new examples, and more of them; "mutants" does not look for the smallest one.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("checks", max_examples=40, derandomize=True, **_COMMON)
settings.register_profile("explore", max_examples=500, print_blob=True, **_COMMON)
_HASTY = {"max_examples": 15, "phases": [Phase.explicit, Phase.generate]}
settings.register_profile("mutants", derandomize=True, **_HASTY, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "checks"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder with the real votes; without it, skip and say so, but fail where CI=true."""
    folder = Path(os.environ.get("DUGONG_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        message = f"the real votes are not here: looked in {folder}; set DUGONG_DATA to their folder."
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """Give a generator with a fixed seed, new for every test."""
    return np.random.default_rng(20191208)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command line in this process: ``cli("check", path)``."""

    from dugong.cli import exit_code

    def call(*words: object) -> Outcome:
        code = exit_code([str(word) for word in words])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project of a few short sequences; returns its project.toml."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "loader.py").write_text(
        "import random\n\n\n"
        "def sequences():\n"
        "    numbers = random.Random(3)\n"
        "    for name in range(60):\n"
        "        labels = [numbers.random() < 0.4] * 3 + [numbers.random() < 0.4] * 3\n"
        "        yield f'q{name:02d}', [(int(y), *(numbers.random() for _ in range(3))) for y in labels]\n"
    )
    (folder / "sources.py").write_text(
        "import dugong as dg\n\n\n"
        "def vote(element, place):\n"
        "    return 1 if (element[0] == 1) == (element[place] < 0.8) else -1\n\n\n"
        "@dg.source\ndef one(element):\n    return vote(element, 1)\n\n\n"
        "@dg.source\ndef two(element):\n    return vote(element, 2)\n\n\n"
        "@dg.source\ndef three(element):\n    return vote(element, 3)\n"
    )
    project = folder / "project.toml"
    project.write_text(
        'data = "loader:sequences"\nsources = "sources.py"\noutput = "out"\ndependencies = []\n'
        'prior = { kind = "markov", positive = 0.4, stay = 0.8 }\n'
    )
    return project
