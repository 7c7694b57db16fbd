"""Tables and figures as values: printed as Markdown, written as Markdown and CSV, PNG and SVG.

A `Table` holds plain records; how a cell looks is decided when it is printed. A `Drawing` holds a function that draws
on new matplotlib figure (extra ``plot``), so that nothing is imported before something is drawn.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import dugong
from dugong.exceptions import import_extra
from dugong.experiments.recipe import Recipe
from dugong.experiments.tasks import TASKS
from dugong.paths import write_atomically
from dugong.shards.code import digest_code

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Shown = Mapping[str, Callable[[Any], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with named columns.

    Attributes
    ----------
    name : of its files
    columns : shown in this order
    rows : text of every column, as it is shown
    records : the numbers behind the rows, for the CSV file
    notes : below the table
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]
    records: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, title: str, records: Sequence[Mapping[str, Any]], shown: Shown, notes: tuple[str, ...] = ()
    ) -> Self:
        """A table with one row per record, and the text of each column by what shows it."""
        rows = tuple({column: text(record) for column, text in shown.items()} for record in records)
        return cls(name=name, title=title, columns=tuple(shown), rows=rows, records=tuple(records), notes=notes)

    def __str__(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns)]
        lines += [tuple(row.get(column, "") for column in self.columns) for row in self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.title}**", table, *self.notes])

    __repr__ = __str__

    def csv(self) -> str:
        """The records as CSV, with a header."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return out.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure that is not drawn yet: the name of its files, and what draws it."""

    name: str
    draw: Callable[[], Figure] = field(repr=False)

    def write(self, folder: Path) -> list[Path]:
        """Draw and save as PNG and SVG."""
        figure = self.draw()
        paths = [folder / f"{self.name}.{kind}" for kind in ("png", "svg")]
        for path in paths:
            write_atomically(path, lambda handle, path=path: figure.savefig(handle, format=path.suffix[1:], dpi=150))  # type: ignore[misc]
        return paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What `reproduce` found: tables that print as Markdown, and figures."""

    name: str
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    __repr__ = __str__

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write every table as ``.md`` and ``.csv`` and every figure as ``.png`` and ``.svg``; returns the paths."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = [place / f"{self.name}.md", *(place / f"{table.name}.csv" for table in self.tables)]
        texts = [f"{self}\n", *(table.csv() for table in self.tables)]
        for path, text in zip(paths, texts, strict=True):
            write_atomically(path, lambda handle, text=text: handle.write(text.encode()))  # type: ignore[misc]
        return [*paths, *(path for drawing in self.drawings for path in drawing.write(place))]


def new_figure(n_panels: int = 1, *, width: float = 4.2, height: float = 3.2) -> tuple[Figure, Sequence[Any]]:
    """A figure with panels side by side, and its axes."""
    made = import_extra("matplotlib.figure", "plot", "drawing figures").Figure
    figure = made(figsize=(width * n_panels, height), layout="constrained")
    axes = figure.subplots(1, n_panels, squeeze=False)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation (NaN for one value)."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan")
    return mean, float((sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5)


def formatted(key: str, form: str = "", scale: float | None = None) -> Callable[[Any], str]:
    """The text of one value of a record; nothing where it has none."""
    return lambda record: (
        "" if record.get(key) is None else format(record[key] if scale is None else scale * record[key], form)
    )


def spread_of(key: str, scale: float = 1.0) -> Callable[[Any], str]:
    """The text of a number of a record and of its deviation, in percent."""
    return lambda record: percent(scale * record[key], scale * record[f"{key} sd"])


def percent(mean: float, sd: float | None) -> str:
    """``53.8 ± 7.6``: both in percent; no deviation where there is none."""
    return f"{mean:.1f}" if sd is None or isnan(sd) else f"{mean:.1f} ± {sd:.1f}"


# --- Results on disk, by the content of what led to them: one small JSON file per cell of a table ---------------------
# The key of a cell is a hash of its settings, of the code of its recipe and of the library, and of the versions of what
# computes. A run that was killed goes on with the cells that are there; a changed recipe or estimator makes new cells.
# What decides a number: the stages below the experiments; the files of the experiments are named by their users.
_STAGES = (
    *("model.py", "baselines", "endmodels", "fit", "graph", "infer", "law", "metrics"),
    *("priors", "sources", "sums", "tasks", "votes", "worlds"),
)
# What decides an end model's, once its labels are known.
LEARNING = ("baselines/elements.py", "endmodels", "metrics")
_PACKAGES = ("numpy", "scikit-learn", "scipy", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of finished cells; a `fresh` one ignores (and replaces) what is there."""

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
    """Hash of the code that numbers depend on (files of the experiments, stages below) and of versions of packages."""
    root = Path(dugong.__file__).parent
    code = [root / "experiments" / f"{name}.py" for name in files]
    for stage in stages:
        code += [root / stage] if stage.endswith(".py") else (root / stage).rglob("*.py")
    return digest([dugong.__version__, _versions(), *(_file_digest(path) for path in sorted(code))])


def recipe_digest(recipe: Recipe) -> str:
    """Hash of the code of a recipe and of all that it uses; of the paper's tasks, of their file and the shared ones."""
    end = () if recipe.end_model is None else (recipe.end_model.network, recipe.end_model.inputs)
    code = digest_code([recipe.generate, recipe.user_prior, recipe.sources, end])
    files = sorted((Path(__file__).parent / "tasks").glob("*.py"))
    return digest([code, *(_file_digest(path) for path in files if path.stem == recipe.name or path.stem not in TASKS)])


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
