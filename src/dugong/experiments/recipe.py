"""What a task of the paper consists of: raw data, sources, what is believed about labels, an end model.

A recipe is one file in `dugong.experiments.tasks` that ends in ``RECIPE = Recipe(...)``. In: a size and a seed, or a
folder with real data. Out: `TaskMaterial`, raw sequences that the sources and the end model read, with gold labels that
they do not. Everything that is measured on a task (`reproduce`) goes through this contract.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dugong.exceptions import LoaderError
from dugong.graph import Dependency
from dugong.priors import Prior
from dugong.sources import Source, apply
from dugong.tasks import Element, Resolution
from dugong.tasks import Sequence as WholeSequence
from dugong.types import AnyArray, Int8Array
from dugong.votes import Votes
from dugong.votes.gold import gold_at

if TYPE_CHECKING:
    from torch import nn


Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = ("train", "dev", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sequences in each part; `small` images and networks of the same kind, for two cores, or those of the paper."""

    train: int
    dev: int
    test: int
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the paper says of a task (its tables 1 and 2).

    Attributes
    ----------
    n_elements : T, elements per sequence
    size : sequences for training, development and test
    positive : share of positive elements (of sequences, where the labels are of whole sequences)
    sources : sources that vote on elements, on windows, on sequences
    network : the end model; "-" where only the label model is reported
    """

    n_elements: int
    size: Size
    positive: float
    sources: tuple[int, int, int]
    network: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskMaterial:
    """Raw sequences of one task, and who may see what.

    Attributes
    ----------
    sequences : what the sources read; as for `dugong.apply`
    gold : mapping of id to (n_elements,) array
        -1, +1 or 0 for unknown. Of the part "train" it is used for scoring labels alone, never for fitting.
    parts : mapping of id to "train", "dev" or "test"
    groups : mapping of id to patient, document or video
        Confidence intervals and splits are by group.
    origin : "simulated", or the name of the real data
    """

    sequences: Mapping[str, Any]
    gold: Mapping[str, Int8Array]
    parts: Mapping[str, Part]
    groups: Mapping[str, str]
    origin: str

    def ids(self, part: Part) -> list[str]:
        """The sequences of one part, in order."""
        return [name for name in self.sequences if self.parts[name] == part]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndModel:
    """The end model of a task.

    Attributes
    ----------
    network : function of `small` (bool)
        A new network that returns logits of the two classes.
    inputs : function of a raw sequence and `small`
        Float array, (n_elements, ...) with one row per element, or (...) where `unit` is "sequence".
    unit : "element" or "sequence"
        What one example is; the label model's probabilities are asked for at this resolution.
    options : for `dugong.endmodels.train`: epochs, batch_size, learning_rate
    small_options : the same for small networks; what it does not name is as in `options`
    """

    network: Callable[[bool], nn.Module]
    inputs: Callable[[Any, bool], AnyArray]
    unit: Literal["element", "sequence"] = "element"
    options: Mapping[str, Any] = field(default_factory=dict)
    small_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One task of the paper.

    Attributes
    ----------
    name : as on the command line: "bav", "interview", "gait", "shot", "basketball", "car", "ehr"
    title : what is looked for, in a line
    quick : what `reproduce --quick` uses
    dependencies : as in `LabelModel`: pairs of source names, ``temporal("name")``
    user_prior : function of the gold labels of the dev sequences
        What an expert would say, who may have looked at the dev set (the appendix, "User-Defined Class Prior").
    generate : function of a `Size`, a seed and a folder
        Raw data of the paper's shape, and no more than that: nothing measured on it is the paper's number. The folder
        is for files (videos) and is kept as long as the material is used.
    end_model : None where the paper reports the label model alone
    load : function of a folder, or None
        Reads the real data from where a user has put it; raises `LoaderError` where it is absent, saying which files.
    real_data : where users obtain the real data and how the folder has to look
    """

    name: str
    title: str
    facts: Facts
    quick: Size
    sources: tuple[Source, ...]
    dependencies: tuple[Dependency, ...]
    user_prior: Callable[[Sequence[Int8Array]], Prior]
    generate: Callable[[Size, int, Path], TaskMaterial]
    end_model: EndModel | None
    load: Callable[[Path], TaskMaterial] | None
    real_data: str


