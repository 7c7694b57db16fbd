"""Files with one tier per source, and one sequence per file: ELAN and Praat.

In ELAN times are milliseconds, and the probability of an annotation is on a tier that refers to it
(Symbolic_Association). When a file is read, tiers that refer to others give probabilities where they hold numbers
between 0 and 1, and attributes where they hold words. Praat's tiers have no gaps. Its reader follows Praat's own rule
for text files: only numbers, texts in quotation marks and flags that stand alone count, everything else is decoration.
The long and the short form are therefore read by the same few lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from dugong.exceptions import FormatError
from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals, apart, forbid, grouped, media_stem, only, placed, written
from dugong.segments import Recording, Segments

# --- ELAN -------------------------------------------------------------------------------------------------------------
_NOBODY = "dugong"  # the tier of intervals without a source
_ALIGNED, _REFERS = "ALIGNABLE_ANNOTATION", "REF_ANNOTATION"
_XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_SCHEMA = 'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd"'
_TYPES = """\
  <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="default-lt" TIME_ALIGNABLE="true" />
  <LINGUISTIC_TYPE CONSTRAINTS="Symbolic_Association" GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="p-lt" \
TIME_ALIGNABLE="false" />
  <CONSTRAINT DESCRIPTION="Time subdivision of parent annotation's time interval, no time gaps allowed within this \
interval" STEREOTYPE="Time_Subdivision" />
  <CONSTRAINT DESCRIPTION="Symbolic subdivision of a parent annotation. Annotations refering to the same parent are \
ordered" STEREOTYPE="Symbolic_Subdivision" />
  <CONSTRAINT DESCRIPTION="1-1 association with a parent annotation" STEREOTYPE="Symbolic_Association" />
  <CONSTRAINT DESCRIPTION="Time alignable annotations within the parent annotation's time interval, gaps are allowed" \
