"""From votes to a law: the algorithm, with every way of fitting in one place.

In: `Passes` over votes, and `FitOptions`. Out: a `Fit`, which is all that a label model keeps. A first law comes from
moments where closed forms exist, from a guess that votes are right more often than not where they do not, or from the
search for dependencies where nobody gave any. Exact E/M steps follow: none, one or two, or as many as it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from dugong.exceptions import GraphError, NotIdentifiableError
from dugong.fit.beliefs import contradictions
from dugong.fit.checks import check_prior
from dugong.fit.em import EM, EMResult, Ties, expectation_maximisation, read_accuracies, read_correlations
from dugong.fit.errors import StandardErrors
from dugong.fit.finish import finish, within_errors
from dugong.fit.first import first_law
from dugong.fit.fitting import count_errors, fit_moments, moment_errors, plan_for
from dugong.fit.groups import describe, group_laws, leanings
from dugong.fit.learned import Learned, choose_part, learn
from dugong.fit.learned.settings import FEWEST_SOURCES, PART
from dugong.fit.learned.tempering import Peers
from dugong.fit.moments import table_errors
from dugong.fit.moments.equations import Given
from dugong.fit.moments.joints import CentredTables
from dugong.fit.passes import Contents, InMemory, Passes
from dugong.fit.positions import CLEAR, FEWEST, FEWEST_SEQUENCES, explained, uneven, untie
from dugong.fit.result import Diagnostics, Estimate, Note
from dugong.fit.settings import Centred, FitOptions
from dugong.fit.soft import choose_thresholds, learn_soft
from dugong.graph import SourceGraph, temporal
from dugong.graph.design import crossed_edges, table_names
from dugong.graph.identify import check_identifiable
from dugong.infer.answers import audit_answers, expected_counts, posterior
from dugong.law import Law, allow_unseen, read_above
from dugong.law.parameters import Conditional, FullTable, Parameters
from dugong.sums import Moments
from dugong.tasks import Element
from dugong.types import FloatArray
from dugong.votes import SourceInfo, Votes

# With known labels a closed-form estimate is followed by a few exact E/M steps that use them.
# So it is with beliefs, which are known labels that nobody wrote down.
_STEPS_WITH_GOLD = EM(max_iter=5)
# From a guess: as many as tables and transitions need to settle.
_STEPS_FROM_A_GUESS = EM(max_iter=50)
_TOO_FEW = (
    "fewer than three sources vote on the same tasks, too few to find dependencies among them: the model of "
    "independent sources under the given prior is taken at its word."
)
_GIVEN = "the dependencies were given and are taken at their word: nothing is discounted."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """What fitting found.

    Attributes
    ----------
    law : what answers questions about labels
    estimate : tables for people, and how they came about
    errors : standard errors of the tables, or what works them out: it takes long, and few read them
    graph : the source graph, given or learned
    contents : what the votes are like
    moments : the moments of the votes, where the fit began with them
    """

    law: Law
    estimate: Estimate
    errors: StandardErrors | Callable[[], StandardErrors]
    graph: SourceGraph
    contents: Contents
    moments: Moments | None = None

    def noted(self, *notes: Note) -> Fit:
        """The same with more notes."""
        return replace(self, estimate=self.estimate.noted(*notes))


def fit(data: Passes, options: FitOptions) -> Fit:
    """Fit a label model to votes, wherever they are."""
    options.check(data.votes)
    untied = {} if options.sharing == "tied" else options.untied(data.votes)
    options = replace(options, sharing="tied") if untied else options
    found, options = _fit_read(data, options) if data.votes.scores else (_fit(data, options), options)
    if untied:
        found = _by_position(found, data, options, untied)
    elif not options.grouped and (found.law.tempering is not None or options.dependencies is None):
        found = _where_positions_differ(found, data, options)
    return _with_groups(found, data, options) if options.grouped else found


def _fit_read(data: Passes, options: FitOptions) -> tuple[Fit, FitOptions]:
    """Fit to votes whose scores are read above thresholds where that says more, or as they are; and how."""
    above = replace(options, thresholds=_thresholds(data, options))
    found = _fit(data, above)
    # What is not trusted goes by shares of votes: there a source that is never sure of rare events is right to say no.
    if above.thresholds and _trust(found.law) < 1:
        plain = _fit(data, options)
        return (found, above) if _trust(found.law) > _trust(plain.law) else (plain, options)
    return found, above


def _thresholds(data: Passes, options: FitOptions) -> Mapping[str, float]:
    """From which score on soft sources are read as votes; what somebody knows or believes is about plain votes.

    Sums over shards are kept, and are about plain votes, too: only a search, which goes by a sample, reads them so.
    """
    searched = options.dependencies is None and data.rereadable
    if not (searched or isinstance(data, InMemory)):
        return {}
    whole = data.sample()
    found = choose_thresholds(choose_part(whole.votes, whole.evidence).votes)
    return {name: one for name, one in found.items() if name not in (*options.accuracies, *options.beliefs)}


def _trust(law: Law) -> float:
    """Share of the exact model in the labels of a law."""
    return 1.0 if law.tempering is None else float(getattr(law.tempering, "trust", 0.0))


def _with_groups(found: Fit, data: Passes, options: FitOptions) -> Fit:
    """The same fit with a law for every group of sequences, leaning on the one of all."""
    parts, law = data.parts(), found.law
    if not parts:
        raise GraphError(
            'sharing="group" needs to know which sequences belong together; found no groups.\n'
            "  Name one per sequence: fit(votes, groups=patients), --groups, or groups in a project.toml."
        )
    ties = _ties(data.votes, law.parameters, options)
    if law.tempering is None:
        laws, note = group_laws(parts, law, ties)
    else:
        lean = leanings([part.counts(law) for part in parts.values()], law.parameters, ties.beliefs)
        beliefs = {name: one for name, one in lean.items() if name not in options.accuracies}
        own = replace(options, grouped=False, beliefs=beliefs)
        laws = {name: _more_trusted(_fit(part, own).law, law) for name, part in parts.items()}
        note = describe(lean, len(parts))
    laws = {
        name: replace(
            one, parameters=allow_unseen(one.parameters, options.accuracies), inference=law.inference, soft=law.soft
        )
        for name, one in laws.items()
    }
    return replace(found, law=replace(law, groups=laws)).noted(note)


def _by_position(found: Fit, data: Passes, options: FitOptions, n_positions: Mapping[str, int]) -> Fit:
    """The same fit with tables by position, taken at its word: what differs by position looks like shared errors."""
    if not data.rereadable:
        raise GraphError(
            'sharing="task" for what is learned, and for sources that repeat themselves, reads the votes more than '
            "once; only their sums are kept here.\n  Use fit(votes), or fit_shards."
        )
    graph = found.graph
    if found.law.tempering is not None:
        follows = {name for edge in graph.edges for name in edge}
        lags = [temporal(name, lag) for name, lag in graph.temporal.items() if name not in follows]
        found = _from_guess(data, replace(options, sharing="tied", dependencies=(*graph.edges, *lags)))
    ties = _ties(data.votes, found.law.parameters, options)
    found = _ended(found, data, untie(data, found.law, n_positions, _steps(options), ties))
    law = replace(found.law, parameters=allow_unseen(found.law.parameters, options.accuracies))
    return replace(found, law=law)


def _where_positions_differ(found: Fit, data: Passes, options: FitOptions) -> Fit:
    """Tables by position in place of a learned answer, where that makes every source clearly more predictable.

    Where a model is trusted whole, positions are looked into if agreement differs between them, and votes are not so
    many that they were learned from in part.
    """
    votes = data.votes
    names = [info.name for info in votes.sources if isinstance(info.resolution, Element)]
    longest = int(votes.lengths.max(initial=0))
    if len(names) < FEWEST or votes.scores or not data.rereadable or not (1 < longest == int(votes.lengths.min())):
        return found
    whole = found.law.tempering is None
    if whole and sum(found.contents.codes[names[0]].values()) > 2 * PART:
        return found
    # Errors that last, or that sources share, are predictable as well: where any were found, positions explain nothing.
    part = _part(data)
    if part.votes.n_sequences < FEWEST_SEQUENCES or found.graph.edges or found.graph.temporal:
        return found
    if whole and not uneven(part.votes):
        return found
    try:
        tied = _from_guess(part, replace(options, dependencies=()))
    except NotIdentifiableError:
        return found
    other = _by_position(tied, part, options, dict.fromkeys(names, longest))
    gain = min(explained(part.votes, other.law, one.law, part.n_threads) for one in (tied, found))
    if gain < CLEAR:
        return found
    text = (
        "accuracies differ by position: with a table for each, every source is predicted better from the others, by "
        f"{gain:.0f} standard errors or more. This model is taken at its word"
    )
    estimate = other.estimate.noted(Note(kind="positions", text=text, size=gain), instead_of="trust")
    return replace(other, estimate=estimate, contents=found.contents)


def _more_trusted(own: Law, law: Law) -> Law:
    """The law of a group, or that of all where a group cannot confirm a model by itself (nobody in it is positive).

    Where neither is confirmed, a group has its own tables, and the votes of all say how far to go by them: what few
    votes say about exponents, and about how far sources agree, is mostly noise.
    """
    if _trust(own) != _trust(law) or not (isinstance(own.tempering, Peers) and isinstance(law.tempering, Peers)):
        return own if _trust(own) >= _trust(law) else law
    whole = law.tempering.answer
    answer = replace(own.tempering.answer, exponents=whole.exponents, kept=whole.kept)
    return replace(own, tempering=replace(own.tempering, answer=answer))


def _fit(data: Passes, options: FitOptions) -> Fit:
    """Fit with the same tables for all sequences."""
    if isinstance(data, InMemory) and options.thresholds:
        data = replace(data, votes=read_above(data.votes, options.thresholds))
    if options.by_moments(data.votes):
        found = _closed_form(data, options)
    else:
        options.check_learning()
        if options.dependencies is not None:
            found = _from_guess(data, options)
        elif options.prior is not None and data.votes.n_classes == 2 and _too_few(data.votes.sources):
            found = _without_search(data, options)
        else:
            found = _from_search(data, options)
    # What nobody has seen is no evidence, rather than impossible: new votes may hold it.
    parameters = allow_unseen(found.law.parameters, options.accuracies)
    law = replace(found.law, parameters=parameters, inference=options.inference, thresholds=options.thresholds)
    estimate = found.estimate
    if believed := options.believed(data.votes):
        estimate = estimate.noted(*contradictions(believed, estimate.accuracies))
    if options.thresholds:
        estimate = estimate.noted(*_about_thresholds(options.thresholds))
    if data.votes.scores and data.rereadable:
        law, estimate = _with_scores(data, law, estimate, options)
    # Of shards only one is held at a time, and the moments of this check are not among the sums that are kept.
    if options.prior is not None and isinstance(data, InMemory):
        wrong = check_prior(data.votes, data.grouping, options.prior, found.graph, estimate.accuracies)
        # What the fitted labels say about the balance says it with one number less.
        estimate = estimate.noted(*wrong, instead_of="contradiction" if wrong else None)
    audit = audit_answers(law, data.votes) if data.rereadable else None
    if audit is not None:
        estimate = estimate.noted(Note(kind="inference", text=audit.text(), size=audit.error))
    return replace(found, law=law, estimate=estimate)


def _with_scores(data: Passes, law: Law, estimate: Estimate, options: FitOptions) -> tuple[Law, Estimate]:
    """The law with what scores are worth beyond votes, and the tables that they confirm; a part of very many votes."""
    whole, ties = data.sample(), _ties(data.votes, law.parameters, options)
    part = choose_part(whole.votes, whole.evidence)
    learning = EM(learn_prior=options.prior is None)
    law = learn_soft(law, law.read(part.votes), part.evidence, whole.n_threads, ties, learning)
    if law.tempering is not None:
        return law, estimate
    counts = expected_counts(law, part.votes, evidence=part.evidence, n_threads=whole.n_threads)
    found = read_accuracies(law.parameters, ties.pool(counts, law.parameters))
    known = {name: estimate.accuracies[name] for name in ties.known}
    return law, replace(estimate, parameters=law.parameters, accuracies={**found, **known})


def _without_search(data: Passes, options: FitOptions) -> Fit:
    """Where there are too few sources to find dependencies, a given prior is taken at its word."""
    try:
        found = _from_moments(data, replace(options, dependencies=()))
    except NotIdentifiableError:
        return _from_search(data, options)  # closed forms need more; the search has beliefs to fall back on
    about = found.estimate.diagnostics
    about = replace(about, notes=(Note(kind="dependencies", text=_TOO_FEW), *about.notes))
    return replace(found, estimate=replace(found.estimate, diagnostics=about))


def _too_few(sources: Iterable[SourceInfo]) -> bool:
    """Whether no three sources vote on the same tasks: the errors that a pair shares are then the labels' own."""
    return max(Counter(info.resolution for info in sources).values()) < FEWEST_SOURCES


