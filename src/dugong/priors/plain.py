"""Priors from plain data: the inverse of every `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dugong.exceptions import PriorError
from dugong.priors.base import Prior
from dugong.priors.joint import Joint
from dugong.priors.markov import Markov
from dugong.priors.patterns import Patterns
from dugong.priors.uniform import Uniform


def from_dict(plain: Mapping[str, Any]) -> Prior:
    """The prior that `to_dict` described."""
    options = dict(plain)
    kind = options.pop("kind", None)
    if kind == "uniform":
        return Uniform(**options)
    if kind == "markov":
        return Markov(**options)
    if kind == "patterns":
        rows = zip(options["patterns"], options["probabilities"], strict=True)
        return Patterns({tuple(row): p for row, p in rows}, n_classes=options["n_classes"])
    if kind == "joint":
        return Joint.from_plain(**options)
    raise PriorError(f"a prior is of the kind uniform, markov, patterns or joint; found {kind!r}.")
