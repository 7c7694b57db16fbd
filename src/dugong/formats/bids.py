"""BIDS events: a table of onset, duration and trial_type, and a JSON file that explains it; one sequence per file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dugong.formats.files import File
from dugong.formats.lists import ListStyle, read_list, written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import TOOL, columns, forbid, only, placed
from dugong.segments import Segments

_NAMES = ("onset", "duration", "trial_type", "probability")
_STYLE = ListStyle(
    names=_NAMES,
    ours={"onset": "start", "duration": "duration", "trial_type": "label", "probability": "probability"},
    header=True,
)
_SUFFIX = "_events.tsv"


def _fits(file: File) -> bool:
    first = file.lines[0].removeprefix("\ufeff").split("\t")
    return "onset" in first and "duration" in first


def _read(file: File) -> Segments:
    found = read_list(file, _STYLE, file.place.name.removesuffix(_SUFFIX).removesuffix(".tsv"))
    named = [label != "n/a" for label in found.label]
    return found if all(named) else replace(found.take(named), recordings=found.recordings)


def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = placed(segments, "second", "bids").sort()
    forbid(found, r"\t\n\r", "bids")
    rows = columns(found, "start", "end", "label", "probability")
    lines = [f"{a:.6f}\t{b - a:.6f}\t{label}\t{'n/a' if p is None else p}" for a, b, label, p in rows]
    about = {
        "trial_type": {
            "Description": f"label of the interval in {only(found)}" if found.recordings else "label of the interval",
            "Levels": {label: label for label in found.labels},
        },
        "probability": {"Description": f"probability of trial_type, given all votes; {TOOL}"},
    }
    table = written(["\t".join(_NAMES), *lines])
    return {f"{stem}{_SUFFIX}": table, f"{stem}_events.json": json.dumps(about, indent=2).encode()}


FORMATS = (
    Format(
        name="bids",
        title="BIDS events",
        suffixes=(_SUFFIX,),
        unit="seconds, 1 µs",
        keeps="start, end, label, probability; instants",
        loses="source; further columns",
        checked="structure of the sample (bids-validator)",
        fits=_fits,
        read=_read,
        write=_write,
        single=True,
    ),
)