def _closed_form(data: Passes, options: FitOptions) -> Fit:
    """Closed forms; EM from a guess where they cannot tell how votes depend on each other, and a likelihood can."""
    try:
        return _from_moments(data, options)
    except NotIdentifiableError:
        if isinstance(options.estimator, EM) and data.rereadable and _all_full(data.votes, options):
            return _over_patterns(data, options, options.estimator)
        if not (options.sharing == "tied" and data.rereadable and _likely(data.votes, options)):
            raise
        return _from_guess(data, options)


def _all_full(votes: Votes, options: FitOptions) -> bool:
    """Whether every source has a table over whole patterns, and none of them depends on another."""
    design = options.design(votes)
    return set(design.levels.values()) == {"full"} and not (design.graph.edges or design.graph.temporal)


def _over_patterns(data: Passes, options: FitOptions, settings: EM) -> Fit:
    """EM over whole patterns, from tables in which every vote reads its own task: closed forms need one that does."""
    found, n_tasks = _from_moments(data, replace(options, sharing="tied")), options.design(data.votes).n_tasks
    factors = [
        FullTable(
            source=one.source,
            resolution=one.resolution,
            n_tasks=n_tasks[one.source],
            table=reduce(lambda whole, own: np.asarray(np.kron(whole, own)), [one.table] * n_tasks[one.source]),
        )
        for one in found.law.parameters.factors
        if isinstance(one, Conditional)
    ]
    law = replace(found.law, parameters=replace(found.law.parameters, factors=tuple(factors)))
    start = replace(found, estimate=replace(found.estimate, raw={}))
    return _ended(start, data, _maximised(data, law, settings, options))


