"""Algorithm 1 of the paper: exact on Ising worlds without singleton potentials, and measurably biased elsewhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dugong import LabelModel, worlds
from dugong.exceptions import GraphError, NotIdentifiableError, TaskError
from dugong.fit.moments.equations import Given
from dugong.fit.paper import MOST_CELLS, estimate_paper, paper_tables, plan_paper
from dugong.fit.tables import joint_from_products
from dugong.graph import SourceGraph, temporal
from dugong.graph.design import make_design
from dugong.priors import Markov, Uniform
from dugong.sums import count
from dugong.tasks import Sequence, Window
from dugong.votes import SourceInfo
from population import Group, each_task, population, repeating, together, whole

EXACT = {"rtol": 0, "atol": 1e-9}
PRIOR = Markov(positive=0.3, stay=0.8)
# E[a] and rate of voting: one source is worse than chance.
AGREEMENTS = {"a": (0.7, 1.0), "b": (0.5, 0.6), "c": (-0.3, 0.9), "d": (0.4, 0.5), "e": (0.6, 1.0)}


def symmetric(agreement: float, voting: float = 1.0) -> np.ndarray:
    """P(vote | label) of a source without a preference for one class: an Ising edge to its label."""
    right, wrong = voting * (1 + agreement) / 2, voting * (1 - agreement) / 2
    return np.array([[right, wrong, 1 - voting], [wrong, right, 1 - voting]])


def silenced(law: np.ndarray, rates: list[float]) -> np.ndarray:
    """The law of votes that are -1 or +1 as one with abstains: every vote is withheld by chance."""
    joint = np.zeros((3,) * law.ndim)
    for spoken in product((True, False), repeat=law.ndim):
        kept = law.sum(axis=tuple(axis for axis, s in enumerate(spoken) if not s))
        chance = np.prod([rate if s else 1 - rate for rate, s in zip(rates, spoken, strict=True)])
        joint[tuple(slice(0, 2) if s else 2 for s in spoken)] += chance * kept
    return joint


def ising(fields: np.ndarray, couplings: dict[tuple[int, int], float]) -> np.ndarray:
    """P(votes) proportional to exp(sum of fields times votes + couplings); no other potentials."""
    law = np.zeros((2,) * len(fields))
    for cell in product((0, 1), repeat=len(fields)):
        votes = 2.0 * np.array(cell) - 1
        law[cell] = np.exp(votes @ fields + sum(w * votes[i] * votes[j] for (i, j), w in couplings.items()))
    return law / law.sum()


def fit(groups: list[Group], dependencies=(), *, prior=PRIOR, lengths=None, **options):
    sources = tuple(source for group in groups for source in group.sources)
    names = [source.name for source in sources]
    keys = ("sharing", "n_tasks")
    design = make_design(
        sources,
        SourceGraph.of(names, dependencies),
        pinned=options.get("accuracies", ()),
        **{key: options.pop(key) for key in keys if key in options},
    )
    moments = population(plan_paper(design), prior, groups, lengths or {3: 1.0})
    return estimate_paper(paper_tables(Given.under(prior, design, moments, **options)))


def plain_groups(names="abcde", resolution=None):
    where = {} if resolution is None else {"resolution": resolution}
    return [each_task(SourceInfo(name=name, **where), symmetric(*AGREEMENTS[name])) for name in names]


# --- the two systems -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_variables", range(1, 11))
def test_walsh_solve_is_the_dense_solve(n_variables, rng):
    walsh = np.ones((1, 1))
    for _ in range(n_variables):
        walsh = np.kron(walsh, [[1, 1], [1, -1]])
    r = rng.random(2**n_variables)
    dense = np.linalg.solve((walsh + 1) / 2, r)
    fast = joint_from_products(r.reshape((2,) * n_variables))
    # The paper lists +1 before -1; our tables list -1 before +1.
    np.testing.assert_allclose(np.flip(fast).reshape(-1), dense, rtol=0, atol=1e-10)


def test_products_of_a_known_law_give_that_law_back(rng):
    law = rng.dirichlet(np.ones(16)).reshape((2,) * 4)
    products = np.empty(law.shape)
    for inside in product((0, 1), repeat=4):
        signs = [np.array([-1, 1]) if chosen else np.ones(2) for chosen in inside]
        products[inside] = (1 + np.einsum("abcd,a,b,c,d", law, *signs)) / 2
    np.testing.assert_allclose(joint_from_products(products), law, rtol=0, atol=1e-15)


# --- exact where the paper's appendix says so ------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [PRIOR, Uniform(), Markov(positive=0.03, stay=0.5)], ids=["0.3", "even", "0.03"])
def test_tied_tables_are_exact_with_abstains_and_a_source_below_chance(prior):
    found = fit(plain_groups(), prior=prior, lengths={1: 0.3, 3: 0.7})
    for name, (agreement, voting) in AGREEMENTS.items():
        np.testing.assert_allclose(found.raw[name], symmetric(agreement, voting), **EXACT)
        np.testing.assert_allclose(found.accuracies[name], symmetric(agreement, voting), **EXACT)
    assert all(abs(residual) < 1e-6 for residual in found.diagnostics.residuals.values())
    assert not found.diagnostics.projections


def test_tables_by_task_are_exact():
    prior = Markov(initial=[0.8, 0.2], transition=[[0.7, 0.3], [0.4, 0.6]])
    truth = {
        name: np.stack([symmetric(agreement * scale, voting) for scale in (1.0, 0.6, 1.2)])
        for name, (agreement, voting) in AGREEMENTS.items()
    }
    groups = [each_task(SourceInfo(name=name), table) for name, table in truth.items()]
    found = fit(groups, prior=prior, sharing="task")
    for name, table in truth.items():
        np.testing.assert_allclose(found.raw[name], table, **EXACT)
    assert found.parameters["a"].by_position


def test_a_mixture_of_tied_and_by_task_is_exact():
    table = np.stack([symmetric(scale) for scale in (0.7, 0.2, 0.5)])
    found = fit([each_task(SourceInfo(name="a"), table), *plain_groups("bcde")], sharing={"a": "task"})
    np.testing.assert_allclose(found.raw["a"], table, **EXACT)
    np.testing.assert_allclose(found.raw["d"], symmetric(*AGREEMENTS["d"]), **EXACT)


def test_sources_that_share_parameters_are_one_unknown():
    shared = symmetric(0.5, 0.8)
    groups = [
        each_task(SourceInfo(name="x", shares="pair"), shared),
        each_task(SourceInfo(name="y", shares="pair"), shared),
    ]
    # Two sources alone are enough then: the agreement of x and y is E[a] squared.
    found = fit(groups)
    np.testing.assert_allclose(found.raw["x"], shared, **EXACT)
    np.testing.assert_allclose(found.raw["y"], shared, **EXACT)


def full_law(pattern: tuple[int, ...]) -> np.ndarray:
    """A source whose votes pull on each other as well as on all labels; Ising without singleton potentials."""
    labels = 2.0 * np.array(pattern) - 1
    fields = 0.8 * labels + 0.3 * np.roll(labels, 1)
    return ising(fields, {(0, 1): 0.6, (1, 2): -0.4})


@pytest.mark.parametrize("rates", [(1.0, 1.0, 1.0), (0.8, 0.6, 0.9)], ids=["always votes", "abstains"])
def test_a_full_table_is_exact_with_ordinary_sources_beside_it(rates):
    truth = {pattern: silenced(full_law(pattern), list(rates)) for pattern in product((0, 1), repeat=3)}
    groups = [whole(SourceInfo(name="f"), truth.__getitem__), *plain_groups("abc")]
    found = fit(groups, sharing={"f": "full"}, n_tasks={"f": 3})
    expected = np.stack([truth[pattern].reshape(-1) for pattern in product((0, 1), repeat=3)])
    np.testing.assert_allclose(found.raw["f"], expected, **EXACT)
    np.testing.assert_allclose(found.raw["a"], symmetric(*AGREEMENTS["a"]), **EXACT)
    assert found.parameters["f"].n_tasks == 3


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_sources_full_are_exact_where_every_vote_reads_its_own_task(size):
    names = "abce" if size == 4 else "abcde"
    found = fit(plain_groups(names), sharing="full", n_tasks=dict.fromkeys(names, size), lengths={size: 1.0})
    for name in names:
        table = symmetric(*AGREEMENTS[name])
        for row, pattern in enumerate(product((0, 1), repeat=size)):
            expected = np.ones(1)
            for label in pattern:
                expected = np.multiply.outer(expected, table[label]).reshape(-1)
            np.testing.assert_allclose(found.raw[name][row], expected, **EXACT)


def pair_law(rates=(0.9, 0.7)) -> np.ndarray:
    return np.stack([silenced(ising(np.array([0.5, 0.4]) * y, {(0, 1): 0.7}), list(rates)) for y in (-1, 1)])


@pytest.mark.parametrize("prior", [PRIOR, Uniform()], ids=["0.3", "even"])
@pytest.mark.parametrize("order", [("p", "q"), ("q", "p")])
def test_a_dependent_pair_is_exact(prior, order):
    table = pair_law() if order == ("p", "q") else pair_law().swapaxes(1, 2)
    groups = [together([SourceInfo(name=name) for name in order], table), *plain_groups("abc")]
    found = fit(groups, [("p", "q")], prior=prior)
    np.testing.assert_allclose(found.raw_correlations[order], table, **EXACT)
    np.testing.assert_allclose(found.raw["p"], pair_law().sum(axis=2), **EXACT)
    np.testing.assert_allclose(found.raw["q"], pair_law().sum(axis=1), **EXACT)
    np.testing.assert_allclose(joint_of(found, "".join(order)), table, **EXACT)


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)]], ids=["path", "triangle"])
def test_a_dependent_triple_is_exact(edges):
    couplings = dict(zip(edges, (0.7, -0.4, 0.3), strict=False))
    table = np.stack([silenced(ising(np.array([0.5, 0.4, 0.3]) * y, couplings), [0.9, 1.0, 0.8]) for y in (-1, 1)])
    names = "pqr"
    groups = [together([SourceInfo(name=name) for name in names], table), *plain_groups("abc")]
    found = fit(groups, [(names[i], names[j]) for i, j in edges])
    np.testing.assert_allclose(found.raw_correlations["p", "q"], table.sum(axis=3), **EXACT)
    np.testing.assert_allclose(found.raw_correlations["q", "r"], table.sum(axis=1), **EXACT)
    np.testing.assert_allclose(joint_of(found, names), table, rtol=0, atol=1e-9)


def joint_of(found, names: str) -> np.ndarray:
    """P(votes of a clique | label) as the product of its conditionals, axes in the order of `names`."""
    joint, axes = np.ones((2,) + (1,) * len(names)), names
    for name in names:
        factor = found.parameters[name]
        table = factor.table
        place = [axes.index(parent) + 1 for parent in (*factor.parents, name)]
        order = np.argsort(place)
        table = table.transpose(0, *(1 + order))
        shape = [2] + [1] * len(names)
        for axis, size in zip(sorted(place), table.shape[1:], strict=True):
            shape[axis] = size
        joint = joint * table.reshape(shape)
    return joint


def test_a_dependent_pair_by_task_is_exact():
    table = np.stack([pair_law((0.9, 0.7)), pair_law((0.5, 0.8)), pair_law((1.0, 1.0))])
    groups = [together([SourceInfo(name="p"), SourceInfo(name="q")], table), *plain_groups("abc")]
    found = fit(groups, [("p", "q")], sharing="task")
    np.testing.assert_allclose(found.raw_correlations["p", "q"], table, **EXACT)


def test_a_source_that_repeats_itself_is_exact():
    """P(vote | label, last vote) symmetric under flipping everything: no singleton potentials."""
    step = np.empty((2, 2, 2, 2))
    for before, now, vote in product((0, 1), repeat=3):
        step[before, now, vote] = ising(np.array([0.6 * (2 * now - 1) + 0.7 * (2 * vote - 1)]), {})
    first = np.stack([ising(np.array([0.6 * y]), {}) for y in (-1, 1)])
    pad = np.zeros((2, 2, 3, 3))
    pad[..., :2, :2] = step
    pad[..., 2, 2] = 1.0
    groups = [repeating(SourceInfo(name="r"), np.pad(first, ((0, 0), (0, 1))), pad), *plain_groups("abc")]
    found = fit(groups, [temporal("r")], lengths={2: 0.5, 4: 0.5})
    factor = found.parameters["r"]
    np.testing.assert_allclose(factor.step[..., :2, :2], step, **EXACT)
    np.testing.assert_allclose(factor.first[:, :2], first, **EXACT)


@pytest.mark.parametrize("link", ["any", "all", "majority"])
def test_sources_at_three_resolutions_are_exact(link):
    """Windows and the sequence have one source each: only rows across resolutions can determine them."""
    window = each_task(SourceInfo(name="w", resolution=Window(size=2, link=link)), symmetric(0.6, 0.9))
    clip = each_task(SourceInfo(name="s", resolution=Sequence(link=link)), symmetric(0.4, 0.7))
    found = fit([*plain_groups("abc"), window, clip], lengths={4: 0.6, 3: 0.4})
    np.testing.assert_allclose(found.raw["w"], symmetric(0.6, 0.9), **EXACT)
    np.testing.assert_allclose(found.raw["s"], symmetric(0.4, 0.7), **EXACT)
    assert set(found.diagnostics.condition) == {"same task", "across resolutions"}


def test_one_source_alone_is_exact_through_time():
    found = fit(plain_groups("a"), lengths={4: 1.0})
    np.testing.assert_allclose(found.raw["a"], symmetric(*AGREEMENTS["a"]), **EXACT)


def test_a_dependency_across_resolutions_is_exact():
    """A fine vote pulled by the vote of a window source on the window that contains it."""
    resolution = Window(size=2, link="any")
    fine, coarse = SourceInfo(name="f"), SourceInfo(name="w", resolution=resolution)

    def law(labels):
        ys, windows = labels
        joint = np.zeros((2,) * (len(ys) + len(windows)))
        for votes in product((0, 1), repeat=len(windows)):
            part = np.ones(())
            for i, y in enumerate(ys):
                part = np.multiply.outer(part, ising(np.array([0.5 * (2 * y - 1) + 0.6 * (2 * votes[i // 2] - 1)]), {}))
            chance = np.prod([symmetric(0.6)[w, v] for w, v in zip(windows, votes, strict=True)])
            joint[(slice(None),) * len(ys) + votes] = chance * part
        return silenced(joint, [1.0] * joint.ndim)

    windows = [
        each_task(SourceInfo(name=name, resolution=resolution), symmetric(a)) for name, a in (("u", 0.5), ("v", 0.7))
    ]
    found = fit([Group((fine, coarse), law), *plain_groups("abe"), *windows], [("f", "w")], lengths={4: 1.0})
    table = found.parameters["f"].table
    for y, w, vote in product((0, 1), repeat=3):
        if (y, w) != (1, 0):  # a positive element makes its window positive
            expected = ising(np.array([0.5 * (2 * y - 1) + 0.6 * (2 * vote - 1)]), {})
            np.testing.assert_allclose(table[y, w, vote, :2], expected, rtol=0, atol=1e-8)


# --- biased elsewhere ------------------------------------------------------------------------------------------------


def overrated(table: np.ndarray) -> tuple[float, float, float]:
    """E[vote * label] of three equal sources at even balance: the truth, what raw agreement says, and given votes."""
    truth = np.einsum("wz,w,z->", table[:, :2], [-0.5, 0.5], [-1, 1])
    means = table[:, :2] @ [-1, 1]
    groups = [each_task(SourceInfo(name=name), table) for name in "abc"]
    sources = tuple(group.sources[0] for group in groups)
    design = make_design(sources, SourceGraph.of("abc"))
    moments = population(plan_paper(design), Uniform(), groups, {3: 1.0})
    found = paper_tables(Given.under(Uniform(), design, moments)).solved
    return truth, np.sqrt((means**2).mean()), found.of("a")[0, 0]


def test_lopsided_sources_are_overrated():
    """METHOD 3.2: P(+|+) = 0.60, P(-|-) = 0.95."""
    truth, raw, estimate = overrated(np.array([[0.95, 0.05, 0.0], [0.40, 0.60, 0.0]]))
    assert truth == pytest.approx(0.55, abs=0.002)
    assert raw == pytest.approx(0.65, abs=0.005)
    assert estimate == pytest.approx(raw, abs=1e-9)


def test_sources_that_say_only_one_class_are_overrated():
    """METHOD 3.2: a source that says +1 or abstains. Two such votes always agree, whatever the label is."""
    truth, raw, estimate = overrated(np.array([[0.0, 0.22, 0.78], [0.0, 0.26, 0.74]]))
    assert truth == pytest.approx(0.020, abs=1e-9)
    assert raw == pytest.approx(0.24, abs=0.002)
    assert estimate == pytest.approx(1.0, abs=1e-9)


# --- signs, pins, errors ---------------------------------------------------------------------------------------------


def test_group_signs_need_only_the_sum_to_be_positive():
    groups = [each_task(SourceInfo(name=n), symmetric(a)) for n, a in (("a", 0.8), ("b", -0.3), ("c", -0.4))]
    found = fit(groups)
    np.testing.assert_allclose(found.raw["b"], symmetric(-0.3), **EXACT)
    assert found.diagnostics.signs["b"].startswith("-")


def test_positive_signs_flip_and_say_so():
    found = fit(plain_groups(), signs="positive", prior=Uniform())
    np.testing.assert_allclose(found.raw["c"], symmetric(0.3, 0.9), **EXACT)
    (note,) = [note for note in found.diagnostics.notes if note.kind == "flip"]
    assert note.where == "c"


def test_a_pinned_accuracy_is_kept_and_decides_the_signs():
    """All three below chance: only the known one tells."""
    groups = [each_task(SourceInfo(name=n), symmetric(a)) for n, a in (("a", -0.8), ("b", -0.3), ("c", -0.4))]
    found = fit(groups, accuracies={"b": symmetric(-0.3)})
    np.testing.assert_allclose(found.raw["a"], symmetric(-0.8), **EXACT)
    np.testing.assert_array_equal(found.raw["b"], symmetric(-0.3))


def test_two_sources_are_enough_when_one_is_known():
    found = fit(plain_groups("ab"), accuracies={"a": symmetric(*AGREEMENTS["a"])}, prior=Uniform())
    np.testing.assert_allclose(found.raw["b"], symmetric(*AGREEMENTS["b"]), **EXACT)


def test_what_is_not_determined_is_said():
    found = fit(plain_groups("ab"), prior=Uniform(), lengths={1: 1.0})
    kinds = {(note.kind, note.where) for note in found.diagnostics.notes}
    assert {("undetermined", "a"), ("undetermined", "b")} <= kinds
    np.testing.assert_allclose(found.raw["a"][0], found.raw["a"][1], **EXACT)


def test_silent_and_constant_sources_have_an_answer():
    silent = each_task(SourceInfo(name="silent"), np.array([[0.0, 0.0, 1.0]] * 2))
    constant = each_task(SourceInfo(name="constant"), np.array([[0.0, 1.0, 0.0]] * 2))
    found = fit([*plain_groups("abe"), silent, constant])
    for name in ("silent", "constant", "a"):
        assert np.isfinite(found.accuracies[name]).all()
    np.testing.assert_allclose(found.accuracies["silent"], [[0, 0, 1], [0, 0, 1]], **EXACT)


def test_full_tables_need_short_sequences_of_one_length():
    with pytest.raises(TaskError, match="at most 6; source 'a' has 7 tasks"):
        fit(plain_groups(), sharing="full", n_tasks=dict.fromkeys("abcde", 7))


@pytest.mark.parametrize(("n_full", "size", "n_pairs"), [(5, 5, 10), (1, 6, 4), (3, 6, 9)])
def test_full_tables_that_would_count_too_much_are_refused_before_anything_is_counted(n_full, size, n_pairs):
    """Work is the cells of all pairs that hold a full table: three votes on twice as many tasks."""
    names = "abcde"
    sharing = {name: "full" if place < n_full else "tied" for place, name in enumerate(names)}
    sources = [SourceInfo(name=name) for name in names]
    design = make_design(sources, SourceGraph.of(names), sharing=sharing, n_tasks=dict.fromkeys(names, size))
    n_cells = n_pairs * 3 ** (2 * size)
    if n_cells > MOST_CELLS:
        with pytest.raises(TaskError, match=f"at most {MOST_CELLS:,} cells; these would be {n_cells:,}"):
            plan_paper(design)
    else:
        assert sum(len(row.slots) == 2 * size for row in plan_paper(design).rows) == n_pairs


def test_two_full_sources_alone_are_not_identifiable():
    with pytest.raises(NotIdentifiableError, match="full table of 'a'"):
        fit(plain_groups("ab"), sharing="full", n_tasks={"a": 3, "b": 3})


def test_a_pair_without_a_third_source_is_not_identifiable():
    groups = [together([SourceInfo(name="p"), SourceInfo(name="q")], pair_law())]
    with pytest.raises(NotIdentifiableError, match="Add an independent source"):
        fit(groups, [("p", "q")], lengths={4: 1.0})


def test_more_than_two_classes_are_refused():
    design = make_design((SourceInfo(name="a"),), SourceGraph.of("a"))
    moments = population(plan_paper(design), PRIOR, plain_groups("a"), {3: 1.0})
    with pytest.raises(TaskError, match="needs tasks with two classes; found 3"):
        estimate_paper(paper_tables(Given.under(PRIOR, design, replace(moments, n_classes=3))))


def test_unknown_sign_rules_are_refused():
    votes, _ = worlds.lopsided(3).sample(20)
    with pytest.raises(GraphError, match='signs must be "group" or "positive"; found'):
        LabelModel(prior=PRIOR, dependencies=(), signs="majority").fit(votes)


# --- against the library's own worlds --------------------------------------------------------------------------------


def test_an_ising_world_is_recovered_from_its_exact_sums_and_from_samples():
    """Dependent triple, abstains, imbalance: exact from the population, and the error falls with the sample."""
    names = ("p", "q", "r")
    triple = worlds.ising(np.array([0.5, 0.4, 0.3]), {(0, 1): 0.6, (1, 2): -0.4})
    blocks = (
        worlds.Block(names=names, table=triple, edges=(("p", "q"), ("q", "r"))),
        *(worlds.Block(names=(n,), table=symmetric(*AGREEMENTS[n])) for n in "abcde"),
    )
    world = worlds.World(prior=PRIOR, blocks=blocks, lengths=4)
    design = make_design(world.sources, SourceGraph.of(world.source_names, world.dependencies))
    truth = world.accuracies()
    exact = world.population(plan_paper(design))
    found = estimate_paper(paper_tables(Given.under(PRIOR, design, exact)))
    for name, table in truth.items():
        np.testing.assert_allclose(found.raw[name], table, **EXACT)
    errors = []
    for n_sequences in (500, 8000):
        runs = []
        for seed in range(10):
            moments = count(world.sample(n_sequences, rng=seed)[0], plan_paper(design))
            raw = estimate_paper(paper_tables(Given.under(PRIOR, design, moments))).raw
            runs.append(np.mean([np.abs(raw[name] - table).mean() for name, table in truth.items()]))
        errors.append(np.mean(runs))
    assert 3.3 < errors[0] / errors[1] < 4.8
