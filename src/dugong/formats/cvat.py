"""CVAT for images and for video: labels of frames as XML; one sequence per file.

Images: every frame has tags; neighbouring frames with the same tag become one interval. Video: an interval is a track
whose box covers the whole picture, shown from its first frame and outside at the first frame after it. Frames are
elements, counted from 0. The probability is an attribute ``p``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from math import fsum
from operator import itemgetter
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals, columns, forbid, only, placed
from dugong.segments import Recording, Segments

_P = "<attribute><name>p</name><mutable>True</mutable><input_type>number</input_type><default_value>0</default_value>"
_ATTRIBUTES = f"<attributes>{_P}<values>0\n1\n0.001</values></attribute></attributes>"


def _fits(file: File, *, mode: str) -> bool:
    if file.xml.tag != "annotations" or file.xml.find("meta") is None:
        return False
    said = file.xml.findtext("meta/task/mode")
    video = said == "interpolation" if said else file.xml.find("track") is not None
    return mode == ("video" if video else "images")


# --- reading -----------------------------------------------------------------------------------------------------
def _read(file: File) -> Segments:
    if file.xml.tag != "annotations":
        raise file.error(f"a CVAT file must begin with annotations; found {file.xml.tag}.")
    rows = Intervals(file, "element")
    name = file.xml.findtext("meta/task/name") or file.stem
    size = file.xml.findtext("meta/task/size")
    for track in file.xml.iterfind("track"):
        _add_track(rows, name, track)
    _add_tags(rows, name, file.xml)
    length = None if size is None else file.whole(size, "the size of the task", "meta")
    return rows.done({name: Recording(length=length, media=file.xml.findtext("meta/source") or None)}).sort()


def _probability(file: File, one: Element | None, where: str) -> float | None:
    for attribute in one if one is not None else ():
        if attribute.get("name") == "p" and attribute.text:
            return file.number(attribute.text, "the probability", where)
    return None


def _add_track(rows: Intervals, name: str, track: Element) -> None:
    """Stretches of frames in which the box of a track is shown."""
    where = f"track {track.get('id')}"
    found = [(rows.file.whole(box.get("frame"), "a frame", where), box) for box in track if box.get("frame")]
    boxes = sorted(found, key=itemgetter(0))
    start: int | None = None
    share: float | None = None
    last = boxes[-1][0] + 1 if boxes else 0
    for frame, box in [*boxes, (last, None)]:
        shown = box is not None and box.get("outside") != "1"
        if shown and start is None:
            start, share = frame, _probability(rows.file, box, where)
        elif not shown and start is not None:
            rows.add(where, name, start, frame, track.get("label", ""), share, source=_source(track))
            start = None


def _source(one: Element) -> str:
    """Who: CVAT knows that a program said so ("auto"), or a person ("manual")."""
    return "" if one.get("source", "auto") == "auto" else str(one.get("source"))


def _add_tags(rows: Intervals, name: str, root: Element) -> None:
    """Stretches of frames that have the same tag, from the same source."""
    seen: dict[tuple[str, str], dict[int, list[float]]] = {}
    for image in root.iterfind("image"):
        where = f"image {image.get('id')}"
        frame = rows.file.whole(image.get("id"), "the id of an image", where) if len(image) else 0
        for tag in image:
            if tag.tag == "tag":  # all else is a region of the picture
                shares = seen.setdefault((tag.get("label", ""), _source(tag)), {}).setdefault(frame, [])
                share = _probability(rows.file, tag, where)
                shares += [] if share is None else [share]
    for (label, source), frames in seen.items():
        for _, run in groupby(enumerate(sorted(frames)), key=lambda pair: pair[1] - pair[0]):
            places = [frame for _, frame in run]
            given = [share for place in places for share in frames[place]]
            mean = round(fsum(given) / len(given), 12) if given else None
            rows.add(f"image {places[0]}", name, places[0], places[-1] + 1, label, mean, source=source)


# --- writing -----------------------------------------------------------------------------------------------------
def _write(segments: Segments, stem: str, options: Mapping[str, Any], *, mode: str) -> Files:
    found = placed(segments, "element", f"cvat-{mode}").sort()
    forbid(found, r"\0-\x08\x0b-\x1f", f"cvat-{mode}")
    name = only(found) if found.recordings else stem
    known = found.recordings[name].n_elements if found.recordings else None
    length = max(int(found.end.max(initial=0.0)), known or 0)
    width, height = options.get("size", (1, 1))
    labels = "".join(f"<label><name>{escape(one)}</name>{_ATTRIBUTES}</label>" for one in found.labels)
    head = (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n<meta><task><id>1</id>'
        f"<name>{escape(name)}</name><size>{length}</size>"
        f"<mode>{'interpolation' if mode == 'video' else 'annotation'}</mode><overlap>0</overlap>"
        f"<flipped>False</flipped><labels>{labels}</labels><original_size><width>{width}</width>"
        f"<height>{height}</height></original_size></task></meta>\n"
    )
    body = _tracks(found, length, width, height) if mode == "video" else _images(found, width, height)
    return {f"{stem}.xml": (head + "".join(body) + "</annotations>\n").encode()}


def _attribute(p: float | None) -> str:
    return "" if p is None else f'<attribute name="p">{p}</attribute>'


def _tracks(segments: Segments, length: int, width: int, height: int) -> Iterator[str]:
    """Two boxes per interval: shown at its first frame, and outside (or shown at the very last) at its end."""
    box = f'occluded="0" keyframe="1" xtl="0" ytl="0" xbr="{width}" ybr="{height}" z_order="0"'
    rows = columns(segments, "start", "end", "label", "probability")
    for number, (start, end, label, p) in enumerate(rows):
        inside = end < length
        closing = [(int(end), 1)] if inside else [(int(end) - 1, 0)] if end - start > 1 else []
        boxes = "".join(
            f'<box frame="{frame}" outside="{outside}" {box}>{_attribute(p)}</box>\n'
            for frame, outside in [(int(start), 0), *closing]
        )
        yield f'<track id="{number}" label={quoteattr(label)} source="auto">\n{boxes}</track>\n'


def _images(segments: Segments, width: int, height: int) -> Iterator[str]:
    """Every frame that has a tag."""
    tags: dict[int, list[str]] = {}
    for start, end, label, p in columns(segments, "start", "end", "label", "probability"):
        tag = f'<tag label={quoteattr(label)} source="auto">{_attribute(p)}</tag>'
        for frame in range(int(start), int(end)):
            tags.setdefault(frame, []).append(tag)
    for frame in sorted(tags):
        name = f'name="frame_{frame:06d}.png" width="{width}" height="{height}"'
        yield f'<image id="{frame}" {name}>{"".join(tags[frame])}</image>\n'


FORMATS = tuple(
    Format(
        name=f"cvat-{mode}",
        title=f"CVAT for {mode}",
        suffixes=(".xml",),
        unit="elements (frames), exact",
        keeps="start, end, label, probability, length",
        loses="source" + ("; borders between touching intervals of one label" if mode == "images" else ""),
        checked="datumaro",
        fits=partial(_fits, mode=mode),
        read=_read,
        write=partial(_write, mode=mode),
        single=True,
        options=("size",),
        aliases=("cvat",) if mode == "video" else (),
    )
    for mode in ("images", "video")
)
