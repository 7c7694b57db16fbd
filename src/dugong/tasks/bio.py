"""BIO tags: which class names open a span, which continue one, of which type, and what cannot follow what.

In: class names such as O, B-Disease, I-Disease. Out: a `BioScheme` of arrays by column, or None when the
names are not BIO. For scores, an I- tag that continues nothing (after O, after another type, or at the start of a
sequence) opens a span, which is the rule of the CoNLL scorers; for models, it is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dugong.types import BoolArray, IntArray, read_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BioScheme:
    """How tags make spans.

    Attributes
    ----------
    types : the span types in order of first appearance
    outside : the column of O
    type_of : (K,) number of the type of each column, -1 for O
    begins : (K,) whether the column is a B- tag
    """

    types: tuple[str, ...]
    outside: int
    type_of: IntArray
    begins: BoolArray


def bio_scheme(names: Sequence[str]) -> BioScheme | None:
    """Return the scheme if the names are O and B-x / I-x with at least one B- tag, else None."""
    tags = [name for name in names if name != "O"]
    if len(tags) != len(names) - 1 or not all(tag.startswith(("B-", "I-")) for tag in tags):
        return None
    if not any(tag.startswith("B-") for tag in tags):
        return None
    types = tuple(dict.fromkeys(tag[2:] for tag in tags))
    type_of = np.array([-1 if name == "O" else types.index(name[2:]) for name in names])
    begins = np.array([name.startswith("B-") for name in names])
    return BioScheme(types=types, outside=list(names).index("O"), type_of=read_only(type_of), begins=read_only(begins))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """Possible first classes (K,) and possible steps (K, K)."""

    first: BoolArray
    steps: BoolArray


def bio_steps(names: tuple[str, ...] | None) -> Possible | None:
    """What is possible with these class names, or None if they are not BIO tags."""
    scheme = None if names is None else bio_scheme(names)
    if scheme is None:
        return None
    inner = ~scheme.begins & (scheme.type_of >= 0)
    if not inner.any() or not np.isin(scheme.type_of[inner], scheme.type_of[scheme.begins]).all():
        return None
    same = scheme.type_of[:, np.newaxis] == scheme.type_of
    return Possible(first=~inner, steps=same | ~inner)
