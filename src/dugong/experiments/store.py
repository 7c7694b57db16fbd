"""Results on disk, by the content of what led to them: one small JSON file per cell of a table.

The key of a cell is a hash of its settings, of the code of its recipe and of the library, and of the versions of what
computes. A run that was killed goes on with the cells that are there; a changed recipe or estimator makes new cells.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import dugong
from dugong.experiments.recipe import Recipe
from dugong.paths import write_atomically

# What decides a number: the stages below the experiments; the files of the experiments are named by their users.
_STAGES = (
    *("model.py", "baselines", "endmodels", "fit", "graph", "infer", "law", "metrics"),
    *("priors", "sources", "sums", "tasks", "votes", "worlds"),
)
# What decides an end model's, once its labels are known.
LEARNING = ("baselines/supervised.py", "endmodels", "metrics")
_PACKAGES = ("numpy", "scikit-learn", "scipy", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of finished cells.

    Attributes
    ----------
    folder : Path
    fresh : bool
        Whether what is there is ignored (and replaced).
    """

    folder: Path
    fresh: bool = False

    def get(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was found for these settings, or None."""
        path = self.path(name, settings)
        if self.fresh or not path.is_file():
            return None
        stored = json.loads(path.read_text(encoding="utf-8"))
        result: dict[str, Any] = stored["result"]
        return result

    def put(self, name: str, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep a result; the file appears when it is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"settings": settings, "result": result}, indent=1)
        write_atomically(self.path(name, settings), lambda handle: handle.write(text.encode()))

    def kept(
        self,
        name: str,
        settings: Mapping[str, Any],
        measure: Callable[..., Mapping[str, Any]],
        *given: Any,
        **more: Any,
    ) -> dict[str, Any]:
        """What was found for these settings; measured now, and kept, if it was not."""
        found = self.get(name, settings)
        if found is None:
            found = dict(measure(*given, **more))
            self.put(name, settings, found)
        return found

    def path(self, name: str, settings: Mapping[str, Any]) -> Path:
        """Where a cell is kept; `name` is for people, the hash behind it decides."""
        return self.folder / f"{name.replace(' ', '_')}-{digest(settings)[:20]}.json"


def digest(value: Any) -> str:
    """Hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@cache
def library_digest(*files: str, stages: tuple[str, ...] = _STAGES) -> str:
    """Hash of the code that numbers depend on, and of the versions of the packages below it.

    Parameters
    ----------
    *files : names of files of the experiments that compute them, without ``.py``
    stages : folders and files of the library
    """
    root = Path(dugong.__file__).parent
    code = [root / "experiments" / f"{name}.py" for name in files]
    for stage in stages:
        code += [root / stage] if stage.endswith(".py") else (root / stage).rglob("*.py")
    return digest([dugong.__version__, _versions(), *(_file_digest(path) for path in sorted(code))])


def recipe_digest(recipe: Recipe) -> str:
    """Hash of the code of a recipe: the files of its functions, and the files beside them that these import.

    Functions without a file (typed into an interpreter) count by their compiled code.
    """
    places = [(part, Path(inspect.getsourcefile(part) or "")) for part in _functions(recipe)]
    files = {path.resolve() for _, path in places if path.is_file()}
    typed = [part.__code__ for part, path in places if not path.is_file()]
    waiting = list(files)
    while waiting:
        new = _beside(waiting.pop()) - files
        files |= new
        waiting += new
    content = [_file_digest(path) for path in sorted(files)]
    return digest([content, [[code.co_code.hex(), repr(code.co_consts), code.co_names] for code in typed]])


def _beside(path: Path) -> set[Path]:
    """Files of the same folder that a file imports."""
    tree = ast.parse(path.read_bytes()) if path.suffix == ".py" else ast.Module(body=[], type_ignores=[])
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found = (path.with_name(f"{name.rpartition('.')[2]}.py") for name in named)
    return {one for one in found if one.is_file()}


def _functions(recipe: Recipe) -> list[Any]:
    found: list[Any] = [recipe.generate, recipe.user_prior, *(one.__wrapped__ for one in recipe.sources)]
    if recipe.end_model is not None:
        found += [recipe.end_model.network, recipe.end_model.inputs]
    return [one for one in found if inspect.isfunction(one)]


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} none")
    return found
