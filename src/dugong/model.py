"""The label model: from votes to accuracies, correlations and probabilistic labels at any resolution.

`LabelModel` follows the contract of scikit-learn. Each method is a few calls downward: graph, moments, estimate, infer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from dugong.codec import reading
from dugong.contract import Configured, typed
from dugong.drift import Drift, DriftFeature, compare, some_of, watch
from dugong.exceptions import FileError, GraphError, LabelError, NotFittedError, VoteError
from dugong.fit.beliefs import Belief
from dugong.fit.em import EM
from dugong.fit.errors import StandardErrors
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
from dugong.progress import FitProgress, fit_progress
from dugong.review import DRAWS, Review, check_request, choose, choose_elements
from dugong.store import StoredModel, load_model, save_model
from dugong.suggest import Suggestions, suggest
from dugong.summary import ModelSummary, fitted_on, summarize_model
from dugong.sums import Moments, Plan, Shapes
from dugong.tasks import Element, Resolution
from dugong.texts import counted
from dugong.types import AnyArray, Count, FloatArray, Inference, Int8Array, Share, class_values
from dugong.votes import Votes
from dugong.votes.concat import align
from dugong.votes.gold import Coding, accuracy_on, as_given, from_given, gold_at, likeliest

if TYPE_CHECKING:
    from dugong.graph.identify import Identifiability
    from dugong.report import Report
    from dugong.report.notebook import Timeline

# What a file holds under the names that a fitted model has for it.
_STORED = ("class_names", "sources", "law", "graph", "accuracies", "correlations", "diagnostics", "seen")


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
    sharing : {"tied", "group", "task", "full"} or a mapping of source name to one of these but "group"
        One table per source; one per group of sequences, leaning on that of all groups as far as they are alike
        (``fit(votes, groups=patients)``); one per position; or one over all label patterns of a sequence.
    estimator : {"centred", "paper", "em", "sgd"} or an object of `dugong.estimators`
    signs : {"group", "positive"}
        "group": connected sources are better than random on average. "positive": every single one is.
    accuracies : mapping of source name to table P(vote | label), optional
        Known, not estimated.
    beliefs : mapping of source name to `dugong.Belief`, optional
        What is known about a source without being certain: pseudo-votes behind its table, a polarity.
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
        sharing: Sharing | Literal["group"] | Mapping[str, Sharing] = "tied",
        estimator: Any = "centred",
        signs: str = "group",
        accuracies: Mapping[str, Any] | None = None,
        beliefs: Mapping[str, Belief] | None = None,
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
        self.beliefs = beliefs
        self.inference = inference
        self.seed = seed
        self.n_threads = n_threads

    # --- fitting ---------------------------------------------------------------------------------------------------
    @typed(LabelError)
    def fit(
        self,
        votes: Votes,
        gold: AnyArray | None = None,
        groups: Sequence[object] | None = None,
        *,
        progress: bool | FitProgress | None = None,
    ) -> Self:
        """Estimate accuracies and correlations from agreements and disagreements alone.

        Parameters
        ----------
        votes : Votes
        gold : (n_elements,) known labels, 0 = unknown; optional
            Where they hold 0 and 1 only, an int8 array says that 0 means unknown.
        groups : one label per sequence (patient, video); optional
            Standard errors are by group; with ``sharing="group"`` each group has tables of its own.
        progress : function of (step, done, in all), or False
            Is told what the fit does; by default a bar where somebody watches, if it takes longer than a second. The
            step "compile" occurs in the first fits of an installation only.
        """
        if votes.n_elements == 0:
            raise VoteError("a label model needs at least one element; all sequences are empty.\n  Check the loader.")
        evidence = None if gold is None else self._evidence(votes, gold)
        votes = votes if groups is None else votes.in_groups(groups)
        with fit_progress(progress) as tell:
            return self._fit(
                InMemory(votes=votes, evidence=evidence, groups=groups, n_threads=self.n_threads, progress=tell)
            )

    @typed(LabelError)
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

    @typed(LabelError)
    def fit_moments(self, moments: Moments, votes: Votes) -> Self:
        """Estimate from moments that were counted elsewhere; `votes` only says what is voted on.

        The class balance is the prior's, and there are no exact E/M steps: these need the votes.
        """
        self._check_streamable(votes)
        return self._fit(KeptMoments(kept=moments, votes=votes))

    @typed(LabelError)
    def plan(self, votes: Votes) -> Plan:
        """What has to be counted for `fit_moments`."""
        options = self._options()
        return plan_for(options.design(votes), options.estimator)

    def _fit(self, data: Passes) -> Self:
        """Fit to votes, wherever they are, and keep what was found."""
        votes = data.votes
        found = fit(data, self._options())
        self.classes_ = np.array(votes.classes)
        self.class_names_ = votes.class_names
        self.sources_ = votes.sources
        self.law_ = found.law
        self.graph_ = found.graph
        self.accuracies_ = dict(found.estimate.accuracies)
        self.correlations_ = Correlations(found.estimate.correlations)
        self.diagnostics_ = found.estimate.diagnostics
        self._errors: StandardErrors | Callable[[], StandardErrors] = found.errors
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
            seed=self.seed,
            n_threads=self.n_threads,
            prior=self.prior,
            dependencies=self.dependencies,
            sharing=self.sharing,
            estimator=self.estimator,
            signs=self.signs,
            accuracies=self.accuracies,
            beliefs=self.beliefs,
            inference=self.inference,
        )

    def _check_streamable(self, votes: Votes) -> None:
        options = self._options()
        if not options.by_moments(votes) or isinstance(options.estimator, EM) or options.beliefs or options.grouped:
            raise GraphError(
                "adding up moments needs two classes, a given prior, given dependencies, a closed-form estimator, and "
                "neither beliefs nor tables by group.\n"
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
    def standard_errors_(self) -> StandardErrors:
        """Standard errors of all tables, by groups of sequences; worked out when they are first read."""
        if "_errors" not in vars(self):
            raise AttributeError("a model has standard errors once it is fitted; call fit(votes) first.")
        if not isinstance(self._errors, StandardErrors):
            self._errors = self._errors()
        return self._errors

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle holds: standard errors, not the votes that they come from."""
        if "_errors" in vars(self):
            _ = self.standard_errors_
        return vars(self)

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
    @typed(LabelError)
    def predict_proba(
        self,
        votes: Votes,
        resolution: str | Resolution = "element",
        groups: Sequence[object] | None = None,
        *,
        known: AnyArray | None = None,
    ) -> FloatArray:
        """P(label | all votes of the sequence), shape (n_tasks, n_classes), columns as `classes_`.

        `groups` names one group per sequence, where a model has tables by group (``sharing="group"``): here and in all
        other methods. A sequence of an unknown group, or without one, gets the tables of all groups together.

        `known` are labels of elements that somebody has looked at, 0 = unknown: they are certain, and tell about the
        others of their sequence.
        """
        wanted = votes.resolution(resolution)
        return self._probabilities(self._aligned(votes, groups), (wanted,), known)[wanted]

    def _probabilities(
        self, votes: Votes, resolutions: tuple[Resolution, ...], known: AnyArray | None = None
    ) -> Mapping[Resolution, FloatArray]:
        evidence = self._evidence(votes, known)
        return answers.posterior(
            self.law_, self._aligned(votes), resolutions, evidence=evidence, n_threads=self.n_threads
        )

    def _evidence(self, votes: Votes, known: AnyArray | None) -> Int8Array | None:
        """Known labels of elements. An int8 array is in our own coding, so that 0 and +1 alone are not ambiguous."""
        own = isinstance(known, np.ndarray) and known.dtype == np.int8 and known.shape == (votes.n_elements,)
        if known is None or (own and np.isin(known, (0, *votes.classes)).all()):
            return known
        return gold_at(votes, known, Element())

    @typed(LabelError)
    def predict(
        self,
        votes: Votes,
        resolution: str | Resolution = "element",
        threshold: Share = 0.5,
        *,
        coding: Coding = "own",
        groups: Sequence[object] | None = None,
    ) -> AnyArray:
        """The likelier class; with two classes +1 where P(+1) exceeds `threshold`.

        `coding` says how classes are written: our own way, as `classes_`, or as the votes were given
        (``coding="given"``: 0..K-1 for votes from `Votes.from_classes`).
        """
        found = likeliest(self.predict_proba(votes, resolution, groups), self.classes_, threshold)
        return as_given(votes, found, coding)

    @typed(LabelError)
    def decode(
        self, votes: Votes, groups: Sequence[object] | None = None, *, known: AnyArray | None = None
    ) -> Int8Array:
        """The most likely label sequence of every sequence (Viterbi), flat over elements; through `known` labels."""
        votes, evidence = self._aligned(votes, groups), self._evidence(votes, known)
        return answers.decode(self.law_, votes, evidence=evidence, n_threads=self.n_threads)

    @typed(LabelError)
    def sample(self, votes: Votes, n_draws: Count = 1, groups: Sequence[object] | None = None) -> Int8Array:
        """Label sequences drawn from the posterior, shape (n_draws, n_elements)."""
        rng = np.random.default_rng(self.seed)
        return answers.sample(self.law_, self._aligned(votes, groups), rng, n_draws)

    @typed(LabelError)
    def log_likelihood(self, votes: Votes, groups: Sequence[object] | None = None) -> FloatArray:
        """Log-probability of the votes of every sequence, shape (n_sequences,)."""
        return answers.log_likelihood(self.law_, self._aligned(votes, groups), n_threads=self.n_threads)

    @typed(LabelError)
    def labels(
        self,
        votes: Votes,
        resolutions: Iterable[str | Resolution] | None = None,
        groups: Sequence[object] | None = None,
        *,
        known: AnyArray | None = None,
    ) -> Labels:
        """Labels as one tidy table: sequence, start, end, resolution, probabilities, label, seconds if known.

        `known` labels are certain, as in `predict_proba`.
        """
        votes = self._aligned(votes, groups)
        asked = votes.resolutions if resolutions is None else resolutions
        wanted = tuple(map(votes.resolution, asked))
        if not wanted:
            raise LabelError("labels need at least one resolution; found none.")
        found = self._probabilities(votes, wanted, known)
        path = self.decode(votes, known=known) if Element() in wanted else None
        return Labels.of(votes, {one: found[one] for one in wanted}, path)

    @typed(LabelError)
    def review(
        self,
        votes: Votes,
        budget: int = 50,
        by: str = "entropy",
        *,
        known: AnyArray | None = None,
        groups: Sequence[object] | None = None,
    ) -> Review:
        """Choose what people should look at: what teaches most, and not the same thing twice.

        Parameters
        ----------
        votes : Votes
        budget : int
            How many sequences or elements there is time for.
        by : {"entropy", "value"}
            "entropy": sequences, by the bits of uncertainty that are left in their labels. "value": elements, by how
            much knowing their label is expected to improve all labels of their sequence.
        known : (n_elements,) labels that are known already, 0 = unknown; optional
            They are not asked again, and what they tell about others is taken into account. Use what people answer in
            `fit(votes, gold=known)` and `labels(votes, known=known)`.
        """
        check_request(budget, by)
        votes, evidence = self._aligned(votes, groups), self._evidence(votes, known)
        probabilities = self._probabilities(votes, (Element(),), known)[Element()]
        if by == "entropy":
            return choose(votes, probabilities, budget)
        rng = np.random.default_rng(self.seed)

        def draw(part: Votes, labels: Int8Array | None) -> Int8Array:
            return answers.sample(self.law_, part, rng, DRAWS, evidence=labels, n_threads=self.n_threads)

        return choose_elements(votes, probabilities, draw, budget, evidence)

    @typed(LabelError)
    def suggest(self, votes: Votes, sequences: Any, budget: int = 5, *, known: AnyArray | None = None) -> Suggestions:
        """Rules worth writing: thresholds or lists of words that complement the present sources, as code to paste.

        Parameters
        ----------
        votes : Votes
        sequences : what was voted on, as in `dugong.apply`
            Numbers, rows of a table, arrays of numbers, or words.
        budget : int
            How many rules.
        known : (n_elements,) labels that are known, 0 = unknown; optional
            Without them everything rests on the model's own probabilities.
        """
        votes = self._aligned(votes)
        counted = self.law_.tempering is not None
        return suggest(votes, self.predict_proba(votes, known=known), sequences, budget, counted=counted)

    def score(
        self, votes: Votes, gold: AnyArray, *, coding: Coding = "own", groups: Sequence[object] | None = None
    ) -> float:
        """Accuracy on the elements whose gold label is known.

        `gold` is in our own coding (0 = unknown) or, with ``coding="given"``, in that of the votes (-1 = unknown).
        """
        labels = gold_at(votes, from_given(votes, gold, coding), Element())
        return accuracy_on(self.predict(votes, groups=groups), labels)

    @typed(LabelError)
    def explain(
        self,
        votes: Votes,
        sequence: int | str = 0,
        task: int = 0,
        resolution: str | Resolution = "element",
        groups: Sequence[object] | None = None,
        *,
        target: int | None = None,
    ) -> Explanation:
        """Why a label is what it is, or why it is not `target`: log-odds by vote, neighbours and prior.

        Parameters
        ----------
        sequence : its place, or its id where that is a word
        """
        votes = self._aligned(votes, groups)
        if isinstance(sequence, str):
            ids = list(map(str, votes.sequence_ids.tolist()))
            if sequence not in ids:
                some = f"{counted(len(ids), 'sequence')}: {', '.join(map(repr, ids[:3]))}"
                raise LabelError(f"there is no sequence {sequence!r}; there are {some}, ...")
            sequence = ids.index(sequence)
        law = self.law_ if votes.groups is None else self.law_.of_group(str(votes.groups[sequence]))
        return explain(law, votes, sequence, task, votes.resolution(resolution), target=target)

    # --- reading ---------------------------------------------------------------------------------------------------
    @typed(LabelError)
    def identifiability(self, votes: Votes) -> Identifiability:
        """What these votes can determine, before fitting."""
        shapes = Shapes.of(votes.lengths, votes.spans)
        options = self._options()
        return identify(options.design(votes), options.prior, shapes, class_names=votes.class_names)

    @typed(LabelError)
    def summary(self, votes: Votes | None = None, gold: AnyArray | Mapping[Any, Any] | None = None) -> ModelSummary:
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
        repeating = [(one.source, one.source) for one in self.parameters_.factors if isinstance(one, Temporal)]
        return summarize_model(
            sources=self.sources_,
            accuracies=self.accuracies_,
            intervals=self.standard_errors_.intervals,
            diagnostics=self.diagnostics_,
            seen=self.seen_,
            prior=self.prior_,
            edges=[*self.correlations_, *repeating],
            class_names=self.class_names_,
            known=tuple(self.accuracies or ()),
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
        media: Any = None,
        media_bytes: int = 1_000_000,
        groups: Sequence[object] | None = None,
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
        media : mapping, iterable of pairs or loader, optional
            The sequences that were voted on: their words, pictures or signals are drawn beside the labels, and become a
            part of the page.
        media_bytes : int
            What these may take; a page stays below 5 MB in any case.
        groups : one group per sequence, optional
        """
        from dugong.report import summarize, write_report

        self._check_fitted()
        found = summarize(
            self,
            votes if groups is None else votes.in_groups(groups),
            gold,
            title=title,
            n_sequences=n_sequences,
            sequences=sequences,
            media=media,
            media_bytes=media_bytes,
        )
        if path is not None:
            write_report(found, path)
        return found

    @typed(LabelError)
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

    @typed(LabelError)
    def timeline(self, votes: Votes, sequence: object, media: Any = None) -> Timeline:
        """One sequence with its votes, probabilities and best path, to look at in a notebook or a browser.

        Parameters
        ----------
        votes : Votes
        sequence : its id
        media : mapping, iterable of pairs or loader, optional
            The sequences that were voted on, to draw words, pictures or signals beside the labels.
        """
        from dugong.report.notebook import make_timeline

        return make_timeline(self, self._aligned(votes), sequence, media)

    def __repr__(self) -> str:
        if not hasattr(self, "law_"):
            return super().__repr__()
        seen = f"{counted(len(self.sources_), 'source')} on {counted(self.seen_.n_sequences, 'sequence')}"
        return f"{super().__repr__()}, fitted: {seen}"

    def _repr_html_(self) -> str:
        from dugong.report.notebook import model_html

        return model_html(self)

    # --- files -----------------------------------------------------------------------------------------------------
    @typed(LabelError)
    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a ``.json`` file: plain data, never code, every number exactly."""
        self._check_fitted()
        stored = StoredModel(
            settings=self.get_params(),
            n_classes=len(self.classes_),
            errors=self.standard_errors_,
            reference=self._watched(),
            **{name: getattr(self, f"{name}_") for name in _STORED},
        )
        save_model(stored, path)

    @classmethod
    @typed(LabelError)
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote. The moments are not in the file; `partial_fit` says how to bring them along."""
        stored = load_model(path)
        with reading(path, FileError, "Its settings are damaged: fit again."):
            model = cls().set_params(**stored.settings)
            cls._options(model)
        model.classes_ = np.array(class_values(stored.n_classes))
        vars(model).update({f"{name}_": getattr(stored, name) for name in _STORED})
        model.correlations_ = Correlations(stored.correlations)
        vars(model).update(_errors=stored.errors, _specimen=None, _reference=stored.reference)
        return model

    def _aligned(self, votes: Votes, groups: Sequence[object] | None = None) -> Votes:
        self._check_fitted()
        return align(votes if groups is None else votes.in_groups(groups), self.sources_)
