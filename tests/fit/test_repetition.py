"""Sources that repeat themselves: declaring it must not cost labels where sequences are few or nothing repeats."""

from __future__ import annotations

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import NotIdentifiableError
from dugong.fit.fitting import fit_moments
from dugong.fit.moments.copying import copying, shrink_to_copying
from dugong.fit.moments.equations import Given
from dugong.graph import SourceGraph
from dugong.graph.design import make_design
from dugong.infer.engine import posterior
from dugong.law.parameters import Temporal
from dugong.priors import Markov
from dugong.worlds import Block, TemporalBlock, World, accurate, self_dependent, temporal

LABELS = np.array([[0.6, 0.1], [0.1, 0.2]])
TABLE = accurate(0.7, 0.85, 0.1, 0.3)


def brier(votes, parameters, prior, truth) -> float:
    found = posterior(votes, parameters, prior, resolutions=["element"])["element"]
    return float(((found[:, 1] - truth) ** 2).mean())


def ratios(world, n_sequences, seed) -> dict[str, float]:
    """Brier scores over that of the true parameters."""
    votes, labels = world.sample(n_sequences, rng=seed)
    truth = labels["element"] == 1
    best = brier(votes, world.parameters(), world.prior, truth)
    declared = dg.LabelModel(prior=world.prior, dependencies=world.dependencies)
    ignored = dg.LabelModel(prior=world.prior, dependencies=())
    fits = {
        "declared": declared.fit(votes).parameters_,
        "from moments": dg.LabelModel(**declared.get_params()).partial_fit(votes).parameters_,
        "ignored": ignored.fit(votes).parameters_,
    }
    return {name: brier(votes, parameters, world.prior, truth) / best for name, parameters in fits.items()}


def joint_of(step) -> np.ndarray:
    """P(labels, votes) of a source whose earlier votes follow TABLE."""
    return LABELS[:, :, np.newaxis, np.newaxis] * TABLE[:, np.newaxis, :, np.newaxis] * step


@pytest.mark.parametrize("repeat", [0.0, 0.3, 0.6, 0.9])
def test_declared_repetition_never_costs_labels_at_300_sequences(repeat):
    """Five of eight sources; mean over six worlds. The unshrunk tables were at 1.5 to 2.4 times the optimum."""
    found = [ratios(self_dependent(8, 5, repeat, seed=seed), 300, 3000 + seed) for seed in range(6)]
    means = {name: np.mean([one[name] for one in found]) for name in found[0]}
    assert means["declared"] < min(means["ignored"] + 0.04, 1.15)
    assert means["from moments"] < max(means["ignored"] + 0.2, 1.3)


@pytest.mark.parametrize("repeat", [0.0, 0.5, 0.9])
def test_labels_of_many_sequences_are_near_the_optimum(repeat):
    found = ratios(self_dependent(10, 3, repeat, seed=11), 10_000, 4000)
    assert found["declared"] < 1.01
    assert found["from moments"] < 1.03


def test_a_source_that_copies_only_while_the_label_stays_is_not_taken_for_a_plain_copier():
    rates = np.where(np.eye(2) > 0, 0.9, 0.0)[:, :, np.newaxis, np.newaxis]
    world = self_dependent(8, 3, 0.0, seed=21)
    blocks = tuple(
        TemporalBlock(name=b.name, first=b.first, step=(1 - rates) * b.step + rates * np.eye(3))
        if isinstance(b, TemporalBlock)
        else b
        for b in world.blocks
    )
    found = ratios(World(prior=world.prior, blocks=blocks, lengths=5), 4000, 4100)
    assert found["declared"] < 1.04
    assert found["from moments"] < 1.25 < found["ignored"]


def test_plain_copying_is_found_from_the_margins():
    _, step = temporal(TABLE, 0.4)
    joint = joint_of(step)
    target, given = copying(joint, LABELS)
    np.testing.assert_allclose(target, joint, rtol=0, atol=1e-12)
    np.testing.assert_allclose(given, joint.sum(axis=3), rtol=0, atol=1e-12)


def test_deviations_are_kept_by_their_errors(rng):
    joint = joint_of(rng.dirichlet(np.ones(3), size=(2, 2, 3)))
    sure, share = shrink_to_copying(joint, np.full_like(joint, 1e-9), LABELS, 32)
    np.testing.assert_allclose(sure, joint, rtol=0, atol=1e-9)
    assert share > 0.999
    noisy, share = shrink_to_copying(joint, np.full_like(joint, 1.0), LABELS, 32)
    np.testing.assert_allclose(noisy, copying(joint, LABELS)[0], rtol=0, atol=1e-12)
    assert share == 0
    same, share = shrink_to_copying(joint, np.full_like(joint, 1.0), LABELS, 3)
    np.testing.assert_array_equal(same, joint)
    assert share == 1


