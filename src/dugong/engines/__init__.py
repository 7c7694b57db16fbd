"""Where it runs: one promise (map items, in order), one short file per engine."""

from dugong.engines.choose import EngineError, named_engine
from dugong.engines.local import Processes, Serial, local_engine, usable_cores
from dugong.engines.marks import in_worker, mark
from dugong.engines.protocol import Engine, ShippingError, WorkerLostError
from dugong.engines.reduce import reduce_sums
from dugong.engines.shipping import importable, ship

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
