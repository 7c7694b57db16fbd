"""Somebody with a fast sensor and rules about seconds of it: what a run says leads to elements that rules vote on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import Command

RULES = """
import dugong as dg


@dg.source(resolution=dg.Window(seconds=1, link="majority"))
def shakes(window):
    return dg.POSITIVE if window["force"].std() > 1.4 else dg.NEGATIVE


@dg.source(resolution=dg.Window(seconds=1, link="majority"))
def reaches_far(window):
    return dg.POSITIVE if abs(window["force"]).max() > 4 else dg.NEGATIVE


@dg.source(resolution=dg.Window(seconds=4, link="majority"))
def shakes_for_long(window):
    return dg.POSITIVE if window["force"].std() > 1.5 else dg.NEGATIVE
"""
PROJECT = 'data = "recordings"\ntime = "t"\nsources = "sources.py"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    (tmp_path / "recordings").mkdir()
    for number in range(12):
        force = rng.normal(scale=np.repeat(np.where(rng.random(10) < 0.4, 2.0, 1.0), 4 * 32))
        rows = np.column_stack([np.arange(len(force)) / 32, force])
        file = tmp_path / "recordings" / f"day{number}.csv"
        np.savetxt(file, rows, fmt="%.6g", delimiter=",", header="t,force", comments="")
    (tmp_path / "sources.py").write_text(RULES)
    return tmp_path / "project.toml"


def test_the_remedy_of_a_run_is_one_that_works(cli: Command, project: Path) -> None:
    project.write_text(PROJECT)
    assert 'every = "1s", or rate = 64' in cli("run", project).err
    project.write_text(PROJECT + "rate = 32\n")
    raw = cli("run", project, "--json").json
    (said,) = [one for one in raw["findings"] if "finest" in one]
    assert "looks at 32 at once" in said
    assert 'every = "1s" and reduce = "none" in project.toml' in said

    project.write_text(PROJECT + 'every = "1s"\nreduce = "none"\n')
    again = cli("run", project, "--json")  # the elements are others now, so that no vote is kept
    assert again.code == 0, again.err
    assert not any("finest" in one for one in again.json["findings"])
    votes = [[one["votes"] for one in run["report"]["sources"]] for run in (raw, again.json)]
    assert votes[0] == votes[1] == [480, 480, 120]


def test_a_rule_about_rows_is_told_that_it_sees_only_their_mean(cli: Command, project: Path) -> None:
    project.write_text(PROJECT + 'every = "1s"\n')
    said = cli("run", project).err
    assert "shakes, reaches_far: the window is one element, of which only the mean is left" in said
    assert 'reduce = "none"' in said
