"""One law answers every question: labels, best paths, explanations, reports, files and fingerprints agree."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.priors import Markov
from dugong.report import summarize
from dugong.report.material import places_of
from dugong.tasks import Element, Sequence, Window
from dugong.votes import Votes
from dugong.worlds import Block, World, accurate, lopsided, sticky

STORED = Path(__file__).parent.parent / "fixtures" / "models-version-1.json"
VOTES = lopsided(5, seed=3).sample(300, rng=3)[0]
SHARED = VOTES.select(sources=VOTES.source_names[:2])[:60]
GIVEN = {"prior": Markov(positive=0.4, stay=0.8), "dependencies": ()}
SETTINGS = {"learned": {}, "few": {}, "given": GIVEN}


@pytest.fixture(scope="module", params=list(SETTINGS))
def fitted(request):
    votes = SHARED if request.param == "few" else VOTES  # sources that share errors: the law is tempered
    gold = np.where(np.arange(votes.n_elements) % 3, 1, -1).astype(np.int8)
    return dg.LabelModel(**SETTINGS[request.param]).fit(votes), votes, gold


# --- report --------------------------------------------------------------------------------------------------------
def test_the_strips_of_the_report_are_the_labels_and_the_best_path(fitted) -> None:
    model, votes, gold = fitted
    report = summarize(model, votes, gold, budget=None, n_sequences=votes.n_sequences)
    labels, path = model.predict(votes), model.decode(votes)
    for track in report.sequences.tracks:
        rows = votes.layout(Element()).rows(track.place)
        np.testing.assert_array_equal(track.labels, places_of(labels[rows], votes))
        np.testing.assert_array_equal(track.decoded, places_of(path[rows], votes))
        assert track.wrong == pytest.approx((labels[rows] != gold[rows]).mean())
        assert track.wrong_path == pytest.approx((path[rows] != gold[rows]).mean())
    assert len(report.sequences.tracks) == votes.n_sequences
    assert report.sequences.path


def test_explanations_end_at_the_label_that_is_shown(fitted) -> None:
    model, votes, _ = fitted
    shown = model.predict_proba(votes)
    for task in (0, 1):
        found = model.explain(votes, 2, task)
        row = votes.layout(Element()).rows(2).start + task
        assert found.probability == pytest.approx(shown[row, 1], abs=1e-9)
        parts = found.prior + sum(one.log_odds for one in found.own_votes) + found.neighbours + found.averaging
        assert parts == pytest.approx(found.log_odds, abs=1e-9)


# --- fingerprints --------------------------------------------------------------------------------------------------
def numbers(plain, path=()):
    """Where the numbers of plain data are."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in items:
        if isinstance(value, float):
            yield (*path, key)
        else:
            yield from numbers(value, (*path, key))


