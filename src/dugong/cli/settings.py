"""Settings of the label model as words: on the command line and in a project.toml.

In: ``markov:positive=0.1,stay=0.9`` or the table of a TOML file, ``faces+captions``, ``captions@1``. Out: priors,
dependencies, and options that several verbs share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.codec import parse, parse_toml, reading
from dugong.exceptions import FileError, GraphError, PriorError

if TYPE_CHECKING:
    from dugong.fit.beliefs import Belief
    from dugong.graph import Dependency
    from dugong.priors import Prior

LEARN = "learn"
LOW_RANK = "low-rank"
NONE = "none"
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_PRIOR_HELP = (
    "What is believed about the labels: markov:positive=0.1,stay=0.9, uniform, a .json or .toml file, or learn "
    "(the default)."
)
_DEPENDENCIES_HELP = (
    "What depends on what, given the labels: faces+captions for a pair, captions@1 for a source that repeats itself "
    "one task later; several separated by commas; none; learn (the default), or low-rank, another way to learn."
)


def model_options(function: FunctionT) -> FunctionT:
    """Add ``--prior`` and ``--dependencies`` to a verb."""
    prior = click.option("--prior", metavar="PRIOR", default=LEARN, help=_PRIOR_HELP)
    dependencies = click.option("--dependencies", metavar="LIST", default=LEARN, help=_DEPENDENCIES_HELP)
    return prior(dependencies(function))


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