def find_folder(folder: Path, name: str, files: tuple[str, ...]) -> Path:
    """The folder that holds `files`: the given one, or the one called `name` in it."""
    for place in (folder / name, folder):
        if all((place / one).is_file() for one in files):
            return place
    wanted = " and ".join(files)
    raise LoaderError(f"the real data must be in {folder / name} or {folder}: {wanted}; found no such files there.")


# --- one task, ready to be measured -----------------------------------------------------------------------------------
# In: a recipe, and either a size and a seed (simulated) or a folder (real data). The sources vote once on all parts;
# label models see the votes of one part at a time.
# Generators, sources and declared dependencies were tried out on data of small seeds, with scores in view. What is
# reported is drawn with seeds that nobody had looked at.
FIRST_SEED = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskCase:
    """Raw data with votes on all parts, in the order of ``material.sequences``; `small` inputs and networks, or not."""

    recipe: Recipe
    material: TaskMaterial
    all_votes: Votes
    small: bool

    @property
    def resolution(self) -> Resolution:
        """What one example of the end model is: an element, or the sequence with the label of most of its elements."""
        unit = "element" if self.recipe.end_model is None else self.recipe.end_model.unit
        return Element() if unit == "element" else WholeSequence(link="majority")

    def votes(self, part: Part) -> Votes:
        """The votes of one part."""
        parts = self.material.parts
        return self.all_votes.select([i for i, name in enumerate(self.material.sequences) if parts[name] == part])

    def gold_sequences(self, part: Part) -> list[Int8Array]:
        """Gold labels of the elements, one array per sequence."""
        return [np.asarray(self.material.gold[name], dtype=np.int8) for name in self.material.ids(part)]

    def gold(self, part: Part) -> Int8Array:
        """Gold labels at the resolution of the end model, 0 where unknown."""
        return gold_at(self.votes(part), np.concatenate(self.gold_sequences(part)), self.resolution)

    def raw(self, part: Part) -> list[Any]:
        """The raw sequences of one part."""
        return [self.material.sequences[name] for name in self.material.ids(part)]

    def with_train_share(self, share: float) -> TaskCase:
        """The same case with the first part of the train sequences alone."""
        train = self.material.ids("train")
        dropped = set(train[max(1, round(share * len(train))) :])
        if not dropped:
            return self
        kept = {name: raw for name, raw in self.material.sequences.items() if name not in dropped}
        rows = [i for i, name in enumerate(self.material.sequences) if name in kept]
        return replace(self, material=replace(self.material, sequences=kept), all_votes=self.all_votes.select(rows))


def size_of(recipe: Recipe, *, quick: bool) -> Size:
    """How much is generated."""
    return recipe.quick if quick else recipe.facts.size


@contextmanager
def simulated(recipe: Recipe, *, quick: bool, seed: int) -> Iterator[TaskCase]:
    """Generated data of a task, with seeds from `FIRST_SEED` on; its files are removed in the end."""
    size = size_of(recipe, quick=quick)
    with tempfile.TemporaryDirectory(prefix=f"dugong-{recipe.name}-") as folder:
        yield prepare(recipe, recipe.generate(size, FIRST_SEED + seed, Path(folder)), small=size.small)


def real(recipe: Recipe, data: Path | None, *, quick: bool) -> TaskCase:
    """The real data of a task, in a folder of its name or beside others; `LoaderError` where it is not there."""
    if recipe.load is None:
        raise LoaderError("there is no adapter to real data")
    if data is None:
        raise LoaderError("no folder with real data was named (--data or DUGONG_DATA)")
    own = data / recipe.name
    return prepare(recipe, recipe.load(own if own.is_dir() else data), small=quick)


def prepare(recipe: Recipe, material: TaskMaterial, *, small: bool) -> TaskCase:
    """Let the sources vote."""
    votes = apply(recipe.sources, material.sequences, progress=False)
    return TaskCase(recipe=recipe, material=material, all_votes=votes, small=small)
