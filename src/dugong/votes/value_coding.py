"""What the vote column of a long table means: names, integers of our own coding, or integers of the user's.

In: the distinct values of the column and what the caller says about classes, abstaining and missing votes.
Out: one of our codes per value, for sources on elements and, with more than two classes, for sources on
coarser tasks, whose votes are about one class (``of=``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dugong.exceptions import VoteError
from dugong.tasks import Element, Resolution
from dugong.types import MISSING, class_values

_SIGNS = {"+1": 1, "1": 1, "-1": -1, 1: 1, -1: -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCoding:
    """The classes of a long table and the codes of its values.

    Attributes
    ----------
    n_classes : int
    class_names : tuple of str or None
    classes : mapping of the user's value to our class
    others : mapping of the user's value to our code for abstain and missing
    partial : mapping of the user's value to our code of an underspecified vote
    codebook : mapping of our code to our classes, as `Votes.partial` wants it
    """

    n_classes: int
    class_names: tuple[str, ...] | None
    classes: Mapping[Any, int]
    others: Mapping[Any, int]
    partial: Mapping[Any, int] = field(default_factory=dict)
    codebook: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def class_of(self, value: Any, what: str) -> int:
        """Our class for one of the user's values."""
        if value not in self.classes:
            known = ", ".join(map(repr, self.classes))
            raise VoteError(f"{what} must be one of the classes {known}; found {value!r}.")
        return self.classes[value]

    def codes_for(self, resolution: Resolution) -> dict[Any, int]:
        """Our codes for the votes of a source at a resolution."""
        if isinstance(resolution, Element):
            return {**self.classes, **self.partial, **self.others}
        if self.n_classes == 2:
            return {**_SIGNS, **self.classes, **self.others}
        names = {name: 1 for name in (resolution.of,) if name is not None}
        return {**names, **_SIGNS, **self.others}


def read_values(
    values: Iterable[Any],
    *,
    n_classes: int | None,
    classes: Iterable[Any] | None,
    abstain: Any,
    missing: Any,
    partial: Mapping[Any, Iterable[Any]] | None,
) -> ValueCoding:
    """Decide what the values of the vote column mean, or say what is unclear."""
    given = None if classes is None else tuple(classes)
    count = _count(n_classes, given)
    ours = class_values(count)
    textual = any(isinstance(value, str) for value in values)
    if textual and given is None:
        raise VoteError(
            "votes by name need the names of the classes in order; pass classes=[...]. "
            f"Found votes such as {next(iter(values))!r}."
        )
    own = not textual and (given is None or any(isinstance(name, str) for name in given))
    table = dict(zip(ours, ours, strict=True)) if own else dict(zip(given or (), ours, strict=True))
    if own and abstain is None:
        _check_ambiguous({*values}, count)
    others = _others(table, abstain, missing, own=own)
    codes, codebook = _partial(partial, table, others, count, own=own)
    return ValueCoding(
        n_classes=count,
        class_names=None if given is None else tuple(map(str, given)),
        classes=table,
        others=others,
        partial=codes,
        codebook=codebook,
    )


def _count(n_classes: int | None, given: tuple[Any, ...] | None) -> int:
    if given is None:
        return 2 if n_classes is None else n_classes
    if len(set(given)) != len(given):
        raise VoteError(f"classes must be different from each other; found {list(given)}.")
    if n_classes not in (None, len(given)):
        raise VoteError(f"found {len(given)} classes and n_classes={n_classes}; leave one of them out.")
    return len(given)


def _check_ambiguous(values: set[Any], n_classes: int) -> None:
    if n_classes == 2 and values == {0, 1}:
        raise VoteError(
            "the coding of these votes is ambiguous: they hold only 0 and 1, and 0 may mean abstain or a "
            "class.\n"
            "  If 0 and 1 are two classes, pass classes=[0, 1]; if 0 means abstain, pass abstain=0."
        )


def _others(table: Mapping[Any, int], abstain: Any, missing: Any, *, own: bool) -> dict[Any, int]:
    silent = 0 if abstain is None and own else abstain
    others: dict[Any, int] = {}
    for value, code, what in ((silent, 0, "abstain"), (missing, MISSING, "missing")):
        if value is None:
            continue
        if value in table or value in others:
            raise VoteError(f"the {what} value must not have another meaning; found {value!r}, which has one.")
        others[value] = code
    return others


def _partial(
    partial: Mapping[Any, Iterable[Any]] | None,
    table: Mapping[Any, int],
    others: Mapping[Any, int],
    n_classes: int,
    *,
    own: bool,
) -> tuple[dict[Any, int], dict[int, tuple[int, ...]]]:
    codes: dict[Any, int] = {}
    codebook: dict[int, tuple[int, ...]] = {}
    for place, (value, members) in enumerate((partial or {}).items()):
        wanted = tuple(members)
        strange = [member for member in wanted if member not in table]
        if strange or value in table or value in others:
            raise VoteError(
                f"an underspecified vote must have a value of its own and stand for some of the classes "
                f"{list(table)}; found {value!r}: {wanted}."
            )
        codes[value] = value if own else n_classes + 1 + place
        codebook[codes[value]] = tuple(table[member] for member in wanted)
    return codes, codebook
