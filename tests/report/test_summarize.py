"""The value behind a report: every number in it can be checked against its definition."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import numpy as np
import pytest

from dugong.baselines import MajorityVote
from dugong.exceptions import TaskError, VoteError
from dugong.metrics import runs
from dugong.model import LabelModel
from dugong.report import render_text, summarize
from dugong.report.material import Interest, element_entropy, gather, measure, take_in_turn
from dugong.report.summarize import hash_votes
from dugong.tasks import Element
from dugong.votes import Votes
from dugong.worlds import Block, World, accurate, copying_pair, lopsided, sticky
from reports import binary_case, many_case


@pytest.fixture(scope="module")
def report():
    case = binary_case()
    return summarize(case.model, case.votes, case.gold, made=datetime(2024, 5, 1, 12, 30, tzinfo=UTC))


def test_overview_counts_what_was_labelled(report):
    votes = binary_case().votes
    seen = report.overview
    assert (seen.n_sequences, seen.n_elements, seen.n_sources) == (60, votes.n_elements, 7)
    assert seen.n_votes == sum(int(np.count_nonzero(column)) for column in votes.columns)
    assert seen.n_known == votes.n_elements
    assert sum(seen.histogram_counts) == 60
    assert [row.name for row in seen.resolutions] == ["element", "caption", "sequence"]
    assert [row.n_tasks for row in seen.resolutions] == [votes.layout(one).n_tasks for one in votes.resolutions]
    assert seen.resolutions[0].shares[1] == pytest.approx(binary_case().model.predict_proba(votes)[:, 1].mean())


def test_sources_show_estimates_beside_gold(report):
    case = binary_case()
    learned, seen = case.model.summary(case.votes, case.gold), case.votes.summary(case.gold)
    for row, counted in zip(report.sources, seen.sources, strict=True):
        assert (row.coverage, row.overlaps, row.conflicts) == (counted.coverage, counted.overlaps, counted.conflicts)
        assert row.empirical == counted.accuracy
        assert row.accuracy == learned[row.name].accuracy
        assert [part.interval for part in row.classes] == [part.interval for part in learned[row.name].classes]
        assert [part.empirical for part in row.classes] == [part.empirical for part in learned[row.name].classes]


def test_dependencies_are_the_declared_ones(report):
    kinds = {(edge.first, edge.second): edge.kind for edge in report.dependencies.edges}
    assert kinds == {("voice", "echo"): "pair", ("motion", "motion"): "repeats itself"}
    assert all(0.1 < edge.strength < 0.7 for edge in report.dependencies.edges)


def test_strength_of_a_pair_is_the_share_that_independence_misplaces():
    joint = copying_pair(accurate(0.8, 0.7), 0.6)
    blocks = (Block(names=("a", "b"), table=joint), *(Block(names=(n,), table=accurate(0.8)) for n in "cde"))
    world = World(prior=sticky(0.5, 0.0), blocks=blocks, lengths=4)
    votes, _ = world.sample(20_000, rng=0)
    model = LabelModel(prior=world.prior, dependencies=[("a", "b")]).fit(votes)
    edge = summarize(model, votes, n_sequences=0).dependencies.edges[0]
    alone = joint.sum(axis=2)[:, :, None] * joint.sum(axis=1)[:, None, :]
    expected = 0.5 * 0.5 * np.abs(joint - alone).sum()
    assert edge.strength == pytest.approx(expected, abs=0.02)


def test_the_prior_in_numbers(report):
    stay = 0.8 + 0.2 * 0.3
    assert report.prior.share == pytest.approx((0.7, 0.3), abs=1e-12)
    assert report.prior.bouts[1] == pytest.approx(1 / (1 - stay))
    assert report.prior.transition[1] == pytest.approx([1 - stay, stay])
    assert not report.prior.learned


def test_agreement_is_that_of_the_votes(report):
    votes = binary_case().votes
    a, b = votes.column("face"), votes.column("light")
    both = (a != 0) & (b != 0)
    assert report.agreement.observed[0, 1] == pytest.approx((a == b)[both].mean())
    assert report.agreement.n_pairs[0, 1] == both.sum()
    assert np.isnan(report.agreement.observed[0, 5]), "sources at different resolutions never vote on the same task"


def test_only_an_unmodelled_dependency_leaves_a_residual():
    case = binary_case(n_sequences=2000)
    known = summarize(case.model, case.votes, n_sequences=0).agreement
    i, j = known.names.index("voice"), known.names.index("echo")
    assert np.nanmax(np.abs(known.excess)) < 0.03
    ignorant = LabelModel(prior=case.model.prior_, dependencies=()).fit(case.votes)
    found = summarize(ignorant, case.votes, n_sequences=0)
    assert found.agreement.excess[i, j] > 0.05
    assert any("voice and echo" in one.text and "declare" in one.todo for one in found.findings)


def test_scores_are_a_histogram_with_a_reliability_curve(report):
    case = binary_case()
    positive = case.model.predict_proba(case.votes)[:, 1]
    assert sum(report.scores.counts) == case.votes.n_elements
    assert report.scores.counts[0] == np.count_nonzero(positive < 0.05)
    assert report.scores.expected_accuracy == pytest.approx(np.maximum(positive, 1 - positive).mean())
    filled = [place for place, count in enumerate(report.scores.bin_counts) if count]
    low, high = filled[0] / 10, (filled[0] + 1) / 10
    mine = (positive >= low) & (positive < high)
    assert report.scores.frequency[filled[0]] == pytest.approx((case.gold[mine] == 1).mean())


def test_events_are_runs_of_the_decoded_labels(report):
    case = binary_case()
    decoded = case.model.decode(case.votes)
    found = runs(np.where(decoded == 1, 0, -1), case.votes.layout("element").offsets)
    row = report.events.rows[0]
    assert row.n_events == len(found)
    assert row.mean == pytest.approx((found.end - found.start).mean())
    truth = runs(np.where(case.gold == 1, 0, -1), case.votes.layout("element").offsets)
    assert row.gold_events == len(truth)


def test_a_better_model_is_said_to_be_better(report):
    assert report.versus.better is True
    assert report.versus.sentence.startswith("The label model is better than majority vote")
    assert report.versus.confusion.sum() == report.overview.n_elements


def test_a_model_that_is_not_better_is_said_so_plainly():
    case = binary_case()
    gold = MajorityVote().fit(case.votes).predict(case.votes)
    found = summarize(case.model, case.votes, gold, n_sequences=1)
    assert found.versus.better is False
    assert "worse than majority vote" in found.versus.sentence
    first = found.findings[0]
    assert (first.level, first.text) == ("warning", found.versus.sentence)
    assert "Majority vote is simpler" in first.todo


def test_without_gold_nothing_is_claimed():
    case = binary_case()
    found = summarize(case.model, case.votes, n_sequences=1)
    assert found.versus.better is None
    assert "cannot be told without known labels" in found.versus.sentence
    assert found.scores.ece is None
    assert found.events.rows[0].gold_events is None
    assert any("No known labels" in one.text for one in found.findings)


def test_gold_of_some_elements_is_enough():
    case = binary_case()
    gold = np.where(np.arange(case.votes.n_elements) % 3 == 0, case.gold, 0)
    found = summarize(case.model, case.votes, gold, n_sequences=2)
    assert found.overview.n_known == np.count_nonzero(gold)
    assert (found.sequences.tracks[0].gold == -1).any()


def test_a_source_worse_than_chance_is_a_warning():
    blocks = (*(Block(names=(n,), table=accurate(0.85)) for n in "abcde"), Block(names=("bad",), table=accurate(0.3)))
    world = World(prior=sticky(0.5, 0.5), blocks=blocks, lengths=10)
    votes, _ = world.sample(400, rng=0)
    model = LabelModel(prior=world.prior, dependencies=()).fit(votes)
    found = [one for one in summarize(model, votes, n_sequences=0).findings if one.where == "bad"]
    assert any(one.level == "warning" and "no better than chance" in one.text for one in found)


def test_sources_that_never_vote_are_one_finding():
    case = binary_case()
    names = ("face", "light")
    columns = [
        np.zeros_like(c) if s.name in names else c for s, c in zip(case.votes.sources, case.votes.columns, strict=True)
    ]
    quiet = Votes(sources=case.votes.sources, columns=tuple(columns), lengths=case.votes.lengths)
    found = [one.text for one in summarize(case.model, quiet, n_sequences=0).findings if "never vote" in one.text]
    assert found == ["2 sources never vote and have no influence: face, light."]


# --- which sequences -----------------------------------------------------------------------------------------------
def test_sequences_are_measured_by_their_definitions():
    case = binary_case()
    interest = measure(gather(case.model, case.votes, case.gold))
    rows = case.votes.layout("element").rows(4)
    law = case.model.predict_proba(case.votes)[rows]
    entropy = -(law * np.log2(law)).sum(axis=1)
    assert interest.uncertainty[4] == pytest.approx(entropy.mean(), abs=1e-12)
    majority = MajorityVote().fit(case.votes).predict(case.votes)
    model = case.model.predict(case.votes)
    assert interest.difference[4] == pytest.approx((majority != model)[rows].mean())
    assert interest.wrong[4] == pytest.approx((case.gold != model)[rows].mean())
    wrong = spoken = 0.0
    for name in ("caption", "show"):
        place = case.votes.index(name)
        resolution = case.votes.sources[place].resolution
        inside = case.votes.layout(resolution).rows(4)
        votes, chance = case.votes.columns[place][inside], case.model.predict_proba(case.votes, resolution)[inside]
        wrong += chance[votes == 1, 0].sum() + chance[votes == -1, 1].sum()
        spoken += np.count_nonzero(votes)
    assert interest.disagreement[4] == pytest.approx(wrong / spoken)


def test_without_coarse_sources_resolutions_cannot_disagree():
    track = summarize(many_case().model, many_case().votes, n_sequences=1).sequences.tracks[0]
    assert track.disagreement is None


def test_entropy_of_certainty_and_of_ignorance():
    np.testing.assert_allclose(element_entropy(np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])), [0, 1], atol=1e-12)


def test_lists_take_turns():
    interest = Interest(
        uncertainty=np.array([0.1, 0.9, 0.2, 0.3]),
        disagreement=np.array([0.0, 0.1, 0.9, np.nan]),
        difference=np.array([0.0, 0.3, 0.2, 0.8]),
        wrong=np.full(4, np.nan),
        wrong_path=np.full(4, np.nan),
    )
    assert take_in_turn(interest, first=np.array([], dtype=np.int64)).tolist() == [1, 2, 3, 0]
    assert take_in_turn(interest, first=np.array([0])).tolist() == [0, 1, 2, 3]


def test_wanted_sequences_come_first_and_unknown_ones_are_an_error():
    case = binary_case()
    found = summarize(case.model, case.votes, n_sequences=2, sequences=[17, "42", 3]).sequences
    assert [track.name for track in found.tracks] == ["17", "42", "3"]
    with pytest.raises(TaskError, match="no sequence 'nowhere' in these votes"):
        summarize(case.model, case.votes, sequences=["nowhere"])


def test_the_report_says_how_many_sequences_it_holds():
    case = binary_case()
    some = summarize(case.model, case.votes, n_sequences=7).sequences
    assert len(some.tracks) == 7
    assert "7 of 60 sequences" in some.how
    assert summarize(case.model, case.votes).sequences.how == "This file holds all sequences."
    assert summarize(case.model, case.votes, n_sequences=0).sequences.tracks == ()


def test_a_budget_leaves_sequences_out_and_cuts_a_long_one():
    case = binary_case()
    some = summarize(case.model, case.votes, budget=6_000).sequences
    assert 1 <= len(some.tracks) < 60
    part = summarize(case.model, case.votes, budget=480).sequences
    track = part.tracks[0]
    assert len(part.tracks) == 1
    assert 0 < track.end - track.begin < track.length
    assert "a part of one of 60 sequences" in part.how
    assert len(track.lanes[0].starts) == len(track.decoded) == len(track.votes[0]) == track.end - track.begin
    windows = track.lanes[1]
    assert (windows.stops > track.begin).all()
    assert (windows.starts < track.end).all()
    rows = case.votes.layout("element").rows(track.place)
    law = case.model.predict_proba(case.votes)[rows][track.begin : track.end]
    np.testing.assert_allclose(np.exp(track.lanes[0].log_probability), law, atol=1e-12)


def test_votes_without_elements_have_no_report():
    case = binary_case()
    columns = tuple(np.zeros(0, dtype=np.int8) for _ in case.votes.columns)
    empty = Votes(sources=case.votes.sources, columns=columns, lengths=np.zeros(3, dtype=np.int64))
    with pytest.raises(VoteError, match="at least one element"):
        summarize(case.model, empty)


def test_empty_sequences_are_left_out_of_the_timelines():
    case = many_case()
    votes = case.votes
    with_empty = Votes(
        sources=votes.sources,
        columns=votes.columns,
        lengths=np.append(votes.lengths, 0),
        n_classes=3,
        class_names=votes.class_names,
    )
    found = summarize(case.model, with_empty)
    assert (found.overview.n_sequences, len(found.sequences.tracks)) == (41, 40)
    assert "40 of 41" in found.sequences.how


# --- provenance and plain forms ------------------------------------------------------------------------------------
def test_hashes_tell_votes_apart_but_not_file_formats(tmp_path):
    votes = binary_case().votes
    for kind in ("parquet", "npz"):
        votes.write(tmp_path / f"votes.{kind}")
        assert hash_votes(Votes.read(tmp_path / f"votes.{kind}")) == hash_votes(votes)
    assert hash_votes(votes[:-1]) != hash_votes(votes)
    changed = list(votes.columns)
    changed[0] = -changed[0]
    other = Votes(sources=votes.sources, columns=tuple(changed), lengths=votes.lengths)
    assert hash_votes(other) != hash_votes(votes)


def test_provenance_names_what_a_methods_section_needs(report):
    found = report.provenance
    assert found.made == "2024-05-01 12:30 UTC"
    assert found.settings["seed"] == "0"
    assert set(found.versions) >= {"python", "dugong-ws", "numpy"}
    assert set(found.source_hashes) == set(binary_case().votes.source_names)
    for part in ("7 sources", "60 sequences", found.versions["dugong-ws"], "centred", "Markov(", found.votes_hash):
        assert part in found.methods


def test_plain_data_is_json_without_gaps(report):
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert set(plain) == {
        "title", "overview", "sources", "dependencies", "prior", "agreement", "scores", "events", "versus",
        "findings", "provenance", "sequences",
    }  # fmt: skip
    assert plain["agreement"]["observed"][0][5] is None
    assert len(plain["sequences"]["tracks"][0]["lanes"]) == 3


def test_text_has_all_sections_and_all_sources(report):
    text = render_text(report)
    sections = (
        "What was labelled",
        "Sequences worth a look",
        "Sources",
        "Dependencies between sources",
        "Prior: what labels look like before any vote",
        "Agreement between sources",
        "How sure the model is",
        "Events",
        "Comparison with majority vote",
        "Diagnostics",
        "Provenance",
    )
    places = [text.index(f"\n{title}\n---") for title in sections]
    assert places == sorted(places)
    for source in report.sources:
        assert source.name in text
    assert report.versus.sentence in text
    assert not re.search(r"\bnan\b", text)


def test_text_lists_all_of_many_sources_and_only_some_of_their_pairs():
    world = lopsided(24)
    votes, _ = world.sample(30, rng=0)
    model = LabelModel(prior=world.prior, dependencies=()).fit(votes)
    text = render_text(summarize(model, votes))
    sources = text[text.index("\nSources\n") : text.index("\nDependencies between sources\n")]
    assert all(sources.count(f"\n{name} ") == 3 for name in votes.source_names)  # once, and once for each class
    assert "... and 180 more" in text


def test_a_report_does_not_change_the_model():
    case = many_case()
    before = case.model.predict_proba(case.votes)
    settings = case.model.get_params()
    summarize(case.model, case.votes, case.gold)
    assert case.model.get_params() == settings
    assert np.array_equal(case.model.predict_proba(case.votes), before)


def test_a_resolution_that_only_gold_knows_does_not_matter():
    case = many_case()
    found = summarize(case.model, case.votes, {"element": case.gold}, n_sequences=1)
    assert found.overview.n_known == case.votes.n_elements
    assert found.overview.resolutions[0].name == Element().name
