"""One request to the studio: what its address names, its query and its body; and how plain data are sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from starlette.requests import Request

from dugong.codec import parse, to_plain
from dugong.exceptions import DugongError
from dugong.studio.errors import StudioError
from dugong.studio.state import Studio


def in_ascii(content: Any) -> str:
    """JSON in ASCII: whatever names and texts hold, they can be sent."""
    return json.dumps(to_plain(content), allow_nan=False, separators=(",", ":"))


def bad(text: str) -> StudioError:
    """What a request must be, and is not."""
    return StudioError(text, "bad")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a studio."""

    studio: Studio
    request: Request
    body: bytes

    def named(self, part: str = "id") -> Any:
        """A part of the address."""
        return self.request.path_params[part]

    @property
    def query(self) -> Mapping[str, str]:
        """The words of the query."""
        return self.request.query_params

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number of the query, moved between bounds."""
        text = self.query.get(name, str(default))
        try:
            value = int(float(text)) if len(text) < 30 else None
        except (ValueError, OverflowError):
            value = None
        if value is None:
            raise bad(f"{name} must be a whole number; found {text!r:.100}.")
        return min(max(value, low), high)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The body as a JSON object."""
        if self.request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise bad("the content type must be application/json.")
        try:
            plain = parse(self.body)
        except (DugongError, ValueError, RecursionError) as error:
            raise bad(f"the body must be JSON: {error}.") from None
        if not isinstance(plain, dict):
            raise bad("the body must be a JSON object.")
        return plain

    def word(self, name: str) -> str:
        """Text of the body."""
        value = self.plain.get(name)
        if not isinstance(value, str):
            raise bad(f"{name} must be text; found {value!r:.100}.")
        return value
