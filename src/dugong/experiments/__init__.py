"""The paper's experiments: its tasks as recipes, its tables and figures.

The last user of everything below: sources vote on raw data, label models and baselines turn the votes into labels, end
models learn from them.
"""

from dugong.experiments.recipe import EndModel, Facts, Material, Recipe, Size
from dugong.experiments.reproducing import reproduce
from dugong.experiments.tables import Drawing, Reproduction, Table
from dugong.experiments.tasks import TASKS, find_recipe

__all__ = [
    "TASKS",
    "Drawing",
    "EndModel",
    "Facts",
    "Material",
    "Recipe",
    "Reproduction",
    "Size",
    "Table",
    "find_recipe",
    "reproduce",
]
