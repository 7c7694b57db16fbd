"""A project.toml: what it may say, and what is said about mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dugong as dg
from dugong.cli.project import ProjectError, read_project
from dugong.cli.settings import beliefs_of
from dugong.exceptions import PriorError

MINIMAL = 'data = "loader:sequences"\nsources = "sources.py"\n'


def write(folder: Path, text: str) -> Path:
    file = folder / "project.toml"
    file.write_text(text)
    return file


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    project = read_project(write(tmp_path, MINIMAL))
    assert (project.prior, project.dependencies, project.gold) == ("learn", None, None)
    assert project.output == tmp_path / "output"
    assert (project.jobs, project.on_fault, project.sharing, project.estimator) == (1, "raise", "tied", "centred")


def test_all_keys(tmp_path: Path) -> None:
    text = MINIMAL + (
        'output = "there"\nprior = {kind = "markov", positive = 0.1, stay = 0.9}\ndependencies = [["a", "b"], "c@1"]\n'
        'gold = "gold.csv"\nclasses = ["no", "yes"]\nresolutions = ["element"]\nsharing = {a = "task"}\n'
        'estimator = "centred"\nsigns = "positive"\njobs = 2\non_fault = "abstain"\nspans = {shot = "loader:shots"}\n'
        'background = "no"\nbeliefs = {a = {precision = 0.8, weight = 20}}\n'
    )
    project = read_project(write(tmp_path, text))
    assert repr(project.read_prior()) == "Markov(positive=0.1, stay=0.9)"
    assert project.dependencies == (("a", "b"), dg.temporal("c"))
    assert project.gold == tmp_path / "gold.csv"
    assert project.classes == ("no", "yes")
    assert project.sharing == {"a": "task"}
    assert beliefs_of(project.beliefs) == {"a": dg.Belief(precision=0.8, weight=20)}
    with pytest.raises(dg.GraphError, match="such as lexicon"):
        beliefs_of({"a": {"precission": 0.8}})
    assert project.spans == {"shot": "loader:shots"}
    assert (project.signs, project.jobs, project.on_fault) == ("positive", 2, "abstain")


def test_the_folder_stands_for_its_project(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL)
    assert read_project(tmp_path).folder == tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data = ", "it is no TOML"),
        ('data = "x"', "'sources' is missing"),
        (MINIMAL + "dependancies = []", "'dependancies', which is not known; did you mean 'dependencies'"),
        (MINIMAL + "jobs = true", "jobs in .* must be a whole number; found True"),
        (MINIMAL + "gold = 3", "gold in .* must be a string; found 3"),
        (MINIMAL + r'output = "a\u0000b"', r"text must not hold NUL; found 'a\\x00b'"),
        (MINIMAL + r'export = ["a\u0000b"]', "text must not hold NUL"),
        (MINIMAL + "classes = 'a'", "classes in .* must be a list"),
        (MINIMAL + "spans = {shot = ['x']}", r"spans\.shot in .* must name a function, such as \"loader:shots\""),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        read_project(write(tmp_path, text))


def test_a_wrong_prior_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(PriorError, match=r"the prior of .*project\.toml does not describe"):
        read_project(write(tmp_path, MINIMAL + 'prior = {kind = "markov", psitive = 0.1}')).read_prior()


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"(?s)there is no file .*`dugong init DIR` writes a project"):
        read_project(tmp_path / "project.toml")
