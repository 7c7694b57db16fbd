"""Where it runs: one promise (map items, in order), one machine (`local`) or several (`clusters`).

Engines by name, as ``engine=`` and ``--engine`` take them: ``"local"`` runs processes on this machine. ``"dask"``,
``"ray"`` and ``"spark"`` start a small cluster here, or use the one whose address follows a colon:
``"dask:tcp://head:8786"``, ``"ray:auto"``, ``"spark:spark://head:7077"``.
"""

from collections.abc import Callable

from dugong.engines.local import Processes, Serial, local_engine, usable_cores
from dugong.engines.protocol import (
    Engine,
    ShippingError,
    WorkerLostError,
    importable,
    in_worker,
    mark,
    reduce_sums,
    ship,
)
from dugong.exceptions import DugongError

__all__ = [
    "Engine",
    "EngineError",
    "Processes",
    "Serial",
    "ShippingError",
    "WorkerLostError",
    "importable",
    "in_worker",
    "local_engine",
    "mark",
    "named_engine",
    "reduce_sums",
    "ship",
    "usable_cores",
]

NAMES = ("local", "dask", "ray", "spark")


class EngineError(DugongError, ValueError):
    """An engine that is not known."""


def named_engine(name: str = "local", *, n_jobs: int = 1) -> Engine:
    """The engine of that name with so many workers, where they are ours to start."""
    kind, _, address = name.partition(":")
    if kind == "local" and not address:
        return local_engine(n_jobs)
    if kind in ("dask", "ray", "spark"):
        from dugong.engines import clusters

        cluster: Callable[..., Engine] = getattr(clusters, kind.title())
        return cluster(address=address or None, n_jobs=n_jobs)
    known = ", ".join(NAMES)
    raise EngineError(f"the engine must be one of {known}, with an address after a colon if need be; found {name!r}.")
