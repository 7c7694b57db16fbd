"""Functions that travel to another process: by reference if it can import them, by value if not.

A function of a notebook, of a script or of a closure is sent as code with cloudpickle; one that lives in an
importable module is sent by name. All that belongs together is dumped at once, so that shared objects stay
shared.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from dugong.engines.protocol import ItemT, ResultT, ShippingError


def importable(name: str | None) -> bool:
    """Whether a fresh interpreter with the same `sys.path` would import the module that is loaded here."""
    module = sys.modules.get(name or "")
    if name is None or module is None or name in ("__main__", "__mp_main__"):
        return False
    top = name.partition(".")[0]
    spec = _find_top(top)
    if spec is None:
        return False
    file, found = getattr(module, "__file__", None), spec.origin
    if name != top or file is None or found is None or not (Path(file).exists() and Path(found).exists()):
        return True  # built in, frozen, or a part of a package that is there
    return Path(found).samefile(file)


def _find_top(name: str) -> Any:
    """Search for a module afresh; `sys.modules` knows only that it was loaded somehow."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec
    return None


def ship(value: Any) -> bytes:
    """Serialise a value.

    Raises
    ------
    ShippingError
        If something inside cannot be serialised, such as an open file or a lock.
    """
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise ShippingError(f"{type(error).__name__}: {error}") from error


def open_outcome(answer: bytes) -> Any:
    """The result of a call that came back as (good, result), or the error that it raised."""
    good, result = pickle.loads(answer)
    if not good:
        raise result
    return result


def ship_item(item: Any, name: str) -> bytes:
    """An item as bytes, or an error that names it."""
    try:
        return ship(item)
    except ShippingError as error:
        raise ShippingError(f"{name} cannot be sent to another process: {error}") from error


@contextlib.contextmanager
def strangers_by_value() -> Iterator[None]:
    """Until the end of the block, ship code of modules that lie off `sys.path` by value."""
    import cloudpickle

    known = set(cloudpickle.list_registry_pickle_by_value())
    strangers = [module for module in _strangers() if module.__name__ not in known]
    for module in strangers:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in strangers:
            cloudpickle.unregister_pickle_by_value(module)


def _strangers() -> list[ModuleType]:
    written = [
        (name, module)
        for name, module in sys.modules.copy().items()
        if name != "__main__"
        and str(getattr(module, "__file__", None)).endswith(".py")
        and getattr(module, "__name__", None) == name
    ]
    tops = {name.partition(".")[0] for name, _ in written}
    lost = {top for top in tops if _find_top(top) is None}
    return [
        module
        for name, module in written
        if name.partition(".")[0] in lost or ("." not in name and not importable(name))
    ]


class ShippedEngine(ABC):
    """An engine that sends functions and items to other processes."""

    __slots__ = ()

    def map(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        describe: Callable[[ItemT], str] = repr,
    ) -> Iterator[ResultT]:
        """Yield ``function(item)`` for all items, in order."""
        with strangers_by_value():
            yield from self._map(function, items, describe)

    @abstractmethod
    def _map(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT], describe: Callable[[ItemT], str]
    ) -> Iterator[ResultT]:
        """The same, while code that workers cannot import travels by value."""
