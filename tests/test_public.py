"""The public door: names, settings, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.base import clone

import dugong as dg


def test_all_names_exist_and_are_sorted() -> None:
    assert list(dg.__all__) == sorted(dg.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in dg.__all__:
        assert getattr(dg, name) is not None
    assert set(dg.__all__) <= set(dir(dg))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dg.nonsense  # noqa: B018


@pytest.mark.parametrize("package", ["numpy", "scipy", "numba", "pyarrow", "torch", "sklearn", "matplotlib"])
def test_importing_dugong_imports_nothing_heavy(package) -> None:
    code = f"import sys, dugong; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("model", [dg.LabelModel(signs="positive", seed=3), dg.MajorityVote(ties="last")])
def test_settings_as_scikit_learn_users_expect(model) -> None:
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert repr(copy) == repr(model)
    assert model.set_params(seed=5) is model
    assert model.seed == 5
    with pytest.raises(ValueError, match="no setting 'speed'"):
        model.set_params(speed=9)


def test_the_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(dg.LabelModel()) == "LabelModel()"
    assert repr(dg.LabelModel(signs="positive")) == "LabelModel(signs='positive')"


def test_every_error_is_also_the_built_in_one() -> None:
    for name in ("VoteError", "TaskError", "GraphError", "PriorError", "NotIdentifiableError", "NotFittedError"):
        error = getattr(dg, name)
        assert issubclass(error, dg.DugongError)
        assert issubclass(error, ValueError)
    assert issubclass(dg.MissingExtraError, ImportError)
