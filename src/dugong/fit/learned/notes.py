"""What was learned, in words and numbers: the notes and the `learned` mapping of the diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dugong.fit.learned.case import Case
from dugong.fit.learned.copies import copy_weights
from dugong.fit.learned.result import Robust
from dugong.fit.learned.search import Finding
from dugong.fit.learned.settings import FEWEST_SOURCES
from dugong.fit.result import Diagnostics, Note
from dugong.priors import Prior
from dugong.votes import Votes


def describe_learned(
    case: Case, robust: Robust, prior: Prior, finding: Finding | None, strengths: Mapping[tuple[str, str], float]
) -> Diagnostics:
    """Edges, discounts, prior, trust, misfit, near-copies and background."""
    votes, trust, names, bio = case.votes, robust.trust, case.element_names, case.possible is not None
    weights = dict(zip((s.name for s in robust.sources), copy_weights(robust.views.similar).tolist(), strict=True))
    learned: dict[str, Any] = {
        "trust": trust,
        "edges": [[a, b, value] for (a, b), value in strengths.items() if a != b],
        "self_dependent": {a: value for (a, b), value in strengths.items() if a == b},
        "misfit": _misfit(finding),
        "refusal": "" if finding is None else finding.refusal,
        "discounts": {factor.source: float(factor.weight) for factor in robust.parameters.factors},
        "copy_weights": weights,
        "prior": prior.to_dict(),
        "background": _background(votes, robust),
        "bio": bio,
    }
    notes = [_trust_note(finding, trust, len(names)), *_edge_notes(learned), *_copy_notes(weights)]
    if learned["background"] is not None and votes.background is None:
        text = f"no source votes for class {learned['background']!r}: it is taken as the background"
        notes.append(Note(kind="background", text=f"{text} to which elements belong about which nobody speaks."))
    if bio:
        notes.append(
            Note(kind="bio", text="the classes are BIO tags: steps into I-x from anything but x are impossible.")
        )
    return Diagnostics(notes=tuple(notes), learned=learned)


def _misfit(finding: Finding | None) -> dict[str, float]:
    if finding is None:
        return {}
    parts = ("errors", "speaking", "lagged", "persistence", "information")
    return {part: float(getattr(finding.misfit, part)) for part in parts}


def _background(votes: Votes, robust: Robust) -> str | None:
    place = robust.views.background
    if place is None:
        return None
    return votes.class_names[place] if votes.class_names else str(votes.classes[place])


def _trust_note(finding: Finding | None, trust: float, n_sources: int) -> Note:
    if finding is not None and trust > 0:
        text = f"the fitted model explains the votes: it is {trust:.0%} of every label, the robust answer the rest."
        return Note(kind="trust", text=text, size=trust)
    if finding is None:
        why = f"only {n_sources} sources vote on elements, and a model can be tested from {FEWEST_SOURCES} on"
    elif finding.refusal == "too little":
        why = "pairs of votes on the same element say too little to test a model"
    elif finding.refusal == "lasting":
        why = "most sources repeat their errors, and too little tells these from labels"
    else:
        why = f"the fitted model leaves errors that go together (residual correlation {finding.misfit.worst:.3f})"
    text = f"{why}: the labels are the robust answer (vote share, discounted posterior and chain, averaged)."
    return Note(kind="trust", text=text, size=trust)


def _edge_notes(learned: dict[str, Any]) -> list[Note]:
    notes = [
        Note(kind="edge", where=f"{a}, {b}", size=value, text=f"{a!r} and {b!r} share errors ({value:+.2f}).")
        for a, b, value in learned["edges"]
    ]
    notes += [
        Note(kind="temporal", where=name, size=value, text=f"{name!r} repeats its errors ({value:+.2f}).")
        for name, value in learned["self_dependent"].items()
    ]
    return notes


def _copy_notes(weights: dict[str, float]) -> list[Note]:
    copies = {name: weight for name, weight in weights.items() if weight < 0.5 + 1e-9}
    if not copies:
        return []
    mean = float(np.mean([*copies.values()]))
    text = f"{', '.join(map(repr, copies))} are near-copies of other sources and count less (x {mean:.2f})."
    return [Note(kind="copies", text=text, size=float(len(copies)))]
