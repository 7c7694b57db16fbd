"""What deserves a look in votes before anything is learned from them: remarks of `Votes`, and a few more.

In: votes and the remarks of their summary. Out: remarks, none of which stops anything. Beside those of the summary:
sources that speak for one class only, pairs that hardly ever differ, classes for which nobody votes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING
from dugong.votes import Problem, Votes, allowed_classes, code_name, count_codes, implied_background

NEAR_COPY = 0.98


def find_all(votes: Votes, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """All remarks about votes; `problems` are those that their summary has already."""
    copies = {one.source for one in problems if one.kind == "copy"}
    return (*problems, *_unipolar(votes), *_near_copies(votes, copies), *_unvoted(votes))


def _spoken(votes: Votes, name: str) -> list[int]:
    return [code for code in count_codes(votes.column(name)) if code not in (ABSTAIN, MISSING)]


def _unipolar(votes: Votes) -> list[Problem]:
    found = []
    for source in votes.sources:
        codes, abstains = _spoken(votes, source.name), ABSTAIN in count_codes(votes.column(source.name))
        if len(codes) == 1 and abstains:
            word = code_name(votes, codes[0], source.resolution)
            text = f"source {source.name!r} votes {word} or abstains; what it tells lies in when it abstains."
            found.append(Problem(kind="unipolar", source=source.name, text=text))
    return found


def _near_copies(votes: Votes, copies: set[str | None]) -> list[Problem]:
    """Pairs of sources on the same tasks that agree almost wherever one of them speaks."""
    found = []
    for first, second in combinations([one for one in votes.sources if one.name not in copies], 2):
        if first.resolution != second.resolution:
            continue
        one, other = votes.column(first.name), votes.column(second.name)
        asked = (one != MISSING) & (other != MISSING)
        spoken = asked & ((one != ABSTAIN) | (other != ABSTAIN))
        n_spoken = int(np.count_nonzero(spoken))
        share = np.count_nonzero(spoken & (one == other)) / max(n_spoken, 1)
        constant = min(len(_spoken(votes, first.name)), len(_spoken(votes, second.name))) < 2
        if share >= NEAR_COPY and not constant:
            text = (
                f"sources {first.name!r} and {second.name!r} vote alike on {share:.1%} of the tasks where either "
                "speaks; declare them dependent, or keep one."
            )
            found.append(Problem(kind="near-copy", source=second.name, text=text))
    return found


def _unvoted(votes: Votes) -> list[Problem]:
    """Classes of elements for which no source ever votes, beside the background."""
    if not any(isinstance(source.resolution, Element) for source in votes.sources):
        return []
    voted: set[int] = set()
    for source in votes.sources:
        if isinstance(source.resolution, Element):
            voted = voted.union(*(allowed_classes(votes, code) for code in _spoken(votes, source.name)))
    background = implied_background(votes)
    found = []
    for value in votes.classes:
        if value not in voted and value != background:
            word = code_name(votes, value, Element())
            text = f"no source that votes on elements ever votes {word}; nothing but the prior speaks for this class."
            found.append(Problem(kind="unvoted-class", source=None, text=text))
    if background is not None and votes.background is None:
        word = code_name(votes, background, Element())
        text = f"{word} is the only class that no source votes for: it is taken as background."
        found.append(Problem(kind="background", source=None, text=text))
    return found
