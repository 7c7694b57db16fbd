"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest


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
