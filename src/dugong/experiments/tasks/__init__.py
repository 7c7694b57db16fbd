"""The paper's tasks, one file each; a file is imported when its task is asked for."""

from __future__ import annotations

from importlib import import_module

from dugong.exceptions import DugongError
from dugong.experiments.recipe import Recipe

TASKS = ("bav", "interview", "gait", "shot", "basketball", "car", "ehr")


def find_recipe(name: str) -> Recipe:
    """The recipe of a task, by its name in `TASKS`."""
    if name not in TASKS:
        raise DugongError(f"there is no task {name!r}; the paper's tasks are {', '.join(TASKS)}.")
    recipe = import_module(f"dugong.experiments.tasks.{name}").RECIPE
    assert isinstance(recipe, Recipe)
    return recipe


def recipe_of(task: str | Recipe) -> Recipe:
    """A recipe that is named or given."""
    return find_recipe(task) if isinstance(task, str) else task
