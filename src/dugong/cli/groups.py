"""Which sequences belong together: patients, videos, cameras.

In: a table with the columns sequence and group (.csv, .parquet), or a pattern whose parenthesis finds the group in the
id of a sequence, such as ``(S[0-9]+)``. Out: one group per sequence, for intervals, comparisons and tables by group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.exceptions import VoteError

if TYPE_CHECKING:
    from dugong.shards import VoteShards
    from dugong.votes import Votes

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def groups_option(function: FunctionT) -> FunctionT:
    """Add ``--groups`` to a verb."""
    return click.option(
        "--groups",
        metavar="FILE|PATTERN",
        help="Which sequences belong together (patients, videos): a table with the columns sequence and group, or a "
        "pattern that finds the group in an id, such as '(S[0-9]+)'.",
    )(function)


def in_groups(votes: Votes, text: str | None, folder: Path | None = None) -> Votes:
    """The same votes with their groups, if there are any."""
    return votes if text is None else votes.in_groups(read_groups(text, votes, folder))


def groups_by_id(shards: VoteShards, text: str | None, folder: Path | None = None) -> dict[str, str]:
    """The group of every sequence of a folder by its id; empty without groups."""
    found: dict[str, str] = {}
    for shard in shards.shards if text is not None else ():
        votes = in_groups(shard.read(), text, folder)
        assert votes.groups is not None
        found |= dict(zip(map(str, votes.sequence_ids.tolist()), votes.groups.tolist(), strict=True))
    return found


def read_groups(text: str, votes: Votes, folder: Path | None = None) -> list[str]:
    """The group of every sequence, in the order of the votes."""
    ids = [str(one) for one in votes.sequence_ids.tolist()]
    if text.endswith((".csv", ".parquet")):
        known = _table(text if folder is None or "://" in text else str(folder / text))
        absent = [one for one in ids if one not in known]
        if absent:
            raise VoteError(f"{text} must name the group of every sequence; {absent[0]!r} is missing.")
        return [known[one] for one in ids]
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise VoteError(
            f"groups must be a .csv or .parquet file, or a pattern; {text!r} is neither: {error}."
        ) from None
    found = [pattern.search(one) for one in ids]
    without = [one for one, match in zip(ids, found, strict=True) if match is None]
    if without:
        raise VoteError(f"the pattern {text!r} must find a group in every id; it finds none in {without[0]!r}.")
    return [match[1] if pattern.groups else match[0] for match in found if match is not None]


def _table(path: str) -> dict[str, str]:
    import pyarrow as pa

    from dugong.archives import read_table

    try:
        table = read_table(Path(path))
    except (OSError, pa.ArrowException) as error:
        raise VoteError(f"{path} cannot be read: {error}") from None
    if not {"sequence", "group"} <= set(table.column_names):
        raise VoteError(f"{path} must have the columns sequence and group; found {', '.join(table.column_names)}.")
    return dict(zip(*([str(one) for one in table[name].to_pylist()] for name in ("sequence", "group")), strict=True))