def _likely(votes: Votes, options: FitOptions) -> bool:
    """Whether more than pairs of votes can tell what a declared dependence is like.

    Closed forms need a partner for every source that repeats itself, one that does not; a likelihood reads whole
    sequences. It is the word of who asks for EM, because it holds for the right graph alone.
    """
    design = options.design(votes)
    if crossed_edges(design.sources, design.graph):
        return isinstance(options.estimator, Centred | EM)
    return isinstance(options.estimator, EM) and bool(design.graph.temporal) and not _too_few(votes.sources)


# --- closed forms --------------------------------------------------------------------------------------------------
def _from_moments(data: Passes, options: FitOptions) -> Fit:
    """Closed forms, then EM where it is asked for or labels are known; one or two exact steps on little data."""
    votes, prior = data.votes, options.prior
    assert prior is not None
    design = options.design(votes)
    moments = data.moments(plan_for(design, options.estimator))
    # Before anything is solved: a message about sources helps, one about a singular matrix does not.
    check_identifiable(design, prior, moments, votes.class_names)
    believed = options.believed(votes)
    given = Given.under(prior, design, moments, votes.class_names, options.signs, options.accuracies, beliefs=believed)
    fitted = fit_moments(given, options.estimator, data)
    errors, estimate = partial(moment_errors, fitted), fitted.estimate
    # The paper's estimator has no slopes: it is kept to the letter, so that its tables can be compared with its own.
    if isinstance(fitted.tables, CentredTables):
        estimate = within_errors(estimate, table_errors(fitted.tables))
    law = Law(parameters=estimate.parameters, prior=prior, inference=options.inference)
    if isinstance(options.estimator, EM) or data.evidence is not None or options.beliefs:
        ended = _maximised(data, law, options.steps(_STEPS_WITH_GOLD), options)
        law, estimate = ended.law, _raised(estimate, ended, design.graph)
    elif fitted.balance is not None:
        estimate = finish(estimate, data, prior, design.graph, _ties(votes, estimate.parameters, options))
        law = replace(law, parameters=estimate.parameters)
    contents = Contents.of_moments(moments)  # moments have counted every vote already
    return Fit(law=law, estimate=estimate, errors=errors, graph=design.graph, contents=contents, moments=moments)


