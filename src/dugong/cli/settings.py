"""Settings as words: on the command line and in a project.toml.

In: ``markov:positive=0.1,stay=0.9`` or the table of a TOML file, ``faces+captions``, ``captions@1``; for the groups of
sequences (patients, videos, cameras) a table with the columns sequence and group, or a pattern whose parenthesis finds
the group in an id, such as ``(S[0-9]+)``. Out: priors, dependencies, groups, and options that several verbs share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import together
from dugong.codec import parse, parse_toml, reading
from dugong.exceptions import FileError, GraphError, PriorError, VoteError

if TYPE_CHECKING:
    from dugong.fit.beliefs import Belief
    from dugong.graph import Dependency
    from dugong.priors import Prior
    from dugong.shards import VoteShards
    from dugong.votes import Votes


LEARN = "learn"
LOW_RANK = "low-rank"
NONE = "none"

_PRIOR_HELP = (
    "What is believed about the labels: markov:positive=0.1,stay=0.9, uniform, a .json or .toml file, or learn "
    "(the default)."
)
_DEPENDENCIES_HELP = (
    "What depends on what, given the labels: faces+captions for a pair, captions@1 for a source that repeats itself "
    "one task later; several separated by commas; none; learn (the default), or low-rank, another way to learn."
)


model_options = together(
    click.option("--prior", metavar="PRIOR", default=LEARN, help=_PRIOR_HELP),
    click.option("--dependencies", metavar="LIST", default=LEARN, help=_DEPENDENCIES_HELP),
)


# --- priors --------------------------------------------------------------------------------------------------------
def read_prior(text: str) -> Prior | str:
    """The prior that a word, ``kind:name=value,...`` or a file describes."""
    if text == LEARN:
        return LEARN
    if text.endswith((".json", ".toml")):
        return prior_of(_read_plain(Path(text)), text)
    kind, _, options = text.partition(":")
    return prior_of({"kind": kind, **_read_options(options, text)}, text)


def prior_of(plain: Any, where: str = "prior") -> Prior | str:
    """The prior that a TOML value describes: ``"learn"``, ``"uniform"`` or a table with a `kind`."""
    from dugong import priors

    if isinstance(plain, str):
        return read_prior(plain)
    if not isinstance(plain, Mapping) or not isinstance(plain.get("kind"), str):
        raise PriorError(
            f'{where} must be "learn" or a table with a kind, such as {{kind = "markov", positive = 0.1, stay = 0.9}}; '
            f"found {plain!r}."
        )
    try:
        return priors.from_dict(plain)
    except FileError as error:
        raise PriorError(f"{where} does not describe a prior of the kind {plain['kind']!r}: {error}") from None


def _read_options(text: str, whole: str) -> dict[str, float]:
    options = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        try:
            options[name.strip()] = int(value) if value.strip().isdigit() else float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise PriorError(
                f"a prior is written as markov:positive=0.1,stay=0.9; found {part!r} in {whole!r}.\n"
                "  Use a .toml file for tables."
            )
    return options


def _read_plain(path: Path) -> Any:
    with reading(path, PriorError, "It must hold the table of a prior."):
        data = path.read_bytes()
        found = parse(data) if path.suffix == ".json" else parse_toml(data)
    return found.get("prior", found) if isinstance(found, dict) else found


# --- beliefs -------------------------------------------------------------------------------------------------------
def beliefs_of(plain: Mapping[str, Any], where: str = "beliefs") -> dict[str, Belief]:
    """What a TOML table says about sources: ``lexicon = {precision = 0.8, weight = 20}``."""
    from dugong.fit.beliefs import Belief

    try:
        return {str(name): Belief(**one) for name, one in plain.items()}
    except TypeError:
        raise GraphError(
            f"{where} must name sources, each with a table of precision, recall, weight or better_than_chance, such as "
            f"lexicon = {{precision = 0.8, weight = 20}}; found {dict(plain)!r}."
        ) from None


# --- dependencies --------------------------------------------------------------------------------------------------
def read_dependencies(text: str) -> tuple[Dependency, ...] | str:
    """The dependencies of a list such as ``faces+captions,captions@1``."""
    if text in (LEARN, LOW_RANK):
        return text
    if text in (NONE, ""):
        return ()
    return dependencies_of([part.strip() for part in text.split(",")])


def dependencies_of(plain: Any) -> tuple[Dependency, ...] | str:
    """The dependencies of a TOML value: a word, or a list of pairs and of words such as ``captions@1``."""
    if isinstance(plain, str):
        return read_dependencies(plain)
    if not isinstance(plain, Iterable) or isinstance(plain, Mapping):
        raise GraphError(f'dependencies must be "learn", "low-rank" or a list; found {plain!r}.')
    return tuple(_one_dependency(one) for one in plain)


def _one_dependency(plain: Any) -> Dependency:
    from dugong.graph import temporal

    if isinstance(plain, Mapping) and set(plain) <= {"temporal", "lag"} and "temporal" in plain:
        return temporal(str(plain["temporal"]), lag=int(plain.get("lag", 1)))
    if isinstance(plain, str) and "@" in plain:
        name, _, lag = plain.rpartition("@")
        if lag.isdigit():
            return temporal(name, lag=int(lag))
    if isinstance(plain, str) and plain.count("+") == 1:
        first, second = plain.split("+")
        return first.strip(), second.strip()
    if isinstance(plain, list | tuple) and len(plain) == 2 and all(isinstance(name, str) for name in plain):
        return plain[0], plain[1]
    raise GraphError(
        'a dependency is a pair ("faces+captions", in a project.toml also ["faces", "captions"]) or a source that '
        f'repeats itself ("captions@1"); found {plain!r}.'
    )


# --- groups --------------------------------------------------------------------------------------------------------
groups_option = click.option(
    "--groups",
    metavar="FILE|PATTERN",
    help="Which sequences belong together (patients, videos): a table with the columns sequence and group, or a "
    "pattern that finds the group in an id, such as '(S[0-9]+)'.",
)


def in_groups(votes: Votes, text: str | None, folder: Path | None = None) -> Votes:
    """The same votes with their groups, if there are any."""
    return votes if text is None else votes.in_groups(read_groups(text, votes, folder))


def groups_of(votes: Votes) -> list[str] | None:
    """The group of every sequence, if there are groups."""
    return None if votes.groups is None else votes.groups.tolist()


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
        names = table.column_names  # decoded only now
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: text that is no UTF-8
        raise VoteError(f"{path} cannot be read: {error}") from None
    if any(names.count(one) != 1 for one in ("sequence", "group")):
        raise VoteError(f"{path} must have the columns sequence and group; found {', '.join(names)}.")
    return dict(zip(*([str(one) for one in table[name].to_pylist()] for name in ("sequence", "group")), strict=True))
