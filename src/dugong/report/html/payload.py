"""The data of the timelines, as compact JSON that cannot leave its script element.

In: `Sequences`. Out: text. Votes and labels are packed (`pack`); ``assets/data.js`` reads them back.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dugong.report.html.svg import class_colours
from dugong.report.html.tags import clean
from dugong.report.media import Frames, Media, Words
from dugong.report.track import Lane, Sequences, Track, VoterInfo, bits_for, pack, pack_logs
from dugong.types import AnyArray, FloatArray, IntArray

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def payload(sequences: Sequences) -> str:
    """JSON for a script element: no "<" in it, whatever the names are."""
    n_classes = len(sequences.classes)
    light, dark = class_colours(n_classes)
    two = class_colours(2)
    data = {
        "classes": [clean(one) for one in sequences.classes],
        "colours": {"light": light, "dark": dark, "two": {"light": two[0], "dark": two[1]}},
        "bits": bits_for(n_classes + 1),
        "lanes": [
            {"name": clean(one.name), "kind": one.kind, "labels": [clean(label) for label in one.labels]}
            for one in sequences.lanes
        ],
        "voters": [_voter(one) for one in sequences.voters],
        "order": sequences.order,
        "path": sequences.path,
        "tracks": [_track(one, sequences, n_classes) for one in sequences.tracks],
    }
    return embed(data)


def embed(data: Any) -> str:
    """Plain data as JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, code in _ESCAPES.items():
        text = text.replace(sign, code)
    return text


def _voter(voter: VoterInfo) -> dict[str, Any]:
    table = voter.evidence
    return {
        "name": clean(voter.name),
        "lane": voter.lane,
        "codes": [clean(one) for one in voter.codes],
        "classes": voter.classes,
        "bits": bits_for(len(voter.codes)),
        "parents": voter.parents,
        "shape": None if table is None else list(table.shape),
        "table": None if table is None else [_figure(one) for one in table.reshape(-1).tolist()],
    }


def _track(track: Track, sequences: Sequences, n_classes: int) -> dict[str, Any]:
    bits = bits_for(n_classes + 1)
    return {
        "name": clean(track.name),
        "place": track.place,
        "length": track.length,
        "begin": track.begin,
        "end": track.end,
        "uncertainty": _figure(track.uncertainty),
        "disagreement": _figure(track.disagreement),
        "difference": _figure(track.difference),
        "wrong": _figure(track.wrong),
        "wrongPath": _figure(track.wrong_path),
        "seconds": track.seconds,
        "lanes": [_lane(one, track.length) for one in track.lanes],
        "votes": [
            pack(codes, bits_for(len(voter.codes))) for codes, voter in zip(track.votes, sequences.voters, strict=True)
        ],
        "labels": _labels(track.labels, n_classes, bits),
        "decoded": _labels(track.decoded, n_classes, bits),
        "majority": _labels(track.majority, n_classes, bits),
        "gold": None if track.gold is None else _labels(track.gold, n_classes, bits),
        "media": None if track.media is None else _media(track.media),
    }


def _media(media: Media) -> dict[str, Any]:
    if isinstance(media, Words):
        return {"kind": "words", "words": [clean(word) for word in media.words]}
    if isinstance(media, Frames):
        images = [pack(one, 6) for one in media.images]
        size = {"width": media.width, "height": media.height}
        return {"kind": "frames", "places": media.places.tolist(), **size, "images": images}
    channels = [
        {
            "name": clean(one.name),
            "low": pack(one.low, 6),
            "high": pack(one.high, 6),
            "bottom": _figure(one.bottom),
            "top": _figure(one.top),
        }
        for one in media.channels
    ]
    return {"kind": "signals", "channels": channels}


def _labels(places: AnyArray, n_classes: int, bits: int) -> str:
    return pack(np.where(places < 0, n_classes, places), bits)


def _lane(lane: Lane, length: int) -> dict[str, Any]:
    return {
        "first": lane.first,
        "n": len(lane.starts),
        **geometry(lane.starts, lane.stops, length),
        "post": _logs(lane.log_probability),
        "prior": _logs(lane.log_prior),
        "exact": None if lane.log_exact is None else _logs(lane.log_exact),
    }


def geometry(starts: IntArray, stops: IntArray, length: int) -> dict[str, Any]:
    """Start, stride and size if the tasks are regular, else all borders."""
    if len(starts):
        stride = int(starts[1] - starts[0]) if len(starts) > 1 else 1
        size = int((stops - starts).max())
        regular = starts[0] + stride * np.arange(len(starts))
        if np.array_equal(starts, regular) and np.array_equal(stops, np.minimum(regular + size, length)):
            return {"start": int(starts[0]), "stride": stride, "size": size}
    return {"starts": starts.tolist(), "stops": stops.tolist()}


def _logs(laws: FloatArray) -> list[float | str]:
    """Log-odds of the second class if there are two, else log-probabilities of each; one number where all are equal."""
    with np.errstate(invalid="ignore"):
        columns = [laws[:, 1] - laws[:, 0]] if laws.shape[1] == 2 else list(laws.T)
    constant = [len(one) and np.isfinite(one).all() and np.ptp(one) < 1e-9 for one in columns]
    return [round(float(one[0]), 6) if same else pack_logs(one) for one, same in zip(columns, constant, strict=True)]


def _figure(value: float | None) -> float | None:
    """Rounded; None for what is not known, and for minus infinity in tables."""
    return None if value is None or not np.isfinite(value) else round(value, 5)
