"""The paper's experiments: its tasks as recipes, its tables and figures.

The last user of everything below: sources vote on raw data, label models and baselines turn the votes into labels, end
models learn from them.
"""

from dugong.experiments.recipe import EndModel, Facts, Recipe, Size, TaskMaterial
from dugong.experiments.reproducing import reproduce
from dugong.experiments.tables import Drawing, Reproduction, Table
from dugong.experiments.tasks import TASKS, find_recipe

__all__ = [
    "TASKS",
    "Drawing",
    "EndModel",
    "Facts",
    "Recipe",
    "Reproduction",
    "Size",
    "Table",
    "TaskMaterial",
    "find_recipe",
    "reproduce",
]