def test_exact_moments_are_not_drawn_anywhere(rng):
    """Any transition table, copying or not, comes back from the population."""
    step = rng.dirichlet(np.ones(3), size=(2, 2, 3))
    singles = [Block(names=(f"s{j}",), table=accurate(0.6 + 0.1 * j, 0.8)) for j in range(3)]
    prior = Markov(positive=0.3, stay=0.7)
    world = World(prior=prior, blocks=(*singles, TemporalBlock(name="odd", first=TABLE, step=step)))
    design = make_design(world.sources, SourceGraph.of(world.source_names, world.dependencies))
    fitted = fit_moments(Given.under(prior, design, world.population(design.plan, 4)))
    factor = fitted.estimate.parameters["odd"]
    assert isinstance(factor, Temporal)
    np.testing.assert_allclose(factor.step, step, rtol=0, atol=1e-9)


def test_what_was_done_is_told():
    world = self_dependent(6, 2, 0.5, seed=5)
    votes, _ = world.sample(400, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
    kinds = [note.kind for note in model.diagnostics_.notes]
    assert kinds.count("repetition") == 2
    told = next(note for note in model.diagnostics_.notes if note.kind == "step")
    assert told.size > 0
    assert "'s0'" in told.text


def test_known_accuracies_stay():
    world = self_dependent(6, 2, 0.5, seed=5)
    votes, _ = world.sample(400, rng=1)
    known = {"s4": world.accuracies()["s4"]}
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies, accuracies=known).fit(votes)
    np.testing.assert_allclose(model.parameters_["s4"].table, known["s4"], rtol=0, atol=1e-9)


def test_few_long_sequences_are_finished_too():
    world = self_dependent(6, 2, 0.5, seed=5)
    votes, labels = world.sample(3, lengths=2000, rng=1)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
    kinds = {note.kind for note in model.diagnostics_.notes}
    assert {"step", "repetition"} <= kinds
    best = posterior(votes, world.parameters(), world.prior, resolutions=[dg.Element()])[dg.Element()]
    wrong = [float(((p[:, 1] - (labels["element"] > 0)) ** 2).mean()) for p in (model.predict_proba(votes), best)]
    assert wrong[0] < 1.05 * wrong[1]


def test_a_pair_of_votes_that_was_seen_stays_possible_under_every_label():
    """Moments of a few votes put a rare pair below zero; no label may rule out what was seen."""
    labels = np.diag([0.875, 0.125])
    joint = np.zeros((2, 2, 3, 3))
    joint[0, 0] = np.diag([0.8, 0.07, 0.001])
    joint[1, 1] = np.diag([0.02, 0.105, 0.0])
    joint[0, 0, 2, 0], joint[1, 1, 2, 0] = 0.005, -0.001
    joint[0, 0, 0, 0] -= 0.001
    found, _ = shrink_to_copying(joint, np.full(joint.shape, 0.01), labels, 32)
    seen = joint.sum(axis=(0, 1)) > 0
    assert (found[0, 0][seen] > 0).all()
    assert (found[1, 1][seen] > 0).all()


@pytest.mark.parametrize("repeat", [0.5, 0.8])
def test_where_every_source_repeats_itself_a_likelihood_tells_how(repeat):
    """Closed forms need a source that does not, and say what helps; EM reads whole sequences."""
    found = []
    for seed in range(2):
        world = self_dependent(3, 3, repeat, seed=seed)
        votes, labels = world.sample(200, 20, rng=seed)
        truth = labels["element"] == 1
        with pytest.raises(NotIdentifiableError, match='estimator="em" needs none'):
            dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
        declared = dg.LabelModel(prior=world.prior, dependencies=world.dependencies, estimator="em").fit(votes)
        ignored = dg.LabelModel(prior=world.prior, dependencies=()).fit(votes)
        best = brier(votes, world.parameters(), world.prior, truth)
        found.append([brier(votes, one.parameters_, world.prior, truth) / best for one in (declared, ignored)])
    declared, ignored = np.mean(found, axis=0)
    assert declared < 1.15
    assert ignored > 1.25


def test_two_sources_that_repeat_themselves_are_too_few_for_a_likelihood_as_well():
    world = self_dependent(2, 2, 0.5)
    model = dg.LabelModel(prior=world.prior, dependencies=world.dependencies, estimator="em")
    with pytest.raises(NotIdentifiableError, match="depends on itself"):
        model.fit(world.sample(50, rng=0)[0])
