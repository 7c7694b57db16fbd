"""The label model: from votes to accuracies, correlations and probabilistic labels at any resolution.

`LabelModel` follows the contract of scikit-learn. Each method is a few calls downward: graph, moments, estimate, infer.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dugong.contract import Configured
from dugong.drift import Drift, DriftFeature, compare, some_of, watch
from dugong.exceptions import GraphError, LabelError, NotFittedError, VoteError
from dugong.fit.em import EM
from dugong.fit.fit import fit
from dugong.fit.fitting import plan_for
from dugong.fit.learned import Learned
from dugong.fit.passes import InMemory, KeptMoments, Passes
from dugong.fit.result import Correlations
from dugong.fit.settings import FitOptions
from dugong.graph import Dependency
from dugong.graph.design import Sharing
from dugong.graph.identify import identify
from dugong.infer import answers
from dugong.infer.explain import Explanation, explain
from dugong.labels import Labels
from dugong.law.parameters import Parameters, Temporal
from dugong.priors import Prior
from dugong.review import Review, choose
from dugong.store import StoredModel, load_model, save_model
from dugong.summary import ModelSummary, fitted_on, summarize_model
from dugong.sums import Moments, Plan, Shapes
from dugong.tasks import Element, Resolution, find_resolution
from dugong.texts import announced, counted
from dugong.types import AnyArray, FloatArray, Inference, Int8Array
from dugong.votes import Votes
from dugong.votes.concat import align
from dugong.votes.gold import Coding, as_given, from_given, gold_at
from dugong.votes.pieces import not_votes

if TYPE_CHECKING:
    from dugong.graph.identify import Identifiability
    from dugong.report import Report
    from dugong.report.notebook import Timeline


_WORKING = "dugong: fitting; the first fit after an installation compiles, for up to a minute, and later ones do not."


class LabelModel(Configured):
    """Turns noisy votes on sequences into probabilistic labels, without ground truth.

    Parameters
    ----------
    prior : "learn" or a prior of `dugong.priors`
        What is believed about the labels of a sequence.
    dependencies : "learn", "low-rank" or a list
        "learn": found by what a fitted model leaves unexplained; "low-rank": from the inverse covariance of the votes.
        Pairs of source names that are dependent given the labels, and ``temporal("name")`` for a source that repeats
        itself. ``()`` takes all sources as independent, at their word.
    sharing : {"tied", "task", "full"} or a mapping of source name to one of these
        One table per source, one per position, or one over all label patterns of a sequence.
    estimator : {"centred", "paper", "em", "sgd"} or an object of `dugong.estimators`
    signs : {"group", "positive"}
        "group": connected sources are better than random on average. "positive": every single one is.
    accuracies : mapping of source name to table P(vote | label), optional
        Known, not estimated.
    inference : {"auto", "exact", "approximate"}
        Labels are exact unless windows overlap so much, or coarse resolutions are so many, that this would take long;
        `diagnostics_` then says by how much they are off. "exact" refuses instead.
    seed, n_threads : int

    Attributes
    ----------
    classes_ : array of class values; (-1, 1) or 1..K
    accuracies_ : P(vote | label) by source, shape (K, K + 1): classes, then abstain
    correlations_ : P(vote a, vote b | label) by pair, shape (K, K + 1, K + 1)
    law_ : what answers every question about labels: parameters, prior, and how far they are trusted
    graph_ : which sources depend on each other or on themselves, given or learned
    diagnostics_ : what was learned, repaired, or is weak
    """

    def __init__(
        self,
        *,
        prior: Prior | str = "learn",
        dependencies: Iterable[Dependency] | str = "learn",
        sharing: Sharing | Mapping[str, Sharing] = "tied",
        estimator: Any = "centred",
        signs: str = "group",
        accuracies: Mapping[str, Any] | None = None,
        inference: Inference = "auto",
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.prior = prior
        self.dependencies = dependencies
        self.sharing = sharing
        self.estimator = estimator
        self.signs = signs
        self.accuracies = accuracies
        self.inference = inference
        self.seed = seed
        self.n_threads = n_threads

    # --- fitting ---------------------------------------------------------------------------------------------------
    def fit(self, votes: Votes, gold: AnyArray | None = None, groups: Sequence[object] | None = None) -> Self:
        """Estimate accuracies and correlations from agreements and disagreements alone.

        Parameters
        ----------
        votes : Votes
        gold : (n_elements,) known labels, 0 = unknown; optional
        groups : one label per sequence (patient, video), for standard errors; optional
        """
        if not isinstance(votes, Votes):
            raise not_votes(votes)
        if votes.n_elements == 0:
            raise VoteError("a label model needs at least one element; all sequences are empty.\n  Check the loader.")
        evidence = None if gold is None else gold_at(votes, gold, Element())
        return self._fit(InMemory(votes=votes, evidence=evidence, groups=groups, n_threads=self.n_threads))

    def partial_fit(self, votes: Votes, groups: Sequence[object] | None = None) -> Self:
        """Add the moments of more votes to those seen before, and estimate anew.

        Streams need a given prior and given dependencies: what is learned about them needs all votes at once.
        """
        self._check_streamable(votes)
        moments = InMemory(votes=votes, groups=groups, n_threads=self.n_threads).moments(self.plan(votes))
        if hasattr(self, "moments_"):
            moments = self.moments_ + moments
        elif hasattr(self, "law_"):
            raise NotFittedError(
                "this model has no moments to add to: a model's file is without them.\n"
                '  Keep them: model.moments_.save("moments.npz"); bring them along: '
                'model.moments_ = Moments.load("moments.npz").'
            )
        return self.fit_moments(moments, votes)

    def fit_moments(self, moments: Moments, votes: Votes) -> Self:
        """Estimate from moments that were counted elsewhere; `votes` only says what is voted on.

        The class balance is the prior's, and there are no exact E/M steps: these need the votes.
        """
        self._check_streamable(votes)
        return self._fit(KeptMoments(kept=moments, votes=votes))

    def plan(self, votes: Votes) -> Plan:
        """What has to be counted for `fit_moments`."""
        options = self._options()
        return plan_for(options.design(votes), options.estimator)

    def _fit(self, data: Passes) -> Self:
        """Fit to votes, wherever they are, and keep what was found."""
        votes = data.votes
        with announced(_WORKING, after=3.0):
            found = fit(data, self._options())
        self.classes_ = np.array(votes.classes)
        self.class_names_ = votes.class_names
        self.sources_ = votes.sources
        self.law_ = found.law
        self.graph_ = found.graph
        self.accuracies_ = dict(found.estimate.accuracies)
        self.correlations_ = Correlations(found.estimate.correlations)
        self.diagnostics_ = found.estimate.diagnostics
        self.standard_errors_ = found.errors
        self.seen_ = fitted_on(found.contents, votes.sources, found.law.prior, votes.class_names)
        self._specimen: Votes | None = some_of(votes) if data.rereadable else None
        self._reference: tuple[DriftFeature, ...] | None = None
        vars(self).pop("moments_", None)
        if found.moments is not None:
            self.moments_ = found.moments
        return self

    def _options(self) -> FitOptions:
        """The settings with every name resolved."""
        return FitOptions.of(
            prior=self.prior,
            dependencies=self.dependencies,
            sharing=self.sharing,
            estimator=self.estimator,
            signs=self.signs,
            accuracies=self.accuracies,
            inference=self.inference,
        )

    def _check_streamable(self, votes: Votes) -> None:
        options = self._options()
        if not options.by_moments(votes) or isinstance(options.estimator, EM):
            raise GraphError(
                "adding up moments needs two classes, a given prior, given dependencies and a closed-form estimator.\n"
                '  Fit on a sample first, then pass prior=model.prior_ and dependencies=(...), estimator="centred".'
            )

    # --- what was learned ------------------------------------------------------------------------------------------
    @property
    def prior_(self) -> Prior:
        """The prior that inference uses."""
        return self.law_.prior

    @property
    def parameters_(self) -> Parameters:
        """The law of the votes given the labels."""
        return self.law_.parameters

    @property
    def learned_(self) -> Learned | None:
        """What was learned beside the tables; deprecated, read `law_`, `graph_` and `diagnostics_` instead."""
        message = "LabelModel.learned_ is deprecated: read law_, graph_ and diagnostics_ instead."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        if not self.diagnostics_.learned:
            return None
        return Learned(
            law=self.law_,
            graph=self.graph_,
            strengths=self.diagnostics_.strengths,
            accuracies=self.accuracies_,
            correlations=self.correlations_,
            diagnostics=self.diagnostics_,
        )

    # --- labels ----------------------------------------------------------------------------------------------------
    def predict_proba(self, votes: Votes, resolution: str | Resolution = "element") -> FloatArray:
        """P(label | all votes of the sequence), shape (n_tasks, n_classes), columns as `classes_`."""
        wanted = self._resolution(votes, resolution)
        return self._probabilities(votes, (wanted,))[wanted]

    def _probabilities(self, votes: Votes, resolutions: tuple[Resolution, ...]) -> Mapping[Resolution, FloatArray]:
        return answers.posterior(self.law_, self._aligned(votes), resolutions, n_threads=self.n_threads)

    def predict(
        self,
        votes: Votes,
        resolution: str | Resolution = "element",
        threshold: float = 0.5,
        *,
        coding: Coding = "own",
    ) -> AnyArray:
        """The likelier class; with two classes +1 where P(+1) exceeds `threshold`.

        `coding` says how classes are written: our own way, as `classes_`, or as the votes were given
        (``coding="given"``: 0..K-1 for votes from `Votes.from_classes`).
        """
        if not isinstance(threshold, numbers.Real) or not 0 <= float(threshold) <= 1:
            raise LabelError(f"threshold= must be a probability; found {threshold!r}.")
        probabilities = self.predict_proba(votes, resolution)
        if probabilities.shape[1] == 2:
            found = np.where(probabilities[:, 1] > threshold, 1, -1).astype(np.int8)
        else:
            found = np.asarray(self.classes_[probabilities.argmax(axis=1)], dtype=np.int8)
        return as_given(votes, found, coding)

    def decode(self, votes: Votes) -> Int8Array:
        """The most likely label sequence of every sequence (Viterbi), flat over elements."""
        return answers.decode(self.law_, self._aligned(votes), n_threads=self.n_threads)

    def sample(self, votes: Votes, n_draws: int = 1) -> Int8Array:
        """Label sequences drawn from the posterior, shape (n_draws, n_elements)."""
        rng = np.random.default_rng(self.seed)
        return answers.sample(self.law_, self._aligned(votes), rng, n_draws)

    def log_likelihood(self, votes: Votes) -> FloatArray:
        """Log-probability of the votes of every sequence, shape (n_sequences,)."""
        return answers.log_likelihood(self.law_, self._aligned(votes), n_threads=self.n_threads)

    def labels(self, votes: Votes, resolutions: Iterable[str | Resolution] | None = None) -> Labels:
        """Labels as one tidy table: sequence, start, end, resolution, probabilities, label, seconds if known."""
        votes = self._aligned(votes)
        wanted = tuple(self._resolution(votes, one) for one in (resolutions or votes.resolutions))
        found = self._probabilities(votes, wanted)
        path = self.decode(votes) if Element() in wanted else None
        return Labels.of(votes, {one: found[one] for one in wanted}, path)

    def review(self, votes: Votes, budget: int = 50, by: str = "entropy") -> Review:
        """Choose sequences for people to look at: the most uncertain ones, and not the same thing twice.

        Parameters
        ----------
        votes : Votes
        budget : int
            How many sequences there is time for.
        by : "entropy"
            Bits of uncertainty that are left in the labels of a sequence.
        """
        votes = self._aligned(votes)
        return choose(votes, self._probabilities(votes, (Element(),))[Element()], budget, by)

    def score(self, votes: Votes, gold: AnyArray, *, coding: Coding = "own") -> float:
        """Accuracy on the elements whose gold label is known.

        `gold` is in our own coding (0 = unknown) or, with ``coding="given"``, in that of the votes (-1 = unknown).
        """
        labels = gold_at(votes, from_given(votes, gold, coding), Element())
        known = labels != 0
        if not known.any():
            raise LabelError("score needs at least one known gold label; found none (0 means unknown).")
        return float((self.predict(votes)[known] == labels[known]).mean())

    def explain(
        self, votes: Votes, sequence: int = 0, task: int = 0, resolution: str | Resolution = "element"
    ) -> Explanation:
        """Why a label is what it is: log-odds by vote, neighbours and prior."""
        votes = self._aligned(votes)
        return explain(self.law_, votes, sequence, task, self._resolution(votes, resolution))

    # --- reading ---------------------------------------------------------------------------------------------------
    def identifiability(self, votes: Votes) -> Identifiability:
        """What these votes can determine, before fitting."""
        shapes = Shapes.of(votes.lengths, votes.spans)
        options = self._options()
        return identify(options.design(votes), options.prior, shapes, class_names=votes.class_names)

    def summary(self, votes: Votes | None = None, gold: AnyArray | None = None) -> ModelSummary:
        """What was learned about every source; with votes and known labels, beside what they show.

        Parameters
        ----------
        votes, gold : votes and labels of their elements (0 = unknown) as in `Votes.summary`, optional

        Returns
        -------
        ModelSummary
            Prints as a table; `to_dict` gives the numbers.
        """
        self._check_fitted()
        return summarize_model(
            sources=self.sources_,
            accuracies=self.accuracies_,
            intervals=self.standard_errors_.intervals,
            diagnostics=self.diagnostics_,
            seen=self.seen_,
            prior=self.prior_,
            edges=[*self.correlations_, *((name, name) for name in _repeating(self.parameters_))],
            class_names=self.class_names_,
            votes=votes,
            gold=gold,
        )

    def report(
        self,
        votes: Votes,
        path: str | PathLike[str] | None = None,
        gold: Any = None,
        *,
        n_sequences: int | None = None,
        sequences: Iterable[object] = (),
        title: str = "Label report",
    ) -> Report:
        """See what was learned: a value that renders as one self-contained page, as text and as JSON.

        Parameters
        ----------
        path : file, optional
            Where to write it: ``.html``, ``.txt`` or ``.json``.
        gold : known labels as in `summary`, optional
        n_sequences : int, optional
            Sequences to show in full, the most informative first; 100 by default, and as many as fit below 5 MB.
        sequences : ids of sequences to show in any case
        title : str
        """
        from dugong.report import summarize, write_report

        self._check_fitted()
        found = summarize(self, votes, gold, title=title, n_sequences=n_sequences, sequences=sequences)
        if path is not None:
            write_report(found, path)
        return found

    def drift(self, votes: Votes, *, level: float = 0.01) -> Drift:
        """Do new votes still look like those of the fit? By source: coverage, agreement, surprise; and all together.

        Parameters
        ----------
        votes : Votes
        level : float
            Probability of a false alarm among all that is compared.

        Returns
        -------
        Drift
            True if something changed by more than chance; prints as sentences.
        """
        votes = self._aligned(votes)
        before = self._watched()
        if before is None:
            raise NotFittedError(
                "this model does not know what its votes looked like: its file is of an earlier version, or it was "
                "fitted to moments alone.\n  Fit it again."
            )
        return compare(before, watch(self.law_, self.accuracies_, votes), votes, level)

    def _watched(self) -> tuple[DriftFeature, ...] | None:
        """What drift is measured against, worked out when it is first needed."""
        if self._reference is None and self._specimen is not None:
            self._reference = watch(self.law_, self.accuracies_, self._specimen)
        return self._reference

    def timeline(self, votes: Votes, sequence: object) -> Timeline:
        """One sequence with its votes, probabilities and best path, to look at in a notebook or a browser.

        Parameters
        ----------
        votes : Votes
        sequence : its id
        """
        from dugong.report.notebook import make_timeline

        return make_timeline(self, self._aligned(votes), sequence)

    def __repr__(self) -> str:
        if not hasattr(self, "law_"):
            return super().__repr__()
        seen = f"{counted(len(self.sources_), 'source')} on {counted(self.seen_.n_sequences, 'sequence')}"
        return f"{super().__repr__()}, fitted: {seen}"

    def _repr_html_(self) -> str:
        from dugong.report.notebook import model_html

        return model_html(self)

    # --- files -----------------------------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a ``.json`` file: plain data, never code, every number exactly."""
        self._check_fitted()
        stored = StoredModel(
            settings=self.get_params(),
            n_classes=len(self.classes_),
            class_names=self.class_names_,
            sources=self.sources_,
            law=self.law_,
            graph=self.graph_,
            accuracies=self.accuracies_,
            correlations=self.correlations_,
            errors=self.standard_errors_,
            diagnostics=self.diagnostics_,
            seen=self.seen_,
            reference=self._watched(),
        )
        save_model(stored, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote. The moments are not in the file; `partial_fit` says how to bring them along."""
        stored = load_model(path)
        model = cls(**stored.settings)
        model.classes_ = np.array((-1, 1) if stored.n_classes == 2 else range(1, stored.n_classes + 1))
        model.class_names_ = stored.class_names
        model.sources_ = stored.sources
        model.law_ = stored.law
        model.graph_ = stored.graph
        model.accuracies_ = dict(stored.accuracies)
        model.correlations_ = Correlations(stored.correlations)
        model.standard_errors_ = stored.errors
        model.diagnostics_ = stored.diagnostics
        model.seen_ = stored.seen
        model._specimen, model._reference = None, stored.reference
        return model

    def _aligned(self, votes: Votes) -> Votes:
        self._check_fitted()
        return align(votes, self.sources_)

    def _resolution(self, votes: Votes, resolution: str | Resolution) -> Resolution:
        return find_resolution(resolution, votes.resolutions) if isinstance(resolution, str) else resolution


def _repeating(parameters: Parameters) -> list[str]:
    """Sources that depend on their own earlier votes."""
    return [factor.source for factor in parameters.factors if isinstance(factor, Temporal)]
