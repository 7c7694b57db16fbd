"""From a fitted model and votes to a report: a value, which text, JSON and HTML render.

In: a `LabelModel`, votes and, if there are any, known labels. Out: `Report`. Each section is a file of its own; where
the report comes from (hashes, versions, settings, a paragraph for a methods section) is here.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from dugong.codec import to_plain
from dugong.exceptions import VoteError
from dugong.fit.result import Note
from dugong.report.material import Material, gather
from dugong.report.overview import compare_on_gold, make_events, make_overview, make_prior, make_scores, make_versus
from dugong.report.sources import make_agreement, make_dependencies, make_source
from dugong.report.tracks import BUDGET, MEDIA, make_sequences
from dugong.report.values import Agreement, Dependencies, Finding, Provenance, Report, Scores, SourceRow, Versus
from dugong.tasks import describe
from dugong.types import AnyArray
from dugong.votes import Votes
from dugong.votes.files import pack
from dugong.votes.summary import Problem, Tally, summary_of

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
    tally = Tally.of(votes)
    seen = summary_of(tally, votes, gold)
    learned = model.summary(votes, gold) if gold is not None else model.summary()
    comparison = compare_on_gold(material)
    sources = tuple(make_source(material, one, learned[one.name]) for one in seen.sources)
    depending = make_dependencies(material)
    report = Report(
        title=title,
        overview=make_overview(material, tally),
        sources=sources,
        dependencies=depending,
        prior=make_prior(material),
        agreement=make_agreement(material),
        scores=make_scores(material, comparison),
        events=make_events(material, comparison),
        versus=make_versus(material, comparison),
        findings=(),
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
    return replace(report, findings=make_findings(material, report, seen.problems))


_PACKAGES = ("dugong-ws", "numpy", "scipy", "numba", "pyarrow")


def make_provenance(material: Material, n_edges: int, *, made: datetime | None = None) -> Provenance:
    """Fingerprint everything that went in; `n_edges` dependencies between sources, made now by default."""
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
    material: Material, n_edges: int, settings: dict[str, str], versions: dict[str, str], votes_hash: str
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


# --- diagnostics in words: what was seen, how serious it is, and what to do about it ----------------------------------
# In: `Material` and the other sections. Out: findings, the most serious first. Levels: "warning" (labels may be wrong
# because of this), "note" (good to know), "fine" (checked, and all right).
WIDE = 0.3
EXCESS = 0.05
STANDARD_ERRORS = 4.0
MISCALIBRATED = 0.1
_MOST = 5

_TODO_NOTES = {
    "projection": "If the source is important, look at its intervals and at the votes behind it; more sequences help.",
    "fallback": "Add a source that votes on the same tasks, or give this one an accuracy.",
    "flip": "Look at a few of its votes: a source that is worse than random may have its classes swapped.",
    "undetermined": "Remove a dependency, add a source, or give an accuracy.",
    "trust": "See the weights of the sources above, and the comparison with majority vote.",
    "copies": "Fewer near-copies say the same; sources that look at something else would add more.",
    "background": "If that is wrong, name the background class when you make the votes.",
    "balance": "Compare the share of positives with what you expect, and give the prior if you know it better.",
}
_GROUPED = {
    "edge": (
        "Pairs of sources share errors (correlation)",
        "Nothing has to be done: this was learned and is part of the model. See the dependencies above.",
    ),
    "temporal": (
        "Sources repeat their own errors from task to task (correlation)",
        "Nothing has to be done: this was learned, and long runs of equal votes count less for it.",
    ),
}
_TODO_PROBLEMS = {
    "never-votes": "Leave it out, or find out why it never votes.",
    "always-same": "Leave it out, or let it abstain where it does not know.",
    "copy": "Leave one of the two out, or declare the pair as dependent.",
    "faults": "Look at the faults of the votes, and repair the source.",
    "empty": "Nothing has to be done; they have no labels.",
    "silent": "Look at some of these elements: a source that speaks there helps most.",
}
_LEVELS = {"warning": 0, "note": 1, "fine": 2}


def make_findings(material: Material, report: Report, problems: tuple[Problem, ...]) -> tuple[Finding, ...]:
    """Everything that a reader should know before trusting the labels."""
    found = [
        *_about_gold(material, report.versus, report.scores),
        *(_no_better(row) for row in report.sources if _no_better_than_chance(row)),
        *_about_intervals(report.sources),
        *_about_pairs(report.agreement, report.dependencies),
        *_about_problems(problems),
        *_about_fit(material),
        *_about_doubt(report.scores),
        *_about_review(material),
    ]
    if not any(one.level == "warning" for one in found):
        found.append(Finding(level="fine", text="None of the checks gives a warning."))
    return tuple(sorted(dict.fromkeys(found), key=lambda one: _LEVELS[one.level]))


def _about_review(material: Material) -> list[Finding]:
    """The labels that a person should look at first."""
    review = material.model.review(material.votes, _MOST, by="value")
    if review.elements is None or not len(review):
        return []
    listed = [f"element {at} of sequence {one}" for one, at in zip(review.ids, review.elements.tolist(), strict=True)]
    text = f"Worth a person's minute: {', '.join(listed)}. Their labels would improve the others most."
    todo = "`dugong review` writes a table of such elements to fill in, which `fit --gold` and train_gold read."
    return [Finding(text=text, todo=todo)]


def _about_gold(material: Material, versus: Versus, scores: Scores) -> list[Finding]:
    if material.gold is None or not material.gold.any():
        text = "No known labels were given: accuracies and probabilities are estimates that nothing here has checked."
        todo = "Label the first few sequences of the list below by hand, and make the report again with them."
        return [Finding(text=text, todo=todo)]
    found = []
    if versus.better is not True:
        todo = "Majority vote is simpler. Use it, or look at the sources and dependencies above for what is wrong."
        if versus.better is None:
            todo = "Give known labels of more sequences: intervals come from how sequences differ."
        found.append(Finding(level=versus.tone, text=versus.sentence, todo=todo))
    if scores.ece is not None and scores.ece > MISCALIBRATED:
        text = (
            f"Probabilities are off by {scores.ece:.2f} on average (expected calibration error): the model promises "
            f"{scores.expected_accuracy:.1%} right labels."
        )
        todo = 'Take labels rather than probabilities at their word, or fit with dependencies="learn".'
        found.append(Finding(level="warning", text=text, todo=todo))
    return found


def _no_better(row: SourceRow) -> Finding:
    share = "an unknown share" if row.accuracy is None else f"{row.accuracy:.0%}"
    text = f"{row.name} seems to be no better than chance: it votes right {share} of the time."
    todo = "Look at some of its votes. Repair it, turn it round, or leave it out."
    return Finding(level="warning", where=row.name, text=text, todo=todo)


def _about_intervals(rows: tuple[SourceRow, ...]) -> list[Finding]:
    widths = {
        row.name: max((part.interval[1] - part.interval[0] for part in row.classes if part.interval), default=0.0)
        for row in rows
    }
    wide = {name: width for name, width in sorted(widths.items(), key=lambda one: -one[1]) if width > WIDE}
    if not wide:
        return []
    listed = ", ".join(f"{name} ({width:.2f} wide)" for name, width in wide.items())
    text = f"Some accuracies are poorly known, by their intervals: {listed}."
    todo = "More sequences, or a source that votes on the same tasks, make the intervals narrower."
    return [Finding(where=next(iter(wide)), text=text, todo=todo)]


def _no_better_than_chance(row: SourceRow) -> bool:
    rates = [part.right_if_votes for part in row.classes if part.right_if_votes is not None]
    one_sided = any(part.right < 1e-3 for part in row.classes)  # a source that never votes for a class
    return bool(rates) and not one_sided and float(np.mean(rates)) <= 1 / len(row.classes)


def _about_pairs(agreement: Agreement, dependencies: Dependencies) -> list[Finding]:
    known = {frozenset((edge.first, edge.second)) for edge in dependencies.edges}
    found = []
    for i, j in zip(*np.triu_indices(len(agreement.names), k=1), strict=True):
        excess, size = float(agreement.excess[i, j]), abs(agreement.standardised[i, j])
        pair = (agreement.names[i], agreement.names[j])
        if frozenset(pair) not in known and excess > EXCESS and (np.isnan(size) or size > STANDARD_ERRORS):
            found.append((excess, *pair))
    if not found:
        return []
    found.sort(reverse=True)
    listed = "; ".join(f"{first} and {second} by {100 * excess:.0f} points" for excess, first, second in found[:_MOST])
    more = f"; and {len(found) - _MOST} more pairs" if len(found) > _MOST else ""
    todo = f"If they look at the same thing, declare dependencies such as ({found[0][1]!r}, {found[0][2]!r})."
    if dependencies.learned:
        todo = "Sources that repeat each other are discounted already; fewer near-copies make the labels surer."
    text = f"Some sources agree more often than the model expects: {listed}{more}."
    return [Finding(where=found[0][1], text=text, todo=todo)]


def _about_problems(problems: tuple[Problem, ...]) -> list[Finding]:
    """One finding per remark; one for all sources that never vote."""
    silent = [one.source or "" for one in problems if one.kind == "never-votes"]
    rest = [one for one in problems if one.kind != "never-votes" or len(silent) == 1]
    found = [
        Finding(
            level="note" if one.kind in ("silent", "empty", "never-votes") else "warning",
            where=one.source or "",
            text=one.text[0].upper() + one.text[1:],
            todo=_TODO_PROBLEMS.get(one.kind, ""),
        )
        for one in rest
    ]
    if len(silent) > 1:
        text = f"{len(silent)} sources never vote and have no influence: {', '.join(silent)}."
        todo = "Leave them out, or find out why they never vote."
        found.append(Finding(where=silent[0], text=text, todo=todo))
    return found


def _about_fit(material: Material) -> list[Finding]:
    notes = material.model.diagnostics_.notes
    found = [_one_note(note) for note in notes if note.kind not in _GROUPED]
    for kind, (words, todo) in _GROUPED.items():
        mine = sorted((note for note in notes if note.kind == kind), key=lambda note: -abs(note.size))
        if mine:
            listed = "; ".join(f"{note.where} ({note.size:+.2f})" for note in mine)
            found.append(Finding(where=mine[0].where, text=f"{words}: {listed}.", todo=todo))
    return found


def _one_note(note: Note) -> Finding:
    named = not note.where or note.where in note.text
    text = note.text[:1].upper() + note.text[1:] if named else f"{note.where}: {note.text}"
    level = "warning" if note.kind in ("flip", "undetermined") else "note"
    return Finding(level=level, where=note.where, text=text, todo=_TODO_NOTES.get(note.kind, ""))


def _about_doubt(scores: Scores) -> list[Finding]:
    if scores.doubtful <= 0.1:
        return []
    text = f"The model is in doubt about {scores.doubtful:.0%} of the elements (no class reaches 0.75)."
    todo = "Sort the sequences by uncertainty and see what a further source could look at."
    return [Finding(text=text, todo=todo)]
