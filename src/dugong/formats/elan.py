"""ELAN annotation files: one tier per source, times in milliseconds; one sequence per file.

The probability of an annotation is on a tier that refers to it (Symbolic_Association). When a file is read, tiers that
refer to others give probabilities where they hold numbers between 0 and 1, and attributes where they hold words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from dugong.exceptions import FormatError
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import apart, columns, media_stem, placed
from dugong.segments import Recording, Segments

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


# --- reading -----------------------------------------------------------------------------------------------------
def _read(file: File) -> Segments:
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
            found[one.get("TIME_SLOT_ID")] = (int(time) if time.isdigit() else file.number(time, "a time", time)) / 1000
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
            if text.replace(".", "", 1).isdigit() and float(text) <= 1:
                probability = float(text)
            else:
                attributes = {**attributes, note: text}
        rows.add(f"annotation {key}", stem, start, end, _value(one), probability, source=source, attributes=attributes)


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    found = apart(placed(segments, "second", "elan"), "elan")
    media = next((about.media for about in found.recordings.values()), None)
    tiers: dict[str, list[tuple[int, int, str, float | None]]] = {source: [] for source in found.sources}
    for source, start, end, label, p in columns(found, "source", "start", "end", "label", "probability"):
        if any(one < " " and one not in "\t\n" for one in label):
            raise FormatError(f"the format 'elan' cannot hold {label!r}: it has control characters. Rename it.")
        tiers[source].append((round(start * 1000), round(end * 1000), label, p))
    numbers = count(1)
    slots: list[int] = []
    body: list[str] = []
    for source, rows in (tiers or {"": []}).items():
        body += _tier(source or _NOBODY, rows, numbers, slots)
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


def _tier(
    name: str, rows: list[tuple[int, int, str, float | None]], numbers: Iterator[int], slots: list[int]
) -> list[str]:
    """A tier and, where there are probabilities, the tier that refers to it."""
    lines = [f'  <TIER TIER_ID={quoteattr(name)} LINGUISTIC_TYPE_REF="default-lt" ANNOTATOR={quoteattr(name)}>\n']
    notes = []
    for start, end, label, p in rows:
        number = next(numbers)
        slots += [start, end]
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
        read=_read,
        write=_write,
        single=True,
        aliases=("eaf",),
    ),
)