# --- likelihood ----------------------------------------------------------------------------------------------------
def _from_guess(data: Passes, options: FitOptions) -> Fit:
    """EM with a given graph, taken at its word; the prior is learned with the tables unless it was given."""
    contents, graph = data.contents(), options.design(data.votes).graph
    start = first_law(data, contents, options)
    ended = _maximised(data, start, _steps(options), options)
    nothing = Estimate(
        parameters=start.parameters,
        accuracies=options.accuracies,
        correlations={},
        raw={},
        raw_correlations={},
        diagnostics=Diagnostics(
            notes=(Note(kind="trust", text=_GIVEN),), learned={"trust": 1.0, "prior": ended.law.prior.to_dict()}
        ),
    )
    estimate = _raised(nothing, ended, graph)
    errors = _errors_of(data, ended.law, estimate, graph)
    return Fit(law=ended.law, estimate=estimate, errors=errors, graph=graph, contents=contents)


def _steps(options: FitOptions) -> EM:
    """The E/M steps from a guess; they learn the prior as well, unless it was given."""
    steps = options.steps(_STEPS_FROM_A_GUESS)
    return replace(steps, learn_prior=steps.learn_prior or options.prior is None)


def _from_search(data: Passes, options: FitOptions) -> Fit:
    """Learn what was not given on a part of the votes: prior, dependencies, and how far the model may be trusted."""
    part = _part(data)
    votes = read_above(part.votes, options.thresholds) if options.thresholds else part.votes
    part = replace(part, votes=votes, progress=data.progress)
    search = partial(
        learn,
        votes,
        prior=options.prior,
        accuracies=options.accuracies,
        beliefs=options.believed(votes),
        method=options.method,
        n_threads=part.n_threads,
        progress=part.progress,
    )
    learned, steps = search(evidence=part.evidence), options.estimator if isinstance(options.estimator, EM) else None
    if part.evidence is not None and learned.trust < 1:
        # Known labels say nothing against a model that explains all votes and is as right about them, but leave fewer
        # votes by which it could be confirmed.
        alone = search()
        if alone.trust > learned.trust and _loss(alone, part) <= _loss(learned, part):
            learned, steps = alone, steps or _STEPS_WITH_GOLD
    estimate = Estimate(
        parameters=learned.law.parameters,
        accuracies=learned.accuracies,
        correlations=learned.correlations,
        raw={},
        raw_correlations={},
        diagnostics=replace(learned.diagnostics, notes=(*learned.diagnostics.notes, *part.notes)),
    )
    law = replace(learned.law, thresholds=options.thresholds)
    # A model that is not trusted at all has discounted factors, and no likelihood that could be raised.
    if steps is not None and learned.trust > 0:
        ended = _maximised(data, law, steps, options)
        law, estimate = ended.law, _raised(estimate, ended, learned.graph)
    errors = partial(_count_errors, part, law, estimate, learned.graph)
    return Fit(law=law, estimate=estimate, errors=errors, graph=learned.graph, contents=data.contents())


