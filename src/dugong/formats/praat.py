"""Praat TextGrids: interval tiers without gaps, one per source; one sequence per file.

The reader follows Praat's own rule for text files: only numbers, texts in quotation marks and flags that stand alone
count, everything else is decoration. The long and the short form are therefore read by the same few lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dugong.formats.files import File, Intervals
from dugong.formats.lists import written
from dugong.formats.registry import Files, Format
from dugong.formats.texts import apart, columns, forbid, only, placed
from dugong.segments import Recording, Segments

# Decoration is skipped in one go, numbers in brackets ("intervals [3]:") with it; then comes something that counts.
_TOKEN = re.compile(
    r'[^"<\d+\-\[]*(?:\[\d*\][^"<\d+\-\[]*)*'
    r'(?:"([^"]*(?:""[^"]*)*)"|<(\w+)>|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S))'
)
_TIER = "dugong"  # of intervals without a source


# --- reading -----------------------------------------------------------------------------------------------------
class _Scanner:
    """What counts in a TextGrid, one after the other."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.found = _TOKEN.finditer(file.text)
        self.place = 0

    def line(self) -> int:
        return self.file.text.count("\n", 0, self.place) + 1

    def _next(self, group: int, what: str) -> str:
        token = next(self.found, None)
        if token is None:
            raise self.file.error(f"the file ends where {what} should be; it is cut off.", self.line())
        self.place = token.end()
        value = token[group]
        if value is None:
            raise self.file.error(f"{what} should be here; found {token[0].split()[-1]!r}.", self.line())
        return value

    def text(self, what: str) -> str:
        return self._next(1, what).replace('""', '"')

    def flag(self, what: str) -> str:
        return self._next(2, what)

    def number(self, what: str) -> float:
        return float(self._next(3, what))

    def count(self, what: str) -> int:
        return int(self.number(what))


def _read(file: File) -> Segments:
    if file.data.startswith(b"ooBinaryFile"):
        raise file.error("this is a binary TextGrid; save it as text in Praat (Save > Save as text file).")
    tokens, rows = _Scanner(file), Intervals(file, "second")
    kind = (tokens.text("the type of the file"), tokens.text("the class of the object"))
    if kind != ("ooTextFile", "TextGrid"):
        raise file.error(f"a TextGrid must begin with ooTextFile and TextGrid; found {' and '.join(kind)}.", 1)
    tokens.number("the start")
    end = tokens.number("the end")
    if tokens.flag("whether there are tiers") == "exists":
        for _ in range(tokens.count("the number of tiers")):
            _tier(tokens, rows)
    return rows.done({file.stem: Recording(duration=end)})


def _tier(tokens: _Scanner, rows: Intervals) -> None:
    kind, name = tokens.text("the class of a tier"), tokens.text("the name of a tier")
    tokens.number("the start of the tier")
    tokens.number("the end of the tier")
    if kind not in ("IntervalTier", "TextTier"):
        raise tokens.file.error(f"a tier must be an IntervalTier or a TextTier; found {kind!r}.", tokens.line())
    stem, source = tokens.file.stem, "" if name == _TIER else name
    for number in range(tokens.count("the number of intervals")):
        start = tokens.number("the start of an interval")
        end = tokens.number("the end of an interval") if kind == "IntervalTier" else start
        label = tokens.text("the text of an interval")
        if label:
            rows.add(f"tier {name!r}, interval {number + 1}", stem, start, end, label, source=source)


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "praat"), "praat")
    forbid(found, r"\0", "praat")
    found = found.take(found.end > found.start)
    known = found.recordings[only(found)].seconds if found.recordings else None
    end = max(float(found.end.max(initial=0.0)), known or 0.0) or 1.0
    tiers: dict[str, list[tuple[float, float, str]]] = {source: [] for source in found.sources or ("",)}
    for source, start, stop, label in columns(found, "source", "start", "end", "label"):
        rows = tiers[source]
        last = rows[-1][1] if rows else 0.0
        rows += [(last, start, "")] if start > last else []
        rows.append((start, stop, label))
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {_number(end)}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for place, (source, rows) in enumerate(tiers.items(), start=1):
        last = rows[-1][1] if rows else 0.0
        lines += _tier_lines(place, source or _TIER, rows + ([(last, end, "")] if last < end else []), end)
    return {f"{stem}.TextGrid": written(lines)}


def _tier_lines(place: int, name: str, rows: list[tuple[float, float, str]], end: float) -> list[str]:
    lines = [
        f"    item [{place}]:",
        '        class = "IntervalTier"',
        f"        name = {_quoted(name)}",
        "        xmin = 0",
        f"        xmax = {_number(end)}",
        f"        intervals: size = {len(rows)}",
    ]
    for number, (start, stop, label) in enumerate(rows, start=1):
        lines += [
            f"        intervals [{number}]:",
            f"            xmin = {_number(start)}",
            f"            xmax = {_number(stop)}",
            f"            text = {_quoted(label)}",
        ]
    return lines


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


FORMATS = (
    Format(
        name="praat",
        title="Praat TextGrid",
        suffixes=(".TextGrid",),
        unit="seconds, exact",
        keeps="start, end, label, source (as tier), duration",
        loses="probability, instants; overlaps inside a tier are refused",
        checked="praatio",
        fits=lambda file: "TextGrid" in file.text[:200],
        read=_read,
        write=_write,
        single=True,
        aliases=("textgrid",),
    ),
)
