"""BIO tags: what cannot follow what.

In: class names. Out: which transitions and first labels are possible, if the names are O, B-x and I-x: a span can only
be continued (I-x) after B-x or I-x of the same type, and never at the start of a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.types import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """Possible first classes (K,) and possible steps (K, K)."""

    first: BoolArray
    steps: BoolArray


def bio_steps(names: tuple[str, ...] | None) -> Possible | None:
    """What is possible with these class names, or None if they are not BIO tags."""
    tags = [name for name in names or () if name != "O"]
    if names is None or len(tags) != len(names) - 1 or not all(tag[:2] in ("B-", "I-") for tag in tags):
        return None
    inner = [tag for tag in tags if tag.startswith("I-")]
    if not inner or any(f"B-{tag[2:]}" not in tags for tag in inner):
        return None
    steps = np.ones((len(names), len(names)), dtype=np.bool_)
    for place, name in enumerate(names):
        if name.startswith("I-"):
            steps[:, place] = [before[2:] == name[2:] and before != "O" for before in names]
    return Possible(first=np.array([not name.startswith("I-") for name in names]), steps=steps)
