"""A project.toml: what the data are, who votes, what is believed, where the results go.

In: the file. Out: a frozen `Project`, checked as far as that is possible without reading data. Paths count from the
folder of the file. A key that is not known is an error, because a misspelt one must not be ignored.
"""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dugong.cli.settings import LEARN, dependencies_of, prior_of
from dugong.codec import parse_toml, reading
from dugong.exceptions import DugongError, SourceError
from dugong.paths import Place, place_of
from dugong.texts import read_size

if TYPE_CHECKING:
    from dugong.graph import Dependency
    from dugong.priors import Prior
    from dugong.sources import Source


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


# What a key of the file may hold; the others hold a string.
_TYPES: dict[str, tuple[type, ...]] = {
    "sources": (str, list),
    "prior": (str, dict),
    "dependencies": (str, list),
    "export": (str, list),
    "spans": (dict,),
    "classes": (list,),
    "resolutions": (list,),
    "sharing": (str, dict),
    "beliefs": (dict,),
    "tables": (dict,),
    "jobs": (int,),
    "rate": (int, float),
    "every": (str, int, float),
    "timeout": (int, float),
    "show": (str, int),
}
_KEYS = [one.name for one in fields(Project) if one.name not in ("folder", "annotations")]
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
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ProjectError(f"{place} has a key {key!r}, which is not known; {hint}known are {', '.join(_KEYS)}.")
        types = _TYPES.get(key, (str,))
        if not isinstance(value, types) or isinstance(value, bool):
            kinds = " or ".join(_KINDS[kind] for kind in types)
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


# --- the user's own code and data, by name ----------------------------------------------------------------------------
# In: what a project.toml says, and its folder. Out: sequences and sources. Whatever the user's code raises while it is
# imported or called is reported with its own traceback, as an error of the project, not of ours.
ResultT = TypeVar("ResultT")


def load_sequences(data: str, folder: Path, **timing: Any) -> Any:
    """Sequences by id: what ``module:function`` returns, or the files of a folder, loaded with what is said of time."""
    return sequences_and_origin(data, folder, **timing)[0]


def sequences_and_origin(data: str, folder: Path, **timing: Any) -> tuple[Any, list[Any]]:
    """The sequences, and what they are made by: where that has changed, votes of an earlier run are not kept."""
    if ":" in data and not (folder / data).exists():
        if timing:
            raise SourceError(
                f"{next(iter(timing))} in a project.toml is about a folder of data; {data!r} is a function, which says "
                "so itself: dg.loaders.csv_folder(..., time=, every=)."
            )
        function = load_function(data, folder)
        return call(function, data), [data, function]
    from dugong.sources import loaders

    place = folder / data
    files: dict[str, Callable[..., Any]] = {
        ".txt": loaders.text_lines,
        ".conll": loaders.conll,
        ".conllu": loaders.conll,
    }
    if place.is_file() and place.suffix in files:
        return files[place.suffix](place), [data]
    if not place.is_dir():
        raise SourceError(
            f"data must name a folder, a .txt or .conll file, or a function; {data!r} is none in {folder}.\n"
            '  Write data = "loader:sequences" for the function `sequences` in loader.py.'
        )
    return loaders.folder(place, **timing), [data]  # which knows its own settings


def load_sources(name: str, folder: Path) -> tuple[Source, ...]:
    """All sources of a module or file."""
    from dugong.sources import sources_in

    found = sources_in(load_module(name, folder))
    if not found:
        raise SourceError(f"{name!r} holds no sources; decorate its functions with @source.")
    return found


def load_function(name: str, folder: Path) -> Callable[[], Any]:
    """The function that ``module:function`` names."""
    module_name, _, function_name = name.rpartition(":")
    module = load_module(module_name, folder)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise SourceError(f"{module_name!r} has no function {function_name!r}; it has {', '.join(known) or 'none'}.")
    return function  # type: ignore[no-any-return]


def load_module(name: str, folder: Path) -> ModuleType:
    """A module by name, or by the path of its file; the folder of the project comes first."""
    home = str(folder.resolve())
    if home not in sys.path:
        sys.path.insert(0, home)
    file = folder / (name if name.endswith(".py") else f"{name.replace('.', '/')}.py")
    if file.is_file():
        return call(lambda: _load_file(file.resolve()), name)
    if name.endswith(".py"):
        raise SourceError(f"there is no file {file}.")
    try:
        return call(lambda: import_module(name), name)
    except ModuleNotFoundError:
        raise SourceError(
            f"there is no module {name!r}: neither {file} nor an installed package of this name."
        ) from None


def _load_file(file: Path) -> ModuleType:
    # Under its own name, so that worker processes can import it; another name if that is taken by something else.
    taken = sys.modules.get(file.stem)
    free = taken is None or getattr(taken, "__file__", None) == str(file)
    spec = spec_from_file_location(file.stem if free else f"{file.stem}_of_{file.parent.name}", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def call(function: Callable[[], ResultT], name: str) -> ResultT:
    """Run the user's code; what it raises becomes an error of the project, with the user's part of the traceback."""
    from dugong.sources.inputs import guarded

    try:
        with guarded():
            return function()
    except (DugongError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and name.partition(":")[0].startswith(error.name):
            raise
        raise _failed(name, error) from error
    except BaseException as error:  # a script may leave with sys.exit(0): that must not pass for success
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> SourceError:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<frozen")]
    lines = "".join(traceback.format_list(theirs)) + "".join(traceback.format_exception_only(error))
    indented = "\n".join(f"  {line}" for line in lines.rstrip().splitlines())
    return SourceError(f"{name!r} raised {type(error).__name__}: {error}\n{indented}")
