"""From a fitted model and votes to a report: a value, which text, JSON and HTML render.

In: a `LabelModel`, votes and, if there are any, known labels. Out: `Report`. Each section is a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dugong.exceptions import VoteError
from dugong.report.findings import make_findings
from dugong.report.material import gather
from dugong.report.overview import make_overview, make_prior
from dugong.report.provenance import make_provenance
from dugong.report.scoring import compare_on_gold, make_events, make_scores, make_versus
from dugong.report.sources import make_agreement, make_dependencies, make_sources
from dugong.report.tracks import BUDGET, MEDIA, make_sequences
from dugong.report.values import Report
from dugong.votes import Votes
from dugong.votes.overlaps import count_overlaps

if TYPE_CHECKING:
    from dugong.model import LabelModel


def summarize(
    model: LabelModel,
    votes: Votes,
    gold: Any = None,
    *,
    title: str = "Label report",
    n_sequences: int | None = None,
    sequences: Iterable[object] = (),
    budget: int | None = BUDGET,
    media: Any = None,
    media_bytes: int = MEDIA,
    made: datetime | None = None,
) -> Report:
    """Put what a fitted model says about some votes into one plain value.

    Parameters
    ----------
    model : LabelModel, fitted
    votes : Votes
    gold : (n_elements,) known labels, 0 = unknown, or a mapping by resolution, as in `Votes.summary`; optional
    title : str
    n_sequences : int, optional
        Sequences to show in full, most informative first: 100 by default, and as many as the budget allows.
    sequences : ids of sequences to show in any case, before all others
    budget : int or None
        Characters that the sequences may take in a page, 2.8 million by default; None for no limit.
    media : mapping, iterable of pairs or loader, optional
        The sequences as the sources saw them: their words, pictures or signals are drawn beside the labels.
    media_bytes : int
        What these may take of the budget; a million by default.
    made : datetime, optional
        What to write as the date; now by default.
    """
    if not votes.n_elements:
        raise VoteError("a report needs at least one element; these votes have none.")
    material = gather(model, votes, gold)
    met = count_overlaps(votes)
    seen = votes.summary(gold)
    learned = model.summary(votes, gold) if gold is not None else model.summary()
    comparison = compare_on_gold(material)
    sources, depending = make_sources(material, seen, learned), make_dependencies(material)
    agreement, scores = make_agreement(material), make_scores(material, comparison)
    versus = make_versus(material, comparison)
    return Report(
        title=title,
        overview=make_overview(material, met.n_silent),
        sources=sources,
        dependencies=depending,
        prior=make_prior(material),
        agreement=agreement,
        scores=scores,
        events=make_events(material, comparison),
        versus=versus,
        findings=make_findings(
            material,
            sources=sources,
            dependencies=depending,
            agreement=agreement,
            scores=scores,
            versus=versus,
            problems=seen.problems,
        ),
        provenance=make_provenance(material, len(depending.edges), made=made),
        sequences=make_sequences(
            material,
            n_sequences=n_sequences,
            wanted=sequences,
            budget=budget,
            media=media,
            media_bytes=media_bytes,
        ),
    )
