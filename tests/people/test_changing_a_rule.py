"""Somebody who tries thresholds all afternoon: one changed rule, one run, and an answer at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from command_line import Command

IMPORTS = "import numba, numpy, pyarrow.csv, pyarrow.parquet, scipy.optimize, scipy.sparse, scipy.special"


def processor_seconds(*command: object) -> tuple[float, str]:
    """What a process and its children took, and what it said."""
    before = os.times()
    done = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout + done.stderr


def test_a_run_after_one_change_costs_little_more_than_its_imports(cli: Command, tmp_path: Path) -> None:
    """Under 2 s where importing numba, scipy and pyarrow takes .5 to .8 s: in proportion, as machines differ."""
    assert cli("init", tmp_path / "walking").code == 0
    sources, run = tmp_path / "walking" / "sources.py", ("-m", "dugong", "run", tmp_path / "walking")
    processor_seconds(*run)  # the first one compiles, if nobody has
    spent, bare = [], []
    for place in (1, 2, 3):
        sources.write_text(re.sub(r"movement > 0\.\d+", f"movement > 0.6{place}", sources.read_text()))
        seconds, said = processor_seconds(*run)
        assert "moves ran now" in said
        spent.append(seconds)
        bare.append(processor_seconds("-c", IMPORTS)[0])
    assert min(spent) < 4 * min(bare), (spent, bare)


def test_a_run_does_not_load_what_it_does_not_use(cli: Command, tmp_path: Path) -> None:
    """Not even pandas, which Arrow would import by itself wherever it is installed."""
    assert cli("init", tmp_path / "walking").code == 0
    heavy = ("pandas", "scipy.stats", "scipy.optimize", "torch", "matplotlib", "sklearn", "rich")
    code = f"""
import atexit, sys
atexit.register(lambda: print("loaded", [one for one in {heavy} if one in sys.modules]))
from dugong.cli import main
sys.argv = ["dugong", "run", {str(tmp_path / "walking")!r}]
main()
"""
    assert "loaded []" in processor_seconds("-c", code)[1]
