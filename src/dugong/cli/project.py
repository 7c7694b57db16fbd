"""A project.toml: what the data are, who votes, what is believed, where the results go.

In: the file. Out: a frozen `Project`, checked as far as that is possible without reading data. Paths count from the
folder of the file. A key that is not known is an error, because a misspelt one must not be ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.settings import LEARN, dependencies_of, prior_of
from dugong.codec import parse_toml, reading
from dugong.exceptions import DugongError
from dugong.paths import Place, place_of
from dugong.texts import read_size

if TYPE_CHECKING:
    from dugong.graph import Dependency
    from dugong.priors import Prior

DEFAULT = "project.toml"


class ProjectError(DugongError, ValueError):
    """A project.toml that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a project.toml says; `None` where it says nothing.

    The prior is kept as it is written (`read_prior` makes it), so that trying a source need not load what priors need.
    """

    folder: Path
    data: str
    sources: str
    output: Place
    annotations: tuple[Place, ...] = ()
    prior: Any = LEARN
    dependencies: tuple[Dependency, ...] | str | None = None
    gold: Place | None = None
    train_gold: Place | None = None
    export: tuple[str, ...] = ()
    media: str | None = None
    spans: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None
    background: str | None = None
    resolutions: tuple[str, ...] | None = None
    sharing: str | dict[str, str] = "tied"
    estimator: str = "centred"
    signs: str = "group"
    beliefs: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    jobs: int = 1
    on_fault: str = "raise"
    groups: str | None = None
    rate: float | None = None
    every: str | None = None
    time: str | None = None
    time_unit: str | None = None
    reduce: str | None = None
    timeout: float | None = None
    show: int | None = None

    @property
    def timing(self) -> dict[str, Any]:
        """What the loader of a folder is told about time: nothing where `rate` alone is said, of elements."""
        told = {"rate": self.rate, "every": self.every, "time": self.time, "time_unit": self.time_unit}
        if self.every is None and self.time is None:
            del told["rate"]
        reduce = {} if self.reduce is None else {"reduce": None if self.reduce == "none" else self.reduce}
        return {name: value for name, value in told.items() if value is not None} | reduce

    def read_prior(self) -> Prior | str:
        """The prior that the project names."""
        return prior_of(self.prior, f"the prior of {self.folder / DEFAULT}")


_TYPES: dict[str, tuple[type, ...]] = {
    "data": (str,),
    "sources": (str, list),
    "output": (str,),
    "prior": (str, dict),
    "dependencies": (str, list),
    "gold": (str,),
    "train_gold": (str,),
    "export": (str, list),
    "media": (str,),
    "spans": (dict,),
    "classes": (list,),
    "background": (str,),
    "resolutions": (list,),
    "sharing": (str, dict),
    "estimator": (str,),
    "signs": (str,),
    "beliefs": (dict,),
    "tables": (dict,),
    "jobs": (int,),
    "on_fault": (str,),
    "groups": (str,),
    "rate": (int, float),
    "every": (str, int, float),
    "time": (str,),
    "time_unit": (str,),
    "reduce": (str,),
    "timeout": (int, float),
    "show": (str, int),
}
_NEEDED = ("data", "sources")


def read_project(path: str | Path) -> Project:
    """Read and check a project file."""
    place = Path(path)
    if place.is_dir():
        place = place / DEFAULT
    if not place.is_file():
        raise ProjectError(f"there is no file {place}.\n  `dugong init DIR` writes a project to start from.")
    with reading(place, ProjectError, "It must be a TOML file."):
        plain = parse_toml(place.read_bytes())
    _check_keys(plain, place)
    _check_tables(plain.get("tables", {}), place)
    return _project(plain, place)


def _project(plain: dict[str, Any], place: Path) -> Project:
    folder = place.parent
    code, annotations = _voters(plain["sources"], folder, place)
    made: dict[str, Callable[[Any], Any]] = {
        "train_gold": partial(inside, folder),
        "gold": partial(inside, folder),
        "output": partial(inside, folder),
        "export": lambda names: (names,) if isinstance(names, str) else tuple(names),
        "media": lambda media: media if "://" in media or "{}" in media else str(folder / media),
        "dependencies": dependencies_of,
        "show": lambda size: read_size(size, f"show in {place}"),
        "classes": lambda names: tuple(map(str, names)),
        "resolutions": lambda names: tuple(map(str, names)),
    }
    read = {key: made[key](value) if key in made else value for key, value in ({"output": "output"} | plain).items()}
    return Project(folder=folder, annotations=annotations, **(read | {"sources": code}))


def _voters(plain: str | list[Any], folder: Path, place: Path) -> tuple[str, tuple[Place, ...]]:
    """The file or module of the functions, and the files of annotations that vote beside them."""
    if isinstance(plain, str):
        return plain, ()
    names = list(map(str, plain))
    code = [name for name in names if not _is_annotation(name, folder)]
    if len(code) != 1:
        raise ProjectError(
            f"sources in {place} must name one file or module of functions, and may name files of annotations beside "
            f"it; found {names!r}."
        )
    return code[0], tuple(inside(folder, name) for name in names if name != code[0])


def _is_annotation(name: str, folder: Path) -> bool:
    """Whether a name is a file of another tool, by its ending, or a folder of such files."""
    from dugong import formats

    endings = {ending.lower() for one in formats.names() for ending in formats.of_name(one).suffixes}
    return name.lower().endswith(tuple(endings)) or "://" in name or (folder / name).is_dir()


_TABLE_KEYS: dict[str, tuple[type, ...]] = {
    "file": (str,),
    "column": (str, list),
    "soft": (bool,),
    "values": (dict,),
    "resolution": (str,),
}


def _check_tables(tables: dict[str, Any], place: Path) -> None:
    """Raise unless every table that votes says where it is, in known words."""
    for name, table in tables.items():
        if not isinstance(table, dict) or "file" not in table:
            raise ProjectError(f'tables.{name} in {place} must be a table with a file, such as {{file = "a.csv"}}.')
        for key, value in table.items():
            if key not in _TABLE_KEYS or not isinstance(value, _TABLE_KEYS[key]):
                raise ProjectError(
                    f"tables.{name} in {place} has {key} = {value!r}; known are {', '.join(_TABLE_KEYS)}."
                )
        if table.get("resolution", "element") not in ("element", "sequence"):
            raise ProjectError(f'the resolution of tables.{name} in {place} must be "element" or "sequence".')


def inside(folder: Path, name: str) -> Place:
    """A path that counts from a folder; a URL is itself."""
    found = place_of(name)
    return folder / found if isinstance(found, Path) else found


def _check_keys(plain: dict[str, Any], place: Path) -> None:
    for key, value in plain.items():
        if key not in _TYPES:
            near = difflib.get_close_matches(key, _TYPES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ProjectError(f"{place} has a key {key!r}, which is not known; {hint}known are {', '.join(_TYPES)}.")
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            kinds = " or ".join(_KINDS[kind] for kind in _TYPES[key])
            raise ProjectError(f"{key} in {place} must be {kinds}; found {value!r}.")
    for name, function in plain.get("spans", {}).items():
        if not isinstance(function, str):
            raise ProjectError(
                f'spans.{name} in {place} must name a function, such as "loader:shots"; found {function!r}.'
            )
    absent = [key for key in _NEEDED if key not in plain]
    if absent:
        raise ProjectError(f"{place} must have the keys {' and '.join(_NEEDED)}; {absent[0]!r} is missing.")


_KINDS = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "a table"}


def last_run(project: Project) -> tuple[Place, Place]:
    """The files of model and votes that the last run wrote."""
    model, votes = project.output / "model.json", project.output / "votes.parquet"
    if not (model.is_file() and votes.is_file()):
        raise click.UsageError(f"{project.output} has no model.json and votes.parquet yet: `dugong run` writes them.")
    return model, votes
