"""Paths on the command line: of this machine, or URLs of shared storage."""

from __future__ import annotations

from typing import Any

import click

from dugong.paths import place_of


class PlaceType(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.3
    """A path or URL."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The place that a word names."""
        return place_of(value)


PLACE = PlaceType()
