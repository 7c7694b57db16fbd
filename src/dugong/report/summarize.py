"""From a fitted model and votes to a report: a value, which text, JSON and HTML render.

In: a `LabelModel`, votes and, if there are any, known labels. Out: `Report`. Each section is a file of its own; where
the report comes from (hashes, versions, settings, a paragraph for a methods section) is here.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.codec import to_plain
from dugong.exceptions import VoteError
from dugong.report.findings import make_findings
from dugong.report.material import Material, gather
from dugong.report.overview import compare_on_gold, make_events, make_overview, make_prior, make_scores, make_versus
from dugong.report.sources import make_agreement, make_dependencies, make_sources
from dugong.report.tracks import BUDGET, MEDIA, make_sequences
from dugong.report.values import Provenance, Report
from dugong.tasks import describe
from dugong.types import AnyArray
from dugong.votes import Votes
from dugong.votes.files import pack
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
    votes = material.votes  # as the model reads them
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


_PACKAGES = ("dugong-ws", "numpy", "scipy", "numba", "pyarrow")


def make_provenance(material: Material, n_edges: int, *, made: datetime | None = None) -> Provenance:
    """Fingerprint everything that went in.

    Parameters
    ----------
    n_edges : dependencies between sources
    made : date and time, now by default
    """
    votes, model = material.votes, material.model
    settings = {name: _words(value) for name, value in model.get_params().items()}
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}
    votes_hash = hash_votes(votes)
    return Provenance(
        made=(made or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        votes_hash=votes_hash,
        model_hash=model.law_.fingerprint,
        gold_hash=None if material.gold is None else _hash(material.gold),
        source_hashes={s.name: _hash(c) for s, c in zip(votes.sources, votes.columns, strict=True)},
        versions=versions,
        settings=settings,
        methods=_methods(material, n_edges, settings, versions, votes_hash),
    )


def hash_votes(votes: Votes) -> str:
    """SHA-256 of all that is in votes: what the codes mean, and every array. The same from any file format."""
    stored = pack(votes)
    digest = hashlib.sha256(json.dumps(to_plain(stored.header), sort_keys=True).encode())
    for name in sorted(stored.arrays):
        digest.update(name.encode("utf-8", "replace"))
        digest.update(_bytes(stored.arrays[name]))
    return digest.hexdigest()


def _hash(array: AnyArray) -> str:
    return hashlib.sha256(_bytes(array)).hexdigest()


def _bytes(array: AnyArray) -> bytes:
    if array.dtype.kind in "OU":
        return json.dumps([str(one) for one in array.tolist()]).encode()
    return np.ascontiguousarray(array).tobytes()


def _words(value: object) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 2000 else f"{text[:2000]} ..."


def _methods(
    material: Material,
    n_edges: int,
    settings: dict[str, str],
    versions: dict[str, str],
    votes_hash: str,
) -> str:
    votes, model = material.votes, material.model
    *others, last = [describe(resolution) for resolution in votes.resolutions]
    where = f"{', '.join(others)} and {last}" if others else last
    prior = "learned from the votes" if isinstance(model.prior, str) else "given"
    learned = "learned from the votes" if isinstance(model.dependencies, str) else "given"
    gold = "no known labels were used"
    if material.gold is not None:
        gold = f"{int(np.count_nonzero(material.gold)):,} elements with known labels were used for evaluation"
    return (
        f"{votes.n_sources} sources voted on {votes.n_sequences:,} sequences ({votes.n_elements:,} elements; "
        f"{votes.n_classes} classes) at these resolutions: {where}. A label model was fitted with Dugong "
        f"{versions['dugong-ws']} (estimator {settings['estimator']}, sharing {settings['sharing']}, signs "
        f"{settings['signs']}, seed {settings['seed']}); the prior over label sequences, {_brief(model.prior_)}, was "
        f"{prior}, and {n_edges} dependencies between sources were {learned}. Labels are posterior probabilities "
        f"given all votes of a sequence; events are runs of {material.how_decoded}. For this report {gold}. SHA-256 of "
        f"the votes: {votes_hash}."
    )


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"a {type(value).__name__} prior (listed in the report)"
