"""The public door: names, laziness, what is said when torch is absent, examples in docstrings."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

import dugong.endmodels as door
from dugong.endmodels import batches, costs, trainer, windows

WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from dugong.exceptions import MissingExtraError
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_resolves():
    assert len(set(door.__all__)) == len(door.__all__)
    assert dir(door) == sorted(door.__all__)
    for name in door.__all__:
        assert getattr(door, name) is not None
    assert callable(door.train)
    assert door.networks.resnet18 is door.resnet18
    with pytest.raises(AttributeError, match="no attribute 'resnet19'"):
        _ = door.resnet19


def test_importing_the_folder_imports_nothing_heavy():
    out = run("import sys, dugong.endmodels; print([m for m in ('torch', 'numpy', 'sklearn') if m in sys.modules])")
    assert out.strip() == "[]"


@pytest.mark.parametrize("name", ["train", "train_seeds", "predict", "load_weights", "resnet18", "networks"])
def test_without_torch_the_extra_is_named(name):
    code = f"""
try:
    from dugong.endmodels import {name}
except MissingExtraError as error:
    print(error)
"""
    out = run(WITHOUT_TORCH + code)
    assert f"dugong.endmodels.{name} needs the package 'torch', which is not installed" in out
    assert "pip install 'dugong-ws[torch]'" in out


def test_windows_and_classifiers_need_no_torch():
    code = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from dugong.endmodels import context_windows, pad_sequences, train_sklearn
X = context_windows(np.arange(6.0)).values[..., 0]
p = np.linspace(0.1, 0.9, 6)
print(train_sklearn(LogisticRegression(), X, np.column_stack([1 - p, p])).classes_)
"""
    assert run(WITHOUT_TORCH + code).strip() == "[-1  1]"


def test_another_missing_module_is_not_taken_for_torch():
    code = """
import sys
sys.modules["dugong.endmodels.windows"] = None
try:
    from dugong.endmodels import context_windows
except ModuleNotFoundError as error:
    print(type(error).__name__, error.name)
"""
    assert run(code).strip() == "ModuleNotFoundError dugong.endmodels.windows"


@pytest.mark.parametrize("module", [costs, trainer, windows])
def test_examples_in_docstrings(module):
    names = {**vars(module), "predict": batches.predict}
    result = doctest.testmod(module, globs=names)
    assert result.attempted > 0
    assert result.failed == 0
