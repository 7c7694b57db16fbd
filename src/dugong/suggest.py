"""Rules worth writing: thresholds on numbers and lists of words that complement the present sources.

In: votes, the probabilities of their elements under a fitted model, and the sequences themselves. Out: candidate rules
as code to paste. Labels are the model's own probabilities, with what people have looked at; no gold is used unless it
is given. A rule that votes for class c where a condition holds has rates P(condition | label), estimated from the
probabilities; as one more independent vote it would change them, and what the risk 1 - sum p^2 falls by then is its
gain. It is scaled by how little the rule repeats, label by label, what a present source or an earlier suggestion says.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.codec import to_plain
from dugong.exceptions import LabelError
from dugong.sources.inputs import by_position, length_of, loaded, pairs_of
from dugong.tasks import Element
from dugong.types import MISSING, AnyArray, BoolArray, FloatArray
from dugong.votes import Votes

_QUANTILES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
_WORDS = 12  # words of one list
_FEWEST = 20  # elements on which a condition must hold, and fail, before its rates mean anything
_LIFT = 1.5  # a rule must make its class this much likelier than it is anyway, or halve the odds against it


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One rule.

    Attributes
    ----------
    name : of the source
    vote : the class that it would vote for; elsewhere it abstains
    condition : in words of Python
    code : to paste
    coverage : share of elements on which it would vote
    silent : share of these about which no source says anything now
    precision : how likely its class is there, by the model
    gain : expected fall of the Brier loss per element
    """

    name: str
    vote: int
    condition: str
    code: str
    coverage: float
    silent: float
    precision: float
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """Rules, the most useful first; prints as code with remarks."""

    rules: tuple[Suggestion, ...]

    def __len__(self) -> int:
        return len(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(to_plain(self))

    def __str__(self) -> str:
        if not self.rules:
            return "No rule on these elements would add to what the present sources say."
        parts = []
        for one in self.rules:
            about = f"# votes on {one.coverage:.1%} of the elements ({one.silent:.0%} of them silent now)"
            about += f", right on about {one.precision:.0%}:\n# expected to take {one.gain:.4f} off the Brier loss"
            parts.append(f"{about}\n{one.code}")
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    name: str
    condition: str
    argument: str
    holds: BoolArray


def suggest(
    votes: Votes, probabilities: FloatArray, sequences: Any, budget: int = 5, *, counted: bool = False
) -> Suggestions:
    """Choose at most `budget` rules, one after the other.

    Parameters
    ----------
    probabilities : (n_elements, K) of the labels
    sequences : mapping or iterable of (id, sequence)
        What was voted on: numbers, rows of a table, arrays of numbers, or words.
    counted : whether the model goes by shares of votes, because it trusts no law that could weigh them
        A rule must then be right at least as often as the present labels are sure where it speaks: otherwise it would
        outvote sources that know better.
    """
    if budget < 1:
        raise LabelError(f"the budget is a number of rules, at least 1; found {budget}.")
    elements = _elements(votes, sequences)
    candidates = (
        _words(elements, probabilities, votes, counted=counted) if isinstance(elements[0], str) else _numbers(elements)
    )
    silent = ~votes.covered()
    taken = [_spoken(votes, place) for place, one in enumerate(votes.sources) if isinstance(one.resolution, Element)]
    scored = [(one, *_gain(one.holds, probabilities, counted=counted)) for one in candidates]
    found: list[Suggestion] = []
    while len(found) < budget and scored:
        worth = [gain * (1 - _repeats(one.holds, probabilities, taken)) for one, gain, _ in scored]
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            break
        one, _, place = scored.pop(best)
        taken.append(one.holds)
        found.append(_suggestion(one, votes.classes[place], probabilities[:, place], silent, worth.pop(best)))
    return Suggestions(rules=tuple(found))


def _suggestion(one: _Candidate, vote: int, probability: FloatArray, silent: BoolArray, gain: float) -> Suggestion:
    code = f"@dg.source\ndef {one.name}({one.argument}):\n    return {vote} if {one.condition} else 0"
    return Suggestion(
        name=one.name,
        vote=vote,
        condition=one.condition,
        code=code,
        coverage=float(one.holds.mean()),
        silent=float(silent[one.holds].mean()),
        precision=float(probability[one.holds].mean()),
        gain=gain,
    )


# --- what a rule is worth --------------------------------------------------------------------------------------------
def _gain(holds: BoolArray, probabilities: FloatArray, *, counted: bool) -> tuple[float, int]:
    """Fall of the risk per element if the rule voted, and the class that it speaks for; 0 if it says too little."""
    count = int(holds.sum())
    if min(count, len(holds) - count) < _FEWEST:
        return 0.0, 0
    share, base = probabilities[holds].mean(axis=0), probabilities.mean(axis=0)
    place = int(np.argmax(share / np.maximum(base, 1e-12)))
    lift = min(share[place] / max(base[place], 1e-12), np.inf)
    odds = (1 - base[place]) / max(1 - share[place], 1e-12)
    least = probabilities[holds].max(axis=1).mean() if counted else share.max()
    if max(lift, odds) < _LIFT or share[place] < least - 1e-9:
        return 0.0, 0
    # One more task on either side: rates of exactly 0 or 1 are never believed.
    rates = (probabilities[holds].sum(axis=0) + 1) / (probabilities.sum(axis=0) + 2)
    after = probabilities[holds] * rates
    after /= after.sum(axis=1, keepdims=True)
    fall = (after**2).sum() - (probabilities[holds] ** 2).sum()
    return float(fall) / len(holds), place


def _repeats(holds: BoolArray, probabilities: FloatArray, taken: Iterable[AnyArray]) -> float:
    """How far a rule repeats what is said already, 0 to 1: the largest correlation that labels do not explain."""
    own = _residual(holds.astype(np.float64), probabilities)
    others = (_residual(one.astype(np.float64), probabilities) for one in taken)
    return max((abs(_correlation(own, other)) for other in others), default=0.0)


def _residual(values: FloatArray, probabilities: FloatArray) -> FloatArray:
    means = (probabilities * values[:, np.newaxis]).sum(axis=0) / np.maximum(probabilities.sum(axis=0), 1e-12)
    return np.asarray(values - probabilities @ means)


def _correlation(one: FloatArray, other: FloatArray) -> float:
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else 0.0


def _spoken(votes: Votes, place: int) -> AnyArray:
    """What a present source says, as a number: with two classes its vote, else whether it speaks."""
    column = votes.columns[place]
    spoken = np.where(column == MISSING, 0, column)
    return spoken if votes.n_classes == 2 else spoken != 0


# --- candidates ------------------------------------------------------------------------------------------------------
def _elements(votes: Votes, sequences: Any) -> list[Any]:
    """All elements, in the order of the votes."""
    pairs, _ = pairs_of(sequences)
    known = {one: by_position(loaded(sequence, one)) for one, sequence in pairs}
    found: list[Any] = []
    for one, length in zip(votes.sequence_ids.tolist(), votes.lengths.tolist(), strict=True):
        if one not in known or length_of(known[one], one) != length:
            raise LabelError(
                f"suggestions need the sequences that were voted on; {one!r} is missing, or of another length."
            )
        found += [known[one][place] for place in range(length)]
    if not found:
        raise LabelError("suggestions need at least one element; found none.")
    return found


def _numbers(elements: list[Any]) -> list[_Candidate]:
    """Thresholds on every numeric feature, in both directions."""
    found = []
    for words, argument, reading, values in _features(elements):
        finite = values[np.isfinite(values)]
        cuts = np.unique(np.quantile(finite, _QUANTILES)) if len(finite) else ()
        for cut in np.unique([float(f"{one:.3g}") for one in cuts]).tolist():
            for sign, side, holds in ((">", "above", values > cut), ("<", "below", values < cut)):
                name = _name(f"{words}_{side}_{cut:g}")
                condition = f"{reading} {sign} {cut:g}"
                found.append(_Candidate(name=name, condition=condition, argument=argument, holds=holds))
    return found


def _features(elements: list[Any]) -> Iterator[tuple[str, str, str, FloatArray]]:
    """Name, argument, how it is read off the argument, and values of every numeric feature."""
    first = elements[0]
    if isinstance(first, int | float | np.number):
        yield "value", "value", "value", np.array(elements, dtype=np.float64)
        return
    if isinstance(first, np.ndarray) and first.ndim == 1 and first.dtype.kind in "iuf":
        for place, column in enumerate(np.stack(elements).astype(np.float64).T):
            yield str(place), "values", f"values[{place}]", column
        return
    rows = [one.to_dict() if hasattr(one, "to_dict") else one for one in elements]
    if not isinstance(rows[0], Mapping):
        raise LabelError(
            f"suggestions read numbers, rows of a table, arrays of numbers and words; found {type(first).__name__}."
        )
    for name, value in rows[0].items():
        if isinstance(value, int | float | np.number):
            yield name, "row", f"row[{name!r}]", np.array([row.get(name, np.nan) for row in rows], dtype=np.float64)


def _words(elements: list[str], probabilities: FloatArray, votes: Votes, *, counted: bool) -> list[_Candidate]:
    """One list of words for every class: those that speak for it most clearly."""
    lower = [one.lower() for one in elements]
    counts = Counter(lower)
    places = {word: place for place, word in enumerate(counts)}
    owners = np.array([places[word] for word in lower])
    sizes = np.bincount(owners, minlength=len(places)).astype(np.float64)
    surest = np.bincount(owners, probabilities.max(axis=1), len(places))
    found = []
    for place in range(votes.n_classes):
        share = np.bincount(owners, probabilities[:, place], len(places))
        base = float(probabilities[:, place].mean())
        # Shrunk towards the balance, so that a word that occurred once proves little.
        lift = (share + 2 * base) / (sizes + 2) - base
        if counted:  # words that the labels tell apart are in no list
            lift[share < surest - 1e-9] = 0
        best = [int(one) for one in np.argsort(-lift * np.sqrt(sizes), kind="stable")[:_WORDS] if lift[one] > 0.1]
        chosen = sorted(list(places)[one] for one in best)
        if chosen:
            listing = "{" + ", ".join(map(repr, chosen)) + "}"
            holds = np.isin(owners, best)
            name = _name(f"words_for_{(votes.class_names or votes.classes)[place]}")
            found.append(_Candidate(name=name, condition=f"word.lower() in {listing}", argument="word", holds=holds))
    return found


def _name(words: str) -> str:
    name = re.sub(r"\W+", "_", re.sub(r"-(?=[\d.])", "minus_", words)).strip("_").lower()
    return f"rule_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name
