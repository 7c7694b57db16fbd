"""Which elements of long sequences are learned from, and which of these the search for structure looks at.

In: a reader of votes, or a panel. Out: a panel of all elements, or of about `PART`, then `SEARCHED` of them. Pieces of
sequences are chosen by a hash of what was voted on them, never by position, name or order: shuffling sequences or
sources changes nothing.
"""

from __future__ import annotations

import numpy as np

from dugong.fit.learned.folded import Folded
from dugong.fit.learned.panel import Panel, Reader, stack
from dugong.fit.learned.part import choose_pieces
from dugong.fit.learned.settings import CHUNK, PART, SEARCHED
from dugong.infer.blocks import block_bounds
from dugong.sums._kernels import add_hashes
from dugong.tasks.layout import ranges
from dugong.types import AnyArray, Int8Array, IntArray


def thin(panel: Panel, folded: Folded, most: int = SEARCHED) -> Panel:
    """The same panel if at most twice `most` elements have two votes, else pieces of it with about so many.

    Elements with fewer votes say nothing about how sources go together.
    """
    # Counted in elements with two votes, because only these can show that sources go together.
    n = -(-int(folded.sizes @ (folded.rows.spoken().sum(axis=1) > 1)) // most)
    if n <= 2:
        return panel
    first = np.append(np.flatnonzero(panel.starts), len(panel))
    borders = _borders(first)
    hashes = _hash_content(panel, borders)
    begins = np.zeros(len(panel), dtype=np.bool_)
    begins[borders[:-1]] = True
    return panel.rows(np.flatnonzero(np.repeat(choose_pieces(hashes, n), np.diff(borders))), begins)


def _hash_content(panel: Panel, borders: IntArray) -> AnyArray:
    """A number for every piece that follows from its votes and known labels."""
    hashes = np.zeros(len(borders) - 1, dtype=np.uint64)
    for place in range(panel.n_sources):
        add_hashes(np.ascontiguousarray(panel.codes[:, place]), borders, np.uint64(0), hashes)
    add_hashes(panel.known, borders, np.uint64(1), hashes)
    return hashes


def in_order(panel: Panel) -> Panel:
    """The same sequences in an order that follows from what was voted on them."""
    first = np.append(np.flatnonzero(panel.starts), len(panel))
    order = np.argsort(_hash_content(panel, first), kind="stable")
    return panel.rows(ranges(first[:-1][order], np.diff(first)[order]), panel.starts)


def read_sample(reader: Reader, most: int = PART) -> tuple[Panel, IntArray | None]:
    """All elements if there are at most twice `most` of them, else pieces with about so many, and which these are."""
    n_elements = int(reader.offsets[-1])
    if n_elements <= 2 * most:
        return reader.read(0, n_elements), None
    borders = _borders(reader.offsets)
    chosen = choose_pieces(_hashes(reader, borders), -(-n_elements // most))
    begins = np.zeros(n_elements, dtype=np.bool_)
    begins[borders[:-1][np.diff(borders) > 0]] = True
    rows = np.repeat(chosen, np.diff(borders))
    parts = []
    for first, last in block_bounds(reader.offsets):
        begin, end = int(reader.offsets[first]), int(reader.offsets[last])
        parts.append(reader.read(begin, end).rows(np.flatnonzero(rows[begin:end]), begins[begin:end]))
    return stack(parts), np.flatnonzero(rows)


def _borders(offsets: IntArray) -> IntArray:
    """Where pieces begin: at sequences, and every `CHUNK` elements inside long ones."""
    lengths = np.diff(offsets)
    # Long sequences are cut, because a few of them would otherwise be all of the sample or none of it.
    pieces = np.maximum(-(-lengths // CHUNK), 1)
    owner = np.repeat(np.arange(len(lengths)), pieces)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.concatenate([offsets[:-1][owner] + inside * CHUNK, offsets[-1:]])


def _hashes(reader: Reader, borders: IntArray) -> AnyArray:
    """One number per piece: the sum over sources of a hash of their votes, so that no order enters."""
    total = np.zeros(len(borders) - 1, dtype=np.uint64)
    for place in range(len(reader.sources)):
        add_hashes(_whole_column(reader, place), borders, np.uint64(0), total)
    if reader.evidence is not None:
        add_hashes(_whole_column(reader, len(reader.sources)), borders, np.uint64(1), total)
    return total


def _whole_column(reader: Reader, place: int) -> Int8Array:
    """All codes of one source, or, behind the last source, the known labels."""
    column = np.empty(int(reader.offsets[-1]), dtype=np.int8)
    for first, last in block_bounds(reader.offsets):
        begin, end = int(reader.offsets[first]), int(reader.offsets[last])
        known = place == len(reader.sources)
        column[begin:end] = reader.known(begin, end) if known else reader.column(reader.sources[place], begin, end)
    return column