def _loss(learned: Learned, part: InMemory) -> float:
    """Brier loss of what votes alone say about the known labels, under a law."""
    assert part.evidence is not None
    known = part.evidence != 0
    found = posterior(learned.law, part.votes, n_threads=part.n_threads)[Element()][known]
    return float(((found - (part.evidence[known, np.newaxis] == np.array(part.votes.classes))) ** 2).sum())


def _about_thresholds(thresholds: Mapping[str, float]) -> list[Note]:
    return [
        Note(
            kind="soft",
            text=f"{name!r} is read as a vote for the positive class from {one:.3g} on, where it says most.",
        )
        for name, one in thresholds.items()
    ]


def _part(data: Passes) -> InMemory:
    """The part of the votes that is learned from."""
    whole = data.sample()
    chosen = choose_part(whole.votes, whole.evidence, whole.groups)
    return replace(whole, votes=chosen.votes, evidence=chosen.evidence, groups=chosen.groups)


def _ties(votes: Votes, parameters: Parameters, options: FitOptions) -> Ties:
    """Which tables are known or believed, and which sources share one: those that depend on their label alone."""
    names = table_names(votes.sources)
    plain = [f.source for f in parameters.factors if isinstance(f, Conditional) and not f.parents]
    keys = {name: names[name] for name in plain}
    return Ties(keys=keys, known=frozenset(options.accuracies), beliefs=options.believed(votes))