def test_whatever_changes_a_label_changes_the_fingerprint(fitted, tmp_path) -> None:
    model, votes, _ = fitted
    report = summarize(model, votes, n_sequences=1)
    assert report.provenance.model_hash == model.law_.fingerprint
    file, labels = tmp_path / "model.json", model.predict_proba(votes)
    model.save(file)
    plain = json.loads(file.read_text())
    places, n_changed = list(numbers(plain)), 0
    for place in places[:: max(1, len(places) // 100)]:
        other = json.loads(json.dumps(plain))
        inner = other
        for key in place[:-1]:
            inner = inner[key]
        # Tables may miss a sum of one by that much, and probabilities stay such.
        inner[place[-1]] += 3e-7 if inner[place[-1]] < 0.5 else -3e-7
        file.write_text(json.dumps(other))
        again = dg.LabelModel.load(file)
        if not np.array_equal(again.predict_proba(votes), labels):
            n_changed += 1
            assert again.law_.fingerprint != model.law_.fingerprint, place
    assert n_changed > 5


def test_tempering_is_part_of_the_fingerprint() -> None:
    law = dg.LabelModel().fit(SHARED).law_
    softer = replace(law.tempering, trust=0.5)
    assert len({law.fingerprint, law.exact.fingerprint, replace(law, tempering=softer).fingerprint}) == 3


# --- files ---------------------------------------------------------------------------------------------------------
def test_a_file_keeps_the_law(fitted, tmp_path) -> None:
    model, votes, _ = fitted
    model.save(tmp_path / "model.json")
    again = dg.LabelModel.load(tmp_path / "model.json")
    assert again.law_.fingerprint == model.law_.fingerprint
    assert again.graph_ == model.graph_
    np.testing.assert_array_equal(again.predict_proba(votes), model.predict_proba(votes))


@pytest.mark.parametrize("name", ["learned", "trusted", "given", "given graph"])
def test_files_of_the_first_version_are_read(name, tmp_path) -> None:
    stored = json.loads(STORED.read_text())
    codes = np.array(stored["votes"], dtype=np.int8)
    votes = Votes.from_dense(codes, lengths=[stored["length"]] * (len(codes) // stored["length"]))
    case, file = stored["models"][name], tmp_path / "model.json"
    file.write_text(json.dumps(case["file"]))
    if name in ("learned", "trusted"):  # averaged with a second answer, which is no longer made
        with pytest.warns(UserWarning, match="Fit again"):
            model = dg.LabelModel.load(file)
    else:
        model = dg.LabelModel.load(file)
        np.testing.assert_allclose(model.predict_proba(votes)[:60], case["probabilities"], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.decode(votes)[:60], case["decoded"])
    assert model.graph_.edges == (() if name == "trusted" else (("s3", "s4"),))
    model.save(file)
    assert json.loads(file.read_text())["version"] == 2
    assert dg.LabelModel.load(file).law_.fingerprint == model.law_.fingerprint


def test_what_was_learned_is_readable_under_its_old_name() -> None:
    model = dg.LabelModel().fit(VOTES)
    with pytest.warns(DeprecationWarning, match="read law_, graph_ and diagnostics_"):
        learned = model.learned_
    assert (learned.law, learned.graph, learned.trust) == (
        model.law_,
        model.graph_,
        model.diagnostics_.learned["trust"],
    )
    np.testing.assert_array_equal(learned.probabilities(VOTES)[Element()], model.predict_proba(VOTES))
    with pytest.warns(DeprecationWarning, match="deprecated"):
        assert dg.LabelModel(**GIVEN).fit(VOTES).learned_ is None


def test_nothing_of_our_own_uses_the_old_name(fitted, tmp_path) -> None:
    model, votes, gold = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        model.report(votes, tmp_path / "report.html", gold=gold)
        model.summary(votes, gold)
        model.save(tmp_path / "model.json")


# --- resolutions of a given law ------------------------------------------------------------------------------------
def test_windows_of_one_element_have_its_probability_and_any_is_between_largest_and_sum() -> None:
    blocks = (
        *(Block(names=(f"s{j}",), table=accurate(0.85, 0.8, 0.1, 0.2)) for j in range(3)),
        Block(names=("window",), table=accurate(0.8, 0.8, 0.1), resolution=Window(3, 2, "any")),
        Block(names=("whole",), table=accurate(0.8, 0.8, 0.1), resolution=Sequence("any")),
    )
    world = World(prior=sticky(0.3, 0.8), blocks=blocks, lengths=lambda n, rng: rng.integers(1, 9, n))
    votes, _ = world.sample(80, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
    elements = model.predict_proba(votes)[:, 1]
    np.testing.assert_allclose(model.predict_proba(votes, Window(1, 1, "any"))[:, 1], elements, rtol=0, atol=1e-10)
    for resolution in votes.resolutions[1:]:
        starts, stops = votes.layout(resolution).bounds()
        offsets = votes.layout(Element()).offsets[votes.layout(resolution).owners()]
        answers = model.predict_proba(votes, resolution)[:, 1]
        for found, start, stop in zip(answers, starts + offsets, stops + offsets, strict=True):
            assert elements[start:stop].max() - 1e-10 <= found <= elements[start:stop].sum() + 1e-10


# --- batches -------------------------------------------------------------------------------------------------------
def test_the_label_of_a_sequence_does_not_depend_on_its_batch() -> None:
    world = World(
        prior=sticky(0.4, 0.8),
        blocks=tuple(Block(names=(f"s{j}",), table=accurate(0.75 + 0.03 * j, 0.8, 0.1, 0.1)) for j in range(4)),
        lengths=lambda n, rng: rng.integers(1, 5, n),
    )
    votes, _ = world.sample(60, rng=2)
    for settings in ({}, {"prior": world.prior, "dependencies": ()}, {"dependencies": ()}):
        model = dg.LabelModel(**settings).fit(votes)
        together = model.predict_proba(votes)
        alone = np.concatenate([model.predict_proba(votes[[place]]) for place in range(votes.n_sequences)])
        short = model.predict_proba(votes[np.flatnonzero(votes.lengths == 1)])
        np.testing.assert_allclose(alone, together, rtol=0, atol=1e-10)
        rows = np.repeat(votes.lengths, votes.lengths) == 1
        np.testing.assert_allclose(short, together[rows], rtol=0, atol=1e-10)
