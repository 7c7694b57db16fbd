"""Priors and dependencies as words, on the command line and in TOML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dugong as dg
from dugong import priors
from dugong.cli.settings import dependencies_of, prior_of, read_dependencies, read_groups, read_prior
from dugong.exceptions import GraphError, PriorError, VoteError


def test_priors_in_words() -> None:
    assert read_prior("learn") == "learn"
    assert read_prior("uniform").to_dict() == priors.Uniform().to_dict()
    assert repr(read_prior("markov:positive=0.1,stay=0.9")) == "Markov(positive=0.1, stay=0.9)"
    assert read_prior("markov:positive=0.03,bout=10").to_dict() == priors.Markov(positive=0.03, bout=10).to_dict()


def test_priors_in_tables() -> None:
    table = {"kind": "markov", "positive": 0.1, "stay": 0.9}
    assert prior_of(table).to_dict() == priors.Markov(positive=0.1, stay=0.9).to_dict()
    patterns = priors.Patterns({(1, 1): 0.2, (-1, -1): 0.8})
    assert prior_of(patterns.to_dict()).to_dict() == patterns.to_dict()


@pytest.mark.parametrize("ending", [".json", ".toml"])
def test_priors_in_files(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"prior{ending}"
    plain = {"kind": "markov", "positive": 0.1, "stay": 0.9}
    text = json.dumps(plain) if ending == ".json" else 'prior = {kind = "markov", positive = 0.1, stay = 0.9}'
    file.write_text(text)
    assert read_prior(str(file)).to_dict() == priors.Markov(positive=0.1, stay=0.9).to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("markow:positive=0.1", "kind must be one of .*'markov'.*; found 'markow'"),
        ("markov:positive", "written as markov:positive=0.1,stay=0.9; found 'positive'"),
        ("markov:positive=much", "found 'positive=much'"),
        ("markov:positiv=0.1,stay=0.9", "does not describe a prior of the kind 'markov'"),
        ("markov:positive=0.9,stay=0.1", "must be at most"),
        ("patterns", "lacks 'patterns'"),
    ],
)
def test_what_is_no_prior(text: str, message: str) -> None:
    with pytest.raises(PriorError, match="(?s)" + message):
        read_prior(text)


@pytest.mark.parametrize("value", [3, ["markov"], {"positive": 0.1}])
def test_a_toml_value_that_is_no_prior(value: object) -> None:
    with pytest.raises(PriorError, match='must be "learn" or a table with a kind'):
        prior_of(value)


def test_a_prior_file_that_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "prior.json"
    file.write_text('{"kind": ')
    with pytest.raises(PriorError, match=r"prior\.json cannot be read"):
        read_prior(str(file))


def test_dependencies_in_words() -> None:
    assert read_dependencies("learn") == "learn"
    assert read_dependencies("none") == ()
    assert read_dependencies("a+b, c@2") == (("a", "b"), dg.temporal("c", lag=2))


def test_dependencies_in_tables() -> None:
    listed = [["a", "b"], "c@1", "d+e", {"temporal": "f", "lag": 3}]
    assert dependencies_of(listed) == (("a", "b"), dg.temporal("c"), ("d", "e"), dg.temporal("f", lag=3))
    assert dependencies_of([]) == ()


@pytest.mark.parametrize("wrong", ["faces", ["faces", "captions"], [["a", "b", "c"]], [{"lag": 1}], 7])
def test_what_is_no_dependency(wrong: object) -> None:
    with pytest.raises(GraphError, match=r"a dependency is a pair|must be \"learn\", \"low-rank\" or a list"):
        dependencies_of(wrong)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"sequence,gr\xfcppe\n0,a\n", "cannot be read: 'utf-8' codec"),
        (b"sequence,sequence,group\n0,0,a\n", "must have the columns sequence and group; found sequence, sequence"),
        (b"sequence,clinic\n0,a\n", "must have the columns sequence and group; found sequence, clinic"),
        (b"", "cannot be read"),
    ],
)
def test_tables_of_groups_that_cannot_be_used(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "groups.csv").write_bytes(content)
    votes = dg.Votes.from_tasks({"a": [1]}, lengths=[1])
    with pytest.raises(VoteError, match=words):
        read_groups("groups.csv", votes, tmp_path)
