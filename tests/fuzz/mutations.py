"""Ways to spoil things: bytes, text, plain data, arrays and values in the places of others."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

WORDS = ("", "text", "nan", "inf", "-1", "a\0b", "\ud800", "../x", "/", "é" * 300, "1" * 100_000, "1e400", "element")
NUMBERS = (0, -1, 1, 2, 127, 128, 257, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e-320, 1e308, -0.0, 1.5)
SHAPES = (None, True, False, [], {}, [[]], [1, [2]], {"kind": "element"}, {"kind": []}, ["a"] * 3, [0.5] * 3, {"": 0})
JUNK = (*WORDS, *NUMBERS, *SHAPES)


def flipped(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, some added or taken away, or the end cut off."""
    broken = bytearray(data)
    how = rng.random()
    if how < 0.25 or not broken:
        return bytes(broken[: rng.randrange(len(broken) + 1)])
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        place = rng.randrange(len(broken))
        if how < 0.8:
            broken[place] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
        elif how < 0.9:
            broken[place:place] = rng.randbytes(rng.choice((1, 4, 64)))
        elif len(broken) > 1:
            del broken[place : place + rng.choice((1, 4, 64))]
            broken = broken or bytearray(b"\0")
    return bytes(broken)


def spoiled_text(text: str, rng: random.Random) -> str:
    """Text with a line or a word repeated, moved, left out, or replaced by another."""
    separator = rng.choice(("\n", "\t", ",", " ", '"', ">"))
    parts = text.split(separator)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        how = rng.randrange(5)
        if how == 0 and len(parts) > 1:
            del parts[place]
        elif how == 1:
            parts.insert(place, parts[other])
        elif how == 2:
            parts[place], parts[other] = parts[other], parts[place]
        elif how == 3:
            parts[place] = str(rng.choice((*WORDS[:-2], *NUMBERS)))
        else:
            parts[place] = parts[place][: len(parts[place]) // 2]
        parts = parts or [""]
    return separator.join(parts)


def places(plain: Any) -> list[tuple[Any, ...]]:
    """The way to every part of plain data."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    return [(), *((key, *rest) for key, one in inner for rest in places(one))]


def spoiled(plain: Any, rng: random.Random) -> Any:
    """Plain data with one part, sometimes two, left out, repeated, exchanged or replaced."""
    whole = copy.deepcopy(plain)
    for _ in range(rng.choice((1, 1, 1, 2))):
        where = rng.choice(places(whole)[:5000])
        if not where:
            return rng.choice(JUNK) if rng.random() < 0.1 else whole
        part = whole
        for key in where[:-1]:
            part = part[key]
        _spoil(part, where[-1], rng)
    return whole


def _spoil(part: Any, key: Any, rng: random.Random) -> None:
    how, old = rng.random(), part[key]
    if how < 0.15:
        del part[key]
    elif how < 0.25 and isinstance(part, list):
        part.insert(key, copy.deepcopy(old))
    elif how < 0.35:
        other = rng.choice(list(part) if isinstance(part, dict) else range(len(part)))
        part[key], part[other] = part[other], part[key]
    elif how < 0.65 and isinstance(old, int | float) and not isinstance(old, bool):
        part[key] = rng.choice((-old, old + 1, old - 1, old * 1000, float(old), str(old), [old], old / 3))
    elif how < 0.7:
        part[key] = deep(rng.choice((30, 100, 250)))
    else:
        part[key] = copy.deepcopy(rng.choice(JUNK))


def deep(levels: int) -> Any:
    """Lists inside of lists."""
    inside: Any = []
    for _ in range(levels):
        inside = [inside]
    return inside


def spoiled_array(array: Any, rng: random.Random) -> Any:
    """An array of another kind, shape or content."""
    how = rng.randrange(9)
    flat = array.ravel()
    if how == 0:
        numbers = array if array.dtype.kind != "U" else np.arange(array.size).reshape(array.shape)
        return numbers.astype(rng.choice(("f4", "f8", "i8", "u1", "i1", "?", "U3", "S2", "c16", "M8[s]")), copy=True)
    if how == 1:
        return flat[: rng.randrange(len(flat) + 1)]
    if how == 2:
        return np.concatenate([flat, flat])
    if how == 3:
        return array[np.newaxis]
    if how == 4:
        return np.full(array.shape, rng.choice((np.nan, np.inf, -1.0, 1e300, 0.5)))
    if how == 5:
        return np.zeros((0,) * max(array.ndim, 1), dtype=array.dtype)
    if array.dtype.kind in "iuf" and len(flat):
        changed = array.astype(np.int64 if array.dtype.kind != "f" else float)
        place = rng.randrange(len(flat))
        changed.flat[place] = rng.choice((-1, -128, 127, 2**40, 2**62, -(2**62), 0))
        return changed if how == 6 else changed.clip(-128, 127).astype(array.dtype)
    return np.array([rng.choice(WORDS[:-2]) for _ in flat]).reshape(array.shape)
