"""What was learned, in words and numbers: the notes and the `learned` mapping of the diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dugong.fit.learned.answer import ElementAnswer
from dugong.fit.learned.case import Case
from dugong.fit.learned.settings import FEWEST_SOURCES, TRUSTED
from dugong.fit.learned.trust import Trust
from dugong.fit.learned.views import NEIGHBOURS, SHARE, VOTES, vote_shares
from dugong.fit.result import Diagnostics, Note
from dugong.infer import answers
from dugong.law import Law
from dugong.tasks import Element
from dugong.texts import counted

_EXPONENTS = ("balance", "share", "votes", "silence", "neighbours")


def describe_learned(
    case: Case,
    answer: ElementAnswer,
    law: Law,
    trust: Trust,
    strengths: Mapping[tuple[str, str], float],
    coarse: list[Note],
) -> Diagnostics:
    """What was learned about sources and labels, how far the model is trusted, and why."""
    votes, bio, background = case.votes, case.setting.fixed.possible is not None, answer.sayings.background
    words = votes.class_names or tuple(map(str, votes.classes))
    discounts = answer.exponents[VOTES] / answer.sayings.effect * answer.sayings.weights
    learned: dict[str, Any] = {
        "trust": trust.share,
        "gain": trust.gain,
        "gains": list(trust.gains),
        "kinds": trust.kinds,
        "worst": {"gain": trust.worst, "sources": [case.element_names[place] for place in trust.sources]},
        "edges": [[a, b, value] for (a, b), value in strengths.items() if a != b],
        "self_dependent": {a: value for (a, b), value in strengths.items() if a == b},
        "exponents": dict(zip(_EXPONENTS, answer.exponents.tolist(), strict=True)),
        "discounts": dict(zip(case.element_names, discounts.tolist(), strict=True)),
        "copy_weights": dict(zip(case.element_names, answer.sayings.weights.tolist(), strict=True)),
        "kept": answer.kept,
        "coarse": {note.where: note.size for note in coarse if note.where},
        "prior": law.prior.to_dict(),
        "background": None if background is None else words[background],
        "bio": bio,
    }
    notes = [
        _first_note(case, answer, law, trust),
        *(_discount_notes(answer) if trust.share < TRUSTED and case.sources else []),
        *coarse,
        *_source_notes(learned),
    ]
    if background is not None and votes.background is None:
        text = f"no source votes for class {learned['background']!r}: it is taken as the background"
        notes.append(Note(kind="background", text=f"{text} to which elements belong about which nobody speaks."))
    if bio:
        notes.append(
            Note(kind="bio", text="the classes are BIO tags: steps into I-x from anything but x are impossible.")
        )
    return Diagnostics(notes=tuple(notes), learned=learned)


def _first_note(case: Case, answer: ElementAnswer, law: Law, trust: Trust) -> Note:
    """Where known labels show the vote ahead, that; else how often the answer departs from the vote, and why."""
    rows = replace(case.folded.rows, known=np.full(len(case.folded.sizes), -1, dtype=np.int8))
    if law.tempering is not None:
        mine = answer.look(replace(case.folded, rows=rows))
    else:
        mine = answers.posterior(law, case.votes, n_threads=case.n_threads)[Element()]
        mine = mine if case.elements is None else mine[case.elements]
    shares = vote_shares(rows, np.ones(len(case.sources)), case.background).share
    ours, theirs = mine.argmax(axis=1), shares.argmax(axis=1)[case.folded.which]
    known = case.folded.panel.known >= 0
    if known.any():
        right, vote = (float((one == case.folded.panel.known)[known].mean()) for one in (ours, theirs))
        if vote > right:
            text = (
                f"majority vote is ahead on the {int(known.sum())} known labels: right on {vote:.1%}, the model "
                f"without them on {right:.1%}. Prefer `MajorityVote`, or look at the sources that the notes name."
            )
            return Note(kind="vote ahead", text=text, size=vote - right)
    heard = np.asarray(rows.spoken().any(axis=1))[case.folded.which]
    share = float((ours != theirs)[heard].mean()) if heard.any() else 0.0
    return Note(
        kind="trust",
        text=f"the labels depart from majority vote on {share:.1%} of the elements: {_why(trust, case)}",
        size=share,
    )


def _why(trust: Trust, case: Case) -> str:
    if trust.share >= TRUSTED and case.prior is not None and len(case.sources) < FEWEST_SOURCES:
        return "the prior was given, and the fitted model is taken at its word: nothing tests it."
    if trust.share >= TRUSTED:
        return "the fitted model explains the votes and is taken at its word."
    if trust.share >= 1 - TRUSTED:
        return f"the fitted model is {trust.share:.0%} of every label, votes weighed by what peers confirm the rest."
    if trust.sources and trust.worst >= 0 and trust.kinds > 1:
        return (
            "sources err together on some elements of every class, and no dependency between them explains it, so "
            "votes are weighed by what peers confirm."
        )
    if trust.sources and trust.worst >= 0 and trust.surprise > 0:
        return (
            "the fitted model predicts sources not as it believes it does, so votes are weighed by what peers confirm."
        )
    if trust.sources and trust.worst >= 0:
        return "too few independent sources confirm the fitted model, so votes are weighed by what peers confirm."
    if trust.sources:
        who = ", ".join(repr(case.element_names[place]) for place in trust.sources)
        return (
            f"sources share errors, so votes are weighed by what peers confirm (the fitted model predicts {who} "
            f"{-trust.worst:.4f} nats a vote worse than that does)."
        )
    if len(case.sources) < FEWEST_SOURCES:
        few = f"{counted(len(case.sources), 'source')} on elements cannot confirm each other ({FEWEST_SOURCES} can)"
        return f"{few}, so votes are weighed by what is believed of sources."
    return f"no model can be tested ({trust.untested}), so votes are weighed by what peers confirm."


def _discount_notes(answer: ElementAnswer) -> list[Note]:
    """How much evidence was discounted, and how far labels rest on neighbours."""
    counts = float(answer.exponents[VOTES] / answer.sayings.effect)
    near = float(answer.exponents[NEIGHBOURS])
    texts = [
        f"a vote counts {counts:.0%} of what it would if sources erred independently, and the share of votes for a "
        f"label {answer.exponents[SHARE]:.0%}: what sources get wrong together would else be believed too firmly. Of "
        f"the log-odds {answer.kept:.0%} are kept: the less sources agree, the more of that may be errors of all.",
        f"votes on neighbours count {near:.0%}: "
        + ("labels last no longer than errors do." if near < 0.02 else "so far labels last longer than errors do."),
    ]
    return [
        Note(kind="discount", text=texts[0], size=counts),
        Note(kind="neighbours", text=texts[1], size=near),
    ]


def _source_notes(learned: dict[str, Any]) -> list[Note]:
    """Who shares errors with whom, who repeats its own, and whose votes count less or nothing."""
    notes = [
        Note(kind="edge", where=f"{a}, {b}", size=value, text=f"{a!r} and {b!r} share errors ({value:+.2f}).")
        for a, b, value in learned["edges"]
    ]
    notes += [
        Note(kind="temporal", where=name, size=value, text=f"{name!r} repeats its errors ({value:+.2f}).")
        for name, value in learned["self_dependent"].items()
    ]
    weights = learned["copy_weights"]
    related = {name: weight for name, weight in weights.items() if 0 < weight < 0.75}
    constant = [name for name, weight in weights.items() if weight == 0]
    if related:
        mean = float(np.mean([*related.values()]))
        text = f"{', '.join(map(repr, related))} are variants of one another and count less (x {mean:.2f})."
        notes.append(Note(kind="copies", text=text, size=float(len(related))))
    if constant:
        text = f"{', '.join(map(repr, constant))} count nothing: always the same, or the opposite of what windows say."
        notes.append(Note(kind="constant", text=text, size=float(len(constant))))
    return notes