STEREOTYPE="Included_In" />
"""


def _read_elan(file: File) -> Segments:
    root, rows = file.xml, Intervals(file, "second")
    if root.tag != "ANNOTATION_DOCUMENT":
        raise file.error(f"an ELAN file must begin with ANNOTATION_DOCUMENT; found {root.tag}.")
    header = root.find("HEADER")
    if header is not None and header.get("TIME_UNITS", "milliseconds") != "milliseconds":
        raise file.error(f"times must be in milliseconds; found {header.get('TIME_UNITS')!r}.", "HEADER")
    slots, notes = _slots(file, root), _notes(root)
    for tier in root.iterfind("TIER"):
        _add_tier(rows, tier, slots, notes)
    media = root.find("HEADER/MEDIA_DESCRIPTOR")
    url = None if media is None else media.get("RELATIVE_MEDIA_URL") or media.get("MEDIA_URL")
    return rows.done({file.stem: Recording(media=url or None)})


def _slots(file: File, root: Element) -> dict[str | None, float]:
    """Seconds by the name of a time slot; slots without a time are left out."""
    found: dict[str | None, float] = {}
    for one in root.iterfind("TIME_ORDER/TIME_SLOT"):
        time = one.get("TIME_VALUE")
        if time is not None:
            found[one.get("TIME_SLOT_ID")] = file.number(time, "a time", time) / 1000
    return found


# By hand from here on: searches by path take longer than parsing the file.
def _annotations(tier: Element, tag: str) -> Iterator[Element]:
    return (one for annotation in tier for one in annotation if one.tag == tag)


def _notes(root: Element) -> list[tuple[str, dict[str | None, str]]]:
    """Tiers that refer to annotations of other tiers: their names, and what they say by annotation."""
    found = [
        (tier.get("TIER_ID", ""), {one.get("ANNOTATION_REF"): _value(one) for one in _annotations(tier, _REFERS)})
        for tier in root.iterfind("TIER")
    ]
    return [(name, values) for name, values in found if values]


def _value(one: Element) -> str:
    for child in one:
        if child.tag == "ANNOTATION_VALUE":
            return child.text or ""
    return ""


def _add_tier(
    rows: Intervals, tier: Element, slots: dict[str | None, float], notes: list[tuple[str, dict[str | None, str]]]
) -> None:
    name = tier.get("TIER_ID", "")
    source = tier.get("ANNOTATOR") or name
    known = {} if source == name else {"tier": name}
    source, stem = "" if source == _NOBODY else source, rows.file.stem
    for one in _annotations(tier, _ALIGNED):
        key = one.get("ANNOTATION_ID")
        start, end = slots.get(one.get("TIME_SLOT_REF1")), slots.get(one.get("TIME_SLOT_REF2"))
        if start is None or end is None:
            raise rows.file.error(
                "an annotation must have a start and an end; one of its time slots has no time.", f"annotation {key}"
            )
        probability, attributes = None, known
        for note, values in notes:
            text = values.get(key)
            if text is None:
                continue
            if text.replace(".", "", 1).isdecimal() and float(text) <= 1:
                probability = float(text)
            else:
                attributes = {**attributes, note: text}
        rows.add(f"annotation {key}", stem, start, end, _value(one), probability, source=source, attributes=attributes)


def _write_elan(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "elan"), "elan")
    media = next((about.media for about in found.recordings.values()), None)
    for label in found.labels:
        if any(one < " " and one not in "\t\n" for one in label):
            raise FormatError(f"the format 'elan' cannot hold {label!r}: it has control characters. Rename it.")
    numbers = count(1)
    slots: list[int] = []
    body: list[str] = []
    for source, rows in grouped(found, "source", "start", "end", "label", "probability").items():
        body += _elan_tier(source or _NOBODY, rows, numbers, slots)
    order = [
        f'<TIME_SLOT TIME_SLOT_ID="ts{place}" TIME_VALUE="{time}" />\n' for place, time in enumerate(slots, start=1)
    ]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        f'<ANNOTATION_DOCUMENT AUTHOR="dugong" DATE="1970-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0" '
        f"{_XSI} {_SCHEMA}>\n",
        '  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">\n',
        *([] if media is None else [_media(media)]),
        "  </HEADER>\n  <TIME_ORDER>\n",
        *order,
        "  </TIME_ORDER>\n",
        *body,
        _TYPES,
        "</ANNOTATION_DOCUMENT>\n",
    ]
    return {f"{stem}.eaf": "".join(lines).encode()}


_KINDS = {"mp4": "video/mp4", "mpg": "video/mpeg", "mov": "video/quicktime", "wav": "audio/x-wav", "mp3": "audio/mpeg"}


def _media(media: str) -> str:
    kind = _KINDS.get(media.rpartition(".")[2].lower(), "unknown")
    url = media if "://" in media else f"file://{'' if media.startswith('/') else '/'}{media}"
    near = f"./{media_stem(media)}.{media.rpartition('.')[2]}"
    return (
        f'    <MEDIA_DESCRIPTOR MEDIA_URL={quoteattr(url)} MIME_TYPE="{kind}" RELATIVE_MEDIA_URL={quoteattr(near)} />\n'
    )


def _elan_tier(name: str, rows: list[tuple[Any, ...]], numbers: Iterator[int], slots: list[int]) -> list[str]:
    """A tier and, where there are probabilities, the tier that refers to it."""
    lines = [f'  <TIER TIER_ID={quoteattr(name)} LINGUISTIC_TYPE_REF="default-lt" ANNOTATOR={quoteattr(name)}>\n']
    notes = []
    for start, end, label, p in rows:
        number = next(numbers)
        slots += [round(start * 1000), round(end * 1000)]
        lines.append(
            f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{number}" '
            f'TIME_SLOT_REF1="ts{len(slots) - 1}" TIME_SLOT_REF2="ts{len(slots)}">'
            f"<ANNOTATION_VALUE>{escape(label)}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>\n"
        )
        if p is not None:
            notes.append((number, p))
    lines.append("  </TIER>\n")
    if notes:
        parent = quoteattr(name)
        lines.append(f'  <TIER TIER_ID={quoteattr(f"{name}-p")} LINGUISTIC_TYPE_REF="p-lt" PARENT_REF={parent}>\n')
        lines += [
            f'<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a{next(numbers)}" ANNOTATION_REF="a{number}">'
            f"<ANNOTATION_VALUE>{p}</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>\n"
            for number, p in notes
        ]
        lines.append("  </TIER>\n")
    return lines


# --- Praat ------------------------------------------------------------------------------------------------------------
# Decoration is skipped in one go, numbers in brackets ("intervals [3]:") with it; then comes something that counts.
_TOKEN = re.compile(
    r'[^"<\d+\-\[]*(?:\[\d*\][^"<\d+\-\[]*)*'
    r'(?:"([^"]*(?:""[^"]*)*)"|<(\w+)>|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S))'
)


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
        return self.file.whole(self._next(3, what), what, self.line())


def _read_praat(file: File) -> Segments:
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
            _praat_tier(tokens, rows)
    return rows.done({file.stem: Recording(duration=end)})


def _praat_tier(tokens: _Scanner, rows: Intervals) -> None:
    kind, name = tokens.text("the class of a tier"), tokens.text("the name of a tier")
    tokens.number("the start of the tier")
    tokens.number("the end of the tier")
    if kind not in ("IntervalTier", "TextTier"):
        raise tokens.file.error(f"a tier must be an IntervalTier or a TextTier; found {kind!r}.", tokens.line())
    stem, source = tokens.file.stem, "" if name == _NOBODY else name
    for number in range(tokens.count("the number of intervals")):
        start = tokens.number("the start of an interval")
        end = tokens.number("the end of an interval") if kind == "IntervalTier" else start
        label = tokens.text("the text of an interval")
        if label:
            rows.add(f"tier {name!r}, interval {number + 1}", stem, start, end, label, source=source)


def _write_praat(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "praat"), "praat")
    forbid(found, r"\0", "praat")
    found = found.take(found.end > found.start)
    known = found.recordings[only(found)].seconds if found.recordings else None
    end = max(float(found.end.max(initial=0.0)), known or 0.0) or 1.0
    tiers = grouped(found, "source", "start", "end", "label")
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {_number(end)}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for place, (source, rows) in enumerate(tiers.items(), start=1):
        lines += _praat_lines(place, source or _NOBODY, _without_gaps(rows, end), end)
    return {f"{stem}.TextGrid": written(lines)}


def _without_gaps(rows: list[tuple[Any, ...]], end: float) -> list[tuple[float, float, str]]:
    """Intervals, and empty ones between them, from 0 to the end."""
    stops = [0.0, *(stop for _, stop, _ in rows)]
    starts = [*(start for start, _, _ in rows), end]
    gaps = [(stop, start, "") for stop, start in zip(stops, starts, strict=True) if stop < start]
    return sorted([*rows, *gaps])


def _praat_lines(place: int, name: str, rows: list[tuple[float, float, str]], end: float) -> list[str]:
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
        name="elan",
        title="ELAN",
        suffixes=(".eaf",),
        unit="seconds, 1 ms",
        keeps="start, end, label, probability, source (as tier), media; words on referring tiers as attributes",
        loses="resolution; overlaps inside a tier are refused",
        checked="pympi-ling",
        fits=lambda file: file.xml.tag == "ANNOTATION_DOCUMENT",
        read=_read_elan,
        write=_write_elan,
        single=True,
        aliases=("eaf",),
    ),
    Format(
        name="praat",
        title="Praat TextGrid",
        suffixes=(".TextGrid",),
        unit="seconds, exact",
        keeps="start, end, label, source (as tier), duration",
        loses="probability, instants; overlaps inside a tier are refused",
        checked="praatio",
        fits=lambda file: "TextGrid" in file.text[:200],
        read=_read_praat,
        write=_write_praat,
        single=True,
        aliases=("textgrid",),
    ),
)