def _maximised(data: Passes, start: Law, settings: EM, options: FitOptions) -> EMResult:
    """E/M steps from a law, with what was given."""
    return expectation_maximisation(data, start, settings, ties=_ties(data.votes, start.parameters, options))


def _ended(found: Fit, data: Passes, ended: EMResult) -> Fit:
    """The same fit with what EM made of its law."""
    estimate = _raised(found.estimate, ended, found.graph)
    errors = _errors_of(data, ended.law, estimate, found.graph)
    return replace(found, law=ended.law, estimate=estimate, errors=errors, moments=None)


def _raised(estimate: Estimate, ended: EMResult, graph: SourceGraph) -> Estimate:
    """An estimate after EM: its tables are those of the expected counts, known ones as they were."""
    parameters, ties = ended.law.parameters, ended.ties
    accuracies = read_accuracies(parameters, ties.pool(ended.counts, parameters))
    known: Mapping[str, FloatArray] = {name: estimate.accuracies[name] for name in ties.known}
    gain, steps = ended.objective[-1] - ended.objective[0], len(ended.objective) - 1
    ending = "converged" if ended.converged else "stopped at the most steps allowed"
    text = f"EM raised the log-likelihood by {gain:.4g} in {steps} steps and {ending}"
    correlations = {**estimate.correlations, **read_correlations(parameters, ended.counts, graph.edges)}
    found = replace(estimate, parameters=parameters, accuracies={**accuracies, **known}, correlations=correlations)
    return found.noted(Note(kind="em", text=text, size=gain))


def _errors_of(
    data: Passes, law: Law, estimate: Estimate, graph: SourceGraph
) -> StandardErrors | Callable[[], StandardErrors]:
    """Errors from expected counts, worked out when they are read; of shards at once: they may be closed by then."""
    errors = partial(_count_errors, data, law, estimate, graph)
    return errors if isinstance(data, InMemory) else errors()


def _count_errors(data: Passes, law: Law, estimate: Estimate, graph: SourceGraph) -> StandardErrors:
    """Errors from expected counts, around the tables that are shown."""
    # One pass more, apart by group: keeping groups apart in every step of EM would cost more than this.
    errors = count_errors(law.parameters, data.counts(law, apart=True), graph.edges)
    return errors.around(estimate.accuracies, estimate.correlations)
