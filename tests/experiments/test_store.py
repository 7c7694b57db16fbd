"""Cells on disk: found again by content, never half written, ignored on request."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import tiny_task as tiny
from dugong.experiments import tables
from dugong.experiments.tables import Store, digest, library_digest, recipe_digest


def test_a_cell_is_found_by_its_settings(tmp_path: Path) -> None:
    store = Store(folder=tmp_path / "cells")
    assert store.get("a", {"seed": 0}) is None
    store.put("a", {"seed": 0}, {"f1": 0.5})
    assert store.get("a", {"seed": 0}) == {"f1": 0.5}
    assert store.get("a", {"seed": 1}) is None
    assert [path.suffix for path in store.folder.iterdir()] == [".json"]


def test_a_fresh_store_ignores_and_replaces(tmp_path: Path) -> None:
    Store(folder=tmp_path).put("a", {"seed": 0}, {"f1": 0.5})
    fresh = Store(folder=tmp_path, fresh=True)
    assert fresh.get("a", {"seed": 0}) is None
    fresh.put("a", {"seed": 0}, {"f1": 0.6})
    assert Store(folder=tmp_path).get("a", {"seed": 0}) == {"f1": 0.6}


def test_a_cell_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    store = Store(folder=tmp_path)
    with pytest.raises(TypeError):
        store.put("a", {"seed": 0}, {"f1": object()})
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_settings_does_not_matter() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def digest_of(place: Path) -> str:
    spec = spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return recipe_digest(module.RECIPE)


def test_the_digest_of_a_recipe_follows_its_source(tmp_path: Path) -> None:
    text = Path(tiny.__file__).read_text(encoding="utf-8")
    found = []
    for name, changed in (("one", text), ("two", text), ("three", text.replace("0.5 else -1", "0.6 else -1"))):
        place = tmp_path / f"{name}.py"
        place.write_text(changed, encoding="utf-8")
        found.append(digest_of(place))
    assert found[0] == found[1] != found[2]
    assert recipe_digest(replace(tiny.RECIPE, name="other")) == recipe_digest(tiny.RECIPE)


def test_the_digest_of_a_recipe_follows_what_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = Path(tiny.__file__).read_text(encoding="utf-8").replace("value > 0.5", "value > NUMBER")
    (tmp_path / "recipe_with_helper.py").write_text(f"{text}\nfrom tiny_helper import NUMBER\n", encoding="utf-8")
    found = []
    for number in (1, 1, 2):
        monkeypatch.delitem(sys.modules, "tiny_helper", raising=False)
        (tmp_path / "tiny_helper.py").write_text(f"NUMBER = {number}\n", encoding="utf-8")
        found.append(digest_of(tmp_path / "recipe_with_helper.py"))
        (tmp_path / "stranger.py").write_text(f"NUMBER = {number}{len(found)}\n", encoding="utf-8")
    assert found[0] == found[1] != found[2]


def test_the_digest_of_the_library_covers_the_named_files() -> None:
    assert library_digest("measure") != library_digest("reproducing")
    assert len(library_digest("measure")) == 64


def test_the_digest_names_code_that_exists():
    root = Path(tables.__file__).parents[1]
    stages = [root / stage for stage in (*tables._STAGES, *tables.LEARNING)]
    assert [stage for stage in stages if not (stage.is_file() if stage.suffix else stage.is_dir())] == []
    assert library_digest("measure", stages=tables.LEARNING) != library_digest("measure")


def test_functions_without_a_file_count_by_their_code() -> None:
    found = []
    for number in (1, 1, 2):
        names: dict[str, object] = {}
        exec(f"def generate(size, seed, folder):\n    return {number}", names)
        found.append(recipe_digest(replace(tiny.RECIPE, generate=names["generate"])))
    assert found[0] == found[1] != found[2]
