"""Files that the first version of every format wrote are still read, and mean what they meant."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.sums import Moments, inside, pair

FILES = Path(__file__).parent / "files" / "version1"
ANSWERS = json.loads((FILES / "answers.json").read_text())
MODELS = ("resolutions", "temporal", "learned", "three", "joint", "patterns")


LEARNED = ("learned", "three")  # averaged with a second answer, which is no longer made


def load(name: str) -> dg.LabelModel:
    if name not in LEARNED:
        return dg.LabelModel.load(FILES / f"{name}.json")
    with pytest.warns(UserWarning, match="Fit again"):
        return dg.LabelModel.load(FILES / f"{name}.json")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_still_labels_as_it_did(name: str) -> None:
    model, expected = load(name), ANSWERS[name]
    votes = dg.Votes.read(FILES / f"{name}.npz")
    if name not in LEARNED:
        np.testing.assert_allclose(model.predict_proba(votes)[:, 1], expected["probabilities"], rtol=0, atol=1e-9)
    for source, table in expected["accuracies"].items():
        np.testing.assert_allclose(model.accuracies_[source], table, rtol=0, atol=1e-9)


def _figures(text: str) -> list[str]:
    """The lines of a summary that must never change."""
    words = ("prior ", "accuracy is", "- tables are the means", "- one exact E/M step")
    lines = [re.sub(r"^- (\w+): (?=.*'\1')", "- ", line) for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(words)]


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_written_in_the_new_form(name: str, tmp_path: Path) -> None:
    model = load(name)
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    assert again.parameters_.to_dict() == model.parameters_.to_dict()
    assert again.get_params().keys() == model.get_params().keys()
    said, expected = str(model.summary()), ANSWERS[name]["summary"]
    assert str(again.summary()) == said
    assert repr(model.prior_) in expected
    # The prior is in words and columns are explained since, remarks name their source once, and those about the way
    # to an estimate are left to the diagnostics; everything else is as it was.
    assert _figures(said) == _figures(expected)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_votes_with_everything_in_them(kind: str, tmp_path: Path) -> None:
    votes = dg.Votes.read(FILES / f"votes.{kind}")
    assert [column.tolist() for column in votes.columns] == [[1, 1, 2, 0, 4], [1, -1, 1], [1, -1, 1], [0, 1]]
    assert [one.resolution.name for one in votes.sources] == ["element", "shot", "pair", "sequence"]
    assert (votes.sources[2].shares, votes.sources[2].resolution.of) == ("a", 2)
    assert (votes.class_names, votes.background, dict(votes.partial)) == (("x", "y", "z"), 1, {4: (1, 2)})
    assert votes.ids.tolist() == ["first", "second"]
    assert votes.spans["shot"].stops.tolist() == [2, 1, 3]
    assert votes.time.rate.tolist() == [10, 20]
    assert votes.faults[0].error == "ValueError: no face"
    votes.write(tmp_path / f"again.{kind}")
    assert dg.Votes.read(tmp_path / f"again.{kind}").equals(votes)


def test_the_rounding_report_of_old_votes() -> None:
    assert dg.Votes.read(FILES / "rounded.parquet").time.rounding.n_moved == 1


def test_old_moments_count_what_they_counted(tmp_path: Path) -> None:
    moments = Moments.load(FILES / "moments.npz")
    assert [counts.tolist() for counts in moments.counts] == ANSWERS["moments"]
    rows = (inside("a", "s"), pair("a", "b", lag=1), pair("a", "b", by_position=True))
    assert moments.plan.rows == rows
    assert moments.shapes.spans["shot"].starts.tolist() == [0, 0, 1]
    moments.save(tmp_path / "again.npz")
    assert Moments.load(tmp_path / "again.npz").plan == moments.plan
