"""Which part of very many votes the search for structure looks at.

In: a reader of votes. Out: a panel of all elements, or of about `SAMPLE` of them. Pieces of sequences are chosen by a
hash of what was voted on them, never by position, name or order: shuffling sequences or sources changes nothing.
"""

from __future__ import annotations

import numpy as np

from dugong.estimate.learned.panel import Panel, Reader, stack
from dugong.estimate.learned.settings import CHUNK, SAMPLE
from dugong.infer.blocks import block_bounds
from dugong.moments._kernels import hash_sequences, spread_duplicates
from dugong.types import AnyArray, Int8Array, IntArray

_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_SALT = np.uint64(0xC4CEB9FE1A85EC53)


def read_sample(reader: Reader, most: int = SAMPLE) -> Panel:
    """All elements if there are at most `most` of them, else pieces with about so many."""
    n_elements = int(reader.offsets[-1])
    if n_elements <= most:
        return reader.read(0, n_elements)
    borders = _borders(reader.offsets)
    chosen = np.flatnonzero(spread_duplicates(_hashes(reader, borders), -(-n_elements // most)) == 0)
    return stack([reader.read(int(borders[p]), int(borders[p + 1])) for p in chosen])


def _borders(offsets: IntArray) -> IntArray:
    """Where pieces begin: at sequences, and every `CHUNK` elements inside long ones."""
    lengths = np.diff(offsets)
    pieces = np.maximum(-(-lengths // CHUNK), 1)
    owner = np.repeat(np.arange(len(lengths)), pieces)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.concatenate([offsets[:-1][owner] + inside * CHUNK, offsets[-1:]])


def _hashes(reader: Reader, borders: IntArray) -> AnyArray:
    """One number per piece: the sum over sources of a hash of their votes, so that no order enters."""
    total = np.zeros(len(borders) - 1, dtype=np.uint64)
    for place in range(len(reader.sources) + 1):
        own = np.zeros(len(total), dtype=np.uint64)
        hash_sequences(_whole_column(reader, place), borders, own)
        own = (own ^ (own >> np.uint64(33))) * _SPREAD
        total += (own ^ (own >> np.uint64(29))) * (_SALT if place == len(reader.sources) else np.uint64(1))
    return total


def _whole_column(reader: Reader, place: int) -> Int8Array:
    """All codes of one source, or, behind the last source, the known labels."""
    column = np.empty(int(reader.offsets[-1]), dtype=np.int8)
    for first, last in block_bounds(np.diff(reader.offsets)):
        begin, end = int(reader.offsets[first]), int(reader.offsets[last])
        known = place == len(reader.sources)
        column[begin:end] = reader.known(begin, end) if known else reader.column(reader.sources[place], begin, end)[0]
    return column
