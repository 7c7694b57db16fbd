"""How tests run the command line: in this process, with the exit code and both outputs apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)


Command = Callable[..., Outcome]
