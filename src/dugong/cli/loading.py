"""The user's own code and data, by name: ``loader:sequences``, ``sources.py``, a folder of files.

In: what a project.toml says, and its folder. Out: sequences and sources. Whatever the user's code raises while it is
imported or called is reported with its own traceback, as an error of the project, not of ours.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from dugong.exceptions import SourceError

if TYPE_CHECKING:
    from dugong.sources import Source

ResultT = TypeVar("ResultT")


def load_sequences(data: str, folder: Path, **timing: Any) -> Any:
    """Sequences by id: what ``module:function`` returns, or the files of a folder, loaded with what is said of time."""
    if ":" in data and not (folder / data).exists():
        if timing:
            raise SourceError(
                f"{next(iter(timing))} in a project.toml is about a folder of data; {data!r} is a function, which says "
                "so itself: dg.loaders.csv_folder(..., time=, every=)."
            )
        return call(load_function(data, folder), data)
    from dugong.sources import loaders

    place = folder / data
    files: dict[str, Callable[..., Any]] = {
        ".txt": loaders.text_lines,
        ".conll": loaders.conll,
        ".conllu": loaders.conll,
    }
    if place.is_file() and place.suffix in files:
        return files[place.suffix](place)
    if not place.is_dir():
        raise SourceError(
            f"data must name a folder, a .txt or .conll file, or a function; {data!r} is none in {folder}.\n"
            '  Write data = "loader:sequences" for the function `sequences` in loader.py.'
        )
    return loaders.folder(place, **timing)


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
        return _guarded(lambda: _load_file(file.resolve()), name)
    if name.endswith(".py"):
        raise SourceError(f"there is no file {file}.")
    try:
        return _guarded(lambda: import_module(name), name)
    except ModuleNotFoundError:
        raise SourceError(
            f"there is no module {name!r}: neither {file} nor an installed package of this name."
        ) from None


def call(function: Callable[[], Any], name: str) -> Any:
    """Call a function of the user."""
    return _guarded(function, name)


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


def _guarded(function: Callable[[], ResultT], name: str) -> ResultT:
    """Run the user's code; what it raises becomes an error of the project, with the user's part of the traceback."""
    from dugong.exceptions import DugongError
    from dugong.sources.guarding import guarded

    try:
        with guarded():
            return function()
    except DugongError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and name.partition(":")[0].startswith(error.name):
            raise
        raise _failed(name, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a script may leave with sys.exit(0): that must not pass for success
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> SourceError:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<frozen")]
    lines = "".join(traceback.format_list(theirs)) + "".join(traceback.format_exception_only(error))
    indented = "\n".join(f"  {line}" for line in lines.rstrip().splitlines())
    return SourceError(f"{name!r} raised {type(error).__name__}: {error}\n{indented}")
