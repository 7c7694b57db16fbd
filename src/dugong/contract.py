"""The estimator contract that users of scikit-learn know: keyword-only constructors that only store.

`Configured` gives a class `get_params`, `set_params`, a readable `repr` and equality of settings through `clone`,
read off its own constructor. No dependency on scikit-learn.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from dugong.exceptions import NotFittedError


class Configured:
    """A class whose constructor stores its keyword arguments under their own names."""

    @classmethod
    def _names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters
        return sorted(name for name in parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001  scikit-learn's signature
        """Settings by name; `deep` is accepted for scikit-learn's sake."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; returns self."""
        unknown = sorted(set(params) - set(self._names()))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no setting {unknown[0]!r}; known are {', '.join(self._names())}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") and not name.startswith("_") for name in vars(self)):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(votes) first.")
